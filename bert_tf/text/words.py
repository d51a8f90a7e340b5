"""Texts that come as words, as for named entities: the pieces of each word, and windows of them.

A word is tagged at its first piece (the BERT paper, section 5.3), in the window where that piece
has most context.
"""

from typing import NamedTuple

import tensorflow as tf

from bert_tf.errors import UserError
from bert_tf.text.packing import Features
from bert_tf.text.rows import owners, starts_row
from bert_tf.text.tokenizer import Tokenizer
from bert_tf.text.windows import slide


class WordPieces(NamedTuple):
    """Pieces of texts given as words; each RaggedTensor int32 [batch, (pieces)].

    Attributes:
        ids: piece ids.
        words: the word, counted from 0 in its text, that each piece is of.
        first_words: the same at the first piece of each word, -1 at the others.
    """

    ids: tf.RaggedTensor
    words: tf.RaggedTensor
    first_words: tf.RaggedTensor


def tokenize_words(words: tf.RaggedTensor, tokenizer: Tokenizer) -> WordPieces:
    """Splits each word by itself; one that leaves no piece becomes [UNK], so that it can be tagged.

    Args:
        words: RaggedTensor string [batch, (words)]; see `without_padding` for dense ones.
        tokenizer: makes the pieces.
    """
    pieces = tokenizer.tokenize(words.values)
    is_empty = tf.cast(pieces.row_lengths() == 0, tf.int64)
    unknown = tf.RaggedTensor.from_row_lengths(
        tf.fill([tf.reduce_sum(is_empty)], tokenizer.unk_id), is_empty, validate=False
    )
    pieces = tf.concat([pieces, unknown], axis=1)
    piece_splits = tf.cast(pieces.row_splits, tf.int32)
    text_splits = tf.cast(words.row_splits, tf.int32)
    word = owners(piece_splits)
    first_of_text = tf.gather(text_splits, tf.gather(owners(text_splits), word))
    splits = tf.gather(pieces.row_splits, words.row_splits)
    ids = tf.RaggedTensor.from_row_splits(pieces.values, splits, validate=False)
    in_text = word - first_of_text
    first = tf.where(starts_row(piece_splits), in_text, -1)
    return WordPieces(ids, ids.with_values(in_text), ids.with_values(first))


def without_padding(words: tf.Tensor) -> tf.RaggedTensor:
    """Takes "" after the last word of each row for padding: RaggedTensor string [batch, (words)].

    Args:
        words: string [batch, words].
    """
    place = tf.range(1, tf.shape(words)[1] + 1)
    lengths = tf.reduce_max(tf.where(words != "", place, 0), axis=1)
    return tf.RaggedTensor.from_tensor(words, tf.maximum(lengths, 0))


class WordWindows(NamedTuple):
    """What `WordPreprocessor` gives.

    Attributes:
        features: the encoder's three inputs, each int32 [windows, seq_len].
        rows: int32 [windows], the row of the batch that each window is of.
        words: int32 [windows, seq_len], the word of its row that a token is to tag; -1 for a token
            that tags none. Each word stands once in all windows.
    """

    features: Features
    rows: tf.Tensor
    words: tf.Tensor


class WordPreprocessor:
    """Texts given as words, of any length, to the encoder's inputs, in the graph.

    >>> words = tf.ragged.constant([["Ada", "met", "Babbage"], ["Hello"]])
    >>> windows = WordPreprocessor(tokenizer)(words)
    """

    def __init__(self, tokenizer: Tokenizer, max_length: int = 128, stride: int = 64):
        """Stores the settings.

        Args:
            tokenizer: makes the pieces.
            max_length: tokens in a window, special ones included.
            stride: pieces from the start of a window to that of the next.

        Raises:
            UserError: `max_length` has no room for [CLS] a [SEP], or `stride` is not positive.
        """
        if max_length < 3 or stride < 1:
            raise UserError(
                f"max_length is {max_length} and stride {stride}; "
                "they must be at least 3 ([CLS] a [SEP]) and 1"
            )
        self.tokenizer = tokenizer
        self.max_length = max_length
        self.stride = stride

    def __call__(self, words) -> WordWindows:
        """Tokenizes and cuts a batch.

        Args:
            words: RaggedTensor string [batch, (words)], or a Tensor string [batch, words] in which
                "" after the last word is padding.
        """
        if not isinstance(words, tf.RaggedTensor):
            words = without_padding(tf.convert_to_tensor(words, tf.string))
        pieces = tokenize_words(words, self.tokenizer)
        windows = slide(pieces.ids, self.tokenizer, self.max_length, self.stride)
        words_here = windows.gather(pieces.first_words, -1)
        return WordWindows(
            windows.features, windows.rows, tf.where(windows.has_most_context, words_here, -1)
        )
