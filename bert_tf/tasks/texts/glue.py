"""GLUE (Wang et al. 2019): its tasks, their metrics and submissions, and reading their files.

The columns and the order of the labels are those of google-research/bert, `run_classifier.py`. The
names of files and of predictions are those of the benchmark's distribution and server. In files,
columns are found by their names, and there is no quoting.

MRPC may be in GLUE's files, or in Microsoft's, from which GLUE's script makes its own. Microsoft's
msr_paraphrase_train.txt holds the pairs of both train.tsv and dev.tsv. GLUE's list dev_ids.tsv
names the pairs of dev.tsv. Microsoft's msr_paraphrase_test.txt is GLUE's test.tsv with labels.
"""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from bert_tf.console import logger
from bert_tf.data.columns import Columns
from bert_tf.data.tables import read_tsv
from bert_tf.errors import UserError
from bert_tf.io.remote import is_file

NAMES = {1: ("text",), 2: ("text_a", "text_b")}  # the inputs of a model of one text, and of two
# CoLA's training and dev files have no header.
_COLA = ["source", "label", "judgement", "sentence"]
# The labelled diagnostic set has other names for the columns of MNLI.
_DIAGNOSTIC_NAMES = {"Premise": "sentence1", "Hypothesis": "sentence2", "Label": "gold_label"}
# The diagnostic set as the benchmark's own script names it, and as the benchmark ships it.
_DIAGNOSTIC = ("diagnostic.tsv", "AX.tsv")
_NO_AGREEMENT = "-"  # the label of pairs on which the annotators of MultiNLI did not agree
# Microsoft's files of MRPC, GLUE's lists of its dev pairs, and the columns that name their texts.
_MRPC_TRAIN, _MRPC_TEST = "msr_paraphrase_train.txt", "msr_paraphrase_test.txt"
_MRPC_DEV_IDS = ("dev_ids.tsv", "mrpc_dev_ids.tsv")
_MRPC_IDS = slice(1, 3)


@dataclasses.dataclass(frozen=True)
class GlueTask:
    """One task of GLUE."""

    texts: tuple[str, ...]  # the column of the text, or of both texts
    label: str
    classes: tuple[str, ...]  # in the order of the logits; () if the label is a number
    metrics: tuple[str, ...]  # the first decides which of several runs is best: the highest
    # The name of a test file or of a split of TFDS -> the name of its predictions on GLUE's server.
    submissions: Mapping[str, str]
    parts: tuple[str, ...] = ("",)  # endings of the names of dev and test files
    other_texts: tuple[str, ...] = ()  # names of the texts in TFDS, if they differ there

    def named(self, split: str) -> dict[str, str]:
        """The names of the parts of a split, by the suffix of their metrics' names."""
        return {part.removeprefix("_matched"): split + part for part in self.parts}


_NO_YES = ("0", "1")
_ENTAILED_OR_NOT = ("entailment", "not_entailment")
_ENTAILED_OR_WHAT = ("contradiction", "entailment", "neutral")
_ONE, _TWO = ("sentence",), ("sentence1", "sentence2")
_QUESTIONS = ("question1", "question2")
_ACCURACY, _F1 = ("accuracy",), ("f1", "accuracy")

GLUE = {
    "cola": GlueTask(_ONE, "label", _NO_YES, ("mcc",), {"test": "CoLA"}),
    "sst2": GlueTask(_ONE, "label", _NO_YES, _ACCURACY, {"test": "SST-2"}),
    "mrpc": GlueTask(
        ("#1 String", "#2 String"),
        "Quality",
        _NO_YES,
        _F1,
        {"test": "MRPC", "msr_paraphrase_test": "MRPC"},
        other_texts=_TWO,
    ),
    "qqp": GlueTask(_QUESTIONS, "is_duplicate", _NO_YES, _F1, {"test": "QQP"}),
    "stsb": GlueTask(_TWO, "score", (), ("spearman", "pearson"), {"test": "STS-B"}),
    "mnli": GlueTask(
        _TWO,
        "gold_label",
        _ENTAILED_OR_WHAT,
        ("accuracy",),
        {"test_matched": "MNLI-m", "test_mismatched": "MNLI-mm", "diagnostic": "AX", "AX": "AX"},
        parts=("_matched", "_mismatched"),
        other_texts=("premise", "hypothesis"),
    ),
    "qnli": GlueTask(
        ("question", "sentence"), "label", _ENTAILED_OR_NOT, _ACCURACY, {"test": "QNLI"}
    ),
    "rte": GlueTask(_TWO, "label", _ENTAILED_OR_NOT, _ACCURACY, {"test": "RTE"}),
    "wnli": GlueTask(_TWO, "label", _NO_YES, _ACCURACY, {"test": "WNLI"}),
    "ax": GlueTask(
        _TWO,
        "gold_label",
        _ENTAILED_OR_WHAT,
        ("mcc", "accuracy"),
        {"test": "AX", "AX": "AX", "diagnostic": "AX", "diagnostic-full": "AX"},
        other_texts=("premise", "hypothesis"),
    ),
}


