"""What encoders compute while a model is called, for losses that compare more than its outputs."""

import contextlib
import contextvars
import dataclasses
from collections.abc import Iterator

import tensorflow as tf

from bert_tf.encoder.layout import TokenLayout

_watch: contextvars.ContextVar["Watch | None"] = contextvars.ContextVar("watch", default=None)


@dataclasses.dataclass(frozen=True)
class Encoded:
    """The tokens of a batch after each block, flat: [tokens, hidden].

    Attributes:
        embeddings: [tokens, hidden] before the first block.
        layers: [tokens, hidden] after each block, the last one last.
        layout: where each token stands in its row.
        intermediates: for each block a dict of what it computed on the way, such as
            `attention_probabilities`; empty unless `encode` was called with `with_intermediates`.
    """

    embeddings: tf.Tensor
    layers: list[tf.Tensor]
    layout: TokenLayout
    intermediates: list[dict[str, tf.Tensor]] = dataclasses.field(default_factory=list)

    def select(self, positions: tf.Tensor) -> tf.Tensor:
        """Last-layer vectors at int32 [batch, n] -> [batch * n, hidden]."""
        return self.layout.select(self.layers[-1], positions)

    def restore(self, layer: int = -1) -> tf.Tensor:
        """One layer as [batch, seq_len, hidden], zero where the mask is 0."""
        return self.layout.restore(self.layers[layer])


@dataclasses.dataclass(frozen=True)
class Watch:
    """What was computed under `watching`.

    Attributes:
        with_intermediates: whether the intermediates of the blocks are wanted, too.
        encoded: what each call of `Encoder.encode` has returned, in turn.
    """

    with_intermediates: bool
    encoded: list[Encoded] = dataclasses.field(default_factory=list)


@contextlib.contextmanager
def watching(with_intermediates: bool = False) -> Iterator[Watch]:
    """Collects what the encoders inside models that are called meanwhile compute for all tokens.

    Such an encoder computes every token of its last layer, also where the head reads only some.

    >>> from bert_tf import Encoder, EncoderConfig
    >>> encoder = Encoder(EncoderConfig(6, 4, num_hidden_layers=2, num_attention_heads=1))
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


def current() -> Watch | None:
    """The innermost `watching` that this code runs in; None if there is none."""
    return _watch.get()
