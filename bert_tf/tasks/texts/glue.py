"""Reading the official files of GLUE. Columns are found by their names; there is no quoting."""

from collections.abc import Sequence
from pathlib import Path

from bert_tf.console import logger
from bert_tf.data.columns import Columns
from bert_tf.data.tables import read_tsv
from bert_tf.errors import UserError
from bert_tf.tasks.texts import mrpc
from bert_tf.tasks.texts.glue_tasks import GLUE

# The inputs of a model of one text, and of two.
NAMES = {1: ("text",), 2: ("text_a", "text_b")}
# CoLA's training and dev files have no header.
_COLA = ["source", "label", "judgement", "sentence"]
# The labelled diagnostic set has other names for the columns of MNLI.
_DIAGNOSTIC_NAMES = {"Premise": "sentence1", "Hypothesis": "sentence2", "Label": "gold_label"}
# The diagnostic set as the benchmark's own script names it, and as the benchmark ships it.
_DIAGNOSTIC = ("diagnostic.tsv", "AX.tsv")
# The label of pairs on which the people who labelled MultiNLI did not agree.
_NO_AGREEMENT = "-"


def find_files(folder: Path, name: str, split: str) -> dict[str, Path]:
    """The files of "train", "dev" or "test" of a task, by the suffix of their metrics' names.

    Only test files that exist are named. MRPC's may be files that `read_glue` has to make.

    >>> {suffix: path.name for suffix, path in find_files(Path("MNLI"), "mnli", "dev").items()}
    {'': 'dev_matched.tsv', '_mismatched': 'dev_mismatched.tsv'}

    Raises:
        UserError: there is no training data, since the task is the diagnostic set.
    """
    if name == "ax":
        raise UserError(
            "the diagnostic set is not for training; fine-tune with data.format mnli and then "
            "run bert-tf evaluate RUN --data diagnostic-full.tsv"
        )
    if split == "train":
        return {"": folder / "train.tsv"}
    files = {suffix: folder / f"{part}.tsv" for suffix, part in GLUE[name].named(split).items()}
    if split == "dev":
        return files
    places = {suffix: [path] for suffix, path in files.items()}
    if name == "mrpc":
        places[""].append(folder / mrpc.TEST)
    if name == "mnli":
        # The diagnostic set is for models of MNLI. The benchmark's own script puts it into the
        # second folder.
        folders = (folder, folder.parent / "diagnostic")
        places["_diagnostic"] = [each / file for each in folders for file in _DIAGNOSTIC]
    found = {suffix: [*filter(Path.is_file, paths)] for suffix, paths in places.items()}
    return {suffix: paths[0] for suffix, paths in found.items() if paths}


def read_glue(path: Path, name: str) -> Columns:
    r"""The rows of an official file of the task `name`; most test files have no labels.

    Labelled rows of QQP with fields missing, and pairs of MNLI without an agreed label, are left
    out and counted.

    >>> _ = Path("train.tsv").write_text("sentence\tlabel\na lovely film\t1\ntwo long hours\t0\n")
    >>> rows = read_glue(Path("train.tsv"), "sst2")
    >>> rows.values, rows.targets, rows.classes
    ((['a lovely film', 'two long hours'],), ['1', '0'], ('0', '1'))


    Raises:
        UserError: no such file, a missing column, a row with too few fields; with its line.
    """
    name = benchmark_at(path, name)
    header: list[str] = []
    rows: list[tuple[int, list[str]]] = []
    short: list[int] = []
    for line, fields in mrpc.read_mrpc(path) if name == "mrpc" else read_tsv(path):
        if not header:
            header = [_DIAGNOSTIC_NAMES.get(each, each) for each in fields]
            if name != "cola" or "sentence" in fields:
                continue
            header = _COLA
        if len(fields) >= len(header):
            rows.append((line, fields))
        elif name == "qqp" and GLUE[name].label in header:
            short.append(line)
        else:
            raise UserError(
                f"{path}, line {line}: {len(fields)} fields, but there are {len(header)} columns"
            )
    task = GLUE[name]
    for column in task.texts:
        if column not in header:
            raise UserError(f"{path}: no column {column!r}; the columns are {', '.join(header)}")
    _warn_of_rows(path, short, "fields are missing")
    labels = None
    if task.label in header:
        place = header.index(task.label)
        if name in ("mnli", "ax"):
            disputed = [line for line, fields in rows if fields[place] == _NO_AGREEMENT]
            _warn_of_rows(path, disputed, "no label was agreed on")
            rows = [row for row in rows if row[1][place] != _NO_AGREEMENT]
        labels = [fields[place] for _, fields in rows]
    return Columns(
        names=NAMES[len(task.texts)],
        values=tuple([fields[header.index(c)] for _, fields in rows] for c in task.texts),
        targets=labels,
        source=str(path),
        places=[line for line, _ in rows],
        classes=task.classes,
        path=path,
    )


def benchmark_at(path: Path, name: str) -> str:
    r"""The task that a file of the task `name` is of: "ax" for the diagnostic file of MNLI.

    >>> _ = Path("diagnostic-full.tsv").write_text("Premise\tHypothesis\tLabel\n")
    >>> benchmark_at(Path("diagnostic-full.tsv"), "mnli")
    'ax'
    """
    if name != "mnli" or not path.is_file():
        return name
    _, header = next(read_tsv(path), (0, []))
    return "ax" if "Premise" in header else name


def _warn_of_rows(path: Path, lines: Sequence[int], why: str) -> None:
    if lines:
        logger.warning(
            f"{path}: rows skipped because {why}: {len(lines)}, the first in line {lines[0]}"
        )
