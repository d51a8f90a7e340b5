"""Gradient accumulation inside one training step.

Keras's own accumulation, over several calls, fails under `MirroredStrategy`, its schedule advances
with every part, and a loss that divides by a sum of weights becomes a mean of ratios. Here a batch
is cut into parts within one step, so there is one update, and losses divide by sums over the batch.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

# The gradient of each weight, and the loss, of a batch or of a part of it.
Gradients = tuple[list[tf.Tensor], tf.Tensor]

# A loop that makes one pass at a time; by default, TensorFlow runs ten at a time.
_loop = functools.partial(tf.while_loop, parallel_iterations=1)


def accumulated(
    gradients_of: Callable[[Any], Gradients],
    batch: Any,
    parts: int,
    weights: list[tf.Variable],
    unrolled: bool = False,
) -> Gradients:
    """The sums of `gradients_of` over parts of the batch. Rows are dealt out in turn, so that every
    part is a fair sample; the first parts may have one row more. An `unrolled` graph has no loop,
    since in a loop XLA cannot find the size of a part if the batch size is unknown.
    """
    if parts == 1:
        return gradients_of(batch)

    def add_part(part: tf.Tensor | int, sums: list[tf.Tensor], total: tf.Tensor) -> tuple:
        gradients, loss = gradients_of(_part(batch, part, parts))
        pairs = zip(sums, gradients, strict=True)
        sums = [so_far + tf.convert_to_tensor(gradient) for so_far, gradient in pairs]
        return part + 1, sums, total + loss

    sums, loss = [tf.zeros_like(weight) for weight in weights], tf.constant(0.0)
    if unrolled:
        for part in range(parts):
            _, sums, loss = add_part(part, sums, loss)
    else:
        start = (tf.constant(0), sums, loss)
        _, sums, loss = _loop(lambda part, *_: part < parts, add_part, start)
    return sums, loss


def in_parts(
    compute: Callable[[Any], tf.Tensor],
    batch: Any,
    parts: int,
    shape: Sequence[int | None],
    unrolled: bool = False,
) -> tf.Tensor:
    """What `compute` gives for the parts of `accumulated`, float32 [batch, ...], in row order.
    `shape` is that of the result of a part, [rows, ...], as far as it is known.
    """
    if unrolled:
        found = tf.concat([compute(_part(batch, part, parts)) for part in range(parts)], axis=0)
    else:
        results = tf.TensorArray(tf.float32, parts, infer_shape=False, element_shape=shape)

        def add_part(part: tf.Tensor, results: tf.TensorArray) -> tuple:
            return part + 1, results.write(part, compute(_part(batch, part, parts)))

        start = (tf.constant(0), results)
        found = _loop(lambda part, _: part < parts, add_part, start)[1].concat()
    rows = tf.shape(found)[0]
    order = tf.concat([_part(tf.range(rows), part, parts) for part in range(parts)], axis=0)
    return tf.gather(found, tf.math.invert_permutation(order))


def _part(batch: Any, part: tf.Tensor | int, parts: int) -> Any:
    """Rows part, part + parts, … of [batch, ...]; static shapes stay static, as XLA needs them."""

    def every(rows: tf.Tensor | None) -> tf.Tensor | None:
        if rows is None:
            return None
        size = rows.shape[0]
        if size is not None and size % parts == 0:
            count = size // parts
        else:
            # A replica's share of the last batch may even have fewer rows than there are parts.
            count = (tf.shape(rows)[0] - part + parts - 1) // parts
        return tf.gather(rows, tf.range(count) * parts + part)

    return tf.nest.map_structure(every, batch)
