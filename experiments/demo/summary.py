"""What the demo shows at its end: a picture, its figures, its results, and further commands."""

import os
import shlex
import shutil
import sys
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress_bar import ProgressBar
from rich.table import Table

from bert_tf.report.curves import Curves
from bert_tf.report.plots import new_figure, to_png

_BAR_WIDTH = 40
_QUESTION = "Return the mean of the array over an axis."
# The folder for a user's own texts.
_OWN = "mine"
# The results in the demo's folder.
_RESULTS = {
    "demo.png": "these figures as a picture",
    "inspect.html": "what the classifier looks at, and what it confuses: open it in a browser",
    "vocab.txt": "the vocabulary",
    "pretraining": "run folder of the pre-training: metrics, checkpoints, TensorBoard logs",
    "finetuning": "run folder of the classifier",
    "saved_model": "takes strings, returns labels",
    "model.tflite": "the same for phones",
}

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

    The accuracies are shares by name; the last one is highlighted. The curves of the pre-training
    have the keys "train" and "dev".

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


def bars(shares: Mapping[str, float]) -> Table:
    """A table for rich to print: a bar for each share, and its percentage."""
    table = Table.grid(padding=(0, 2), pad_edge=True)
    for name, share in shares.items():
        bar = ProgressBar(total=1.0, completed=share, width=_BAR_WIDTH)
        table.add_row(name, bar, f"{share:.1%}")
    return table


def show(
    out: Path, accuracies: Mapping[str, float], pretrained: Mapping[str, float], seconds: float
) -> None:
    """Prints the summary on standard output."""
    console = Console(highlight=False, soft_wrap=True)
    minutes, seconds = divmod(round(seconds), 60)
    console.print(f"\nDone in {minutes} min {seconds} s. Accuracy on passages never seen before:\n")
    console.print(bars(accuracies))
    console.print(
        f"\nThe pre-training guesses {pretrained['masked_lm_accuracy']:.1%} of masked words."
    )
    print(f"\n{results(out)}\n\n{next_steps(out)}")


def results(out: Path) -> str:
    """The files and folders that are in the demo's folder, with a description of each."""
    found = {str(out / name): text for name, text in _RESULTS.items() if (out / name).exists()}
    width = max(map(len, found))
    return "\n".join(f"  {path:{width}}  {text}" for path, text in found.items())


def next_steps(out: Path) -> str:
    """Commands to go on; they work in the folder where the demo was started."""
    bert_tf, tensorboard = program("bert-tf", "bert_tf"), program("tensorboard", "tensorboard.main")
    data, folder = shlex.quote(str(out / "data")), shlex.quote(str(out))
    return f"""\
Ask it, and see how it was trained:
  {bert_tf} predict {folder}/saved_model "{_QUESTION}"
  {bert_tf} serve {folder}/saved_model  # a page, if the extra serve is installed
  {tensorboard} --logdir {folder}

Your own texts: two tables, train.tsv and dev.tsv, with the columns text and label. The demo's are
an example; put your texts and labels in their place.
  mkdir -p {_OWN}
  cp {data}/train.tsv {data}/dev.tsv {_OWN}
  {bert_tf} finetune {folder}/finetuning.yaml --out runs/{_OWN} --set data.path={_OWN}
  {bert_tf} predict runs/{_OWN} "{_QUESTION}"

This BERT is tiny and has read nothing but documentation. docs/how_to/classification.md shows how
to start from a published one."""


def program(name: str, module: str) -> str:
    """The shell command for a program of this Python, from the working folder.

    If the program is not installed, that is `python -m MODULE`.

    >>> program("no-such-program", "json.tool").endswith(" -m json.tool")
    True
    """
    python, here = Path(sys.executable), Path.cwd()
    installed = python.with_name(name)
    if os.path.abspath(shutil.which(name) or "") == str(installed):
        return name
    found = installed if installed.exists() else python
    found = found.relative_to(here) if found.is_relative_to(here) else found
    return shlex.quote(str(found)) + (f" -m {module}" if found.name != name else "")
