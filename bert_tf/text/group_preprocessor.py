"""Packing many long texts in bounded memory."""

from collections.abc import Sequence

import tensorflow as tf

from bert_tf.text.packing import Features, Preprocessor
from bert_tf.text.parts import MAX_BYTES, map_in_groups
from bert_tf.text.tokenizer import Tokenizer


class GroupPreprocessor:
    """A `Preprocessor` for any number of texts, as a SavedModel receives them.

    >>> tokenizer = Tokenizer("[PAD] [UNK] [CLS] [SEP] [MASK] the cat sat .".split())
    >>> preprocess = GroupPreprocessor(tokenizer, max_length=8, max_bytes=10)
    >>> preprocess([tf.constant(["The cat sat.", "The cat"])])["input_word_ids"].numpy().tolist()
    [[2, 5, 6, 7, 8, 3], [2, 5, 6, 3, 0, 0]]

    Args:
        tokenizer: makes the pieces.
        max_length: most tokens in a row, special ones included.
        max_bytes: most bytes of text that are tokenized at a time; see `map_in_groups`.
    """

    def __init__(self, tokenizer: Tokenizer, max_length: int, max_bytes: int = MAX_BYTES):
        # All groups are as wide, and what none of them needs is cut off in the end.
        self._preprocess = Preprocessor(tokenizer, max_length, padding="max_length")
        self._max_bytes = max_bytes

    def __call__(self, texts: Sequence[tf.Tensor]) -> Features:
        """The dict of `Preprocessor`, padded to the longest row.

        Args:
            texts: one or two, each string [batch].
        """
        features = map_in_groups(
            lambda rows: self._preprocess(tuple(rows.values())),
            dict(zip(("first", "second"), texts, strict=False)),
            self._max_bytes,
        )
        longest = tf.reduce_max(tf.reduce_sum(features["input_mask"], axis=1))
        return {name: values[:, : tf.maximum(longest, 0)] for name, values in features.items()}
