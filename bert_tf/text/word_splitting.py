"""Cutting plain text into words, as data sets of named entities have them.

BERT's own words end at every punctuation mark. Annotators of entities keep "U.S.", "O'Brien" and
"AL-AIN" whole. Here a word is one of BERT's words, or several that `_COMPOUNDS` joins.
"""

from typing import NamedTuple

import tensorflow as tf

from bert_tf.text.rows import owners, positions, ragged, splits_of
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
    """Cuts texts into words, and words into pieces.

    Words ascend, and every word has a piece. Characters that the tokenizer drops lie between words
    or inside one.

    >>> tokenizer = Tokenizer("[PAD] [UNK] [CLS] [SEP] [MASK] u . s ann '".split())
    >>> split = split_words(tf.constant(["Ann's U.S. ."]), tokenizer)
    >>> split.starts.to_list(), split.ends.to_list()  # Ann, 's, U.S. and the full stop
    ([[0, 3, 6, 11]], [[3, 5, 10, 12]])
    >>> split.pieces.words.to_list()  # the word of each piece
    [[0, 1, 1, 2, 2, 2, 2, 3]]

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
    begins_word = [not piece.startswith("##") for piece in tokenizer.vocabulary]
    starts_word = tf.gather(begins_word, ids.values)
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
    return SplitTexts(
        WordPieces.of(ids, words, starts_word, word_splits),
        ragged(tf.gather(starts.values, first_pieces), word_splits),
        ragged(tf.gather(ends.values, last_pieces), word_splits),
    )


def cut(texts: tf.Tensor, starts: tf.RaggedTensor, ends: tf.RaggedTensor) -> tf.RaggedTensor:
    """The bytes of each range: RaggedTensor string [batch, (ranges)].

    Time and memory are linear in the texts and the ranges; `tf.strings.substr` would copy the whole
    text once for each range.

    >>> starts, ends = tf.ragged.constant([[0, 4], []]), tf.ragged.constant([[3, 7], []])
    >>> cut(tf.constant(["the cat", "sat"]), starts, ends).to_list()
    [[b'the', b'cat'], []]

    Args:
        texts: string [batch].
        starts: first byte of each range in its text, RaggedTensor int32 [batch, (ranges)].
        ends: the byte after its last, likewise.
    """
    # Strings of one byte are held in place, without memory of their own.
    of_texts = tf.strings.bytes_split(texts)
    splits = tf.cast(of_texts.row_splits, tf.int32)
    first = starts.values + tf.gather(splits, owners(tf.cast(starts.row_splits, tf.int32)))
    sizes = ends.values - starts.values
    places = tf.ragged.range(first, first + sizes).values
    joined = tf.strings.unsorted_segment_join(
        tf.gather(of_texts.values, places), owners(splits_of(sizes)), tf.size(sizes)
    )
    return starts.with_values(joined)


def _compound_starts(texts: tf.Tensor, text_starts: tf.Tensor) -> tf.Tensor:
    """int32 [compounds], ascending: where they start in all texts laid end to end."""
    import tensorflow_text as tf_text

    with tf.device("/CPU:0"):
        # The op takes NUL, which the tokenizer drops, for the end of a text; so is U+0001 dropped.
        texts = tf.strings.regex_replace(texts, r"\x00", "\x01")
        _, starts, _ = tf_text.regex_split_with_offsets(texts, "|".join(_COMPOUNDS), r"\S.*")
    starts = starts.with_row_splits_dtype(tf.int32)
    return tf.cast(starts.values, tf.int32) + tf.gather(text_starts, owners(starts.row_splits))
