"""Figures of matplotlib as files, made without a screen."""

import io
from typing import Any


def new_figure(*args: Any, **kwargs: Any) -> tuple[Any, Any]:
    """What `pyplot.subplots` gives for the same arguments."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    return pyplot.subplots(*args, layout="constrained", **kwargs)


def to_png(figure: Any) -> bytes:
    """The figure as a PNG; it cannot be used afterwards."""
    from matplotlib import pyplot

    picture = io.BytesIO()
    figure.savefig(picture, format="png", dpi=120)
    pyplot.close(figure)
    return picture.getvalue()
