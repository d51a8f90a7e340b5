"""Parts of reports: the machine and the code that a result is from, curves, and pictures."""

import importlib
import os
import platform
import subprocess
import warnings
from pathlib import Path
from typing import Any


def processor() -> str:
    """The name of the processor, as Linux has it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def cores() -> int:
    """The number of cores that this process may use; of all cores if the system does not say."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def commit() -> str:
    """The commit of this checkout, marked if files differ from it; "" outside of a checkout."""
    checkout = Path(__file__).parents[2]
    # An installed copy may be inside the repository of another project.
    if not (checkout / ".git").exists():
        return ""
    command = ["git", "describe", "--always", "--dirty"]
    try:
        done = subprocess.run(command, cwd=checkout, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return ""
    return done.stdout.strip()


def report(*arguments: Any, **options: Any) -> None:
    """The former name of `bert_tf.experiments.report.report`; it works until version 0.4."""
    warnings.warn(
        "bert_tf.report.report is now bert_tf.experiments.report.report",
        DeprecationWarning,
        stacklevel=2,
    )
    importlib.import_module("bert_tf.experiments.report").report(*arguments, **options)
