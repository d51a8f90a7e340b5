"""The export that a contestant of ours answers with."""

import contextlib
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_TASKS = {"encode": "encoding", "classify": "classification"}


@contextlib.contextmanager
def exported(settings: dict[str, Any]) -> Iterator[str]:
    """Its folder, written by a process of its own: that is no part of serving's memory."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = str(Path(scratch) / "model")
        given = settings["weights"], folder, _TASKS[settings["work"]], settings["precision"]
        subprocess.run([sys.executable, "-m", "benchmarks.serving.exporting", *given], check=True)
        yield folder
