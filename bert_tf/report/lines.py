"""Results over a size or a time, drawn as lines."""

import dataclasses
from collections.abc import Sequence

from bert_tf.report.png import new_figure, to_png


@dataclasses.dataclass
class Line:
    """One line of a picture.

    Attributes:
        name: what it is of.
        x, y: its points, by ascending x.
    """

    name: str
    x: list[float]
    y: list[float]

    def add(self, x: float, y: float) -> None:
        """Adds a point behind the others."""
        self.x.append(x)
        self.y.append(y)


def draw_lines(lines: Sequence[Line], axis: str, logarithmic: bool = False) -> bytes:
    """A PNG of all lines, in percent over what `axis` says."""
    figure, panel = new_figure(figsize=(7, 4))
    for line in lines:
        panel.plot(line.x, line.y, marker="o", label=line.name)
    if logarithmic:
        panel.set_xscale("log")
        # Its own labels are formulas, which `png.new_figure` leaves unread.
        panel.xaxis.set_major_formatter("{x:.3g}")
        panel.set_xticks(sorted({x for line in lines for x in line.x}))
        panel.minorticks_off()
    panel.set_xlabel(axis)
    panel.set_ylabel("percent")
    panel.grid(alpha=0.3)
    panel.legend(fontsize="small")
    return to_png(figure)
