"""Queries with the passages that are to be ranked for them, and how good a ranking is."""

import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from bert_tf.errors import UserError
from bert_tf.retrieval.measures import retrieval_metrics
from bert_tf.tasks.reranking.losses import BinaryCrossEntropyLoss, ListNetLoss, RankingLoss

# Those of the measures of retrieval that a ranking of given passages is judged by.
_MEASURES = ("ndcg@10", "mrr@10", "map")
_LARGEST = float(np.finfo(np.float32).max)
# Characters of a value that a message quotes.
_SHOWN = 60
# Queries whose loss is computed at a time.
_CHUNK = 64


class Candidates(NamedTuple):
    """One row: a query, and passages to rank for it.

    >>> row = Candidates("who sat", ("a cat", "a log"), (1.0, 0.0), query_id="q7")
    >>> row.query_key, row.passage_keys
    ('q7', ('a cat', 'a log'))

    Attributes:
        query: the query.
        passages: one or more.
        relevance: a number for each passage, the greater the better; None if it is not known.
        query_id: its name in the file; "" if it has none.
        passage_ids: those of the passages; () if they have none.
    """

    query: str
    passages: tuple[str, ...]
    relevance: tuple[float, ...] | None
    query_id: str = ""
    passage_ids: tuple[str, ...] = ()

    @property
    def query_key(self) -> str:
        """What identifies the query."""
        return self.query_id or self.query

    @property
    def passage_keys(self) -> tuple[str, ...]:
        """What identifies each passage of the query."""
        return self.passage_ids or self.passages


def checked_relevance(value: Any, place: str) -> float:
    """A relevance as a number.

    >>> checked_relevance(2, "relevance 0")
    2.0
    >>> checked_relevance("high", "relevance 0")
    Traceback (most recent call last):
        ...
    bert_tf.errors.UserError: relevance 0 is 'high', not a finite number

    Raises:
        UserError: it is not a finite number; `place` says which one.
    """
    is_number = isinstance(value, int | float | np.number | np.bool_)
    if not is_number or not abs(value) <= _LARGEST:
        raise UserError(f"{place} is {repr(value)[:_SHOWN]}, not a finite number")
    return float(value)


def default_loss(rows: Sequence[Candidates]) -> RankingLoss:
    """The loss of rows that name none: ListNet if there are lists, else binary cross-entropy.

    >>> default_loss([Candidates("who sat", ("a cat",), (1.0,))]).name
    'binary_cross_entropy'
    >>> default_loss([Candidates("who sat", ("a cat", "a log"), (1.0, 0.0))]).name
    'list_net'
    """
    has_lists = any(len(row.passages) > 1 for row in rows)
    return ListNetLoss() if has_lists else BinaryCrossEntropyLoss()


def check_loss(rows: Iterable[Candidates], loss: Any, place: str = "row") -> None:
    """Raises UserError if rows do not fit the loss that they are to be trained with.

    >>> rows = [Candidates("who sat", ("a cat",), (3.0,))]
    >>> check_loss(rows, BinaryCrossEntropyLoss())
    Traceback (most recent call last):
        ...
    bert_tf.errors.UserError: row 0: relevance 3.0 is outside 0 to 1, ...

    Args:
        rows: with relevance.
        loss: any loss; those of other programs take all rows.
        place: what a row is called.
    """
    is_binary, has_lists = isinstance(loss, BinaryCrossEntropyLoss), False
    for number, row in enumerate(rows):
        has_lists |= len(row.passages) > 1
        for value in row.relevance or ():
            if is_binary and not 0 <= value <= 1:
                raise UserError(
                    f"{place} {number}: relevance {value} is outside 0 to 1, which binary "
                    "cross-entropy requires; scale it, or choose the loss mean_squared_error"
                )
    check_has_lists(loss, has_lists)


def check_has_lists(loss: Any, has_lists: bool) -> None:
    """Raises UserError if a loss compares passages, and no query has more than one.

    >>> check_has_lists(ListNetLoss(), has_lists=False)
    Traceback (most recent call last):
        ...
    bert_tf.errors.UserError: the loss list_net compares the passages of a query, ...
    """
    if getattr(loss, "compares", False) and not has_lists:
        raise UserError(
            f"the loss {loss.name} compares the passages of a query, but each query has one; give "
            "lists of passages, or choose the loss binary_cross_entropy or mean_squared_error"
        )


