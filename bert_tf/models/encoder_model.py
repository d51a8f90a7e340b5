"""What all task models share: an encoder inside, and a configuration that brings it back."""

from typing import Any

import keras

from bert_tf.models.encoder import Encoder


class EncoderModel(keras.Model):
    """A Keras model that owns an `Encoder` and adds a head to it.

    A subclass passes its own arguments to `__init__` as `head`, and creates its layers in `build`.

    Args:
        encoder: the encoder; its weights are trained with the head's.
        head: the subclass's own constructor arguments, kept for `get_config` and checkpoints.
    """

    def __init__(self, encoder: Encoder, head: dict[str, Any], **kwargs: Any):
        kwargs.setdefault("dtype", encoder.dtype_policy)
        super().__init__(**kwargs)
        self.encoder = encoder
        self.head = head
        self.supports_jit = encoder.supports_jit

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
