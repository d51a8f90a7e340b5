"""Texts with more tokens than an input of the encoder: what is read of them, and how.

A model reads the start of such a text, or its first and last pieces, or all of it in overlapping
windows. Of windows, the vectors that the head reads are pooled to one, which the head reads.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from bert_tf.config.model import LONG_TEXT
from bert_tf.errors import UserError
from bert_tf.text.packing import kept
from bert_tf.text.parts import map_rows
from bert_tf.text.windows import TextReader, TextWindows

TRUNCATE, HEAD_AND_TAIL, WINDOWS = "truncate", "head_and_tail", "windows"
MAX, ATTENTION = "max", "attention"


def set_up(
    model: Any,
    long_text: str,
    window_pooling: str | None,
    stride: int | None,
    max_windows: int | None,
) -> None:
    """Makes a task model read long texts as these arguments of `TextClassifier` say.

    Raises:
        UserError: one is for windows, which are not read, or windows would not overlap.
    """
    given = {"window_pooling": window_pooling, "stride": stride, "max_windows": max_windows}
    for name, value in given.items():
        if value is not None and long_text != WINDOWS:
            raise UserError(f"{name} is for windows; set long_text to 'windows', or remove {name}")
    length, pieces = model.max_length, model.max_length - 2  # [CLS] and [SEP]
    if stride is not None and stride >= pieces:
        raise UserError(
            f"stride is {stride}, but a window of max_length {length} has {pieces} pieces, and "
            f"windows must overlap; give {pieces - 1} or less, or a larger max_length"
        )
    model.long_text, model.window_pooling = long_text, window_pooling
    model.stride, model.max_windows = stride, max_windows
    model.cut = "middle" if long_text == HEAD_AND_TAIL else "end"
    if window_pooling == ATTENTION:
        model.window_attention = model.make_linear(1, "window_attention")


def settings_of(model: Any) -> dict[str, Any]:
    """The arguments of the constructor, without defaults."""
    if model.long_text == TRUNCATE:
        return {}
    values = {name: getattr(model, name) for name in LONG_TEXT}
    return {name: value for name, value in values.items() if value is not None}


def reader(model: Any) -> TextReader:
    """What packs the texts of a model, into windows where it reads those."""
    stride = _stride(model) if model.long_text == WINDOWS else None
    return TextReader(model.tokenizer, model.max_length, model.cut, stride, model.max_windows)


def _stride(model: Any) -> int:
    """Pieces from the start of a window to that of the next; by default half of `max_length`."""
    return model.stride or model.max_length // 2


def is_cut(model: Any, lengths: Sequence[int]) -> bool:
    """Whether a model does not read all pieces of a row whose texts have so many."""
    room = model.max_length - 1 - len(lengths)
    if sum(lengths) <= room or model.long_text != WINDOWS:
        return sum(lengths) > room
    *first, last = lengths
    before = [int(kept([*map(np.array, lengths)], room)[0])] if first else []
    room -= sum(before)
    windows = model.max_windows
    beyond = windows is not None and last > room + (windows - 1) * min(_stride(model), room)
    return first != before or beyond


def split(
    model: Any, inputs: Mapping[str, tf.Tensor]
) -> tuple[Mapping[str, tf.Tensor], tf.Tensor | None]:
    """The windows of rows in which they are laid end to end, [rows, tokens], in one list.

    Returns:
        The encoder's inputs, [windows, seq_len], and int32 [windows], the row that each is of, -1
        where it is padding. A model that reads no windows gets its inputs and None.
    """
    if model.long_text != WINDOWS:
        return inputs, None
    shape = tf.shape(inputs["input_mask"])
    length = tf.minimum(shape[1], model.max_length)
    count = -(-shape[1] // length)
    paddings = [[0, 0], [0, count * length - shape[1]]]
    windows = {
        name: tf.reshape(tf.pad(each, paddings), [-1, length]) for name, each in inputs.items()
    }
    rows = tf.repeat(tf.range(shape[0]), count)
    return windows, tf.where(tf.reduce_any(windows["input_mask"] != 0, axis=1), rows, -1)


def vectors(model: Any, inputs: Mapping[str, tf.Tensor], training: bool) -> tf.Tensor:
    """What the head reads: the encoder's inputs [batch, tokens] -> [batch, width]."""
    windows, rows = split(model, inputs)
    if rows is None:
        return model.vectors_of(inputs, training)
    found, scores = model.windows_of(windows, training)
    batch = tf.shape(inputs["input_mask"])[0]
    return _pooled(model.window_pooling, found, scores, rows, batch)


def outputs(model: Any, windows: TextWindows) -> Any:
    """What `call` of a model computes for windows of rows, in bounded memory.

    Equal rows have equal outputs.
    """
    if model.long_text != WINDOWS:
        return map_rows(model.network(), windows.features)
    found, scores = map_rows(model.part("windows_of"), windows.features)
    batch = tf.size(windows.counts)
    pooled = _pooled(model.window_pooling, found, scores, windows.rows, batch)
    return map_rows(lambda rows: model.part("outputs_of")(rows["pooled"]), {"pooled": pooled})


def _pooled(
    how: str | None, vectors: tf.Tensor, scores: tf.Tensor, rows: tf.Tensor, batch: tf.Tensor
) -> tf.Tensor:
    """float32 [batch, width]: the vectors of the windows of each row as one.

    Args:
        how: "max", or else a mean, in which the weights of windows are the softmax of their scores.
        vectors, scores: float32 [windows, width] and [windows].
        rows: int32 [windows], the row that each window is of; -1 for padding.
        batch: int32 [], the number of rows.
    """
    if how == MAX:
        return tf.math.unsorted_segment_max(vectors, rows, batch)
    highest = tf.math.unsorted_segment_max(tf.stop_gradient(scores), rows, batch)
    # Only the scores of padding may be higher.
    below = tf.minimum(scores - tf.gather(highest, tf.maximum(rows, 0)), 0.0)
    weights = tf.exp(below)[:, tf.newaxis]
    total = tf.math.unsorted_segment_sum(vectors * weights, rows, batch)
    return tf.math.divide_no_nan(total, tf.math.unsorted_segment_sum(weights, rows, batch))
