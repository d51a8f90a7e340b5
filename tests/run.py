"""`python -m tests.run`: the tests in several processes, some at a time.

TensorFlow keeps much of what a process has traced, so that one process for all tests would grow to
many gigabytes. Here each group of folders has a process of its own. What a group printed is in
build/tests/, and on the terminal if a test failed. The end is a table and the number of tests by
their outcome. Other options than these go to pytest:

    python -m tests.run -m "not slow and not end_to_end"
    python -m tests.run --only docs -m "not slow or notebook"
"""

import argparse
import json
import os
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import pytest
from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).resolve().parents[1]
LOGS = ROOT / "build" / "tests"
# The number of tests by their outcome, among the logs.
COUNTS = "counts.json"
# Group -> its folders and files, those that take longest first. A file belongs to the group that
# names the nearest folder above it.
GROUPS = {
    "tasks": ["tasks"],
    "export": ["export"],
    "rest": ["."],
    "training": ["distillation", "encoder", "optimization", "training"],
    "data": ["data", "tasks/embedding", "tasks/reranking"],
    "models": ["asking", "interpret", "models", "serve", "serving"],
    "runs": ["runs"],
    "text": ["text"],
    "LiteRT": ["export/litert", "export/test_equal_rows.py"],
    "docs": ["benchmarks", "docs", "experiments"],
    "notebooks": ["docs/test_notebook.py"],
}
# What `make test` leaves to `make test-docs`.
DOCS = ("docs", "notebooks")
CODE = [name for name in GROUPS if name not in DOCS]
# Groups that test neither the speed nor the last bits of a graph. In `make test` TensorFlow
# does not optimize their graphs, which takes a fifth of their time; in `make test-all` it does.
UNOPTIMIZED = ("data", "rest", "runs", "tasks", "text")
_ENDED = {pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.NO_TESTS_COLLECTED}


class Outcome(NamedTuple):
    """How the tests of a group ended.

    Attributes:
        passed, failed, skipped: the number of tests; an error counts as failed.
        seconds: of the process.
        gibibytes: the most memory that the process, or one that it started, had at a time.
    """

    passed: int
    failed: int
    skipped: int
    seconds: float
    gibibytes: float


def files_of(group: str) -> list[str]:
    """The test files of a group, below the folder of the project."""
    owner = {folder: name for name, folders in GROUPS.items() for folder in folders}
    tests = ROOT / "tests"
    found = []
    for file in sorted(tests.rglob("test_*.py")):
        inside = file.relative_to(tests)
        above = (each.as_posix() for each in (inside, *inside.parents))
        if next(owner[folder] for folder in above if folder in owner) == group:
            found.append(str(file.relative_to(ROOT)))
    return found


def run_group(group: str, options: list[str], optimize: bool) -> Outcome:
    """Runs the tests of a group in a process, and reports on the terminal how it ended."""
    log, report = LOGS / f"{group}.log", LOGS / f"{group}.xml"
    report.unlink(missing_ok=True)
    command = [sys.executable, "-m", "pytest", "-q", f"--junitxml={report}", *options]
    began = time.monotonic()
    with open(log, "wb") as output:
        # Each process of `make coverage` writes a file of its own.
        own = os.environ | {"COVERAGE_FILE": str(LOGS / f".coverage.{group}")}
        # The processes keep the cores busy; more threads in each would only wait for one another.
        own.setdefault("TF_NUM_INTRAOP_THREADS", "1")
        if not optimize and group in UNOPTIMIZED:
            own["BERT_TF_TESTS_UNOPTIMIZED"] = "1"
        process = subprocess.Popen(
            [*command, *files_of(group)],
            cwd=ROOT,
            env=own,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
        _, status, usage = os.wait4(process.pid, 0)
    code = os.waitstatus_to_exitcode(status)
    seconds, gibibytes = time.monotonic() - began, usage.ru_maxrss / 2**20
    passed, failed, skipped = _counted(report) if code in _ENDED else (0, 1, 0)
    outcome = Outcome(passed, failed, skipped, seconds, gibibytes)
    text = log.read_text(encoding="utf-8", errors="replace")
    if failed:
        print(f"\n== {group}: pytest ended with code {code}\n{text}", flush=True)
    counts = f"{passed} passed, {failed} failed, {skipped} skipped"
    print(f"{group}: {counts}, {seconds:.0f} s, {gibibytes:.1f} GiB", flush=True)
    return outcome


def _counted(report: Path) -> tuple[int, int, int]:
    """Tests that passed, that failed and that were skipped."""
    suite = ElementTree.parse(report).getroot().find("testsuite")
    tests, failures, errors, skipped = (
        int(suite.attrib[key]) for key in ("tests", "failures", "errors", "skipped")
    )
    return tests - failures - errors - skipped, failures + errors, skipped


def run(groups: list[str], options: list[str], processes: int, optimize: bool = False) -> int:
    """Runs some groups; returns the exit code, 1 if a test failed."""
    LOGS.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    with ThreadPoolExecutor(processes) as pool:
        outcomes = list(pool.map(lambda group: run_group(group, options, optimize), groups))
    table = Table("group", "passed", "failed", "skipped", "seconds", "GiB")
    for group, each in zip(groups, outcomes, strict=True):
        numbers = map(str, each[:3])
        table.add_row(group, *numbers, f"{each.seconds:.0f}", f"{each.gibibytes:.1f}")
    Console().print(table)
    passed, failed, skipped = (sum(each[i] for each in outcomes) for i in range(3))
    (LOGS / COUNTS).write_text(
        json.dumps({"passed": passed, "failed": failed, "skipped": skipped}), encoding="utf-8"
    )
    print(f"in {time.monotonic() - began:.0f} seconds, {processes} processes at a time:")
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed or not passed else 0


def main(argv: list[str] | None = None) -> int:
    """Runs the tests; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.run",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    names = [*GROUPS, "all"]
    parser.add_argument(
        "--only",
        nargs="+",
        choices=names,
        default=CODE,
        metavar="GROUP",
        help=f"{', '.join(names)}; without it all but {' and '.join(DOCS)}",
    )
    parser.add_argument(
        "--processes",
        type=int,
        default=min(4, len(os.sched_getaffinity(0))),
        metavar="N",
        help="processes at a time, each of at most 4 GiB (%(default)s)",
    )
    arguments, options = parser.parse_known_args(argv)
    groups = [*GROUPS] if "all" in arguments.only else arguments.only
    return run(groups, options, arguments.processes, optimize="all" in arguments.only)


if __name__ == "__main__":
    sys.exit(main())
