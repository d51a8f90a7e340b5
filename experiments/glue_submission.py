"""Packs the predictions of several runs into a zip file for the GLUE server.

    python -m bert_tf.experiments.glue_submission runs/glue/* --out submission.zip --fill

The server (gluebenchmark.com) requires predictions for every test set of the benchmark: CoLA.tsv,
SST-2.tsv and so on. A run has them in its folder `predictions` if the test files were next to its
training data; `bert-tf evaluate RUN --data test.tsv` writes them later.
"""

import sys
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from bert_tf.cli.command import option
from bert_tf.console import logger
from bert_tf.errors import UserError
from bert_tf.experiments import program
from bert_tf.io.atomic import atomic_path
from bert_tf.io.files import read_text

# The number of rows of each test set, and a valid answer for all of them. For WNLI it is the most
# frequent answer in the training data, which the paper submits.
_TEST_SETS = {
    "CoLA": (1_063, "1"),
    "SST-2": (1_821, "1"),
    "MRPC": (1_725, "1"),
    "STS-B": (1_379, "2.5"),
    "QQP": (390_965, "0"),
    "MNLI-m": (9_796, "entailment"),
    "MNLI-mm": (9_847, "entailment"),
    "QNLI": (5_463, "entailment"),
    "RTE": (3_000, "entailment"),
    "WNLI": (146, "0"),
    "AX": (1_104, "entailment"),
}
_HEADER = "index\tprediction"


def main(argv: Sequence[str] | None = None) -> int:
    """Writes the zip; returns the exit code, see `bert_tf.cli.command`."""
    return program(
        "glue_submission",
        __doc__,
        argv,
        submit,
        option("runs RUN", "a run folder of bert-tf finetune", nargs="+", type=Path),
        option("--out FILE", "the zip file to write", type=Path, required=True),
        option(
            "--fill",
            "give every row the same answer in the test sets that no run has, as the paper does "
            "for WNLI",
        ),
    )


def submit(runs: Sequence[Path], out: Path, fill: bool = False) -> None:
    r"""Writes the zip of the runs' predictions to `out`; `fill` is `--fill`.

    >>> submit([], Path("submission.zip"), fill=True)  # fills every test set
    >>> with zipfile.ZipFile("submission.zip") as archive:
    ...     print(sorted(archive.namelist())[:3], archive.read("WNLI.tsv")[:22])
    ['AX.tsv', 'CoLA.tsv', 'MNLI-m.tsv'] b'index\tprediction\n0\t0\n1'

    Raises:
        UserError: a test set is incomplete, is in two runs, or is in none (unless `fill` is set).
    """
    found = _find(runs)
    missing = [name for name in _TEST_SETS if name not in found]
    if missing and not fill:
        raise UserError(
            f"no run has predictions for {', '.join(missing)}, and the server requires all; write "
            "them with bert-tf evaluate RUN --data TEST_FILE, or set --fill to give every row "
            "the same answer"
        )
    with atomic_path(out) as new, zipfile.ZipFile(new, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, (rows, answer) in _TEST_SETS.items():
            if name in found:
                archive.writestr(f"{name}.tsv", _checked(found[name], rows))
                logger.info(f"{name}: {found[name]}")
            else:
                lines = [f"{i}\t{answer}\n" for i in range(rows)]
                archive.writestr(f"{name}.tsv", f"{_HEADER}\n" + "".join(lines))
                logger.info(f"{name}: {answer} for every row")


def _find(runs: Sequence[Path]) -> Mapping[str, Path]:
    found: dict[str, Path] = {}
    for run in runs:
        if not run.is_dir():
            raise UserError(f"run not found: {run}")
        for name in _TEST_SETS:
            path = run / "predictions" / f"{name}.tsv"
            if path.is_file():
                if name in found:
                    raise UserError(f"both {found[name]} and {path} are for {name}; give one run")
                found[name] = path
    return found


def _checked(path: Path, rows: int) -> str:
    text = read_text(path, "predictions")
    header, *lines = text.splitlines()
    if header != _HEADER:
        raise UserError(
            f"{path}: its first line must be index and prediction, separated by a tab; predict "
            "again"
        )
    if len(lines) != rows:
        raise UserError(
            f"{path} has {len(lines)} predictions, but that test set has {rows} rows; predict the "
            "whole official file"
        )
    return text


if __name__ == "__main__":
    sys.exit(main())
