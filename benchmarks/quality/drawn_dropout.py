"""The same dropout on both sides of `same_updates`: numpy draws it, by layer and update.

Ours leaves most of the padding out, and computes only the first token of a classifier's last block.
The loss does not depend on the values that only the peer computes.
"""

import itertools
import math
from typing import Any

import numpy as np
import tensorflow as tf

from bert_tf import TextClassifier
from bert_tf.encoder.layers import Dropout
from bert_tf.encoder.layout import UnpaddedLayout
from bert_tf.models.encoder_model import EncoderModel

# Random words are below this number, and dropout rates are shares of it: see `Dropout`.
_RANGE = 2**16
# Dropouts before the first block, and in each block: of attention, its output, the block's output.
_BEFORE, _PER_BLOCK = 1, 3


def draw_in_ours(model: EncoderModel) -> None:
    """Makes the dropouts of a model take their random words from `_draw`."""
    for place, layer in enumerate(_dropouts(model)):
        layer._words = _Draws(place)


def _dropouts(model: EncoderModel) -> list[Dropout]:
    """The dropouts of a model, in the order in which they act."""
    in_blocks = (
        (block.attention.dropout, block.attention_dropout, block.output_dropout)
        for block in model.encoder.blocks
    )
    own = getattr(model, "dropout", None)
    of_head = [] if own is None else [own]
    return [model.encoder.embeddings.dropout, *itertools.chain(*in_blocks), *of_head]


def _draw(place: int, update: int, count: int) -> np.ndarray:
    """uint16 [count], for one dropout in one update."""
    random = np.random.default_rng([place, update])
    return random.integers(_RANGE, size=count, dtype=np.uint16)


class _Draws:
    """Replaces the method of a `Dropout` that draws its random words."""

    def __init__(self, place: int):
        self._place, self._updates = place, itertools.count()

    def __call__(self, count: tf.Tensor) -> tf.Tensor:
        def bits(number: np.ndarray) -> np.ndarray:
            return _draw(self._place, next(self._updates), int(number))

        drawn = tf.numpy_function(bits, [count], tf.uint16)
        return tf.ensure_shape(drawn, [None])


class DrawnDropout:
    """Replaces `torch.nn.functional.dropout` in a model of transformers.

    Args:
        model: our model, which has the same dropouts.
    """

    _layout: UnpaddedLayout
    _tokens: int

    def __init__(self, model: EncoderModel):
        self._calls = itertools.count()
        self._places = len(_dropouts(model))
        end = _BEFORE + _PER_BLOCK * len(model.encoder.blocks)
        is_classifier = isinstance(model, TextClassifier)
        self._of_first_tokens = range(end - _PER_BLOCK, end) if is_classifier else range(0)

    def begin(self, input_mask: np.ndarray) -> None:
        """Takes the mask of the next batch: int [batch, seq_len]."""
        self._layout = UnpaddedLayout(tf.constant(input_mask))
        self._tokens = self._layout.flatten(input_mask).shape[0]

    def __call__(self, x: Any, p: float, training: bool = True, inplace: bool = False) -> Any:
        """`x`, [batch, heads, seq_len, seq_len], [batch, seq_len, hidden] or [batch, hidden]."""
        update, place = divmod(next(self._calls), self._places)
        first = place in self._of_first_tokens

        def drawn(*shape: int) -> np.ndarray:
            dropped = round(p * _RANGE)
            kept = _draw(place, update, math.prod(shape)).reshape(shape) >= dropped
            return np.float32(kept * (_RANGE / (_RANGE - dropped)))

        factors = np.ones(x.shape, np.float32)
        if x.ndim == 4:
            keys = self._layout.key_mask.shape[1]
            ours = drawn(*x.shape[:2], 1 if first else keys, keys)
            factors[:, :, : ours.shape[2]] = ours[:, :, : x.shape[2], : x.shape[3]]
        elif x.ndim == 3 and first:
            factors[:, 0] = drawn(len(x), x.shape[2])
        elif x.ndim == 3:
            ours = drawn(self._tokens, x.shape[2])
            factors = self._layout.restore(tf.constant(ours)).numpy()
        else:
            factors = drawn(*x.shape)
        return x * x.new_tensor(factors)
