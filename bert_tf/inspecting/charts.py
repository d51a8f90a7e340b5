"""Charts and tables of the page, from numbers alone."""

from collections.abc import Sequence

import numpy as np

from bert_tf.inspecting.calibration import Calibration, Confusions
from bert_tf.inspecting.frame import Frame, line
from bert_tf.inspecting.markup import Html, figures, table, tag

# Colours that people of any colour vision can distinguish (Okabe and Ito 2008).
_COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#d55e00", "#56b4e9", "#8c7a00", "#000000")
BLUE, ORANGE = (0, 114, 178), (213, 94, 0)
_WIDTH, _HEIGHT, _SIDE = 620, 400, 300


def bars(names: Sequence[str], shares: Sequence[float]) -> Html:
    """A bar for each probability, and the number; the names of the greatest are bold."""
    most = max(shares, default=0)
    rows = [
        (
            tag("strong", name) if share == most else name,
            tag("td", tag("div", class_="bar", style=f"width:{max(share, 0.002) * 14:.2f}rem")),
            figures(share) if share >= 0.0005 else "< 0.001",
        )
        for name, share in zip(names, shares, strict=True)
    ]
    return table(("", "", "probability"), rows, class_="bars")


def scatter(
    places: np.ndarray,
    names: Sequence[str],
    colours: Sequence[str],
    axes: tuple[str, str],
    marks: Sequence[tuple[str, np.ndarray]] = (),
    diagonal: bool = False,
) -> Html:
    """Points in a plane.

    Args:
        places: float [points, 2].
        names: the tooltip of each point.
        colours: the colour of each point.
        axes: the labels of the horizontal and the vertical axis.
        marks: names and places, float [2], of points that stand out.
        diagonal: whether both axes have the same numbers, and the line of equal ones is drawn.
    """
    everything = np.concatenate([places, *(place[None, :] for _, place in marks)])
    frame = Frame.around(everything, _WIDTH, _HEIGHT, square=diagonal)
    drawn = []
    if diagonal:
        ends = (*frame.on_paper(frame.low), *frame.on_paper(frame.high))
        drawn.append(line(*ends, stroke="#666", stroke_dasharray="4 4"))
    for place, name, colour in zip(places, names, colours, strict=True):
        x, y = frame.on_paper(place)
        drawn.append(
            tag("circle", tag("title", name), cx=x, cy=y, r=4, fill=colour, fill_opacity=0.65)
        )
    for name, place in marks:
        drawn += _mark(name, *frame.on_paper(place))
    return frame.drawn(axes, drawn, f"{len(places)} points: {axes[1]} over {axes[0]}")


def _mark(name: str, x: float, y: float) -> list[Html]:
    """A ring with its name, on the side where there is room."""
    at_right = x > 0.75 * _WIDTH
    anchor = {"x": x + (-11 if at_right else 11), "text_anchor": "end" if at_right else "start"}
    return [
        tag("circle", cx=x, cy=y, r=7, fill="none", stroke="#000", stroke_width=2.5),
        tag("text", name, y=y + 4, class_="mark", **anchor),
    ]


def legend(names: Sequence[str], colours: Sequence[str]) -> Html:
    """What the colours mean."""
    entries = (
        tag("span", tag("span", "", class_="swatch", style=f"background:{colour}"), name)
        for name, colour in zip(names, colours, strict=True)
    )
    return tag("p", *entries, class_="legend")


def colours_of(many: int) -> list[str]:
    """So many different colours."""
    if many <= len(_COLOURS):
        return list(_COLOURS[:many])
    return [f"hsl({360 * i // many} 70% 42%)" for i in range(many)]


def between(share: float) -> str:
    """A colour from blue (0) to orange (1)."""
    mixed = (round(a + share * (b - a)) for a, b in zip(BLUE, ORANGE, strict=True))
    return f"rgb({' '.join(map(str, mixed))})"


def shade(colour: tuple[int, int, int], strength: float) -> str:
    """The style of a background, from none (0) to full (1)."""
    return f"background:rgb({' '.join(map(str, colour))} / {strength:.2f})"


def confusion_table(confusions: Confusions) -> Html:
    """Rows are what was given, columns what was predicted; shades are shares of a row."""
    names, counts = confusions
    totals = counts.sum(axis=1)

    def cell(given: int, predicted: int) -> Html:
        share = counts[given, predicted] / max(totals[given], 1)
        colour = BLUE if given == predicted else ORANGE
        hint = f"{names[given]}, predicted as {names[predicted]}: {share:.1%}"
        strength = 0.8 * share
        return tag("td", str(counts[given, predicted]), style=shade(colour, strength), title=hint)

    rows = [
        (name, *(cell(given, predicted) for predicted in range(len(names))), str(totals[given]))
        for given, name in enumerate(names)
    ]
    return table(("given ↓ predicted →", *names, "all"), rows, class_="confusions")


def reliability(calibration: Calibration) -> Html:
    """How often predictions are right over how sure they are, and how many there are."""
    bins = len(calibration.counts)
    frame = Frame(np.zeros(2), np.ones(2), _SIDE, _SIDE)
    (left, base), (right, top) = frame.on_paper((0, 0)), frame.on_paper((1, 1))
    drawn = [line(left, base, right, top, stroke="#666", stroke_dasharray="4 4")]
    counts = calibration.counts / max(calibration.counts.max(), 1)
    for i, accuracy in enumerate(calibration.accuracy):
        if not calibration.counts[i]:
            continue
        hint = (
            f"{calibration.counts[i]} predictions: {calibration.confidence[i]:.1%} sure, "
            f"{accuracy:.1%} right"
        )
        drawn.append(_bar(frame, i / bins, 1 / bins, counts[i], "#ccc", hint))
        drawn.append(_bar(frame, (i + 0.25) / bins, 0.5 / bins, accuracy, _COLOURS[0], hint))
        x, y = frame.on_paper((calibration.confidence[i], accuracy))
        drawn.append(tag("circle", tag("title", hint), cx=x, cy=y, r=4, fill=_COLOURS[4]))
    return frame.drawn(
        ("probability of the prediction", "share that is right"), drawn, "reliability"
    )


def _bar(frame: Frame, start: float, width: float, tall: float, colour: str, told: str) -> Html:
    (left, top), (right, base) = frame.on_paper((start, tall)), frame.on_paper((start + width, 0))
    return tag(
        "rect",
        tag("title", told),
        x=left,
        y=top,
        width=round(right - left, 1),
        height=round(base - top, 1),
        fill=colour,
        fill_opacity=0.7,
    )
