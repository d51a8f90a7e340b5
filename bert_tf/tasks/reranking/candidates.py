"""Queries with the passages that are to be ranked for them, and how good a ranking is."""

import dataclasses
import math
from collections.abc import Sequence
from typing import Any, ClassVar

import keras
import numpy as np

from bert_tf.asking import plain
from bert_tf.data.columns import Columns, GroupColumn, Target, TextColumn, as_list, quoted
from bert_tf.data.targets import Number, finite_number
from bert_tf.errors import UserError
from bert_tf.retrieval.evaluation import retrieval_metrics
from bert_tf.tasks.reranking.losses import BinaryCrossEntropyLoss, ListNetLoss, RankingLoss

# The measures of retrieval that also apply to a ranking of given passages.
_MEASURES = ("ndcg@10", "mrr@10", "map")
_PASSAGES = "Goethe wrote Faust.", "Faust is a play in two parts.", "A fist is a hand."
COLUMNS = (
    TextColumn("query", example="Who wrote Faust?"),
    GroupColumn("passages", example=_PASSAGES),
)
# For how many queries the loss is computed at a time.
_CHUNK = 64
# The message about a relevance that binary cross-entropy does not take.
OUTSIDE = (
    "is outside 0 to 1, which binary cross-entropy requires; scale it, or choose the loss "
    "mean_squared_error"
)


@dataclasses.dataclass(frozen=True)
class Relevance(Target):
    """A number for each passage of a query, the greater the better."""

    what: ClassVar[str] = "relevance"
    plural: ClassVar[str] = "relevances"
    column_names: ClassVar[tuple[str, ...]] = ("relevance", "relevances")

    def checked_one(self, rows: Columns, row: int, given: Any) -> tuple[float, ...]:
        place, passages = rows.at(row, self.what), rows.column("passages")[row]
        if isinstance(given, int | float | np.number | str | bytes):
            raise UserError(f"{place} is {quoted(given)}; give one number for each passage")
        values = as_list(given, place)
        if len(values) != len(passages):
            raise UserError(
                f"{place} has {len(values)} numbers, but there are {len(passages)} passages; give "
                "one for each"
            )
        places = [f"{place}, entry {i}" for i in range(len(values))] if len(values) > 1 else [place]
        return tuple(
            finite_number(int(each) if isinstance(each, bool | np.bool_) else each, at)
            for each, at in zip(values, places, strict=True)
        )

    def numbers(self, rows: Columns) -> np.ndarray:
        """float32 [rows, passages], padded with NaN; 0 for a row without a relevance."""
        pairs = zip(rows.known_targets(), rows.column("passages"), strict=True)
        return padded([row or [0.0] * len(texts) for row, texts in pairs], np.nan)

    def from_text(self, text: str) -> Any:
        return Number().from_text(text)


def keys_of(rows: Columns, row: int) -> tuple[str, tuple[str, ...]]:
    """The keys of the query and the passages of a row: their ids, or else their texts."""
    query, passages = (column[row] for column in rows.values)
    query_id, passage_ids = ("", ()) if rows.ids is None else rows.ids[row]
    return query_id or plain(query), tuple(passage_ids or map(plain, passages))


def has_lists(rows: Columns) -> bool:
    """Whether a query has more than one passage."""
    return any(len(each) > 1 for each in rows.column("passages"))


def default_loss(are_lists: bool) -> RankingLoss:
    """The default loss: ListNet if there are lists, else binary cross-entropy."""
    return ListNetLoss() if are_lists else BinaryCrossEntropyLoss()


def check_loss(rows: Columns, loss: Any) -> None:
    """Raises UserError if rows do not fit the loss; losses of other programs take all rows."""
    if isinstance(loss, BinaryCrossEntropyLoss):
        for row, values in enumerate(rows.known_targets()):
            for value in values or ():
                if not 0 <= value <= 1:
                    raise UserError(f"{rows.where(row)}: relevance {value} {OUTSIDE}")
    check_has_lists(loss, has_lists(rows))


def check_has_lists(loss: Any, are_lists: bool) -> None:
    """Raises UserError if a loss compares passages, and no query has more than one."""
    if getattr(loss, "compares", False) and not are_lists:
        raise UserError(
            f"the loss {loss.name} compares the passages of a query, but each query has one; give "
            "lists of passages, or choose the loss binary_cross_entropy or mean_squared_error"
        )


def grouped(rows: Columns) -> Columns:
    """The rows of the same query as one; a passage that occurs twice has its highest relevance."""
    firsts: dict[str, int] = {}
    texts: dict[str, dict[str, str]] = {}
    degrees: dict[str, dict[str, float]] = {}
    for row, passages in enumerate(rows.column("passages")):
        query, keys = keys_of(rows, row)
        firsts.setdefault(query, row)
        texts.setdefault(query, {}).update(zip(keys, passages, strict=True))
        known = degrees.setdefault(query, {})
        for key, value in zip(keys, rows.targets[row] if rows.targets else (), strict=False):
            known[key] = max(known.get(key, value), value)
    first = rows.take([*firsts.values()])
    ids = first.ids and [
        (query, tuple(texts[query]) if passage_ids else ())
        for query, (_, passage_ids) in zip(firsts, first.ids, strict=True)
    ]
    return dataclasses.replace(
        first,
        values=(first.values[0], [[*texts[query].values()] for query in firsts]),
        targets=rows.targets and [tuple(degrees[query].values()) for query in firsts],
        ids=ids,
    )


def padded(rows: Sequence[Sequence[float] | np.ndarray], padding: float) -> np.ndarray:
    """float32 [rows, longest]: rows of different lengths, padded to the longest."""
    return keras.utils.pad_sequences(rows, dtype="float32", padding="post", value=padding)


def ranking_metrics(
    logits: Sequence[np.ndarray], rows: Columns, loss: RankingLoss | None = None
) -> dict[str, float]:
    """`ndcg@10`, `mrr@10`, `map` and `loss` of logits, float32 [passages] of each row. Rows of the
    same query are ranked together. A relevance is rounded, and at least 0. A binary cross-entropy
    is left out where a relevance is outside 0 to 1.
    """
    found: dict[str, dict[str, float]] = {}
    relevant: dict[str, dict[str, int]] = {}
    numbers = rows.known_targets()
    for row, (row_logits, values) in enumerate(zip(logits, numbers, strict=True)):
        query, keys = keys_of(rows, row)
        scores, degrees = found.setdefault(query, {}), relevant.setdefault(query, {})
        for key, score, value in zip(keys, row_logits, values, strict=True):
            scores[key] = float(score)
            degrees[key] = max(degrees.get(key, 0), math.floor(value + 0.5))
    measured = retrieval_metrics(found, relevant)
    metrics = {name: measured[name] for name in _MEASURES}
    loss = loss or default_loss(has_lists(rows))
    values = [value for row in numbers for value in row]
    if isinstance(loss, BinaryCrossEntropyLoss) and not 0 <= min(values) <= max(values) <= 1:
        return metrics
    total, counted = 0.0, 0.0
    for start in range(0, len(numbers), _CHUNK):
        part = slice(start, start + _CHUNK)
        relevance = padded(numbers[part], np.nan)
        total += float(np.sum(loss.sums(relevance, padded(logits[part], 0.0))))
        counted += float(np.sum(loss.counts(relevance)))
    return metrics | {"loss": total / max(counted, 1.0)}
