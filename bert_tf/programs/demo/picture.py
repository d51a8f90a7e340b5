"""The picture of the demo's results: accuracies, the curve of the pre-training, confusions."""

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

from bert_tf.report.curves import Curves
from bert_tf.report.plots import new_figure, to_png

_GREY, _BLUE, _ORANGE = "#999999", "#0072b2", "#e69f00"
_METRIC = "masked_lm_accuracy"
# Kind of curve -> how it is drawn.
_CURVES: dict[str, dict[str, Any]] = {
    "train": {"label": "training text", "color": _ORANGE, "linewidth": 1.2},
    "dev": {"label": "held-out text", "color": _BLUE, "marker": "o"},
}


def draw(
    accuracies: Mapping[str, float],
    pretraining: Mapping[str, Curves],
    right: Sequence[str],
    predicted: Sequence[str],
) -> bytes:
    """A PNG of three panels: accuracies, the curve of the pre-training, and a confusion matrix.

    Args:
        accuracies: what was measured -> a share; the last one is highlighted.
        pretraining: the curves that the pre-training logged, by "train" and "dev".
        right: the right label of each test passage.
        predicted: the label that the model predicts for it.

    Raises:
        UserError: matplotlib is not installed.
    """
    figure, (bars, curve, confusions) = new_figure(1, 3, figsize=(15, 4.6))
    colours = [_GREY] * (len(accuracies) - 1) + [_BLUE]
    names = [textwrap.fill(name, 16, break_on_hyphens=False) for name in accuracies]
    drawn = bars.bar(names, [100 * each for each in accuracies.values()], color=colours)
    bars.bar_label(drawn, fmt="{:.1f} %")
    bars.set(ylim=(0, 100), ylabel="percent", title="Accuracy on held-out passages")

    for kind, style in _CURVES.items():
        if _METRIC in pretraining[kind]:
            steps, shares = pretraining[kind][_METRIC]
            curve.plot(steps, [100 * each for each in shares], **style)
    curve.set_xlim(left=0)
    curve.set_ylim(bottom=0)
    curve.set(xlabel="step", ylabel="percent", title="Pre-training: masked words guessed")
    curve.grid(alpha=0.3)
    if curve.lines:
        curve.legend(loc="lower right")

    from sklearn.metrics import ConfusionMatrixDisplay

    ConfusionMatrixDisplay.from_predictions(
        right, predicted, ax=confusions, cmap="Blues", colorbar=False, xticks_rotation=30
    )
    confusions.set(xlabel="predicted library", ylabel="right library")
    confusions.set_title("With pre-training: number of passages")
    return to_png(figure)
