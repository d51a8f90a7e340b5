"""What the encoder inside a model computes while the model is called."""

import contextlib
import contextvars
import dataclasses
from collections.abc import Iterator, Mapping

import tensorflow as tf

from bert_tf.encoder.encoder import Encoded, Encoder

# Replicas of a strategy train in threads of their own, and each has its own context.
_watch: contextvars.ContextVar["Watch | None"] = contextvars.ContextVar("watch", default=None)


@dataclasses.dataclass(frozen=True)
class Watch:
    """What was computed under `watching`.

    Attributes:
        with_intermediates: whether the intermediates of the blocks are collected, too.
        encoded: what each call of the encoder has computed, in turn.
    """

    with_intermediates: bool
    encoded: list[Encoded] = dataclasses.field(default_factory=list)


@contextlib.contextmanager
def watching(with_intermediates: bool = False) -> Iterator[Watch]:
    """Collects what the watchable encoders inside models compute while the models are called.

    >>> from bert_tf import EncoderConfig
    >>> encoder = Encoder(EncoderConfig(6, 4, num_hidden_layers=2, num_attention_heads=1))
    >>> make_watchable(encoder)
    >>> ids = tf.constant([[2, 5, 3]])
    >>> inputs = {"input_word_ids": ids, "input_mask": ids // ids, "input_type_ids": 0 * ids}
    >>> with watching() as watch:
    ...     vector = encoder.pooled(inputs)
    >>> [layer.shape.as_list() for layer in watch.encoded[0].layers]
    [[3, 4], [3, 4]]

    Args:
        with_intermediates: whether the intermediates of the blocks are collected, too.
    """
    watch = Watch(with_intermediates)
    token = _watch.set(watch)
    try:
        yield watch
    finally:
        _watch.reset(token)


def make_watchable(encoder: Encoder) -> None:
    """Replaces `encode` and `encode_at` of this one encoder, so that `watching` collects from it.

    Under `watching` it computes every token of its last layer, also where the head reads only some.
    """
    if "encode" in encoder.__dict__:
        return
    usual, usual_at = encoder.encode, encoder.encode_at

    def encode(
        inputs: Mapping[str, tf.Tensor], training: bool = False, with_intermediates: bool = False
    ) -> Encoded:
        watch = _watch.get()
        if watch is None:
            return usual(inputs, training, with_intermediates)
        encoded = usual(inputs, training, with_intermediates or watch.with_intermediates)
        watch.encoded.append(encoded)
        return encoded

    def encode_at(
        inputs: Mapping[str, tf.Tensor], positions: tf.Tensor, training: bool = False
    ) -> tf.Tensor:
        if _watch.get() is None:
            return usual_at(inputs, positions, training)
        return encode(inputs, training).select(positions)

    encoder.__dict__.update(encode=encode, encode_at=encode_at)