def find_files(folder: Path, name: str, split: str) -> dict[str, Path]:
    """The files of "train", "dev" or "test" of a task, by the suffix of their metrics' names. Only
    test files that exist are named. Those of MRPC may be files that `read_glue` has to make.
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
        places[""].append(folder / _MRPC_TEST)
    if name == "mnli":
        # The diagnostic set is for models of MNLI. The benchmark's own script puts it into the
        # second folder.
        folders = (folder, folder.parent / "diagnostic")
        places["_diagnostic"] = [each / file for each in folders for file in _DIAGNOSTIC]
    found = {suffix: [*filter(is_file, paths)] for suffix, paths in places.items()}
    return {suffix: paths[0] for suffix, paths in found.items() if paths}


def read_glue(path: Path, name: str) -> Columns:
    """The rows of an official file of the task `name`. Labelled rows of QQP with fields missing,
    and pairs of MNLI without an agreed label, are left out and counted.
    """
    name = benchmark_at(path, name)
    header: list[str] = []
    rows: list[tuple[int, list[str]]] = []
    short: list[int] = []
    for line, fields in _read_mrpc(path) if name == "mrpc" else read_tsv(path):
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
    place = header.index(task.label) if task.label in header else None
    if place is not None and name in ("mnli", "ax"):
        disputed = [line for line, fields in rows if fields[place] == _NO_AGREEMENT]
        _warn_of_rows(path, disputed, "no label was agreed on")
        rows = [row for row in rows if row[1][place] != _NO_AGREEMENT]
    return Columns(
        names=NAMES[len(task.texts)],
        values=tuple([fields[header.index(c)] for _, fields in rows] for c in task.texts),
        targets=None if place is None else [fields[place] for _, fields in rows],
        source=str(path),
        places=[line for line, _ in rows],
        classes=task.classes,
        path=path,
    )


def benchmark_at(path: Path, name: str) -> str:
    """The task of a file that belongs to the task `name`: "ax" for MNLI's diagnostic file."""
    if name != "mnli" or not is_file(path):
        return name
    _, header = next(read_tsv(path), (0, []))
    return "ax" if "Premise" in header else name


def _warn_of_rows(path: Path, lines: Sequence[int], why: str) -> None:
    if lines:
        logger.warning(
            f"{path}: rows skipped because {why}: {len(lines)}, the first in line {lines[0]}"
        )


def mrpc_sources(path: Path) -> list[Path]:
    """The files that are read for a file of MRPC: itself, or Microsoft's and the list of ids."""
    original = path.with_name(_MRPC_TRAIN)
    if is_file(path) or path.name not in ("train.tsv", "dev.tsv") or not is_file(original):
        return [path]
    lists = [path.with_name(name) for name in _MRPC_DEV_IDS]
    return [original, *[each for each in lists if is_file(each)][:1]]


def _read_mrpc(path: Path) -> Iterator[tuple[int, list[str]]]:
    """The fields of every line, including the header, with the line's number."""
    original, *lists = mrpc_sources(path)
    if original == path:
        yield from read_tsv(path)
        return
    if not lists:
        raise UserError(
            f"{original} holds both the training and the dev pairs of GLUE; put "
            f"{_MRPC_DEV_IDS[0]}, the list of the dev pairs, next to it, or set data.train to "
            f"{_MRPC_TRAIN} and data.dev to {_MRPC_TEST}"
        )
    dev = {tuple(fields[:2]) for _, fields in read_tsv(lists[0])}
    for number, (line, fields) in enumerate(read_tsv(original)):
        if number == 0 or (tuple(fields[_MRPC_IDS]) in dev) == (path.name == "dev.tsv"):
            yield line, fields
