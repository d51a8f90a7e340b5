"""Results over a size or a time, drawn as lines."""

import dataclasses
import io
from collections.abc import Sequence


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
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, panel = pyplot.subplots(figsize=(7, 4), layout="constrained")
    for line in lines:
        panel.plot(line.x, line.y, marker="o", label=line.name)
    if logarithmic:
        panel.set_xscale("log")
    panel.set_xlabel(axis)
    panel.set_ylabel("percent")
    panel.grid(alpha=0.3)
    panel.legend(fontsize="small")
    picture = io.BytesIO()
    figure.savefig(picture, format="png", dpi=120)
    pyplot.close(figure)
    return picture.getvalue()