def grouped(rows: Iterable[Candidates]) -> list[Candidates]:
    """The rows of the same query as one; a passage that occurs twice has its highest relevance.

    >>> rows = [Candidates("who", ("a",), (0.0,)), Candidates("who", ("b", "a"), (2.0, 1.0))]
    >>> grouped(rows)[0][:3]
    ('who', ('a', 'b'), (1.0, 2.0))
    """
    firsts: dict[str, Candidates] = {}
    texts: dict[str, dict[str, str]] = {}
    numbers: dict[str, dict[str, float]] = {}
    for row in rows:
        key = row.query_key
        firsts.setdefault(key, row)
        texts.setdefault(key, {}).update(zip(row.passage_keys, row.passages, strict=True))
        known = numbers.setdefault(key, {})
        for passage, value in zip(row.passage_keys, row.relevance or (), strict=False):
            known[passage] = max(known.get(passage, value), value)
    return [
        first._replace(
            passages=tuple(texts[key].values()),
            relevance=None if first.relevance is None else tuple(numbers[key].values()),
            passage_ids=tuple(texts[key]) if first.passage_ids else (),
        )
        for key, first in firsts.items()
    ]


def padded(rows: Sequence[Sequence[float] | np.ndarray], padding: float) -> np.ndarray:
    """float32 [rows, longest]: rows of different lengths in a table.

    >>> padded([[1.0], [2.0, 3.0]], float("nan")).tolist()
    [[1.0, nan], [2.0, 3.0]]
    """
    table = np.full((len(rows), max(map(len, rows))), padding, np.float32)
    for place, row in enumerate(rows):
        table[place, : len(row)] = row
    return table


def ranking_metrics(
    logits: Sequence[np.ndarray], rows: Sequence[Candidates], loss: RankingLoss | None = None
) -> dict[str, float]:
    """How good the scores of passages are.

    >>> rows = [Candidates("who sat", ("a log", "a cat"), (0.0, 1.0))]
    >>> metrics = ranking_metrics([np.array([0.0, -1.0])], rows)
    >>> {name: round(value, 2) for name, value in metrics.items()}
    {'ndcg@10': 0.63, 'mrr@10': 0.5, 'map': 0.5, 'loss': 1.04}

    Args:
        logits: float32 [passages] of each row.
        rows: with relevance; those of the same query are ranked together. A fraction counts as the
            nearest whole number, and a negative one as 0.
        loss: the loss; None is `default_loss`.

    Returns:
        `ndcg@10`, `mrr@10` and `map`, see `retrieval_metrics`; and `loss`, over the rows as they
        are. A binary cross-entropy is left out where a relevance is outside 0 to 1.
    """
    found: dict[str, dict[str, float]] = {}
    relevant: dict[str, dict[str, int]] = {}
    for row, row_logits in zip(rows, logits, strict=True):
        scores = found.setdefault(row.query_key, {})
        degrees = relevant.setdefault(row.query_key, {})
        judged = zip(row.passage_keys, row_logits, row.relevance or (), strict=True)
        for key, score, value in judged:
            scores[key] = float(score)
            degrees[key] = max(degrees.get(key, 0), math.floor(value + 0.5))
    measured = retrieval_metrics(found, relevant)
    metrics = {name: measured[name] for name in _MEASURES}
    loss = loss or default_loss(rows)
    values = [value for row in rows for value in row.relevance or ()]
    if isinstance(loss, BinaryCrossEntropyLoss) and not 0 <= min(values) <= max(values) <= 1:
        return metrics
    return metrics | {"loss": _loss(loss, logits, rows)}


def _loss(loss: RankingLoss, logits: Sequence[np.ndarray], rows: Sequence[Candidates]) -> float:
    total, counted = 0.0, 0.0
    for start in range(0, len(rows), _CHUNK):
        part = slice(start, start + _CHUNK)
        relevance = padded([row.relevance or () for row in rows[part]], np.nan)
        total += float(np.sum(loss.sums(relevance, padded(logits[part], 0.0))))
        counted += float(np.sum(loss.counts(relevance)))
    return total / max(counted, 1.0)
