"""Files of queries with passages: tables, JSON lines, MS MARCO's triples, BEIR's folders."""

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bert_tf.data import arrow, tables
from bert_tf.data.columns import Columns, TextColumn
from bert_tf.errors import UserError
from bert_tf.io.json_files import whole_value
from bert_tf.retrieval.collection import read_beir, read_triples
from bert_tf.tasks.reranking.candidates import COLUMNS, Relevance

FORMATS = (*tables.FORMATS, *arrow.FORMATS, "triples", "beir")
_TEXTS, _RELEVANCE = ("query", "passage"), "relevance"


def read_candidates(path: Path, file_format: str, negatives: int = 0, seed: int = 0) -> Columns:
    r"""The rows of a file, in its order. All have a relevance, or none.

    >>> line = '{"query": "who sat", "passages": ["a cat", "a log"], "relevances": [1, 0]}\n'
    >>> _ = Path("train.jsonl").write_text(line)
    >>> rows = read_candidates(Path("train.jsonl"), "jsonl")
    >>> rows.values, rows.targets
    ((['who sat'], [['a cat', 'a log']]), [(1.0, 0.0)])

    Args:
        path: the file; for format "beir" the judgements, FOLDER/qrels/SPLIT.tsv.
        file_format: one of `FORMATS`. "triples" has no header; its fields are query, positive and
            negative.
        negatives: for format "beir", how many passages are drawn for each query as not relevant,
            besides those that are judged.
        seed: decides which passages are drawn.

    Raises:
        UserError: a missing column or key, an empty text, a query without any passage, a relevance
            that is not a number, or one that is missing where others are not, no rows; with the
            line.
    """
    if file_format == "beir":
        return _beir(path, negatives, seed)
    is_arrow = arrow.reads(path, file_format)
    readers = {"triples": _triples, "jsonl": _named}
    read = _named if is_arrow else readers.get(file_format, _table)
    unit = "row" if is_arrow else "line"
    rows = Columns.of_file(path, ("query", "passages"), read(path, file_format), unit=unit)
    return rows.checked((TextColumn("query", may_be_empty=False), COLUMNS[1]), Relevance())


_Row = tuple[int, Any, Any, Any]


def _table(path: Path, file_format: str) -> Iterator[_Row]:
    for line, row in tables.read_table(path, file_format, _TEXTS, optional=(_RELEVANCE,)):
        given = row.get(_RELEVANCE, "").strip()
        relevance = [Relevance().from_text(given)] if given else None
        yield line, row["query"], [row["passage"]], relevance


def _triples(path: Path, _: str) -> Iterator[_Row]:
    for line, (query, *passages) in read_triples(path):
        yield line, query, passages, (1.0, 0.0)


def _named(path: Path, file_format: str) -> Iterator[_Row]:
    unit, rows = tables.rows_of(path, file_format)
    for line, row in rows:
        place = f"{path}, {unit} {line}"
        key = next((each for each in ("passages", "positive", "passage") if each in row), None)
        if "query" not in row or key is None:
            missing = "'query'" if key else "'passage', 'passages' or 'positive'"
            raise UserError(f"{place}: no {missing}; the keys are {', '.join(map(repr, row))}")
        passages, relevance = [row[key]], row.get(_RELEVANCE)
        relevance = None if relevance is None else [relevance]
        if key == "positive":
            negatives = row.get("negatives", [])
            if not isinstance(negatives, list):
                raise UserError(f"{place}: negatives must be a list")
            passages, relevance = [*passages, *negatives], [1.0, *[0.0] * len(negatives)]
        elif key == "passages":
            passages, relevance = row["passages"], row.get("relevances")
        yield line, whole_value(row["query"]), whole_value(passages), relevance


def _beir(path: Path, negatives: int, seed: int) -> Columns:
    """The judged passages of each query, and passages that are drawn from the corpus."""
    if path.parent.name != "qrels":
        raise UserError(
            f"{path} is not a judgement file of a BEIR folder; give FOLDER/qrels/SPLIT.tsv"
        )
    collection = read_beir(path.parent.parent, path.stem)
    ids, draw = [*collection.passages], random.Random(seed)
    relevance = {}
    for query, judged in collection.relevant.items():
        # This draws enough passages even after the judged ones are left out.
        drawn = draw.sample(range(len(ids)), min(negatives + len(judged), len(ids)))
        others = [ids[place] for place in drawn if ids[place] not in judged][:negatives]
        relevance[query] = judged | dict.fromkeys(others, 0)
    queries = [collection.queries[query] for query in relevance]
    passages = [[collection.passages[each] for each in judged] for judged in relevance.values()]
    return Columns(
        names=("query", "passages"),
        values=(queries, passages),
        targets=[tuple(map(float, judged.values())) for judged in relevance.values()],
        source=str(path),
        ids=[(query, tuple(judged)) for query, judged in relevance.items()],
        path=path,
    )
