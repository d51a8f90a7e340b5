"""Packing many long texts in bounded memory."""

from collections.abc import Sequence

import tensorflow as tf

from bert_tf.text.packing import Features, Preprocessor
from bert_tf.text.tokenizer import Tokenizer

# Bytes of text that are tokenized at a time; that takes some 25 times as much memory.
_MAX_BYTES = 8_000_000


class GroupPreprocessor:
    """A `Preprocessor` for any number of texts, as SavedModels are given them.

    A batch is cut into groups of rows with a bounded number of bytes, one after the other.

    Args:
        tokenizer: makes the pieces.
        max_length: most tokens in a row, special ones included.
        max_bytes: most bytes of text in a group; a row with more is a group by itself.
    """

    def __init__(self, tokenizer: Tokenizer, max_length: int, max_bytes: int = _MAX_BYTES):
        self._preprocess = Preprocessor(tokenizer, max_length, padding="max_length")
        self._max_bytes = max_bytes

    def __call__(self, texts: Sequence[tf.Tensor]) -> Features:
        """What `Preprocessor` gives, padded to the longest row.

        Args:
            texts: one or two, each string [batch].
        """
        rows = tf.shape(texts[0])[0]
        sizes = tf.add_n([tf.cast(tf.strings.length(each), tf.int64) for each in texts])
        ends = tf.cumsum(sizes)

        def group(start: tf.Tensor, parts: list[tf.TensorArray]) -> tuple:
            before = ends[start] - sizes[start]
            fitting = tf.searchsorted(ends, [before + self._max_bytes], side="right")[0]
            stop = tf.maximum(fitting, start + 1)
            features = self._preprocess(tuple(each[start:stop] for each in texts))
            place = parts[0].size()
            return stop, [
                part.write(place, features[name])
                for name, part in zip(names, parts, strict=True)
            ]

        names = ("input_word_ids", "input_mask", "input_type_ids")
        shape = [None, self._preprocess.max_length]
        empty = [
            tf.TensorArray(
                tf.int32, size=0, dynamic_size=True, infer_shape=False, element_shape=shape
            )
            for _ in names
        ]
        _, parts = tf.while_loop(
            lambda start, _: start < rows, group, (tf.constant(0), empty), parallel_iterations=1
        )
        features = dict(zip(names, (part.concat() for part in parts), strict=True))
        longest = tf.reduce_max(tf.reduce_sum(features["input_mask"], axis=1))
        return {name: values[:, : tf.maximum(longest, 0)] for name, values in features.items()}
