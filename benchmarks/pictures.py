"""Draws the pictures of docs/results from the results in experiments/results.

    python -m benchmarks.pictures
    python -m benchmarks.pictures --results experiments/results --out docs/images

`speed.png` and `training.png` are of `RESULTS/speed`, which `benchmarks.speed --out` keeps, and
`quality.png` is of `RESULTS/quality`, which `benchmarks.quality --out` keeps. Nothing is measured.
"""

import argparse
import json
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.arguments import existing
from benchmarks.quality.tasks import tasks
from benchmarks.speed.results import Result, draw
from benchmarks.speed.works import PRECISIONS, WORKS
from bert_tf.cli import command
from bert_tf.errors import UserError
from bert_tf.io.atomic import atomic_path, make_folder
from bert_tf.report.plots import new_figure, to_png

SIDES = {"bert_tf": "C1", "transformers": "C0"}
# How far the bars of the two sides are from their task.
_HALF = 0.2


def main() -> int:
    """Writes the pictures; returns the exit code, see `bert_tf.cli.command`."""
    parser = command.module_parser("benchmarks.pictures", __doc__)
    parser.add_argument("--results", type=existing, default=Path("experiments/results"))
    parser.add_argument("--out", type=Path, default=Path("docs/images"))
    return command.run("pictures", parser, None, _work, "stopped")


def _work(arguments: argparse.Namespace) -> None:
    make_folder(arguments.out)
    speed = speed_results(arguments.results / "speed")
    serving = [each for each in speed if WORKS[each.work].serves]
    draw(serving, arguments.out / "speed.png")
    draw([each for each in speed if each not in serving], arguments.out / "training.png")
    draw_quality(scores(arguments.results / "quality"), arguments.out / "quality.png")


def speed_results(folder: Path) -> list[Result]:
    """The results of `benchmarks.speed` in a folder, in the order of its works and precisions.

    Raises:
        UserError: there is none.
    """
    paths = [Result.path(folder, work, each) for work in WORKS for each in PRECISIONS]
    found = [Result.read(path) for path in paths if path.exists()]
    if not found:
        raise UserError(f"{folder} has no result of benchmarks.speed; choose another --results")
    return found


def scores(folder: Path) -> dict[str, dict[str, list[float]]]:
    """Task and metric -> side -> the score of each seed in percent, as `benchmarks.quality` keeps.

    Raises:
        UserError: a task has results of one side only, or there is no task.
    """
    found = {}
    for name, task in tasks(Path(), Path(), Path()).items():
        files = {
            side: sorted((folder / name.replace(" ", "_")).glob(f"{side}-*.json")) for side in SIDES
        }
        missing = [side for side, paths in files.items() if not paths]
        if len(missing) == 1:
            raise UserError(f"{folder} has no result of {missing[0]} on {name}; remove the other's")
        if not missing:
            found[f"{name}, {task.metric}"] = {
                side: [task.percent * json.loads(path.read_text())["score"] for path in paths]
                for side, paths in files.items()
            }
    if not found:
        raise UserError(f"{folder} has no result of benchmarks.quality; choose another --results")
    return found


def draw_quality(of_tasks: dict[str, dict[str, list[float]]], path: Path) -> None:
    """A PNG with the mean score of both sides on each task, in percent, and its standard error."""
    figure, panel = new_figure(figsize=(7, 0.6 + 0.6 * len(of_tasks)))
    for offset, (side, colour) in zip((-_HALF, _HALF), SIDES.items(), strict=True):
        of_seeds = [sides[side] for sides in of_tasks.values()]
        panel.barh(
            [place + offset for place in range(len(of_tasks))],
            [statistics.mean(each) for each in of_seeds],
            height=2 * _HALF,
            xerr=[_error(each) for each in of_seeds],
            color=colour,
            ecolor="0.3",
            label=side,
        )
    panel.set_yticks(range(len(of_tasks)), list(of_tasks))
    panel.invert_yaxis()
    panel.set_xlabel("score on held-out rows, percent")
    panel.legend(fontsize="small", loc="lower right")
    with atomic_path(path) as new:
        new.write_bytes(to_png(figure))


def _error(of_seeds: Sequence[float]) -> float:
    """The standard error of the mean; 0 of one seed."""
    return statistics.stdev(of_seeds) / len(of_seeds) ** 0.5 if len(of_seeds) > 1 else 0.0


if __name__ == "__main__":
    sys.exit(main())
