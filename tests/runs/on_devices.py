"""Runs commands of `bert-tf` one after the other on virtual devices, in a process of its own.

    python -m tests.runs.on_devices DEVICES COMMANDS.json

TensorFlow makes virtual devices only before it starts, and groups them only once.
COMMANDS.json is a list of lists of arguments. ["cut", RUN, COPY, STEP] copies a run as it was when
it was killed after the checkpoint of STEP. At the end it prints JSON: for each command, the `rows`
of every batch that this process made, and the files and folders that it has `written` in the run.
"""

import json
import os
import shutil
import sys
from pathlib import Path

import numpy as np
import tensorflow as tf

from bert_tf.cli import parser
from bert_tf.data.batching import TrainingRows


def main(devices: int, commands: list[list[str]]) -> None:
    """Runs them all; one that fails ends the process."""
    cpu = tf.config.list_physical_devices("CPU")[0]
    tf.config.set_logical_device_configuration(
        cpu, [tf.config.LogicalDeviceConfiguration()] * devices
    )
    rows, written = record_rows(), record_writing()
    told = []
    for command in commands:
        if command[0] == "cut":
            cut(*map(Path, command[1:3]), int(command[3]))
            continue
        rows.clear(), written.clear()
        code = parser.main(command)
        if code:
            sys.exit(code)
        run = command[command.index("--out") + 1]
        inside = [path for path in written if path.startswith(run)]
        told.append({"rows": list(rows), "written": inside})
    print(json.dumps(told))


def record_rows() -> list[list[int]]:
    """The rows of every batch that is made to train a classifier on, from now on."""
    taken = []
    take = TrainingRows.take

    def recording_take(self: TrainingRows, rows: np.ndarray) -> tuple:
        # Other calls are for the shapes of a batch, or for the fingerprint of all rows.
        if rows.any() and len(rows) < len(self.lengths):
            taken.append(rows.tolist())
        return take(self, rows)

    TrainingRows.take = recording_take
    return taken


def record_writing() -> list[str]:
    """The paths of files that Python opens to write, and of folders that it makes, from now on."""
    written = []

    def listen(event: str, arguments: tuple) -> None:
        if event == "open" and isinstance(arguments[0], str | os.PathLike):
            path, _, flags = arguments
            if flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
                written.append(os.fspath(path))
        if event == "os.mkdir":
            written.append(os.fspath(arguments[0]))

    sys.addaudithook(listen)
    return written


def cut(run: Path, copy: Path, step: int) -> None:
    """Copies a run without what came after a step; one process of several does it."""
    try:
        shutil.copytree(run, copy)
    except OSError:  # the other has done so
        return
    (copy / "metrics.json").unlink()
    for folder in (copy / "checkpoints").glob("step-*"):
        if int(folder.name.removeprefix("step-")) > step:
            shutil.rmtree(folder)


if __name__ == "__main__":
    main(int(sys.argv[1]), json.loads(Path(sys.argv[2]).read_text()))
