"""Documents one after the other, with a separator between, to be cut at full length."""

import numpy as np

from bert_tf.data.corpora.pairing import Documents


def join(
    tokens: np.ndarray, documents: Documents, separator: int, rng: np.random.Generator
) -> tuple[np.ndarray, Documents]:
    """Copies documents in random order, each with a separator as the end of its last sentence.

    Args:
        tokens: [tokens], any integer.
        documents: where sentences and documents start in it.
        separator: id of [SEP].
        rng: the order comes from here.

    Returns:
        The new tokens, and where sentences and documents start in them.
    """
    order = rng.permutation(len(documents)).tolist()
    bounds = documents.sentences[documents.documents].tolist()
    end = np.array([separator], tokens.dtype)
    pieces = [piece for d in order for piece in (tokens[bounds[d] : bounds[d + 1]], end)]

    lengths = np.diff(documents.sentences)
    lengths[documents.documents[1:] - 1] += 1
    firsts = documents.documents.tolist()
    sentences = np.concatenate([lengths[firsts[d] : firsts[d + 1]] for d in order])
    counts = np.diff(documents.documents)[order]
    return np.concatenate(pieces), Documents(
        np.concatenate([[0], np.cumsum(sentences)]), np.concatenate([[0], np.cumsum(counts)])
    )
