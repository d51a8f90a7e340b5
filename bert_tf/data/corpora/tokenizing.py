"""Documents of text to documents of token ids.

The held-out documents are chosen by a hash of the text. So copies of a document are on the same
side, and a document does not change sides when the corpus grows.
"""

import hashlib
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from bert_tf.text import Tokenizer

# A line of megabytes would be one sentence. No input of BERT is longer than this.
LONGEST_SENTENCE = 512
HASH_BITS = 64

# Characters that go to the tokenizer in one call.
_BATCH_CHARACTERS = 1 << 20


class TokenizedDocument(NamedTuple):
    """A document as token ids.

    ids: uint16 [tokens] where the vocabulary allows it, else int32.
    lengths: int64 [sentences], the tokens of its sentences.
    hash: of its text, below 2 ** HASH_BITS.
    """

    ids: np.ndarray
    lengths: np.ndarray
    hash: int


def tokenized(documents: Iterable[list[str]], tokenizer: Tokenizer) -> Iterator[TokenizedDocument]:
    """The documents, lists of sentences, that have tokens.

    >>> tokenizer = Tokenizer("[PAD] [UNK] [CLS] [SEP] [MASK] the cat sat".split())
    >>> (document,) = tokenized([["The cat", "sat"], [""]], tokenizer)
    >>> document.ids.tolist(), document.lengths.tolist()
    ([5, 6, 7], [2, 1])
    """
    dtype = np.uint16 if tokenizer.vocab_size <= 1 << 16 else np.int32
    for batch in batches(documents):
        rows = tokenizer.tokenize([sentence for document in batch for sentence in document])
        ids, splits = rows.values.numpy(), rows.row_splits.numpy()
        first = 0
        for document in batch:
            bounds = splits[first : first + len(document) + 1]
            first += len(document)
            if bounds[0] < bounds[-1]:
                lengths = _cut_long_sentences(np.diff(bounds))
                # A copy: a view would hold on to the ids of the whole batch.
                own = ids[bounds[0] : bounds[-1]].astype(dtype)
                yield TokenizedDocument(own, lengths, _hash(document))


def batches(documents: Iterable[list[str]]) -> Iterator[list[list[str]]]:
    """Groups documents so that each call of the tokenizer has enough text.

    >>> [len(batch) for batch in batches([["The cat", "sat"], ["The dog"]])]
    [2]
    """
    batch: list[list[str]] = []
    characters = 0
    for document in documents:
        batch.append(document)
        characters += sum(map(len, document))
        if characters >= _BATCH_CHARACTERS:
            yield batch
            batch, characters = [], 0
    if batch:
        yield batch


def _cut_long_sentences(lengths: np.ndarray) -> np.ndarray:
    """Drops empty sentences, and cuts those over `LONGEST_SENTENCE` into several."""
    lengths = lengths[lengths > 0]
    pieces = -(-lengths // LONGEST_SENTENCE)
    cut = np.full(pieces.sum(), LONGEST_SENTENCE)
    cut[np.cumsum(pieces) - 1] = lengths - (pieces - 1) * LONGEST_SENTENCE
    return cut


def _hash(document: list[str]) -> int:
    text = "\n".join(document).encode()
    digest = hashlib.blake2b(text, digest_size=HASH_BITS // 8, key=b"dev").digest()
    return int.from_bytes(digest, "big")
