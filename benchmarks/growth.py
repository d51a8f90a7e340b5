"""How the time of encoding grows with the batch, the length and the model, compared with peers.

    python -m benchmarks.growth --out growth.png
    python -m benchmarks.growth --precisions float32 --peers pytorch --out growth.png

Contestants compute the last layer from token ids without padding, each in a process of its own, in
turns. The tables give the median milliseconds of a step. One of rows, tokens and shape varies; the
others stay at 8 rows, 128 tokens and the shape of BERT-base.
"""

import argparse
import os
import statistics
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from matplotlib.ticker import LogLocator, NullFormatter
from rich.console import Console
from rich.table import Table

from benchmarks.speed.turns import Contestant, take_turns
from benchmarks.speed.weights import make_weights
from benchmarks.speed.works import PRECISIONS, SHAPES, WORKS, entries
from bert_tf.cli import command
from bert_tf.io.atomic import atomic_path
from bert_tf.report.plots import new_figure, to_png

BATCHES = (1, 2, 4, 8, 16, 32)
LENGTHS = (32, 64, 128, 256, 512)
_PEERS = ("pytorch", "openvino")
_BATCH, _LENGTH, _SHAPE = 8, 128, "base"
# A choice of `--axes` -> what is varied.
AXES = {"rows": "rows", "tokens": "tokens of a row", "weights": "million weights of the blocks"}

# Contestant -> (varied value, milliseconds) of each point.
Curves = dict[str, list[tuple[float, float]]]


def main() -> int:
    """Prints a table for each precision and axis, and draws all of them.

    Returns:
        The exit code, see `bert_tf.cli.command`.
    """
    parser = command.module_parser("benchmarks.growth", __doc__)
    parser.add_argument("--precisions", nargs="+", choices=PRECISIONS, default=list(PRECISIONS))
    parser.add_argument("--peers", nargs="+", choices=_PEERS, default=list(_PEERS))
    parser.add_argument("--axes", nargs="+", choices=AXES, default=list(AXES))
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--steps", type=int, default=2, help="steps of a turn")
    parser.add_argument("--out", type=Path, required=True, metavar="FILE.png")
    return command.run("growth", parser, None, _work, "stopped; nothing was written")


def _work(arguments: argparse.Namespace) -> None:
    drawn = {}
    with tempfile.TemporaryDirectory() as scratch:
        for precision in arguments.precisions:
            for axis, curves in _measure(precision, Path(scratch), arguments):
                drawn[precision, axis] = curves
                _print(precision, axis, curves)
    _draw(drawn, arguments.out)


def _measure(
    precision: str, scratch: Path, arguments: argparse.Namespace
) -> Iterator[tuple[str, Curves]]:
    sizes = {
        "rows": {batch: (batch, _LENGTH) for batch in BATCHES},
        "tokens": {length: (_BATCH, length) for length in LENGTHS},
    }
    chosen = [axis for axis in sizes if axis in arguments.axes]
    contestants = _start(_SHAPE, precision, scratch, arguments) if chosen else []
    for axis in chosen:
        curves: Curves = {each.name: [] for each in contestants}
        for place, size in sizes[axis].items():
            for each in contestants:
                each.resize(*size)
            _time(contestants, place, curves, arguments)
        yield AXES[axis], curves
    _end(contestants)
    if "weights" not in arguments.axes:
        return
    curves = {}
    for shape, (layers, hidden, _) in SHAPES.items():
        contestants = _start(shape, precision, scratch, arguments)
        _time(contestants, layers * 12 * hidden**2 / 1e6, curves, arguments)
        _end(contestants)
    yield AXES["weights"], curves


def _start(
    shape: str, precision: str, scratch: Path, arguments: argparse.Namespace
) -> list[Contestant]:
    weights = scratch / shape.replace(" ", "")
    if not weights.exists():
        make_weights(weights, "encode", shape, None)
    settings = {
        "work": "encode",
        "precision": precision,
        "batch": _BATCH,
        "length": _LENGTH,
        "threads": arguments.threads,
        "weights": str(weights),
    }
    return [
        Contestant(f"benchmarks.speed.{module}", settings | extra, scratch)
        for module, extra in entries(WORKS["encode"], precision, arguments.peers, arguments.threads)
    ]


def _time(
    contestants: list[Contestant], place: float, curves: Curves, arguments: argparse.Namespace
) -> None:
    take_turns(contestants, arguments.rounds, arguments.steps)
    for each in contestants:
        milliseconds = statistics.median(each.seconds) * 1e3
        curves.setdefault(each.name, []).append((place, milliseconds))


def _end(contestants: list[Contestant]) -> None:
    for each in contestants:
        each.close()


def _print(precision: str, axis: str, curves: Curves) -> None:
    places = [place for place, _ in next(iter(curves.values()))]
    table = Table("contestant", *(f"{place:.4g}" for place in places))
    table.title = f"{precision}: milliseconds over {axis}"
    for name, points in curves.items():
        table.add_row(name, *(f"{milliseconds:.1f}" for _, milliseconds in points))
    Console(width=100).print(table)


def _draw(drawn: dict[tuple[str, str], Curves], path: Path) -> None:
    precisions = list(dict.fromkeys(precision for precision, _ in drawn))
    axes = list(dict.fromkeys(axis for _, axis in drawn))
    size = 4.2 * len(axes), 3.4 * len(precisions)
    figure, panels = new_figure(len(precisions), len(axes), figsize=size, squeeze=False)
    for (precision, axis), curves in drawn.items():
        panel = panels[precisions.index(precision)][axes.index(axis)]
        for name, points in curves.items():
            panel.plot(*zip(*points, strict=True), marker="o", label=name)
        panel.set(title=precision, xlabel=axis, ylabel="ms", xscale="log", yscale="log")
        places = [place for place, _ in points]
        panel.set_xticks(places, [f"{place:.3g}" for place in places], minor=False)
        panel.set_xticks([], minor=True)
        panel.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        panel.yaxis.set_major_formatter("{x:g}")
        panel.yaxis.set_minor_formatter(NullFormatter())
        panel.grid(alpha=0.3, which="both")
    panels[0][0].legend(fontsize="small")
    with atomic_path(path) as new:
        new.write_bytes(to_png(figure))


if __name__ == "__main__":
    sys.exit(main())
