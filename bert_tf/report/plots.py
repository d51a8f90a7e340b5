"""Figures of matplotlib as PNG files, drawn without a screen."""

import io
import warnings
from collections.abc import Sequence
from typing import Any

from bert_tf.dependencies import optional


def new_figure(*args: Any, **kwargs: Any) -> tuple[Any, Any]:
    """A figure and its panels, as `pyplot.subplots` returns them for the same arguments."""
    matplotlib = optional("matplotlib", "report", "a picture")
    matplotlib.use("Agg")
    # A "$" in the name of a run or a label does not begin a formula.
    matplotlib.rcParams["text.parse_math"] = False
    from matplotlib import pyplot

    return pyplot.subplots(*args, layout="constrained", **kwargs)


def to_png(figure: Any) -> bytes:
    """The figure as a PNG; it cannot be used afterwards."""
    from matplotlib import pyplot

    picture = io.BytesIO()
    with warnings.catch_warnings():
        # The font lacks some letters, such as Chinese ones.
        warnings.filterwarnings("ignore", "Glyph .* missing")
        figure.savefig(picture, format="png", dpi=120)
    pyplot.close(figure)
    return picture.getvalue()


# The name of a line, and its points (x, y) by ascending x.
Line = tuple[str, list[tuple[float, float]]]


def draw_lines(lines: Sequence[Line], axis: str, logarithmic: bool = False) -> bytes:
    """A PNG of all lines; `axis` is the label of x, and y is in percent."""
    figure, panel = new_figure(figsize=(7, 4))
    for name, points in lines:
        panel.plot(*zip(*points, strict=True), marker="o", label=name)
    if logarithmic:
        panel.set_xscale("log")
        # The default labels of such an axis are formulas, which `new_figure` switches off.
        panel.xaxis.set_major_formatter("{x:.3g}")
        panel.set_xticks(sorted({x for _, points in lines for x, _ in points}))
        panel.minorticks_off()
    panel.set_xlabel(axis)
    panel.set_ylabel("percent")
    panel.grid(alpha=0.3)
    panel.legend(fontsize="small")
    return to_png(figure)
