"""Figures of matplotlib as files, made without a screen."""

import io
import warnings
from typing import Any

from bert_tf.extras import optional


def new_figure(*args: Any, **kwargs: Any) -> tuple[Any, Any]:
    """What `pyplot.subplots` gives for the same arguments.

    Raises:
        UserError: matplotlib is not installed.
    """
    matplotlib = optional("matplotlib", "report", "a picture")
    matplotlib.use("Agg")
    # Names of runs and labels are no formulas, whatever signs of dollars they hold.
    matplotlib.rcParams["text.parse_math"] = False
    from matplotlib import pyplot

    return pyplot.subplots(*args, layout="constrained", **kwargs)


def to_png(figure: Any) -> bytes:
    """The figure as a PNG; it cannot be used afterwards."""
    from matplotlib import pyplot

    picture = io.BytesIO()
    with warnings.catch_warnings():
        # Of letters that the font lacks, such as Chinese ones.
        warnings.filterwarnings("ignore", "Glyph .* missing")
        figure.savefig(picture, format="png", dpi=120)
    pyplot.close(figure)
    return picture.getvalue()
