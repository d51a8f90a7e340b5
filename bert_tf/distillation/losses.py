"""The losses of distillation, as the papers define them.

Each is a mean over one row (a sequence, or a prediction), in float32; the teacher's tensors come
first. `mask` is bool [rows, seq_len], true at tokens; losses with a mask are float32 [rows], 0 for
a row without tokens.
"""

from collections.abc import Mapping
from typing import Literal, NamedTuple

import tensorflow as tf

_HIDDEN = -1e9  # below any score of a relation or of attention, yet finite

# "classes" are logits of classes of which exactly one is right, "labels" are logits of labels of
# which several or none may be right, and "values" are numbers such as a vector.
Kind = Literal["classes", "labels", "values"]


class Matched(NamedTuple):
    """An output of a model that a student has to match."""

    kind: Kind
    values: tf.Tensor  # float32 [..., n]
    weights: tf.Tensor | None = None  # float32 [...], 0 where nothing is predicted; None is all 1
    per: str = "rows"  # what the sum of the losses is divided by, one of the model's `batch_sums`


def soft_targets(
    kind: Kind, teacher: tf.Tensor, student: tf.Tensor, temperature: float
) -> tf.Tensor:
    """How far the outputs of a student are from those of its teacher: float32 [..., n] -> [...].

    For classes it is T^2 KL(teacher || student) of softmax(logits / T), where T is the temperature
    (Hinton et al. 2015, section 2). For labels it is the same for each label, yes or no, averaged
    over the labels. For values it is the mean squared error, whatever the temperature.
    """
    if kind == "values":
        return tf.reduce_mean(tf.math.squared_difference(teacher, student), axis=-1)
    teacher, student = teacher / temperature, student / temperature
    if kind == "classes":
        distance = _divergence(teacher, student)
    else:
        distance = tf.reduce_mean(_divergence(_yes_or_no(teacher), _yes_or_no(student)), axis=-1)
    return temperature**2 * distance


def hidden_states(teacher: tf.Tensor, student: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
    """The mean squared error over the tokens of each row (TinyBERT, equations 8 and 9). Both are
    float [rows, seq_len, hidden]; the caller projects a narrower student to that width.
    """
    squares = tf.math.squared_difference(tf.cast(teacher, tf.float32), tf.cast(student, tf.float32))
    return _mean(tf.reduce_mean(squares, axis=-1), mask)


def attention_scores(
    teacher: Mapping[str, tf.Tensor], student: Mapping[str, tf.Tensor], mask: tf.Tensor
) -> tf.Tensor:
    """The mean squared error of attention before the softmax (TinyBERT, equation 7). It is a mean
    over the heads, and over the queries and keys of each row. `query` and `key` of the blocks are
    [rows, heads, seq_len, head_size], with the same number of heads.
    """
    ours, theirs = (_scores(each["query"], each["key"]) for each in (student, teacher))
    squares = tf.reduce_mean(tf.math.squared_difference(theirs, ours), axis=1)
    is_pair = mask[:, :, tf.newaxis] & mask[:, tf.newaxis, :]
    width = tf.shape(mask)[1] ** 2
    return _mean(*(tf.reshape(each, [-1, width]) for each in (squares, is_pair)))


def relations(
    teacher: Mapping[str, tf.Tensor], student: Mapping[str, tf.Tensor], heads: int, mask: tf.Tensor
) -> tf.Tensor:
    """Divergence of the relations between tokens (MiniLMv2, section 3).

    The queries of all heads are laid end to end and cut into `heads` relation heads, and softmax(Q
    Q^T / sqrt(size)) of each says how the tokens of a row are related; so are keys and values. The
    loss is the sum over these three of KL(teacher || student), each a mean over the relation heads
    and the tokens of a row. `query`, `key` and `value` are [rows, heads, seq_len, head_size];
    teacher and student may have different numbers of heads and widths.
    """
    hidden = tf.where(mask, 0.0, _HIDDEN)[:, tf.newaxis, tf.newaxis, :]
    losses = []
    for name in ("query", "key", "value"):
        theirs, ours = (_cut(each[name], heads) for each in (teacher, student))
        divergence = _divergence(_scores(theirs, theirs) + hidden, _scores(ours, ours) + hidden)
        losses.append(_mean(tf.reduce_mean(divergence, axis=1), mask))
    return tf.add_n(losses)


def _divergence(teacher: tf.Tensor, student: tf.Tensor) -> tf.Tensor:
    """KL(softmax(teacher) || softmax(student)) of float32 logits [..., n] -> [...]."""
    theirs, ours = tf.nn.log_softmax(teacher), tf.nn.log_softmax(student)
    return tf.reduce_sum(tf.exp(theirs) * (theirs - ours), axis=-1)


def _yes_or_no(logits: tf.Tensor) -> tf.Tensor:
    """Logits of labels as those of two classes: [..., n] -> [..., n, 2]."""
    return tf.stack([logits, tf.zeros_like(logits)], axis=-1)


def _scores(query: tf.Tensor, key: tf.Tensor) -> tf.Tensor:
    """Q K^T / sqrt(size): [..., seq_len, size] -> float32 [..., seq_len, seq_len]."""
    scores = tf.cast(tf.matmul(query, key, transpose_b=True), tf.float32)
    return scores / tf.sqrt(float(query.shape[-1]))


def _cut(vectors: tf.Tensor, heads: int) -> tf.Tensor:
    """[rows, any, seq_len, any] -> [rows, heads, seq_len, size], with the columns in order."""
    width = vectors.shape[1] * vectors.shape[3]
    shape = tf.shape(vectors)
    tokens = tf.reshape(
        tf.transpose(vectors, [0, 2, 1, 3]), [shape[0], shape[2], heads, width // heads]
    )
    return tf.transpose(tokens, [0, 2, 1, 3])


def _mean(values: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
    """The mean of [rows, n] where `mask` is true: float32 [rows]; 0 for rows where it never is."""
    total = tf.reduce_sum(tf.where(mask, values, 0.0), axis=1)
    return tf.math.divide_no_nan(total, tf.reduce_sum(tf.cast(mask, tf.float32), axis=1))
