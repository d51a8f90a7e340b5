"""What a SavedModel answers, as JSON data without its padding."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from bert_tf.json_values import as_json
from bert_tf.predict.model import Model
from bert_tf.predict.rows import Row


def answers(model: Model, rows: Sequence[Row]) -> Iterator[dict[str, Any]]:
    """The answer to each row of a batch, its outputs sorted by name.

    A batch is as wide as the longest list in it. Here a list ends where the row's own does, so that
    an answer does not depend on the rows that happened to be asked with it.
    """
    outputs = model(rows)
    lists = [name for name, rank in model.ranks.items() if rank == 2]
    widths = {name: max(len(row[name]) for row in rows) for name in lists}
    for i, row in enumerate(rows):
        answer = {name: outputs[name][i] for name in sorted(outputs)}
        # Outputs as wide as an input have an entry for each of its entries.
        own = {width: len(row[name]) for name, width in widths.items()}
        yield {name: as_json(value) for name, value in _unpadded(answer, own).items()}


def _unpadded(answer: Mapping[str, Any], own: Mapping[int, int]) -> dict[str, Any]:
    """Cuts padding off the ends of one row's lists.

    Outputs of one length belong together: an entry is padding where it is "" in texts, -1 in whole
    numbers and 0 in others. Numbers alone do not tell: a vector may end in zeros.

    Args:
        answer: the row's outputs.
        own: width of a padded input -> the number of entries that this row has in it.
    """
    lists = {name: value for name, value in answer.items() if np.ndim(value)}
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
