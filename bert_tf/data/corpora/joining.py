"""Joining documents with a separator between them, so that rows can be filled to full length."""

import numpy as np

from bert_tf.data.corpora.pairing import Documents


def join(
    tokens: np.ndarray, documents: Documents, separator: int, rng: np.random.Generator
) -> tuple[np.ndarray, Documents]:
    """Copies documents in random order, each with a separator as the end of its last sentence.

    >>> documents = Documents(sentences=np.array([0, 2, 3]), documents=np.array([0, 2]))
    >>> tokens, documents = join(np.array([7, 8, 9]), documents, 3, np.random.default_rng(0))
    >>> tokens.tolist(), documents.sentences.tolist()
    ([7, 8, 9, 3], [0, 2, 4])

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
