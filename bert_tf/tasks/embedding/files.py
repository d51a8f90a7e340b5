"""Files of texts that an embedder learns from: tables, STS-B, NLI, MS MARCO, BEIR."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bert_tf.data import arrow, tables
from bert_tf.data.columns import Columns, TextColumn, columns_of_rows
from bert_tf.data.tables import read_table, read_tsv
from bert_tf.data.targets import Number
from bert_tf.errors import UserError
from bert_tf.io.remote import is_file
from bert_tf.retrieval.collection import Collection, read_beir, read_triples
from bert_tf.tasks.embedding.data import EmbeddingTarget, names_of
from bert_tf.tasks.embedding.losses import Form
from bert_tf.tasks.texts.glue import read_glue

FORMATS = (*tables.FORMATS, *arrow.FORMATS, "sts-b", "nli", "triples", "beir")

# The columns of tables, by what they begin with: those of the texts, and that of the target.
_SHAPES: tuple[tuple[tuple[str, ...], tuple[str, ...], Form], ...] = (
    (("sentence1", "sentence2"), ("score", "label"), "scores"),
    (("anchor", "positive", "negative"), (), "texts"),
    (("query", "positive", "negative"), (), "texts"),
    (("text",), ("label",), "labels"),
    *(((first, "answer", "negative"), (), "texts") for first in ("query", "question")),
)
_KNOWN = tuple(dict.fromkeys(name for texts, targets, _ in _SHAPES for name in (*texts, *targets)))
_NEGATIVES = "negatives"
_HIGHEST = 5.0  # the greatest score of STS-B
_SCORE, _FIRST, _SECOND = 4, 5, 6  # columns of the original files of STS-B, without a header


def find_file(folder: Path, file_format: str, split: str) -> Path:
    """A format's default file of "train", "dev" or "test", if no name is configured."""
    if file_format in arrow.FORMATS:
        return folder / arrow.default_name(folder, file_format, split)
    names = {
        "sts-b": (f"{split}.tsv", f"sts-{split}.csv"),
        "nli": (f"{split}.tsv", f"{split}_matched.tsv"),
        "triples": (f"{split}.tsv", f"triples.{split}.tsv"),
        "beir": (f"qrels/{split}.tsv",),
    }.get(file_format, (f"{split}.{file_format}",))
    paths = [folder / name for name in names]
    return next((path for path in paths if is_file(path)), paths[0])


def read(path: Path, file_format: str, judged: bool = False) -> Columns | Collection:
    """The rows of a file; of beir, the file of judgements, read as a search if `judged`."""
    if file_format == "beir":
        collection = read_beir(path.parent.parent, path.stem)
        return collection if judged else _pairs_of(collection, path)
    if arrow.reads(path, file_format):
        return of_table(arrow.read(path), path)
    readers = {"sts-b": _sts, "nli": _nli, "triples": _triples}
    return readers[file_format](path) if file_format in readers else _table(path, file_format)


def _table(path: Path, file_format: str) -> Columns:
    wanted = (*_KNOWN, _NEGATIVES) if file_format == "jsonl" else _KNOWN
    rows = read_table(path, file_format, (), optional=wanted, targets=("label", _NEGATIVES))
    return _of_rows(path, [(line, _numbered(row, f"{path}, line {line}")) for line, row in rows])


def of_table(table: arrow.DataTable, path: Path) -> Columns:
    """The rows of an Arrow table; its columns have the same names as those of files."""
    names = [name for name in (*_KNOWN, _NEGATIVES) if name in table.names]
    targets = {name for _, kinds, _ in _SHAPES for name in kinds}
    table.check_texts([name for name in names if name not in {*targets, _NEGATIVES}])
    rows = table.rows(names, lambda n, row: (n, _numbered(row, f"{path}, row {n}")))
    return _of_rows(path, [*rows], unit="row")


