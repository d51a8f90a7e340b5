"""Requests that wait while a model computes are computed together."""

import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from typing import Any, NamedTuple

import numpy as np

from bert_tf.asking import Outputs
from bert_tf.asking.predict import cut_lists

# Rows that are computed at once, and rows that may wait for a model.
MOST_ROWS, MOST_WAITING = 32, 4096
# Rows are joined if the longer one has at most `_RATIO` times the characters of the shorter one.
# Rows of fewer characters count as `_SHORT`.
_RATIO, _SHORT = 2.0, 64

# The columns of a batch by the names of the inputs, each [batch, ...].
Columns = Mapping[str, np.ndarray]


class QueueFull(Exception):
    """More rows wait than the queue may hold."""


class QueueClosed(Exception):
    """The model is not served any more."""


class _Row(NamedTuple):
    """A row that waits: row `place` of a request."""

    request: "_Request"
    place: int
    length: int


class _Request:
    """Rows that are answered together."""

    def __init__(self, signature: str, columns: Columns, lengths: Sequence[int], joins: bool):
        self.columns = columns
        self.size = len(lengths)
        shapes = tuple((name, columns[name].shape[1:]) for name in sorted(columns))
        # Rows of requests with the same key may be computed together.
        self.key = (signature, shapes, None if joins else id(self))
        self.signature = signature
        self.future: Future[Outputs] = Future()
        self.answers: dict[int, dict[str, np.ndarray]] = {}


class BatchQueue:
    """Computes the rows of many requests in batches, on a thread of its own.

    Nothing waits for a batch to fill: the next batch is made of rows that arrived while the model
    computed. It always has the row that waited longest, with rows of about the same length.

    `lists` are the outputs that are padded to the longest list of a batch, by signature, as
    `Record.lists` has them; None computes each request by itself.
    """

    def __init__(
        self,
        compute: Callable[[str, Columns], Outputs],
        lists: Mapping[str, Sequence[Sequence[str]]] | None = None,
        most_rows: int = MOST_ROWS,
        most_waiting: int = MOST_WAITING,
        computed: Callable[[int], None] = lambda rows: None,
    ):
        self._compute, self._lists, self._computed = compute, lists, computed
        self._most_rows, self._most_waiting = most_rows, most_waiting
        self._rows: list[_Row] = []
        self._changed = threading.Condition()
        self._closed = False
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    @property
    def waiting(self) -> int:
        return len(self._rows)

    def submit(self, signature: str, columns: Columns, lengths: Sequence[int]) -> Future[Outputs]:
        """The outputs of one row or more, each [rows, ...]; cancelled ones give up their places."""
        request = _Request(signature, columns, lengths, joins=self._lists is not None)
        with self._changed:
            if self._closed:
                raise QueueClosed
            if self._rows and len(self._rows) + len(lengths) > self._most_waiting:
                raise QueueFull
            self._rows.extend(_Row(request, i, length) for i, length in enumerate(lengths))
            self._changed.notify()
        return request.future

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify()
        self._thread.join()

    def _work(self) -> None:
        while batch := self._next():
            self._computed(len(batch))
            try:
                self._answer(batch)
            except Exception:
                # One row may be the cause. The other requests must still be answered.
                for request in {id(row.request): row.request for row in batch}.values():
                    own = [row for row in batch if row.request is request]
                    try:
                        self._answer(own)
                    except Exception as error:
                        _finish(request, error)
            del batch  # frees the answered rows before the wait for the next request

    def _next(self) -> list[_Row]:
        """The rows of the next batch; none if the queue is closed and empty."""
        with self._changed:
            while True:
                # The rows of requests that were cancelled, or failed, are dropped.
                self._rows = [row for row in self._rows if not row.request.future.done()]
                if self._rows or self._closed:
                    break
                self._changed.wait()
            if not self._rows:
                return []
            oldest = self._rows[0]
            low, high = oldest.length / _RATIO, oldest.length * _RATIO
            alike = [
                row
                for row in self._rows
                if row.request.key == oldest.request.key
                and (low <= row.length <= high or max(row.length, oldest.length) <= _SHORT)
            ]
            alike.sort(key=lambda row: abs(row.length - oldest.length))  # stable: the oldest leads
            chosen = alike[: self._most_rows]
            taken = {*chosen}
            self._rows = [row for row in self._rows if row not in taken]
            return chosen

    def _answer(self, batch: Sequence[_Row]) -> None:
        """Computes the rows, and finishes the requests whose rows are all computed."""
        first = batch[0].request
        whole = len(batch) == first.size and all(row.request is first for row in batch)
        if whole:
            _finish(first, self._compute(first.signature, first.columns))
            return
        columns = {
            name: np.stack([row.request.columns[name][row.place] for row in batch])
            for name in first.columns
        }
        outputs = self._compute(first.signature, columns)
        # An input that is a list in each row decides how long the outputs are.
        has_lists = any(column.ndim > 1 for column in first.columns.values())
        groups = () if has_lists else (self._lists or {}).get(first.signature, ())
        for i, row in enumerate(batch):
            answer = {name: each[i] for name, each in outputs.items()}
            answers = row.request.answers
            answers[row.place] = cut_lists(answer, groups)
            if len(answers) == row.request.size:
                # The outputs are padded to the longest lists of the request.
                ordered = [answers[place] for place in range(len(answers))]
                found = {name: _padded([each[name] for each in ordered]) for name in answer}
                _finish(row.request, found)


def _finish(request: _Request, result: Outputs | Exception) -> None:
    if request.future.done() or not request.future.set_running_or_notify_cancel():
        return
    if isinstance(result, Exception):
        request.future.set_exception(result)
    else:
        request.future.set_result(result)


def _padded(rows: Sequence[Any]) -> np.ndarray:
    if isinstance(rows[0], bytes):  # NumPy's own texts would lose zeros at their ends
        return np.array(rows, object)
    if len({np.shape(row) for row in rows}) == 1:
        return np.stack(rows)
    shape = np.max([row.shape for row in rows], axis=0)
    padding = {"O": b"", "i": -1}.get(rows[0].dtype.kind, 0)
    stacked = np.full((len(rows), *shape), padding, rows[0].dtype)
    for to, row in zip(stacked, rows, strict=True):
        to[tuple(map(slice, row.shape))] = row
    return stacked
