"""Gradient accumulation inside one training step.

Keras can accumulate in its optimizer, over several calls; its schedule then moves on with every
part, it fails under `MirroredStrategy`, and a loss that divides by a sum of weights comes out as a
mean of ratios. Here one batch is cut into parts within one step, so the optimizer sees one gradient
and one update, and the loss divides by the weights of the whole batch.
"""

from typing import Any

import keras
import tensorflow as tf


def accumulated_train_step(model: Any, data: Any) -> dict[str, Any]:
    """Keras's `train_step` for `model.accumulation_steps` equal parts of the batch.

    Rows are dealt out in turn, so that every part is a fair sample of the batch.

    Args:
        model: an `EncoderModel`.
        data: what Keras hands to `train_step`; every tensor [batch, ...], batch a multiple of
            `accumulation_steps`.
    """
    parts = model.accumulation_steps
    x, y, sample_weight = keras.utils.unpack_x_y_sample_weight(data)
    weights = [weight.value for weight in model.trainable_weights]
    denominators = model.denominators(y)

    def add_part(part: tf.Tensor, sums: list[tf.Tensor], total: tf.Tensor) -> tuple:
        inputs, targets, sample = tf.nest.map_structure(
            lambda rows: _every(rows, part, parts), (x, y, sample_weight)
        )
        with tf.GradientTape() as tape:
            outputs = model(inputs, training=True)
            loss = model.part_loss(inputs, targets, outputs, sample, denominators)
        gradients = tape.gradient(loss, weights)
        sums = [
            so_far + tf.convert_to_tensor(gradient)
            for so_far, gradient in zip(sums, gradients, strict=True)
        ]
        model.compute_metrics(inputs, targets, outputs, sample_weight=sample)
        return part + 1, sums, total + loss

    start = (tf.constant(0), [tf.zeros_like(weight) for weight in weights], tf.constant(0.0))
    _, sums, loss = tf.while_loop(lambda part, *_: part < parts, add_part, start)
    model.optimizer.apply_gradients(zip(sums, model.trainable_weights, strict=True))
    model.record_loss(loss, x)
    return model.get_metrics_result()


def _every(rows: tf.Tensor | None, part: tf.Tensor, parts: int) -> tf.Tensor | None:
    """Rows part, part + parts, … of [batch, ...]."""
    if rows is None:
        return None
    batch = rows.shape[0]
    count = tf.shape(rows)[0] // parts if batch is None else batch // parts
    chosen = tf.gather(rows, tf.range(count) * parts + part)
    return tf.ensure_shape(chosen, [None if batch is None else batch // parts, *rows.shape[1:]])