def _of_rows(path: Path, rows: list[tuple[int, dict[str, Any]]], unit: str = "line") -> Columns:
    if not rows:
        raise UserError(f"{path} has no rows")
    line, first = rows[0]
    # The negative is optional.
    shape = next((each for each in _SHAPES if {*each[0][:2]} <= {*first}), None)
    if shape is None:
        raise UserError(
            f"{path}, {unit} {line}: no text columns; name them sentence1 and sentence2, anchor "
            "and positive, query and positive, question and answer, or text"
        )
    known, kinds, form = shape
    negatives = (name for name in first if name.startswith(f"{_NEGATIVES} "))
    texts = tuple(name for name in (*known, *negatives) if name in first)
    target = next((name for name in kinds if name in first), None)
    for line, row in rows:
        for name in (*texts, *filter(None, [target])):
            if name not in row:
                raise UserError(f"{path}, {unit} {line}: no {name}, unlike earlier rows; add it")
        if len(row) > len(first):
            raise UserError(
                f"{path}, {unit} {line}: more texts than in earlier rows; give all rows the same "
                "columns"
            )
    columns = [[row[name] for _, row in rows] for name in texts]
    targets = None if target is None else [row[target] for _, row in rows]
    lines = [line for line, _ in rows]
    if targets is not None and form == "scores":
        return _scored(path, columns, targets, lines, unit=unit)
    return _rows(path, columns, targets, lines, unit=unit)


def _numbered(row: dict[str, Any], place: str) -> dict[str, Any]:
    """A row with a column for each of its negatives: "negatives 1" and so on."""
    negatives = row.pop(_NEGATIVES, [])
    if not isinstance(negatives, list) or not all(isinstance(n, str) for n in negatives):
        raise UserError(f"{place}: {_NEGATIVES} must be a list of texts")
    return row | {f"{_NEGATIVES} {i}": text for i, text in enumerate(negatives, start=1)}


def _rows(
    path: Path,
    columns: Sequence[Sequence[str]],
    targets: Sequence[Any] | None = None,
    lines: Sequence[int] | None = None,
    **others: Any,
) -> Columns:
    names, values = names_of(len(columns)), tuple(columns)
    rows = Columns(names, values, targets, str(path), lines, path=path, **others)
    return rows.checked(map(TextColumn, names), EmbeddingTarget())


def _scored(
    path: Path,
    columns: Sequence[Sequence[str]],
    written: Sequence[str],
    lines: Sequence[int],
    highest: float = 1.0,
    **others: Any,
) -> Columns:
    """Pairs with scores, which are divided by `highest`."""
    known = [Number().from_text(each) if isinstance(each, str) else each for each in written]
    rows = _rows(path, columns, known, lines, **others)
    scores = np.array(rows.targets, np.float32) / np.float32(highest)
    return dataclasses.replace(rows, targets=scores.tolist())


def _sts(path: Path) -> Columns:
    table = list(read_tsv(path))
    if table and "sentence1" in table[0][1]:
        rows = read_glue(path, "stsb")
        if rows.targets is None:
            return _rows(path, rows.values)
        return _scored(path, rows.values, rows.targets, rows.places or (), _HIGHEST)
    for line, fields in table:
        if len(fields) <= _SECOND:
            raise UserError(
                f"{path}, line {line}: {len(fields)} fields; the STS benchmark has genre, file, "
                "year, number, score and two sentences"
            )
    found = [(line, fields[_SCORE], fields[_FIRST], fields[_SECOND]) for line, fields in table]
    lines, scores, *pairs = columns_of_rows(found, 4)
    return _scored(path, pairs, scores, lines, _HIGHEST)


def _nli(path: Path) -> Columns:
    """Each entailed hypothesis with its premise and a contradicting one; others are left out."""
    rows = read_glue(path, "mnli")
    of_premise: dict[str, dict[str, list[str]]] = {}
    for first, second, label in zip(*rows.values, rows.known_targets(), strict=True):
        of_premise.setdefault(first, {}).setdefault(label, []).append(second)
    triples = [
        (premise, entailed, contradicting[i % len(contradicting)])
        for premise, found in of_premise.items()
        if (contradicting := found.get("contradiction"))
        for i, entailed in enumerate(found.get("entailment", []))
    ]
    if not triples:
        raise UserError(
            f"{path} has no premise with both an entailed and a contradicting hypothesis; add one "
            "to train"
        )
    return _rows(path, columns_of_rows(triples, 3))


def _triples(path: Path) -> Columns:
    lines, *triples = columns_of_rows([(line, *texts) for line, texts in read_triples(path)], 4)
    return _rows(path, triples, lines=lines)


def _pairs_of(collection: Collection, path: Path) -> Columns:
    """Each query with each passage that is relevant to it."""
    pairs = [
        (collection.queries[query], collection.passages[passage])
        for query, judged in collection.relevant.items()
        for passage, degree in judged.items()
        if degree > 0
    ]
    if not pairs:
        raise UserError(f"{path} marks no passage as relevant; mark at least one to train")
    return _rows(path, columns_of_rows(pairs, 2))
