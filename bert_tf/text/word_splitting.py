"""Plain text cut into words, as data for named entities has them.

BERT's own words end at every punctuation mark; people who tag entities keep "U.S.", "O'Brien" and
"AL-AIN" whole. Here a word is one of BERT's, or several of them that `_COMPOUNDS` finds to be one.
"""

from typing import NamedTuple

import tensorflow as tf

from bert_tf.text.rows import owners, positions, splits_of
from bert_tf.text.tokenizer import Tokenizer
from bert_tf.text.words import WordPieces

# A letter of a script that parts words by spaces (RE2 has no difference of classes: not "a
# non-letter or a Chinese character"), or an accent on it.
_LETTER = r"(?:[^\PL\p{Han}]|\pM)"
_RUN = rf"(?:\pN+(?:[.,:]\pN+)*|{_LETTER})+"
# What a text is made of, the first that fits; all of BERT's words that begin in one of these are
# one word.
_COMPOUNDS = (
    r"https?://[^\s\pZ]*[\pL\pN/]",
    # U.S. and e.g., but also the initial in J. Smith; "I." ends a sentence.
    r"\pL(?:\.\pL)+\.",
    r"[A-HJ-Z]\.",
    # The ends of Ann's and they've.
    r"['’](?:s|S|m|d|re|ve|ll|t)\b",
    # AL-AIN, AT&T, 3-0, 1,000.5, O'Brien, @name, #topic.
    rf"(?:[@#]|[A-HJ-Za-hj-z]['’])?{_RUN}(?:[-._&+/=@]{_RUN})*",
    r"\.{2,}|-{2,}",
    r"\s+|(?s:.)",
)


class SplitTexts(NamedTuple):
    """Texts cut into words.

    Attributes:
        pieces: their pieces and the word of each.
        starts, ends: byte range of each word in its text, RaggedTensor int32 [batch, (words)].
    """

    pieces: WordPieces
    starts: tf.RaggedTensor
    ends: tf.RaggedTensor


def split_words(texts: tf.Tensor, tokenizer: Tokenizer) -> SplitTexts:
    """Cuts texts into words and these into pieces.

    Words ascend, and none is without a piece: what the tokenizer drops is between words, or in one.

    Args:
        texts: UTF-8 strings [batch].
        tokenizer: makes the pieces.
    """
    ids, starts, ends = tokenizer.tokenize_with_offsets(texts)
    piece_splits = tf.cast(ids.row_splits, tf.int32)
    text = owners(piece_splits)
    # Offsets into all texts laid end to end.
    text_starts = splits_of(tf.strings.length(texts))
    first_byte = starts.values + tf.gather(text_starts, text)
    starts_word = ~tf.gather(_continues_word(tokenizer), ids.values)
    basic = positions(starts_word)
    compound = tf.searchsorted(
        _compound_starts(texts, text_starts), tf.gather(first_byte, basic), side="right"
    )
    # Of the words of BERT that begin in one compound only the first begins a word.
    is_first = compound != tf.concat([[-1], compound[:-1]], axis=0)
    starts_word = tf.tensor_scatter_nd_update(starts_word, basic[:, None], is_first)
    first_pieces = positions(starts_word)
    word_splits = tf.gather(splits_of(tf.cast(starts_word, tf.int32)), piece_splits)
    last_pieces = tf.concat([first_pieces, [tf.size(starts_word)]], axis=0)[1:] - 1
    words = tf.cumsum(tf.cast(starts_word, tf.int32)) - 1

    def of_words(values: tf.Tensor) -> tf.RaggedTensor:
        splits = tf.cast(word_splits, tf.int64)
        return tf.RaggedTensor.from_row_splits(values, splits, validate=False)

    return SplitTexts(
        WordPieces.of(ids, words, starts_word, word_splits),
        of_words(tf.gather(starts.values, first_pieces)),
        of_words(tf.gather(ends.values, last_pieces)),
    )


def _continues_word(tokenizer: Tokenizer) -> list[bool]:
    """Which pieces of the vocabulary go on with a word."""
    return [piece.startswith("##") for piece in tokenizer.vocabulary]


def _compound_starts(texts: tf.Tensor, text_starts: tf.Tensor) -> tf.Tensor:
    """int32 [compounds], ascending: where they start in all texts laid end to end."""
    import tensorflow_text as tf_text

    with tf.device("/CPU:0"):
        # The op takes NUL, which the tokenizer drops, for the end of a text; so is U+0001 dropped.
        texts = tf.strings.regex_replace(texts, r"\x00", "\x01")
        _, starts, _ = tf_text.regex_split_with_offsets(texts, "|".join(_COMPOUNDS), r"\S.*")
    starts = starts.with_row_splits_dtype(tf.int32)
    return tf.cast(starts.values, tf.int32) + tf.gather(text_starts, owners(starts.row_splits))
