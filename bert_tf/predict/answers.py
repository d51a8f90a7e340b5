"""What a SavedModel answers, as JSON data without its padding."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from bert_tf.asking import Outputs, characters
from bert_tf.asking.row_files import Row, list_of, text_of
from bert_tf.io.json_files import as_json

# Outputs that are offsets into a text.
_OFFSETS = ("start", "end", "starts", "ends")


def answers(
    outputs: Outputs, rows: Sequence[Row], ranks: Mapping[str, int]
) -> Iterator[dict[str, Any]]:
    """The answer to each row of a batch, its outputs sorted by name; offsets are characters.

    A batch is as wide as the longest list in it. Here a list ends where the row's own does, so that
    an answer does not depend on the rows that happened to be asked with it.

    Args:
        outputs: what the model answers, each [batch, ...].
        rows: what was asked.
        ranks: name of each input -> 1 where it is a text, 2 where it is a list of texts.
    """
    lists = [name for name, rank in ranks.items() if rank == 2]
    widths = {name: max(len(row[name]) for row in rows) for name in lists}
    for i, row in enumerate(rows):
        answer = {name: outputs[name][i] for name in sorted(outputs)}
        # Outputs as wide as an input have an entry for each of its entries.
        own = {width: len(row[name]) for name, width in widths.items()}
        found = {name: as_json(value) for name, value in _unpadded(answer, own).items()}
        yield _in_characters(found, row)


def _in_characters(answer: dict[str, Any], row: Row) -> dict[str, Any]:
    """An answer whose byte offsets are turned into offsets in characters of the row's text."""
    if not any(name in answer for name in _OFFSETS):
        return answer
    source = next((name for name in ("context", "text") if name in row), None)
    text = " ".join(list_of(row, "words")) if source is None else text_of(row, source)
    character = characters(text)
    converted = {
        name: [character(each) for each in value] if isinstance(value, list) else character(value)
        for name, value in answer.items()
        if name in _OFFSETS
    }
    return answer | converted


def _unpadded(answer: Mapping[str, Any], own: Mapping[int, int]) -> dict[str, Any]:
    """Cuts padding off the ends of one row's lists.

    Outputs of the same length belong together: an entry is padding if it is "" in texts, -1 in
    integers and 0 in other numbers. Numbers alone do not show padding: a vector may end in zeros.

    Args:
        answer: the row's outputs.
        own: width of a padded input -> the number of entries that this row has in it.
    """
    lists = {name: value for name, value in answer.items() if np.ndim(value)}
    # The labels are some of the classes, and have padding of their own.
    if {"labels", "classes"} <= lists.keys():
        labels = lists.pop("labels")
        answer = {**answer, "labels": labels[: np.count_nonzero(labels != b"")]}
    ends = {}
    for width in {len(value) for value in lists.values()}:
        group = [value for value in lists.values() if len(value) == width]
        if width in own:
            least = own[width]
        elif any(value.dtype == object for value in group):
            least = 0
        else:
            continue
        end = width
        while end > least and all(_is_padding(value[end - 1]) for value in group):
            end -= 1
        ends[width] = end
    return {
        name: value[: ends.get(len(value))] if name in lists else value
        for name, value in answer.items()
    }


def _is_padding(entry: Any) -> bool:
    values = np.asarray(entry)
    if values.dtype.kind in "OSU":
        return all(value in (b"", "") for value in values.flat)
    return bool(np.all(values == (-1 if values.dtype.kind == "i" else 0)))
