"""Charts and tables of the page, from numbers alone; charts.html decides what they look like."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from markupsafe import Markup

from bert_tf.templates import COLOURS, macros

_TEMPLATE = macros("bert_tf/interpret/charts.html")
# A number as an answer; a table with a heading, and a name and numbers in each row (NaN is a dash);
# and a table of confusions, from names and int [classes given, classes predicted].
score, table, confusion_table = _TEMPLATE.score, _TEMPLATE.table, _TEMPLATE.confusions
_BLUE, _ORANGE = (0, 114, 178), (213, 94, 0)


class Frame(NamedTuple):
    """A rectangle of pixels for points of two numbers; its corners are at `low` and `high`."""

    low: np.ndarray
    high: np.ndarray
    width: int
    height: int

    @classmethod
    def around(cls, places: np.ndarray, square: bool = False) -> "Frame":
        """A frame for float [points, 2]; a `square` one has the same numbers on both axes."""
        low, high = places.min(axis=0), places.max(axis=0)
        if square:
            low, high = np.full(2, low.min()), np.full(2, high.max())
        room = 0.05 * np.where(high > low, high - low, 1.0)
        return cls(low - room, high + room, 620, 400)

    def pixels(self, places: Any) -> list:
        """Pixels from the left and from the top: float [..., 2] -> the same as nested lists."""
        shares = (np.asarray(places) - self.low) / (self.high - self.low)
        from_below = shares * (self.width, -self.height)
        return np.round(from_below + (0, self.height), 1).tolist()

    def box(self, start: float, width: float, height: float) -> tuple[float, float, float, float]:
        """A bar on the horizontal axis, in pixels: left, top, width and height."""
        (left, top), (right, base) = self.pixels([(start, height), (start + width, 0)])
        return left, top, round(right - left, 1), round(base - top, 1)

    def ticks(self, axis: int) -> list[tuple[float, str]]:
        """Round numbers along the horizontal axis 0 or the vertical axis 1, with their pixels."""
        low, high = self.low[axis], self.high[axis]
        rough = (high - low) / 5  # about five ticks
        power = 10.0 ** math.floor(math.log10(rough))
        step = power * next(each for each in (1, 2, 5, 10) if each * power >= rough * 0.999)
        first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
        values = step * np.arange(first, last + 1)
        pixels = self.pixels(np.stack([values, values], axis=1))
        return [
            (pixel[axis], f"{value:.4g}".replace("-", "−"))
            for pixel, value in zip(pixels, values, strict=True)
        ]


def bars(names: Sequence[str], shares: Sequence[float], title: str = "") -> Markup:
    """A bar for each probability, and the number; the names of the greatest are bold."""
    return _TEMPLATE.bars([*zip(names, shares, strict=True)], title)


def scatter(
    places: np.ndarray,
    names: Sequence[str],
    colours: Sequence[str],
    axes: tuple[str, str],
    marks: Sequence[tuple[str, np.ndarray]] = (),
    legend: Sequence[tuple[str, str]] = (),
    diagonal: bool = False,
) -> Markup:
    """Points in a plane, float [points, 2], with tooltips, and marked places, float [2].

    With `diagonal`, both axes have the same numbers, and the line of equal ones is drawn.
    """
    everything = np.concatenate([places, *(place[None, :] for _, place in marks)])
    frame = Frame.around(everything, square=diagonal)
    points = [*zip(frame.pixels(places), names, colours, strict=True)]
    rings = [(name, frame.pixels(place)) for name, place in marks]
    return _TEMPLATE.scatter(frame, axes, points, rings, legend, diagonal)


def colours_of(many: int) -> list[str]:
    """`many` different colours."""
    if many <= len(COLOURS):
        return list(COLOURS[:many])
    return [f"hsl({360 * i // many} 70% 42%)" for i in range(many)]


def between(share: float) -> str:
    """A colour from blue (0) to orange (1)."""
    mixed = (round(a + share * (b - a)) for a, b in zip(_BLUE, _ORANGE, strict=True))
    return f"rgb({' '.join(map(str, mixed))})"


def reliability(counts: np.ndarray, confidence: np.ndarray, accuracy: np.ndarray) -> Markup:
    """The accuracy of predictions against their confidence, and their number, each [bins]."""
    frame = Frame(np.zeros(2), np.ones(2), 300, 300)
    bins, share = len(counts), counts / max(counts.max(), 1)
    drawn = [
        (
            counts[i],
            confidence[i],
            accuracy[i],
            frame.box(i / bins, 1 / bins, share[i]),
            frame.box((i + 0.25) / bins, 0.5 / bins, accuracy[i]),
            frame.pixels((confidence[i], accuracy[i])),
        )
        for i in np.flatnonzero(counts)
    ]
    return _TEMPLATE.reliability(frame, drawn)
