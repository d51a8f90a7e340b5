"""Draws what runs have logged for TensorBoard over their steps, as a PNG.

    python experiments/curves.py runs/mini --out experiments/results/mini.png
    python experiments/curves.py runs/a runs/b --metrics loss accuracy --out both.png

Each metric has a panel, each run a colour: a thin line for the training batches, a thick one for
held-out data. Needs matplotlib (the extra `bench`).
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from bert_tf.errors import UserError
from bert_tf.files import atomic_path

PRETRAINING = ("loss", "masked_lm_accuracy", "next_sentence_accuracy")
# Logged on the training batches, and on held-out data.
KINDS = {"train": {"linewidth": 0.8, "alpha": 0.6}, "dev": {"linewidth": 2.0, "marker": "."}}

Curve = tuple[list[int], list[float]]


def main() -> int:
    """Writes the picture; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("runs", type=Path, nargs="+", metavar="RUN", help="run folders")
    parser.add_argument("--metrics", nargs="+", default=PRETRAINING, help="what to draw")
    parser.add_argument("--out", type=Path, required=True, metavar="FILE.png")
    arguments = parser.parse_args()
    try:
        draw(arguments.runs, arguments.metrics, arguments.out)
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


def draw(runs: Sequence[Path], metrics: Sequence[str], out: Path) -> None:
    """Writes the picture of all runs to the file `out`.

    Raises:
        UserError: a run has logged none of the metrics.
    """
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, panels = pyplot.subplots(
        1, len(metrics), figsize=(4.5 * len(metrics), 3.6), layout="constrained", squeeze=False
    )
    for number, run in enumerate(runs):
        curves = {kind: read(run / "logs" / kind) for kind in KINDS}
        if not any(metric in found for found in curves.values() for metric in metrics):
            raise UserError(f"{run} has logged none of {', '.join(metrics)}; is it a run folder?")
        for panel, metric in zip(panels[0], metrics, strict=True):
            for kind, found in curves.items():
                if metric in found:
                    label = f"{run.name}, {'training' if kind == 'train' else 'held out'}"
                    panel.plot(*found[metric], color=f"C{number}", label=label, **KINDS[kind])
    for panel, metric in zip(panels[0], metrics, strict=True):
        panel.set_title(metric.replace("_", " "))
        panel.set_xlabel("step")
        panel.grid(alpha=0.3)
    panels[0][0].legend(fontsize="small")
    with atomic_path(out) as new:
        figure.savefig(new, format="png", dpi=120)
    pyplot.close(figure)


def read(folder: Path) -> dict[str, Curve]:
    """The curves in a folder of TensorBoard's files: metric -> (steps, values).

    A run that was killed has logged some steps twice; the later time counts.
    """
    if not folder.is_dir():
        return {}
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    from tensorboard.util.tensor_util import make_ndarray

    events = EventAccumulator(str(folder), size_guidance={"tensors": 0})
    events.Reload()
    curves = {}
    for metric in events.Tags()["tensors"]:
        logged = sorted(events.Tensors(metric), key=lambda event: event.wall_time)
        values = {each.step: float(make_ndarray(each.tensor_proto)) for each in logged}
        steps = sorted(values)
        curves[metric] = (steps, [values[step] for step in steps])
    return curves


if __name__ == "__main__":
    sys.exit(main())
