"""`python -m tests.matrix`: the wheel and the tests in fresh environments, with several versions.

For each row a virtual environment is made in `.matrix/`, from the wheel alone. In a folder outside
of the checkout, a model is fine-tuned from YAML, evaluated and exported, and answers a text. Then
the tools for tests are installed, and the tests run. A table is printed at the end. Rows that
passed are run again only if the checkout's files have changed, or with --again.

A row named "lowest" takes the lowest version of each range in pyproject.toml. uv makes the
environments; it downloads a Python that is missing.
"""

import argparse
import dataclasses
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TextIO

from bert_tf.cli.command import module_parser, run
from bert_tf.console import logger
from bert_tf.errors import UserError
from bert_tf.io.atomic import write_text
from tests import tiny
from tests.run import COUNTS, LOGS

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / ".matrix"
# What the tests require, and the extras that are tested with them. `make test` covers the extra
# model-garden. Nothing covers beam: it takes as long to install as all others together.
EXTRAS = "datasets,dev,gcs,hub,optuna,report,retrieval,s3,serve,tfds"
_UV = (sys.executable, "-m", "uv")
_MIB = 2**20


@dataclasses.dataclass(frozen=True)
class Row:
    """One environment: minor versions of Python and TensorFlow, and "lowest" or "newest" others."""

    python: str
    tensorflow: str
    others: str

    @property
    def name(self) -> str:
        return f"py{self.python}-tf{self.tensorflow}-{self.others}"

    @property
    def constraints(self) -> str:
        """The lines that restrict an installation to the row's TensorFlow."""
        names = ("tensorflow", "tensorflow-text", "tensorflow-serving-api")
        return "".join(f"{name}=={self.tensorflow}.*\n" for name in names)


ROWS = (
    Row("3.11", "2.20", "lowest"),
    Row("3.11", "2.21", "newest"),
    Row("3.12", "2.20", "newest"),
    Row("3.12", "2.21", "newest"),
    Row("3.13", "2.20", "newest"),
    Row("3.13", "2.21", "newest"),
)


def main(argv: list[str] | None = None) -> int:
    """Runs the rows; returns the exit code."""
    parser = module_parser("tests.matrix", __doc__)
    names = [row.name for row in ROWS]
    parser.add_argument("--only", metavar="ROW", nargs="+", choices=names, help=" ".join(names))
    parser.add_argument("--again", action="store_true", help="also run rows that passed")
    return run("matrix", parser, argv, _run, "stopped; the rows that are done are kept")


def _run(arguments: argparse.Namespace) -> None:
    rows = [row for row in ROWS if not arguments.only or row.name in arguments.only]
    state = _state_of_the_checkout()
    results = []
    with tempfile.TemporaryDirectory() as folder:
        wheel = _build_wheel(Path(folder))
        for row in rows:
            path = FOLDER / f"{row.name}.json"
            result = json.loads(path.read_text()) if path.exists() else {}
            if arguments.again or result.get("state") != state or not result.get("passed"):
                logger.info(f"== {row.name}")
                result = _try_row(row, wheel) | {"state": state}
                write_text(path, json.dumps(result, indent=2) + "\n")
            results.append(result)
    print(_table(rows, results))
    failed = [row.name for row, result in zip(rows, results, strict=True) if not result["passed"]]
    if failed:
        logs = ", ".join(str(FOLDER / f"{name}.log") for name in failed)
        raise UserError(f"{len(failed)} of {len(rows)} rows failed; see {logs}")


