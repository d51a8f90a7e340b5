"""Files of queries with passages: tables, JSON lines, MS MARCO's triples, BEIR's folders."""

import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from bert_tf.data import tables
from bert_tf.errors import UserError
from bert_tf.io.json_files import read_json_lines, whole_text
from bert_tf.retrieval.collection import read_beir, read_triples
from bert_tf.tasks.reranking.candidates import Candidates, checked_relevance

FORMATS = (*tables.FORMATS, "triples", "beir")
_TEXTS, _RELEVANCE = ("query", "passage"), "relevance"
# The folder of the files of judgements.
_QRELS = "qrels"


def read_candidates(
    path: Path, file_format: str, negatives: int = 0, seed: int = 0
) -> list[Candidates]:
    r"""The rows of a file, in its order. All have a relevance, or none.

    >>> line = '{"query": "who sat", "passages": ["a cat", "a log"], "relevances": [1, 0]}\n'
    >>> _ = Path("train.jsonl").write_text(line)
    >>> read_candidates(Path("train.jsonl"), "jsonl")[0][:3]
    ('who sat', ('a cat', 'a log'), (1.0, 0.0))
    >>> _ = Path("train.tsv").write_text("query\tpassage\trelevance\nwho sat\ta cat\t0.5\n")
    >>> read_candidates(Path("train.tsv"), "tsv")[0][:3]
    ('who sat', ('a cat',), (0.5,))

    Args:
        path: the file; of format "beir" the judgements, FOLDER/qrels/SPLIT.tsv.
        file_format: one of `FORMATS`. "triples" has no header; its fields are query, positive and
            negative.
        negatives: of format "beir", how many passages are drawn for each query as not relevant,
            besides those that are judged.
        seed: decides which.

    Raises:
        UserError: a missing column or key, an empty text, a query without any passage, a relevance
            that is not a number, or one that is missing where others are not, no rows; with the
            line.
    """
    if file_format == "beir":
        return _beir(path, negatives, seed)
    readers = {"jsonl": _json_lines, "triples": _triples}
    found = readers[file_format](path) if file_format in readers else _table(path, file_format)
    rows: list[Candidates] = []
    for line, query, passages, relevance in found:
        place = f"{path}, line {line}"
        if not passages:
            raise UserError(f"{place}: the query has no passages; give it at least one")
        for name, text in (("query", query), *(("passage", each) for each in passages)):
            if not text.strip():
                raise UserError(f"{place}: the {name} is empty; write one, or remove the row")
        if rows and (relevance is None) != (rows[0].relevance is None):
            one = "no relevance" if relevance is None else "a relevance"
            raise UserError(
                f"{place}: {one}, unlike earlier rows; give relevances to all rows or none"
            )
        rows.append(Candidates(query, tuple(passages), relevance))
    if not rows:
        raise UserError(f"{path} has no rows")
    return rows


_Row = tuple[int, str, Sequence[str], tuple[float, ...] | None]


def _table(path: Path, file_format: str) -> Iterator[_Row]:
    for line, row in tables.read_table(path, file_format, _TEXTS, optional=(_RELEVANCE,)):
        given = row.get(_RELEVANCE, "").strip()
        numbers = (_number(given, f"{path}, line {line}: relevance"),) if given else None
        yield line, row["query"], (row["passage"],), numbers


def _triples(path: Path) -> Iterator[_Row]:
    for line, (query, *passages) in read_triples(path):
        yield line, query, passages, (1.0, 0.0)


def _json_lines(path: Path) -> Iterator[_Row]:
    for line, row in read_json_lines(path):
        place = f"{path}, line {line}"
        key = next((each for each in ("passages", "positive", "passage") if each in row), None)
        if "query" not in row or key is None:
            missing = "'query'" if key else "'passage', 'passages' or 'positive'"
            raise UserError(f"{place}: no {missing}; the keys are {', '.join(map(repr, row))}")
        query = _text(row["query"], f"{place}: query")
        if key == "positive":
            negatives = _list(row.get("negatives", []), f"{place}: negatives")
            passages = [row["positive"], *negatives]
            numbers: Any = [1.0, *[0.0] * len(negatives)]
        elif key == "passages":
            passages, numbers = _list(row["passages"], f"{place}: passages"), row.get("relevances")
            numbers = None if numbers is None else _list(numbers, f"{place}: relevances")
        else:
            passages, numbers = [row["passage"]], row.get(_RELEVANCE)
            numbers = None if numbers is None else [numbers]
        if numbers is not None and len(numbers) != len(passages):
            raise UserError(
                f"{place}: {len(passages)} passages, but {len(numbers)} relevances; give one for "
                "each passage"
            )
        texts = [_text(each, f"{place}: passage {i}") for i, each in enumerate(passages)]
        yield (
            line,
            query,
            texts,
            numbers
            and tuple(
                checked_relevance(each, f"{place}: relevance {i}") for i, each in enumerate(numbers)
            ),
        )


def _text(value: Any, place: str) -> str:
    if not isinstance(value, str):
        raise UserError(f"{place} must be a text")
    return whole_text(value)


def _list(value: Any, place: str) -> list:
    if not isinstance(value, list):
        raise UserError(f"{place} must be a list")
    return value


def _number(text: str, place: str) -> float:
    """A relevance that a table has as text."""
    try:
        value: Any = float(text)
    except ValueError:
        value = text
    return checked_relevance(value, place)


def _beir(path: Path, negatives: int, seed: int) -> list[Candidates]:
    """The judged passages of each query, and passages that are drawn from the corpus."""
    if path.parent.name != _QRELS:
        raise UserError(
            f"{path} is not a judgement file of a BEIR folder; give FOLDER/{_QRELS}/SPLIT.tsv"
        )
    collection = read_beir(path.parent.parent, path.stem)
    ids, draw = [*collection.passages], random.Random(seed)
    rows = []
    for query, judged in collection.relevant.items():
        # So many that enough are left without those that are judged.
        drawn = draw.sample(range(len(ids)), min(negatives + len(judged), len(ids)))
        others = [ids[place] for place in drawn if ids[place] not in judged][:negatives]
        degrees = judged | dict.fromkeys(others, 0)
        rows.append(
            Candidates(
                collection.queries[query],
                tuple(collection.passages[each] for each in degrees),
                tuple(map(float, degrees.values())),
                query,
                tuple(degrees),
            )
        )
    return rows
