"""Answers for many rows of strings: one loop for objects, SavedModels and evaluation.

A command that queries a SavedModel imports neither Keras nor TensorFlow, so it starts fast.
"""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from bert_tf.console import Progress, logger
from bert_tf.errors import UserError
from bert_tf.io.json_files import whole_text

# An input text, as a string or as its bytes.
Text = str | bytes
# A text, or a list of texts, by the name of the input.
Row = Mapping[str, Text | Sequence[Text]]
Outputs = dict[str, np.ndarray]

BATCH = 32  # rows of a batch, unless the user says otherwise


class Answers(Protocol):
    """A model that answers rows by a signature: a task model, or a SavedModel of one."""

    def ranks(self, signature: str) -> dict[str, int]:
        """Name of each input -> 1 if it is one string per row, 2 if it is a list of strings.

        Raises:
            UserError: there is no such signature of strings.
        """

    def signature_names(self) -> tuple[str, ...]:
        """The names of all signatures."""

    def ask(self, signature: str, rows: Sequence[Row]) -> Outputs:
        """The outputs for a batch of rows, each [batch, ...]."""


class Changed:
    """A model whose answers are `change(signature, outputs)` of another model's outputs."""

    def __init__(self, model: Any, change: Callable[[str, Outputs], Outputs]):
        self._model, self._change = model, change

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)

    def ask(self, signature: str, rows: Sequence[Row]) -> Outputs:
        return self._change(signature, self._model.ask(signature, rows))


def each_answer(
    model: Answers,
    signature: str,
    rows: Sequence[Row],
    answer: Callable[[Outputs, int, int], Any],
    batch_size: int | None = None,
    verbose: int | str = "auto",
    title: str = "predicting",
) -> list:
    """`answer` of each row, given its batch's outputs, its place in the batch, and in `rows`."""
    answers: list[Any] = [None] * len(rows)
    for chosen, outputs in batches(model, signature, rows, batch_size, verbose, title):
        for place, row in enumerate(chosen):
            answers[row] = answer(outputs, place, row)
    return answers


def batches(
    model: Answers,
    signature: str,
    rows: Sequence[Row],
    batch_size: int | None = None,
    verbose: int | str = "auto",
    title: str = "predicting",
) -> Iterator[tuple[list[int], Outputs]]:
    """The places of the rows of each batch, and the model's outputs for them.

    Rows of similar length share a batch. The longest come first, so that a lack of memory shows at
    once. Equal rows are computed only once, so that they have the same answer.
    """
    if batch_size is not None:
        # This imports pydantic, which a process that answers does not need otherwise.
        from bert_tf.config.arguments import checked_argument

        batch_size = checked_argument("batch_size", batch_size)
    if not rows:
        return
    places: dict[tuple[tuple[Any, ...], ...], list[int]] = {}
    for place, row in enumerate(rows):
        key = tuple((name, *texts_in(value)) for name, value in row.items())
        places.setdefault(key, []).append(place)
    distinct = [*places.values()]
    lengths = np.array([sum(len(text) for _, *texts in key for text in texts) for key in places])
    batch_size, done = batch_size or BATCH, 0
    shown = verbose != 0 and len(rows) > batch_size
    with Progress(title, len(rows), unit="rows", shown=shown) as progress:
        for chosen in batches_by_length(lengths, batch_size):
            sames = [distinct[i] for i in chosen]
            outputs = model.ask(signature, [rows[same[0]] for same in sames])
            counts = [len(same) for same in sames]
            if max(counts) > 1:
                outputs = {name: np.repeat(each, counts, axis=0) for name, each in outputs.items()}
            yield [place for same in sames for place in same], outputs
            done += sum(counts)
            progress.update(done, line=True)


def batches_by_length(lengths: np.ndarray, batch_size: int) -> Iterator[np.ndarray]:
    """Every row once, the longest first, in batches."""
    order = np.argsort(-lengths, kind="stable")
    for start in range(0, len(order), batch_size):
        yield order[start : start + batch_size]


def without_nan(outputs: Outputs, path: str) -> Outputs:
    """The outputs of the export `path`. Raises UserError if one is NaN."""
    for name, values in outputs.items():
        if values.dtype.kind == "f" and np.isnan(values).any():
            raise UserError(f"{path} answers NaN for {name}; copy or train it again")
    return outputs


def texts_in(value: Text | Sequence[Text]) -> Sequence[Text]:
    """The texts of an input, which is a text or a list of them."""
    return [value] if isinstance(value, str | bytes) else value


class CutTexts:
    """Counts the rows with longer texts than a model reads, unless the messages are off."""

    def __init__(self, model: Any):
        self._model, self._cut, self._rows, self._how = model, 0, 0, ""

    def add(self, columns: Sequence[Sequence]) -> None:
        if columns and hasattr(self._model, "count_cut") and logger.isEnabledFor(logging.INFO):
            count, self._how = self._model.count_cut(columns)
            self._cut, self._rows = self._cut + count, self._rows + len(columns[0])

    def say(self) -> None:
        if self._cut:
            logger.info(f"{self._cut} of {self._rows} inputs {self._how}")


def say_cut(model: Any, columns: Sequence[Sequence]) -> None:
    """Prints how many rows of the columns have longer texts than the model reads, if any have."""
    cuts = CutTexts(model)
    cuts.add(columns)
    cuts.say()


def rows_of(columns: Sequence[Sequence], names: Sequence[str]) -> list[dict[str, Any]]:
    """Columns as rows by the names of the inputs."""
    return [dict(zip(names, values, strict=True)) for values in zip(*columns, strict=True)]


def columns_of(rows: Sequence[Row]) -> list[list]:
    """Rows as columns, in the order of the first row's names; the reverse of `rows_of`."""
    return [[row[name] for row in rows] for name in rows[0]] if rows else []


def texts_of(
    rows: Sequence[Row], ranks: Mapping[str, int]
) -> dict[str, tuple[list[bytes], list[int]]]:
    """A batch of rows as texts in row-major order, with their shape; lists are padded with ""."""
    found: dict[str, tuple[list[bytes], list[int]]] = {}
    for name, rank in ranks.items():
        values: list[Any] = [row[name] for row in rows]
        shape = [len(rows)]
        if rank == 2:
            width = max(map(len, values), default=0)
            values = [each for value in values for each in (*value, *[b""] * (width - len(value)))]
            shape.append(width)
        found[name] = [*map(encoded, values)], shape
    return found


def encoded(text: Text) -> bytes:
    """A text as UTF-8, with U+FFFD for half of a surrogate pair, which UTF-8 cannot hold."""
    return text if isinstance(text, bytes) else whole_text(text).encode()


def characters(text: Text) -> Callable[[int], int]:
    """A function from byte offsets into a text to offsets in characters; -1 stays -1."""
    data = encoded(text)
    if data.isascii():
        return int

    def of_byte(offset: int) -> int:
        return len(data[:offset].decode("utf-8", "replace")) if offset >= 0 else -1

    return of_byte


def plain(text: Text) -> str:
    """A text as a string."""
    return text.decode("utf-8", "replace") if isinstance(text, bytes) else text
