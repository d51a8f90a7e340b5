"""What all task models share: an encoder inside, and a configuration that brings it back."""

from collections.abc import Mapping
from typing import Any

import keras
import tensorflow as tf

from bert_tf.models.accumulation import accumulated_train_step
from bert_tf.models.encoder import Encoder


class EncoderModel(keras.Model):
    """A Keras model that owns an `Encoder` and adds a head to it.

    A subclass passes its own arguments to `__init__` as `head`, and creates the head's weights in
    `build`.

    Args:
        encoder: the encoder; its weights are trained with the head's.
        head: the subclass's own constructor arguments, kept for `get_config` and checkpoints.
        uses_pooler: whether the head reads the pooled output. Where it does not, the pooler's
            weights are not trained, and a weight without a gradient does not decay either.
    """

    def __init__(
        self,
        encoder: Encoder,
        head: dict[str, Any],
        uses_pooler: bool = True,
        **kwargs: Any,
    ):
        kwargs.setdefault("dtype", encoder.dtype_policy)
        super().__init__(**kwargs)
        self.encoder = encoder
        self.head = head
        self.supports_jit = encoder.supports_jit
        self._uses_pooler = uses_pooler
        self.accumulation_steps = 1

    def compile(self, *args: Any, accumulation_steps: int = 1, **kwargs: Any) -> None:
        """Keras's `compile`, with gradient accumulation.

        Args:
            *args: as in Keras.
            accumulation_steps: parts that each batch is cut into, to save memory: their gradients
                are summed, and one update follows. The batch size stays what it is, and must be
                a multiple.
            **kwargs: as in Keras.
        """
        self.accumulation_steps = accumulation_steps
        super().compile(*args, **kwargs)

    @property
    def trainable_weights(self) -> list[keras.Variable]:
        """The weights that training moves."""
        weights = super().trainable_weights
        if self._uses_pooler:
            return weights
        unused = {id(weight) for weight in self.encoder.pooler.weights}
        return [weight for weight in weights if id(weight) not in unused]

    @property
    def trainable_variables(self) -> list[keras.Variable]:
        """The same: no variable but weights is ever trained."""
        return self.trainable_weights

    def train_step(self, data: Any) -> dict[str, Any]:
        """One update from one batch."""
        if self.accumulation_steps == 1:
            return super().train_step(data)
        return accumulated_train_step(self, data)

    def denominators(self, y: Any) -> Mapping[str, tf.Tensor]:
        """What the losses of a whole batch with targets `y` are divided by; none by default."""
        return {}

    def part_loss(
        self, x: Any, y: Any, y_pred: Any, sample_weight: Any, denominators: Mapping
    ) -> tf.Tensor:
        """One of `accumulation_steps` parts' share of the batch's loss."""
        loss = self.compute_loss(x, y, y_pred, sample_weight, training=True)
        return loss / self.accumulation_steps

    def record_loss(self, loss: tf.Tensor, x: Any) -> None:
        """Adds this replica's share of a batch's loss to the mean that Keras reports."""
        rows = tf.shape(tf.nest.flatten(x)[0])[0]
        replicas = tf.distribute.get_strategy().num_replicas_in_sync
        self._loss_tracker.update_state(loss * replicas, sample_weight=rows)

    def get_config(self) -> dict[str, Any]:
        """Plain data from which `from_config` builds the same model."""
        encoder = keras.saving.serialize_keras_object(self.encoder)
        return super().get_config() | self.head | {"encoder": encoder}

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: Any = None) -> "EncoderModel":
        """The model that `get_config` described, with new weights."""
        fields = dict(config)
        encoder = keras.saving.deserialize_keras_object(fields.pop("encoder"))
        return cls(encoder, **fields)
