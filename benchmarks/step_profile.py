"""Where the time of a step of ours goes, by kind of operation.

    python -m benchmarks.step_profile --work finetune --precision bfloat16
    python -m benchmarks.step_profile --work latency --intra-op 1 --inter-op 2

The works are those of `benchmarks.speed`. TensorFlow's profiler times every operation on the
threads that compute; the table has the milliseconds of a step of each kind, how often it runs in a
step, and its share of all.
"""

import argparse
import collections
import os
import sys
import tempfile
from pathlib import Path

import tensorflow as tf
from rich.console import Console
from rich.table import Table
from tensorflow.tsl.profiler.protobuf import xplane_pb2

from benchmarks.speed import ours, ours_served
from benchmarks.speed.weights import make_weights
from benchmarks.speed.works import PRECISIONS, WORKS
from bert_tf.cli import command

_WARM_UP = 3
_COMPUTING = "tf_Compute"
# A call of a function that is left after inlining is one that XLA has compiled.
_ASYNCHRONOUS = "ExecutorState::ProcessAsync::Start"


def main() -> int:
    """Prints the table; returns the exit code, see `bert_tf.cli.command`."""
    parser = command.module_parser("benchmarks.step_profile", __doc__)
    parser.add_argument("--work", choices=WORKS, default="finetune")
    parser.add_argument("--precision", choices=PRECISIONS, default="float32")
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--rows", type=int, default=15, help="kinds to show (%(default)s)")
    parser.add_argument("--intra-op", type=int, default=len(os.sched_getaffinity(0)))
    # One: the times of operations that run at the same time would not add up to that of a step.
    parser.add_argument("--inter-op", type=int, default=1)
    return command.run("step_profile", parser, None, _work, "stopped")


def _work(arguments: argparse.Namespace) -> None:
    work = WORKS[arguments.work]
    with tempfile.TemporaryDirectory() as folder:
        weights, logs = Path(folder) / "weights", Path(folder) / "logs"
        make_weights(weights, work.job, work.shape, None)
        job = (ours_served if work.job == "classify" else ours).prepare(
            {
                "work": work.job,
                "precision": arguments.precision,
                "batch": work.batch,
                "length": work.length,
                "intra_op": arguments.intra_op,
                "inter_op": arguments.inter_op,
                "weights": str(weights),
                "vocabulary_file": str(weights / "vocab.txt"),
            }
        )
        for _ in range(_WARM_UP):
            job.step()
        with tf.profiler.experimental.Profile(str(logs)):
            for _ in range(arguments.steps):
                job.step()
        (trace,) = logs.rglob("*.xplane.pb")
        milliseconds, counts = _sums(trace)
    _print(arguments, milliseconds, counts)


def _sums(trace: Path) -> tuple[collections.Counter[str], collections.Counter[str]]:
    """Milliseconds and number of the operations of each kind."""
    space = xplane_pb2.XSpace.FromString(trace.read_bytes())
    milliseconds, counts = collections.Counter(), collections.Counter()
    for plane in space.planes:
        for line in plane.lines:
            if not line.name.startswith(_COMPUTING):
                continue
            for event in line.events:
                name = plane.event_metadata[event.metadata_id].name
                _, colon, kind = name.rpartition(":")
                # The executor has names of its own, and functions contain other operations.
                if name == _ASYNCHRONOUS and _kernel(plane, event) == "PartitionedCall":
                    kind = "compiled by XLA"
                elif not colon or "::" in name or kind.endswith("PartitionedCall"):
                    continue
                milliseconds[kind] += event.duration_ps / 1e9
                counts[kind] += 1
    return milliseconds, counts


def _kernel(plane: xplane_pb2.XPlane, event: xplane_pb2.XEvent) -> str:
    """The kind of operation that an event of the executor is about."""
    for stat in event.stats:
        if plane.stat_metadata[stat.metadata_id].name == "kernel_type":
            return stat.str_value or plane.stat_metadata[stat.ref_value].name
    return ""


def _print(
    arguments: argparse.Namespace,
    milliseconds: collections.Counter[str],
    counts: collections.Counter[str],
) -> None:
    total = sum(milliseconds.values())
    table = Table("operation", "ms a step", "times a step", "share")
    table.title = f"{arguments.work}, {arguments.precision}"
    for kind, each in milliseconds.most_common(arguments.rows):
        table.add_row(
            kind,
            f"{each / arguments.steps:.1f}",
            f"{counts[kind] / arguments.steps:.0f}",
            f"{each / total:.1%}",
        )
    table.add_row("all", f"{total / arguments.steps:.1f}", "", "")
    Console(width=80).print(table)


if __name__ == "__main__":
    sys.exit(main())
