"""Draws what runs have logged for TensorBoard over their steps, as a PNG.

    python -m experiments.curves runs/mini --out experiments/results/mini.png
    python -m experiments.curves runs/a runs/b --metrics loss accuracy --out both.png

Each metric has a panel, each run a colour: a thin line for the training batches, a thick one for
held-out data.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from bert_tf import command
from bert_tf.atomic import atomic_path
from bert_tf.errors import UserError
from bert_tf.report.curves import draw_curves, read_curves
from bert_tf.report.naming import distinct_names

PRETRAINING = ("loss", "masked_lm_accuracy", "next_sentence_accuracy")


def main() -> int:
    """Writes the picture; returns the exit code, see `bert_tf.command`."""
    parser = command.module_parser("experiments.curves", __doc__)
    parser.add_argument("runs", type=Path, nargs="+", metavar="RUN", help="run folders")
    parser.add_argument("--metrics", nargs="+", default=PRETRAINING, help="what to draw")
    parser.add_argument("--out", type=Path, required=True, metavar="FILE.png")

    def work(arguments: argparse.Namespace) -> None:
        draw(arguments.runs, arguments.metrics, arguments.out)

    return command.run("curves", parser, None, work, "stopped; nothing was written")


def draw(runs: Sequence[Path], metrics: Sequence[str], out: Path) -> None:
    """Writes the picture of all runs to the file `out`.

    Raises:
        UserError: a run has logged none of the metrics.
    """
    curves = []
    for run, name in zip(runs, distinct_names(runs), strict=True):
        found = {kind: read_curves(run / "logs" / kind) for kind in ("train", "dev")}
        if not any(metric in each for each in found.values() for metric in metrics):
            raise UserError(f"{run} has logged none of {', '.join(metrics)}; is it a run folder?")
        curves.append((name, found))
    with atomic_path(out) as new:
        new.write_bytes(draw_curves(curves, metrics))


if __name__ == "__main__":
    sys.exit(main())
