"""Figures of matplotlib as PNG files, drawn without a screen."""

import io
import warnings
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
