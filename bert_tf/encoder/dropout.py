"""Dropout whose mask costs 16 random bits an element."""

from typing import Any

import keras
import tensorflow as tf

from bert_tf.errors import UserError


@keras.saving.register_keras_serializable("bert_tf")
class Dropout(keras.layers.Layer):
    """Zeroes each element with probability `rate` in training and scales the rest up.

    Keras draws a float32 uniform number for each element, which took a fifth of a training step
    on CPU. Here one 32-bit random integer decides two elements, so the rate is rounded to a
    multiple of 2**-16 (0.1 becomes 0.10001), and the scale is that of the rounded rate.

    Args:
        rate: probability in [0, 1) that an element is dropped.
        seed: integer seed, or None to follow `keras.utils.set_random_seed`.

    Raises:
        UserError: the rate is not in [0, 1).
    """

    def __init__(self, rate: float, seed: int | None = None, **kwargs: Any):
        super().__init__(**kwargs)
        if not 0 <= rate < 1:
            raise UserError(f"a dropout rate must be in [0, 1), not {rate}")
        self.rate = rate
        self.seed = seed
        # Of the 2**16 values that 16 bits can take, never all.
        self._dropped = min(round(rate * 2**16), 2**16 - 1)
        if self._dropped:
            self.seed_generator = keras.random.SeedGenerator(seed)
        self.built = True

    def call(self, x: tf.Tensor, training: bool = False) -> tf.Tensor:
        """Any shape -> the same shape; `x` itself unless `training`."""
        if not training or not self._dropped:
            return x
        kept = tf.reshape(self._random_bits(tf.size(x)) >= self._dropped, tf.shape(x))
        scale = 2**16 / (2**16 - self._dropped)
        return x * (tf.cast(kept, x.dtype) * tf.cast(scale, x.dtype))

    def _random_bits(self, count: tf.Tensor) -> tf.Tensor:
        """int32 [count], uniform in [0, 2**16)."""
        seed = tf.cast(self.seed_generator.next(), tf.int32)
        replica = tf.distribute.get_replica_context()
        if replica is not None and replica.num_replicas_in_sync > 1:
            # Each replica has a copy of the generator, and all copies are in the same state.
            seed = tf.random.fold_in(seed, replica.replica_id_in_sync_group)
        words = tf.random.stateless_uniform(
            [(count + 1) // 2], seed, minval=None, maxval=None, dtype=tf.int32
        )
        halves = tf.bitcast(words, tf.uint16)
        return tf.cast(tf.reshape(halves, [-1])[:count], tf.int32)

    def compute_output_shape(self, input_shape: tuple[int | None, ...]) -> tuple[int | None, ...]:
        """The input's shape."""
        return input_shape

    def get_config(self) -> dict[str, Any]:
        """The constructor's arguments."""
        return super().get_config() | {"rate": self.rate, "seed": self.seed}
