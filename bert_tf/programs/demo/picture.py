"""The picture that the demo ends with: what pre-training brought, how it went, what is confused."""

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

from bert_tf.report.curves import Curves
from bert_tf.report.plots import new_figure, to_png

_GREY, _BLUE, _ORANGE = "#999999", "#0072b2", "#e69f00"
_GUESSED = "masked_lm_accuracy"


def draw(
    accuracies: Mapping[str, float],
    pretraining: Mapping[str, Curves],
    given: Sequence[str],
    predicted: Sequence[str],
) -> bytes:
    """A PNG of three panels: accuracies, the curve of the pre-training, and a confusion matrix.

    Args:
        accuracies: what was measured -> a share; the last one is highlighted.
        pretraining: the curves that the pre-training logged, by "train" and "dev".
        given: the right label of each test passage.
        predicted: the label that the model gives it.

    Raises:
        UserError: matplotlib is not installed.
    """
    figure, (left, middle, right) = new_figure(1, 3, figsize=(15, 4.6))
    _draw_accuracies(left, accuracies)
    _draw_curve(middle, pretraining)
    _draw_confusions(right, given, predicted)
    return to_png(figure)


def _draw_accuracies(panel: Any, accuracies: Mapping[str, float]) -> None:
    colours = [_GREY] * (len(accuracies) - 1) + [_BLUE]
    names = [textwrap.fill(name, 16, break_on_hyphens=False) for name in accuracies]
    bars = panel.bar(names, [100 * each for each in accuracies.values()], color=colours)
    panel.bar_label(bars, fmt="{:.1f} %")
    panel.set_ylim(0, 100)
    panel.set_ylabel("percent")
    panel.set_title("Accuracy on held-out passages")


def _draw_curve(panel: Any, pretraining: Mapping[str, Curves]) -> None:
    styles: dict[str, tuple[str, dict[str, Any]]] = {
        "train": ("training text", {"color": _ORANGE, "linewidth": 1.2}),
        "dev": ("held-out text", {"color": _BLUE, "marker": "o"}),
    }
    for kind, (label, style) in styles.items():
        if _GUESSED in pretraining[kind]:
            steps, shares = pretraining[kind][_GUESSED]
            panel.plot(steps, [100 * each for each in shares], label=label, **style)
    panel.set_xlim(left=0)
    panel.set_ylim(bottom=0)
    panel.set_xlabel("step")
    panel.set_ylabel("percent")
    panel.set_title("Pre-training: masked words guessed")
    panel.grid(alpha=0.3)
    if panel.lines:
        panel.legend(loc="lower right")


def _draw_confusions(panel: Any, given: Sequence[str], predicted: Sequence[str]) -> None:
    from sklearn.metrics import ConfusionMatrixDisplay

    ConfusionMatrixDisplay.from_predictions(
        given, predicted, ax=panel, cmap="Blues", colorbar=False, xticks_rotation=30
    )
    panel.set_xlabel("predicted library")
    panel.set_ylabel("right library")
    panel.set_title("With pre-training: number of passages")
