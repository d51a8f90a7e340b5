"""What each token adds to an output: integrated gradients.

Source: Sundararajan, Taly, Yan, "Axiomatic Attribution for Deep Networks" (ICML 2017, arXiv
1703.01365). The gradient at the output of the embeddings is integrated along the straight path from
a blank input to the real one, and multiplied by the difference of the two. The values of all tokens
add up to the change of the output, which shows how exact the integral is. The blank input has
[MASK] for every piece, which BERT takes for "some word"; BERT never saw the paper's zero vector.
"""

import contextlib
import functools
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from bert_tf.encoder.encoder import Encoder, Inputs
from bert_tf.encoder.layout import TokenLayout

_MOST_TOKENS = 4096  # tokens whose gradients are computed at a time


class Importances(NamedTuple):
    """What each token adds to an output, float32 [tokens]; [CLS] and [SEP] add 0."""

    of: str
    values: np.ndarray
    change: float


def importances(
    outputs: Sequence[str],
    encoder: Encoder,
    inputs: Inputs,
    blank: Inputs,
    score: Callable[[Inputs], tf.Tensor],
    points: int = 48,
) -> list[Importances]:
    """Integrated gradients of some outputs, from `blank` to `inputs`, each int32 [1, tokens].

    `score` runs the model on `encoder`: inputs [rows, tokens] -> float32 [rows, outputs].
    """
    encoded = (encoder.encode(each, training=False) for each in (blank, inputs))
    start, end = (each.layout.restore(each.embeddings)[0] for each in encoded)
    way = end - start
    places, weights = np.polynomial.legendre.leggauss(points)
    shares, weights = (places + 1) / 2, weights / 2
    rows = max(1, _MOST_TOKENS // way.shape[0])
    integrals = tf.zeros([len(outputs), *way.shape], way.dtype)
    for first in range(0, points, rows):
        chunk = slice(first, first + rows)
        share, weight = (
            tf.constant(each[chunk], way.dtype)[:, None, None] for each in (shares, weights)
        )
        gradients = _gradients(encoder, inputs, start + share * way, score)
        integrals += tf.reduce_sum(weight * gradients, axis=1)
    values = tf.reduce_sum(way * integrals, axis=-1).numpy()
    changes = (score(inputs) - score(blank))[0].numpy().tolist()
    return [Importances(*each) for each in zip(outputs, values, changes, strict=True)]


def _gradients(
    encoder: Encoder, inputs: Inputs, vectors: tf.Tensor, score: Callable[[Inputs], tf.Tensor]
) -> tf.Tensor:
    """Gradients [outputs, rows, tokens, hidden] at embeddings, float32 [rows, tokens, hidden]."""
    repeated = {name: tf.repeat(row, len(vectors), axis=0) for name, row in inputs.items()}
    with tf.GradientTape(persistent=True, watch_accessed_variables=False) as tape:
        tape.watch(vectors)
        with _embedded_as(vectors, encoder):
            totals = tf.unstack(tf.reduce_sum(score(repeated), axis=0))
    return tf.stack([tape.gradient(total, vectors) for total in totals])


@contextlib.contextmanager
def _embedded_as(vectors: tf.Tensor, encoder: Encoder) -> Iterator[None]:
    """Within this context an encoder takes `vectors` for the output of its embeddings."""

    def embed(part: tf.Tensor, inputs: Inputs, layout: TokenLayout, training: bool) -> tf.Tensor:
        return layout.flatten(part)

    towers = list(encoder.towers().values())
    for tower, part in zip(towers, tf.split(vectors, len(towers), axis=-1), strict=True):
        tower.__dict__["embed"] = functools.partial(embed, part)
    try:
        yield
    finally:
        for tower in towers:
            del tower.__dict__["embed"]


def blanked(inputs: Inputs, mask_id: int, kept: tuple[int, ...]) -> Inputs:
    """The inputs with `mask_id` for every piece but those of `kept`, the special tokens."""
    ids = inputs["input_word_ids"]
    is_kept = tf.reduce_any(ids[..., None] == tf.constant(kept, ids.dtype), axis=-1)
    return {**inputs, "input_word_ids": tf.where(is_kept, ids, mask_id)}


def log_odds(logits: tf.Tensor, place: int) -> tf.Tensor:
    """log(p / (1 - p)) of one class: float32 [rows, classes] -> [rows]."""
    others = tf.concat([logits[:, :place], logits[:, place + 1 :]], axis=-1)
    return logits[:, place] - tf.reduce_logsumexp(others, axis=-1)
