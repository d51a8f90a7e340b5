"""How models read texts that have more tokens than an input of the encoder.

If a text is read in windows, the vectors of the windows are pooled to one, and the head reads that.
"""

from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from bert_tf.config.model import LONG_TEXT
from bert_tf.errors import UserError
from bert_tf.text.packing import Features
from bert_tf.text.parts import map_rows
from bert_tf.text.windows import TextReader, TextWindows

# The vectors of windows, float32 [windows, width], and their scores, float32 [windows]; in a mean,
# the weights of windows are the softmax of the scores.
Scored = tuple[tf.Tensor, tf.Tensor]
TRUNCATE, HEAD_AND_TAIL, WINDOWS = "truncate", "head_and_tail", "windows"
MAX, ATTENTION = "max", "attention"


def set_up(
    model: Any,
    long_text: str = TRUNCATE,
    window_pooling: str | None = None,
    stride: int | None = None,
    max_windows: int | None = None,
) -> None:
    """Sets how a model reads long texts, and its `cut`: which part of them it leaves out."""
    model.long_text, model.cut = long_text, "middle" if long_text == HEAD_AND_TAIL else "end"
    for name, value in zip(LONG_TEXT[1:], (window_pooling, stride, max_windows), strict=True):
        if value is not None and long_text != WINDOWS:
            raise UserError(f"{name} is for windows; set long_text to 'windows', or remove {name}")
        setattr(model, name, value)
    length, pieces = model.max_length, model.max_length - 2  # [CLS] and [SEP]
    if model.stride is not None and model.stride >= pieces:
        raise UserError(
            f"stride is {model.stride}, but a window of max_length {length} has {pieces} pieces, "
            f"and windows must overlap; give {pieces - 1} or less, or a larger max_length"
        )
    if model.window_pooling == ATTENTION:
        model.window_attention = model.make_linear(1, "window_attention")


def settings_of(model: Any) -> dict[str, Any]:
    """The arguments of the constructor that are not left at their defaults."""
    values = {name: getattr(model, name) for name in LONG_TEXT if model.long_text != TRUNCATE}
    return {name: value for name, value in values.items() if value is not None}


def unread(model: Any) -> str:
    """A phrase for the rows that are too long for a model, and for the part that it leaves out."""
    limits = []
    if model.long_text != WINDOWS:
        limits.append(f"more than {model.max_length} tokens (max_length)")
    if model.max_windows is not None:
        limits.append(f"more than {model.max_windows} windows (max_windows)")
    if model.long_text == WINDOWS and len(model.columns) == 2:
        limits.append("a first text of more than half a window")
    return f"have {' or '.join(limits)}; the {model.cut}s of their texts are not read"


def reader(model: Any) -> TextReader:
    """The reader that packs the texts of a model, into windows if the model reads windows."""
    stride = (model.stride or model.max_length // 2) if model.long_text == WINDOWS else None
    return TextReader(model.tokenizer, model.max_length, model.cut, stride, model.max_windows)


def split(model: Any, inputs: Mapping[str, tf.Tensor]) -> tuple[Features, tf.Tensor]:
    """The windows [windows, seq_len] of rows that hold windows end to end, [rows, tokens], and the
    row of each, int32 [windows], -1 for padding. If a model reads no windows, each row is one.
    """
    shape = tf.shape(inputs["input_mask"])
    if model.long_text != WINDOWS:
        return dict(inputs), tf.range(shape[0])
    length = tf.minimum(shape[1], model.max_length)
    count = -(-shape[1] // length)
    paddings = [[0, 0], [0, count * length - shape[1]]]
    windows = {
        name: tf.reshape(tf.pad(each, paddings), [-1, length]) for name, each in inputs.items()
    }
    rows = tf.repeat(tf.range(shape[0]), count)
    return windows, tf.where(tf.reduce_any(windows["input_mask"] != 0, axis=1), rows, -1)


def outputs(model: Any, windows: TextWindows) -> Any:
    """The outputs of `call` for windows of rows, in bounded memory; equal rows give equal ones."""
    network = model.network()
    if model.long_text != WINDOWS:
        return map_rows(network, windows.features)
    if network.reads_rows:
        return map_rows(network, windows.end_to_end())
    of_windows, of_vectors = model._once(
        "parts of the model",
        lambda: (
            network.function(lambda features: scored(network, features)),
            network.function(network.outputs_of),
        ),
    )
    found = map_rows(of_windows, windows.features)
    of_rows = {"vectors": pooled(model, found, windows.rows, tf.size(windows.counts))}
    return map_rows(lambda rows: of_vectors(rows["vectors"]), of_rows)


def scored(model: Any, windows: Features, training: bool = False) -> Scored:
    """The vectors of windows, and their scores: those of a trained layer, or the model's own."""
    vectors = tf.cast(model.vectors_of(windows, training), tf.float32)
    scorer = model.window_attention
    scores = scorer(vectors)[:, 0] if scorer else model.window_scores(windows)
    return vectors, tf.cast(scores, tf.float32)


def pooled(model: Any, windows: Scored, rows: tf.Tensor, batch: tf.Tensor) -> tf.Tensor:
    """float32 [batch, width]: the vectors of windows as one for each row; `rows` -1 is padding."""
    vectors, scores = windows
    if model.window_pooling == MAX:
        return tf.math.unsorted_segment_max(vectors, rows, batch)
    highest = tf.math.unsorted_segment_max(tf.stop_gradient(scores), rows, batch)
    # Only the scores of padding may be higher.
    below = tf.minimum(scores - tf.gather(highest, tf.maximum(rows, 0)), 0.0)
    weights = tf.exp(below)[:, tf.newaxis]
    total = tf.math.unsorted_segment_sum(vectors * weights, rows, batch)
    return tf.math.divide_no_nan(total, tf.math.unsorted_segment_sum(weights, rows, batch))
