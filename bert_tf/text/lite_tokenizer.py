"""A tokenizer of operations that LiteRT and tf-text's kernels for it have, for one row of ids.

Cleaning is tf-text's `FastBertNormalizer`, and word pieces are found by the same model as in
`bert_tf.text.Tokenizer`. `docs/phone.md` says for which texts the ids differ.
"""

from typing import NamedTuple

import tensorflow as tf

from bert_tf.text.packing import Features
from bert_tf.text.tokenizer import Tokenizer


class LitePieces(NamedTuple):
    """The pieces of one text.

    Attributes:
        ids: int32 [pieces].
        starts: int32 [pieces], the byte of the text where each piece starts.
        ends: int32 [pieces], the byte where it ends (exclusive).
    """

    ids: tf.Tensor
    starts: tf.Tensor
    ends: tf.Tensor


class LiteQuestion(NamedTuple):
    """A question with its context.

    Attributes:
        features: the encoder's inputs, each int32 [1, max_length].
        starts, ends: int32 [1, max_length], the byte range of each token in the context; -1 for
            tokens that are not of it.
    """

    features: Features
    starts: tf.Tensor
    ends: tf.Tensor


class LiteTokenizer:
    """Makes rows of ids of single texts, pairs and questions.

    >>> tokenizer = Tokenizer("[PAD] [UNK] [CLS] [SEP] [MASK] the cat ##s sat .".split())
    >>> lite = LiteTokenizer(tokenizer)
    >>> features = lite.packed([tf.constant(["The cats sat."])], max_length=8)
    >>> features["input_word_ids"].numpy().tolist()
    [[2, 5, 6, 7, 8, 9, 3, 0]]

    Args:
        tokenizer: gives the vocabulary and the casing.
    """

    def __init__(self, tokenizer: Tokenizer):
        import tensorflow_text as tf_text

        self._tokenizer = tokenizer
        self._normalizer = tf_text.FastBertNormalizer(
            lower_case_nfd_strip_accents=tokenizer.lower_case
        )
        self._wordpiece = tf_text.FastWordpieceTokenizer(
            model_buffer=tokenizer.wordpiece_model, token_out_type=tf.int32
        )

    def tokenize(self, text: tf.Tensor) -> LitePieces:
        """The pieces of a text, string [1]."""
        clean, origins = self._normalizer.normalize_with_offsets(text)
        ids, starts, ends = self._wordpiece.tokenize_with_offsets(clean)
        places = tf.cast(origins.flat_values, tf.int32)
        return LitePieces(
            ids.flat_values,
            tf.gather(places, tf.cast(starts.flat_values, tf.int32)),
            tf.gather(places, tf.cast(ends.flat_values, tf.int32)),
        )

    def packed(self, texts: list[tf.Tensor], max_length: int) -> Features:
        """[CLS] a [SEP], or [CLS] a [SEP] b [SEP], padded to `max_length`; see `Preprocessor`.

        Args:
            texts: one or two, each string [1].
            max_length: tokens of the row.

        Returns:
            The encoder's inputs, each int32 [1, max_length].
        """
        first, *others = (self.tokenize(text).ids for text in texts)
        if not others:
            return self._joined([first[: max_length - 2]], max_length)
        (second,) = others
        room = max_length - 3
        # The longer one is cut; of equal ones the second, first.
        kept = tf.maximum((room + 1) // 2, room - tf.size(second))
        kept = tf.minimum(tf.size(first), kept)
        return self._joined([first[:kept], second[: room - kept]], max_length)

    def packed_question(
        self, question: tf.Tensor, context: tf.Tensor, max_length: int, max_question_length: int
    ) -> LiteQuestion:
        """The first window of `bert_tf.text.WindowPreprocessor`.

        Args:
            question: string [1].
            context: string [1].
            max_length: tokens of the row.
            max_question_length: pieces to keep of the question.
        """
        short = self.tokenize(question).ids[:max_question_length]
        before = tf.size(short) + 2
        room = max_length - 1 - before
        long = LitePieces(*(each[:room] for each in self.tokenize(context)))
        features = self._joined([short, long.ids], max_length)
        starts, ends = (
            _fitted(tf.concat([tf.fill([before], -1), each], axis=0), max_length, -1)
            for each in (long.starts, long.ends)
        )
        return LiteQuestion(features, starts, ends)

    def _joined(self, segments: list[tf.Tensor], max_length: int) -> Features:
        """The row of some segments, each int32 [pieces]."""
        ids, types = [[self._tokenizer.cls_id]], [[0]]
        for number, segment in enumerate(segments):
            ids += [segment, [self._tokenizer.sep_id]]
            types.append(tf.fill([tf.size(segment) + 1], number))
        joined = tf.concat(ids, axis=0)
        return {
            "input_word_ids": _fitted(joined, max_length, self._tokenizer.pad_id),
            "input_mask": _fitted(tf.ones_like(joined), max_length, 0),
            "input_type_ids": _fitted(tf.concat(types, axis=0), max_length, 0),
        }


def _fitted(values: tf.Tensor, length: int, padding: int) -> tf.Tensor:
    """int32 [n] -> [1, length], filled up."""
    filled = tf.concat([values, tf.fill([length - tf.size(values)], padding)], axis=0)
    return tf.reshape(filled, [1, length])
