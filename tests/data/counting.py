"""A corpus whose every token is unique, so that ids tell where text comes from.

Words are numbers in the order of the corpus: the token after id n in a document is n + 1.
"""

import functools
import random

from bert_tf.data.corpora.shard_writing import write_token_shards
from bert_tf.data.corpora.token_shards import TokenShards
from bert_tf.text import Tokenizer

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
WORDS = 30_000


def documents(lengths: list[list[int]]) -> list[list[str]]:
    """Documents whose sentences have these numbers of tokens."""
    count = 0
    made = []
    for sentences in lengths:
        made.append([])
        for length in sentences:
            made[-1].append(" ".join(f"w{count + i}" for i in range(length)))
            count += length
    return made


def random_lengths(number: int, sentences: int, longest: int, seed: int = 0) -> list[list[int]]:
    """`number` documents of about `sentences` sentences of up to `longest` tokens."""
    source = random.Random(seed)
    return [
        [source.randint(1, longest) for _ in range(source.randint(1, 2 * sentences - 1))]
        for _ in range(number)
    ]


@functools.cache
def tokenizer() -> Tokenizer:
    """Knows the first `WORDS` words; word n has id n + 5."""
    return Tokenizer([*SPECIAL, *(f"w{i}" for i in range(WORDS))])


def shards(folder, lengths: list[list[int]], **options) -> TokenShards:
    """Token shards of `documents(lengths)`."""
    return write_token_shards(documents(lengths), tokenizer(), folder, **options)
