"""Where the time of a step goes, by kind of operation.

    python -m benchmarks.step_profile --work finetune --precision bfloat16
    python -m benchmarks.step_profile --work latency --intra-op 1 --inter-op 2
    python -m benchmarks.step_profile --work latency --peer onnx

The works are those of `benchmarks.speed`. TensorFlow's profiler times every operation on the
threads that compute. For each kind, the table has its milliseconds in a step, how often it runs in
a step, and its share of the total. A line above the table has the time of a step by the number of
threads that compute. With `--peer`, the step is that of ONNX Runtime or OpenVINO, and the times are
from their own profilers; `--intra-op` is the number of their threads.
"""

import argparse
import collections
import json
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
from rich.console import Console
from rich.table import Table
from tensorflow.tsl.profiler.protobuf import xplane_pb2

from benchmarks.speed import ours, ours_served
from benchmarks.speed.weights import make_weights
from benchmarks.speed.works import PRECISIONS, WORKS
from bert_tf.cli import command
from bert_tf.errors import UserError

_WARM_UP = 3
_COMPUTING = "tf_Compute"
# A function call that remains after inlining is one that XLA has compiled.
_ASYNCHRONOUS = "ExecutorState::ProcessAsync::Start"
# Milliseconds of all steps, and how often an operation ran in them, by kind.
Sums = tuple[collections.Counter[str], collections.Counter[str]]
# The kind of an operation, the millisecond at which it began, and the milliseconds that it took.
Operation = tuple[str, float, float]


def main() -> int:
    """Prints the table; returns the exit code, see `bert_tf.cli.command`."""
    parser = command.module_parser("benchmarks.step_profile", __doc__)
    parser.add_argument("--work", choices=WORKS, default="finetune")
    parser.add_argument("--precision", choices=PRECISIONS, default="float32")
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--rows", type=int, default=15, help="kinds to show (%(default)s)")
    parser.add_argument("--intra-op", type=int, default=len(os.sched_getaffinity(0)))
    # 1: times of operations that run at the same time would not add up to the time of a step.
    parser.add_argument("--inter-op", type=int, default=1)
    parser.add_argument("--peer", choices=("onnx", "openvino"), help="profile this instead")
    return command.run("step_profile", parser, None, _work, "stopped")


def _work(arguments: argparse.Namespace) -> None:
    work = WORKS[arguments.work]
    if arguments.peer and not work.serves:
        raise UserError("--peer only answers; choose --work encode, classify or latency")
    if arguments.peer == "onnx" and arguments.precision != "float32":
        raise UserError("ONNX Runtime computes in float32 on CPUs; choose --precision float32")
    with tempfile.TemporaryDirectory() as folder:
        weights, logs = Path(folder) / "weights", Path(folder) / "logs"
        make_weights(weights, work.job, work.shape, None)
        settings = {
            "work": work.job,
            "precision": arguments.precision,
            "batch": work.batch,
            "length": work.length,
            "intra_op": arguments.intra_op,
            "inter_op": arguments.inter_op,
            "threads": arguments.intra_op,
            "weights": str(weights),
            "vocabulary_file": str(weights / "vocab.txt"),
        }
        profile = {None: _of_ours, "onnx": _of_onnx, "openvino": _of_openvino}[arguments.peer]
        milliseconds, counts = profile(settings, arguments.steps, logs)
    _print(arguments, milliseconds, counts)


def _of_ours(settings: dict[str, Any], steps: int, logs: Path) -> Sums:
    job = (ours_served if settings["work"] in ("encode", "classify") else ours).prepare(settings)
    for _ in range(_WARM_UP):
        job.step()
    with tf.profiler.experimental.Profile(str(logs)):
        for _ in range(steps):
            job.step()
    (trace,) = logs.rglob("*.xplane.pb")
    found = list(_operations(trace))
    busy = _threads(found)
    shares = (f"{count}: {busy[count] / steps:.1f} ms" for count in sorted(busy))
    print(f"of a step, by the number of threads that compute: {', '.join(shares)}")
    return _sums(found)


def _of_onnx(settings: dict[str, Any], steps: int, logs: Path) -> Sums:
    from benchmarks.speed import converted
    from benchmarks.speed.onnx_runtime import open_session

    session = open_session(settings, logs)
    job = converted.job(settings, lambda arrays: session.run(["output"], arrays)[0])
    for _ in range(_WARM_UP + steps):
        job.step()
    events = json.loads(Path(session.end_profiling()).read_text(encoding="utf-8"))
    began = sorted(each["ts"] for each in events if each["name"] == "model_run")[_WARM_UP]
    milliseconds, counts = collections.Counter(), collections.Counter()
    for each in events:
        if each["name"].endswith("_kernel_time") and each["ts"] >= began:
            milliseconds[each["args"]["op_name"]] += each["dur"] / 1000
            counts[each["args"]["op_name"]] += 1
    return milliseconds, counts


def _of_openvino(settings: dict[str, Any], steps: int, logs: Path) -> Sums:
    from benchmarks.speed import converted
    from benchmarks.speed.openvino_runtime import compiled_model

    request = compiled_model(settings, PERF_COUNT=True).create_infer_request()
    milliseconds, counts = collections.Counter(), collections.Counter()

    def run(arrays: dict[str, np.ndarray]) -> np.ndarray:
        found = request.infer(arrays)[0]
        for each in request.profiling_info:
            if each.status == each.Status.EXECUTED:
                milliseconds[each.node_type] += each.real_time.total_seconds() * 1000
                counts[each.node_type] += 1
        return found

    job = converted.job(settings, run)
    for _ in range(_WARM_UP):
        job.step()
    milliseconds.clear()
    counts.clear()
    for _ in range(steps):
        job.step()
    return milliseconds, counts


def _sums(operations: list[Operation]) -> Sums:
    """Milliseconds and number of the operations of each kind."""
    milliseconds, counts = collections.Counter(), collections.Counter()
    for kind, _, duration in operations:
        milliseconds[kind] += duration
        counts[kind] += 1
    return milliseconds, counts


def _threads(operations: list[Operation]) -> dict[int, float]:
    """Number of threads -> milliseconds in which that many compute, until all operations end."""
    changes = [(start, 1) for _, start, _ in operations]
    changes += [(start + duration, -1) for _, start, duration in operations]
    milliseconds: dict[int, float] = collections.defaultdict(float)
    busy, before = 0, min(changes)[0]
    for moment, change in sorted(changes):
        milliseconds[busy] += moment - before
        busy, before = busy + change, moment
    return milliseconds


def _operations(trace: Path) -> Iterator[Operation]:
    space = xplane_pb2.XSpace.FromString(trace.read_bytes())
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
                start = line.timestamp_ns / 1e6 + event.offset_ps / 1e9
                yield kind, start, event.duration_ps / 1e9


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
    table.title = f"{arguments.work}, {arguments.precision}, {arguments.peer or 'bert_tf'}"
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
