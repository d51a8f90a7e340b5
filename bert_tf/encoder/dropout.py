"""Dropout whose mask takes 16 random bits per element."""

import dataclasses
from collections.abc import Callable
from typing import Any

import keras
import tensorflow as tf

from bert_tf.compat import custom_gradient
from bert_tf.encoder.rematerialized import drawn_once
from bert_tf.errors import UserError


@dataclasses.dataclass(frozen=True)
class Drawn:
    """The random numbers that dropout has drawn for a tensor."""

    words: tf.Tensor  # uint16 of the tensor's shape, uniform
    dropped: int  # elements whose word is below this number are dropped

    @property
    def scale(self) -> float:
        return 2**16 / (2**16 - self.dropped)

    def apply(self, x: tf.Tensor) -> tf.Tensor:
        """The tensor after dropout. One byte per element is kept for the gradient."""
        kept = self.words >= tf.constant(self.dropped, tf.uint16)

        def scaled(x: tf.Tensor) -> tf.Tensor:
            return x * (tf.cast(kept, x.dtype) * tf.cast(self.scale, x.dtype))

        @custom_gradient
        def differentiable(x: tf.Tensor) -> tuple[tf.Tensor, Callable]:
            def gradient(upstream: tf.Tensor) -> tf.Tensor:
                # Without the dependency, TensorFlow keeps the factors of the forward pass.
                with tf.control_dependencies([upstream]):
                    return scaled(upstream)

            return scaled(x), gradient

        return differentiable(x)


@keras.saving.register_keras_serializable("bert_tf")
class Dropout(keras.layers.Layer):
    """Zeroes each element with probability `rate` in training and scales the rest up.

    Keras draws a float32 number for each element, which took a fifth of a training step on CPU.
    Here one 32-bit random integer decides two elements, so the rate is rounded to a multiple of
    2**-16 (0.1 becomes 0.10001). The scale is that of the rounded rate.
    """

    def __init__(self, rate: float, seed: int | None = None, **kwargs: Any):
        super().__init__(**kwargs)
        if not 0 <= rate < 1:
            raise UserError(f"a dropout rate must be in [0, 1), not {rate}")
        self.rate = rate
        self.seed = seed
        # At least one of the 2**16 values is kept.
        self._dropped = min(round(rate * 2**16), 2**16 - 1)
        if self._dropped:
            self.seed_generator = keras.random.SeedGenerator(seed)
        self.built = True

    def call(self, x: tf.Tensor, training: bool = False) -> tf.Tensor:
        """Any shape -> the same shape; `x` itself unless `training`."""
        drawn = self.draw(tf.shape(x), training)
        return x if drawn is None else drawn.apply(x)

    def draw(self, shape: tf.Tensor, training: bool) -> Drawn | None:
        """The draw for a tensor of this shape, int32 [rank]; None if nothing is dropped."""
        if not training or not self._dropped:
            return None
        return Drawn(tf.reshape(self._words(tf.reduce_prod(shape)), shape), self._dropped)

    def _words(self, count: tf.Tensor) -> tf.Tensor:
        """uint16 [count], uniform."""
        seed = drawn_once(lambda: tf.cast(self.seed_generator.next(), tf.int32))
        replica = tf.distribute.get_replica_context()
        if replica is not None and replica.num_replicas_in_sync > 1:
            # Each replica has a copy of the generator, and all copies are in the same state.
            seed = tf.random.fold_in(seed, replica.replica_id_in_sync_group)
        words = tf.random.stateless_uniform(
            [(count + 1) // 2], seed, minval=None, maxval=None, dtype=tf.int32
        )
        return tf.reshape(tf.bitcast(words, tf.uint16), [-1])[:count]

    def compute_output_shape(self, input_shape: tuple[int | None, ...]) -> tuple[int | None, ...]:
        return input_shape

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | {"rate": self.rate, "seed": self.seed}
