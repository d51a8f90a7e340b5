"""Where each head of an encoder looks, as the layers themselves compute it."""

import contextlib
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from bert_tf.inspecting.stepping_in import called_instead, towers
from bert_tf.layers.attention import SelfAttention
from bert_tf.layers.layout import TokenLayout
from bert_tf.models import Encoder

# Tokens of an input that are shown; a map of more could not be read.
MOST_TOKENS = 96


class AttentionMaps(NamedTuple):
    """The attention of all heads in one input.

    Attributes:
        layers: name of each layer.
        places: int [shown], the tokens that are shown.
        probabilities: float32 [layers, heads, shown, shown]: how much of each token (last axis) a
            token takes. Where all tokens are shown a row adds up to 1.
    """

    layers: tuple[str, ...]
    places: np.ndarray
    probabilities: np.ndarray


def attention_maps(
    encoder: Encoder, inputs: Mapping[str, tf.Tensor], places: np.ndarray
) -> AttentionMaps:
    """The attention in one input.

    Args:
        encoder: the encoder.
        inputs: its inputs, each int32 [1, tokens], without padding.
        places: int [shown], the tokens to show.
    """
    names: list[str] = []
    maps: list[np.ndarray] = []
    with contextlib.ExitStack() as stack:
        for way, tower in towers(encoder).items():
            for number, block in enumerate(tower.blocks, start=1):
                names.append(f"{number}{way}")
                noting = _noting(block.attention, places, maps)
                stack.enter_context(called_instead(block.attention, noting))
        encoder.encode(inputs, training=False)
    return AttentionMaps(tuple(names), places, np.stack(maps))


def _noting(
    attention: SelfAttention, places: np.ndarray, maps: list[np.ndarray]
) -> Callable[..., tf.Tensor]:
    """The layer's own `call`, which adds the probabilities that it computes to `maps`."""
    usual = attention.call

    def call(tokens: tf.Tensor, layout: TokenLayout, bias: tf.Tensor, **options: Any) -> tf.Tensor:
        of_all = tf.cast(attention.probabilities(tokens, layout, bias)[0], tf.float32).numpy()
        maps.append(of_all[:, places][:, :, places])
        return usual(tokens, layout, bias, **options)

    return call


def shown_places(type_ids: np.ndarray, focus: int = 0, most: int = MOST_TOKENS) -> np.ndarray:
    """Which tokens of an input to show: all, or where they are too many, some.

    Of one text that is a stretch around `focus`; of a pair as much of the first text as fits in
    half of the room, and such a stretch of the second.

    Args:
        type_ids: int [tokens], 0 in the first text and 1 in the second.
        focus: a place of interest.
        most: how many to show.

    Returns:
        int [shown], ascending.
    """
    tokens = len(type_ids)
    if tokens <= most:
        return np.arange(tokens)
    second = int(type_ids.argmax())  # 0 where there is none
    head = min(second, most // 2)
    stretch = most - head
    start = min(max(focus - stretch // 2, second), tokens - stretch)
    return np.concatenate([np.arange(head), np.arange(start, start + stretch)])