def _state_of_the_checkout() -> str:
    """A hash of the files in the checkout that a result depends on, whether committed or not."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout
    digest = hashlib.sha256()
    for name in sorted(filter(None, os.fsdecode(listed).split("\0"))):
        path = ROOT / name
        if path.is_file() and path.suffix in (".py", ".toml", ".yaml", ".tsv", ".json"):
            digest.update(name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


def _build_wheel(folder: Path) -> Path:
    """The wheel of the checkout, made from a copy: building leaves files beside the sources."""
    copy = folder / "source"
    ignored = shutil.ignore_patterns(".*", "runs", "build", "dist", "__pycache__", "*.egg-info")
    shutil.copytree(ROOT, copy, symlinks=True, ignore=ignored)
    command = [sys.executable, "-m", "pip", "wheel", copy, "--no-deps", "--no-build-isolation"]
    subprocess.run([*command, "--quiet", "--wheel-dir", folder], check=True)
    return next(folder.glob("*.whl"))


def _try_row(row: Row, wheel: Path) -> dict:
    """Installs and runs everything of a row; its output goes to a log."""
    environment = FOLDER / row.name
    constraints = FOLDER / f"{row.name}.txt"
    write_text(constraints, row.constraints)
    began = time.monotonic()
    with open(FOLDER / f"{row.name}.log", "w") as log:
        try:
            _call(log, ROOT, *_UV, "venv", "--clear", "--seed", "--python", row.python, environment)
            resolution = "lowest-direct" if row.others == "lowest" else "highest"
            install = (*_UV, "pip", "install", "--python", environment / "bin" / "python")
            install += ("--resolution", resolution, "--constraints", constraints)
            _call(log, ROOT, *install, wheel)
            packages = len(list(environment.glob("lib/python*/site-packages/*.dist-info")))
            size = _size(environment)
            _go_the_whole_way(log, environment / "bin")
            # The tests run in the checkout, so they import its files, and not those of the wheel.
            _call(log, ROOT, *install, f"bert_tf[{EXTRAS}] @ {wheel.as_uri()}")
            counts = _run_tests(log, environment / "bin" / "python")
        except subprocess.CalledProcessError as error:
            return {"passed": False, "failed_at": " ".join(map(str, error.cmd))}
        versions = subprocess.check_output(
            [*_UV, "pip", "freeze", "--python", environment / "bin" / "python"], text=True
        )
    return {
        "passed": not counts["failed"],
        "packages": packages,
        "mebibytes": round(size / _MIB),
        "tests": counts,
        "minutes": round((time.monotonic() - began) / 60, 1),
        "versions": versions.split("\n"),
    }


def _call(log: TextIO, folder: Path, *command: object) -> None:
    """Runs a command that must succeed, in an environment without this process's Python."""
    outer = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    outer.pop("VIRTUAL_ENV", None)
    log.flush()
    subprocess.run(
        [str(part) for part in command],
        cwd=folder,
        env=outer | {"UV_LINK_MODE": "copy"},
        stdout=log,
        stderr=subprocess.STDOUT,
        check=True,
    )


def _size(folder: Path) -> int:
    """The bytes of the files below a folder."""
    files = (Path(place, name) for place, _, names in os.walk(folder) for name in names)
    return sum(path.lstat().st_size for path in files)


def _go_the_whole_way(log: TextIO, programs: Path) -> None:
    """From a labelled file to an answer, in a folder with nothing of the checkout."""
    command = programs / "bert-tf"
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        tiny.write_finetuning(folder)
        _call(log, folder, command, "finetune", "finetuning.yaml", "--out", "run")
        _call(log, folder, command, "evaluate", "run")
        _call(log, folder, command, "export", "run", "--out", "model")
        _call(log, folder, command, "predict", "model", "cat sat on the mat .")


def _run_tests(log: TextIO, python: Path) -> dict[str, int]:
    """The number of tests by their outcome.

    Raises:
        CalledProcessError: the tests did not run.
    """
    counts = LOGS / COUNTS
    counts.unlink(missing_ok=True)  # of an earlier run
    try:
        _call(log, ROOT, python, "-m", "tests.run", "--only", "all", "-m", "not slow")
    except subprocess.CalledProcessError:
        if not counts.exists():
            raise
    return json.loads(counts.read_text())


def _table(rows: list[Row], results: list[dict]) -> str:
    """The results in Markdown."""
    lines = [
        "| Python | TensorFlow | other packages | wheel alone | tests passed | skipped | failed |",
        "|---|---|---|---|---|---|---|",
    ]
    for row, result in zip(rows, results, strict=True):
        cells = [row.python, row.tensorflow, row.others]
        if "tests" in result:
            tests = result["tests"]
            cells.append(f"{result['packages']} packages, {result['mebibytes'] / 1024:.1f} GiB")
            cells += [f"{tests[key]:,}" for key in ("passed", "skipped", "failed")]
        else:
            cells += [f"stopped at `{result['failed_at']}`", "", "", ""]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
