"""Passages, queries and which passage is relevant to which query, as BEIR keeps them in files."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from bert_tf.data.tables import read_table, read_tsv
from bert_tf.errors import UserError
from bert_tf.io.remote import is_file, local_path, names_in

TEXTS = _CORPUS, _QUERIES = "corpus.jsonl", "queries.jsonl"
JUDGEMENTS = "qrels"
_TRIPLE = ("query", "positive", "negative")
_COLUMNS = ("query-id", "corpus-id", "score")


class Collection(NamedTuple):
    """A collection to search in.

    Attributes:
        passages: id -> text, in their order.
        queries: id -> text.
        relevant: id of a query -> id of a passage -> degree of relevance; 0 is not relevant.
    """

    passages: dict[str, str]
    queries: dict[str, str]
    relevant: dict[str, dict[str, int]]


def read_beir(folder: str | os.PathLike, split: str = "test") -> Collection:
    r'''A collection in BEIR's form (https://github.com/beir-cellar/beir).

    >>> folder = Path("cats")
    >>> Path(folder, "qrels").mkdir(parents=True)
    >>> _ = Path(folder, "corpus.jsonl").write_text(
    ...     '{"_id": "p1", "title": "Cats", "text": "The cat sat."}\n'
    ...     '{"_id": "p2", "text": "The dog ran."}\n'
    ... )
    >>> _ = Path(folder, "queries.jsonl").write_text('{"_id": "q1", "text": "Who sat?"}\n')
    >>> _ = Path(folder, "qrels", "test.tsv").write_text(
    ...     "query-id\tcorpus-id\tscore\nq1\tp1\t1\n"
    ... )
    >>> collection = read_beir(folder, "test")
    >>> collection.passages
    {'p1': 'Cats The cat sat.', 'p2': 'The dog ran.'}
    >>> collection.queries, collection.relevant
    ({'q1': 'Who sat?'}, {'q1': {'p1': 1}})

    A passage is its title, a space and its text, without blanks around, as in BEIR.

    Args:
        folder: holds `corpus.jsonl` with `_id`, `text` and perhaps `title`; `queries.jsonl` with
            `_id` and `text`; and `qrels/{split}.tsv` with `query-id`, `corpus-id` and `score`.
        split: which judgements to read.

    Returns:
        All passages, and the queries that have judgements in the split.

    Raises:
        UserError: a file is missing or empty, a line lacks an id or a text, an id is repeated, a
            judgement is of an unknown query or passage, or its score is not a whole number.
    """
    '''
    folder = local_path(folder)
    passages = dict(_texts(_present(folder / _CORPUS, folder)))
    queries = dict(_texts(_present(folder / _QUERIES, folder)))
    judgements = _present(folder / JUDGEMENTS / f"{split}.tsv", folder)
    relevant: dict[str, dict[str, int]] = {}
    for number, row in read_table(judgements, "tsv", _COLUMNS):
        query, passage, score = (row[column] for column in _COLUMNS)
        place = f"{judgements}, line {number}"
        if query not in queries:
            raise UserError(f"{place}: query {query!r} is not in {folder / _QUERIES}; add it there")
        if passage not in passages:
            raise UserError(
                f"{place}: passage {passage!r} is not in {folder / _CORPUS}; add it there"
            )
        judged = relevant.setdefault(query, {})
        if passage in judged:
            raise UserError(f"{place}: query {query!r} and passage {passage!r} are judged twice")
        digits = score.removeprefix("-")
        if not (digits.isascii() and digits.isdigit() and len(digits) < 10):
            raise UserError(f"{place}: the score {score!r} is not a whole number; write 0, 1, 2 …")
        judged[passage] = int(score)
    if not relevant:
        raise UserError(f"{judgements} holds no judgements; add lines below its header")
    return Collection(passages, {query: queries[query] for query in relevant}, relevant)


def read_triples(path: Path) -> Iterator[tuple[int, list[str]]]:
    """The query, the positive and the negative of each line of MS MARCO's triples."""
    for line, fields in read_tsv(path):
        if len(fields) != len(_TRIPLE):
            raise UserError(
                f"{path}, line {line}: {len(fields)} fields; a triple has 3, and the file has no "
                f"header: {', '.join(_TRIPLE)}"
            )
        yield line, fields


def _present(path: Path, folder: Path) -> Path:
    """`path`, if the file is there."""
    if is_file(path):
        return path
    splits = ", ".join(sorted(each.stem for each in names_in(folder / JUDGEMENTS, "*.tsv")))
    hint = f"; its splits are {splits}" if splits and path.parent != folder else ""
    raise UserError(
        f"{path} not found; a folder in BEIR's form holds {_CORPUS}, {_QUERIES} and "
        f"{JUDGEMENTS}/SPLIT.tsv{hint}"
    )


def _texts(path: Path) -> Iterator[tuple[str, str]]:
    """(id, text) of every line."""
    seen: set[str] = set()
    for number, row in read_table(path, "jsonl", ("_id", "text"), optional=("title",)):
        if row["_id"] in seen:
            raise UserError(f"{path}, line {number}: the _id {row['_id']!r} occurs twice")
        seen.add(row["_id"])
        yield row["_id"], f"{row.get('title', '')} {row['text']}".strip()
    if not seen:
        raise UserError(f"{path} is empty; write one object with _id and text in each line")
