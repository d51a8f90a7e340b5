"""Texts as words, as for named entities: the pieces of each word, and windows of them.

BERT's own words end at every punctuation mark. Annotators of entities keep "U.S.", "O'Brien" and
"AL-AIN" whole. Here a word is one of BERT's words, or several that `_COMPOUNDS` joins.
"""

from typing import NamedTuple

import tensorflow as tf

from bert_tf.errors import UserError
from bert_tf.text.packing import Features, trim
from bert_tf.text.rows import owners, positions, ragged, splits_of, starts_row
from bert_tf.text.tokenizer import Tokenizer
from bert_tf.text.windows import at_tokens, slide

# A letter of a script that separates words by spaces, or an accent on it. RE2 cannot subtract one
# class from another, so it reads: neither a non-letter nor a Chinese character.
_LETTER = r"(?:[^\PL\p{Han}]|\pM)"
_RUN = rf"(?:\pN+(?:[.,:]\pN+)*|{_LETTER})+"
# A text is split into matches of these; the first pattern that fits counts. BERT's words that begin
# in the same match are one word.
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


class WordPieces(NamedTuple):
    """The pieces of texts, RaggedTensor int32 [batch, (pieces)], and the word of each piece."""

    ids: tf.RaggedTensor
    words: tf.RaggedTensor  # the word of each piece, counted from 0 in its text
    first_words: tf.RaggedTensor  # the same at the first piece of each word, -1 at the others
    word_splits: tf.Tensor  # int32 [batch + 1], where each text's words start among all words


def tokenize_words(words: tf.RaggedTensor, tokenizer: Tokenizer) -> WordPieces:
    """Splits words, RaggedTensor string [batch, (words)]; a word without pieces becomes [UNK]."""
    pieces = tokenizer.tokenize(words.values)
    is_empty = tf.cast(pieces.row_lengths() == 0, tf.int64)
    unknown = tf.RaggedTensor.from_row_lengths(
        tf.fill([tf.reduce_sum(is_empty)], tokenizer.unk_id), is_empty, validate=False
    )
    pieces = tf.concat([pieces, unknown], axis=1)
    ids = ragged(pieces.values, tf.gather(pieces.row_splits, words.row_splits))
    piece_splits = tf.cast(pieces.row_splits, tf.int32)
    splits = tf.cast(words.row_splits, tf.int32)
    return _word_pieces(ids, owners(piece_splits), starts_row(piece_splits), splits)


def _word_pieces(
    ids: tf.RaggedTensor, words: tf.Tensor, starts_word: tf.Tensor, splits: tf.Tensor
) -> WordPieces:
    """Numbers the words of each text; `words`, int32 [pieces], is each piece's word among all."""
    in_text = words - tf.gather(splits, tf.gather(owners(splits), words))
    first = tf.where(starts_word, in_text, -1)
    return WordPieces(ids, ids.with_values(in_text), ids.with_values(first), splits)


def without_padding(words: tf.Tensor) -> tf.RaggedTensor:
    """Drops the padding, "" after the last word of a row: string [batch, words] -> ragged."""
    place = tf.range(1, tf.shape(words)[1] + 1)
    lengths = tf.reduce_max(tf.where(words != "", place, 0), axis=1)
    return tf.RaggedTensor.from_tensor(words, tf.maximum(lengths, 0))


class WordWindows(NamedTuple):
    """Windows of words; each word of a row is tagged once in all of them."""

    features: Features  # the encoder's three inputs, each int32 [windows, seq_len]
    rows: tf.Tensor  # int32 [windows], the row of the batch that each window comes from
    words: tf.Tensor  # int32 [windows, seq_len], the word that is tagged at a token, or -1


class WordPreprocessor:
    """Turns texts given as words, of any length, into the encoder's inputs, in the graph."""

    def __init__(self, tokenizer: Tokenizer, max_length: int = 128, stride: int | None = None):
        stride = max_length // 2 if stride is None else stride
        if max_length < 3 or stride < 1:
            raise UserError(
                f"max_length is {max_length} and stride is {stride}; max_length must be at least "
                "3 ([CLS] a [SEP]), and stride at least 1"
            )
        self.tokenizer, self.max_length, self.stride = tokenizer, max_length, stride

    def __call__(self, words: tf.RaggedTensor | tf.Tensor) -> WordWindows:
        """Tokenizes and cuts string [batch, (words)], dense or ragged; "" at the end is padding."""
        if not isinstance(words, tf.RaggedTensor):
            words = without_padding(tf.convert_to_tensor(words, tf.string))
        return self.windows(tokenize_words(words, self.tokenizer))

    def windows(self, pieces: WordPieces, every_piece: bool = False) -> WordWindows:
        """Cuts tokenized words; `every_piece` tags a word at all its pieces, not only the first."""
        windows = slide(pieces.ids, self.tokenizer, self.max_length, self.stride)
        of_pieces = pieces.words if every_piece else pieces.first_words
        words = at_tokens(of_pieces, windows.rows, windows.pieces, -1)
        words = tf.where(windows.has_most_context, words, -1)
        features = trim(windows.features)
        width = tf.shape(features["input_mask"])[1]
        return WordWindows(features, windows.rows, words[:, :width])


def split_words(
    texts: tf.Tensor, tokenizer: Tokenizer, split_punctuation: bool = False
) -> tuple[WordPieces, tf.RaggedTensor, tf.RaggedTensor]:
    """Cuts texts, string [batch], into words, and words into pieces.

    Every word has a piece. With `split_punctuation`, words are BERT's own. Also returns where each
    word starts and ends in its text, in bytes, RaggedTensor int32 [batch, (words)].
    """
    ids, starts, ends = tokenizer.tokenize_with_offsets(texts)
    piece_splits = tf.cast(ids.row_splits, tf.int32)
    text = owners(piece_splits)
    begins_word = [not piece.startswith("##") for piece in tokenizer.vocabulary]
    starts_word = tf.gather(begins_word, ids.values)
    if not split_punctuation:
        # Offsets into all texts laid end to end.
        text_starts = splits_of(tf.strings.length(texts))
        first_byte = starts.values + tf.gather(text_starts, text)
        basic = positions(starts_word)
        compound = tf.searchsorted(
            _compound_starts(texts, text_starts), tf.gather(first_byte, basic), side="right"
        )
        # Several words of BERT may begin in one compound; only the first begins a word.
        is_first = compound != tf.concat([[-1], compound[:-1]], axis=0)
        starts_word = tf.tensor_scatter_nd_update(starts_word, basic[:, None], is_first)
    first_pieces = positions(starts_word)
    word_splits = tf.gather(splits_of(tf.cast(starts_word, tf.int32)), piece_splits)
    last_pieces = tf.concat([first_pieces, [tf.size(starts_word)]], axis=0)[1:] - 1
    words = tf.cumsum(tf.cast(starts_word, tf.int32)) - 1
    return (
        _word_pieces(ids, words, starts_word, word_splits),
        ragged(tf.gather(starts.values, first_pieces), word_splits),
        ragged(tf.gather(ends.values, last_pieces), word_splits),
    )


def words_of_ids(
    features: Features, tokenizer: Tokenizer, every_piece: bool = False
) -> tuple[WordWindows, tf.RaggedTensor, tf.RaggedTensor]:
    """The words in rows of ids, and the tokens where each starts and ends: [batch, (words)]."""
    ids, special = features["input_word_ids"], {"[PAD]", "[CLS]", "[SEP]"}
    of_text = tf.gather([piece not in special for piece in tokenizer.vocabulary], ids)
    of_first = tf.gather([not piece.startswith("##") for piece in tokenizer.vocabulary], ids)
    is_piece = (features["input_mask"] != 0) & of_text
    begins = is_piece & (of_first | ~tf.pad(is_piece, [[0, 0], [1, 0]])[:, :-1])
    after = tf.pad(is_piece & ~begins, [[0, 0], [0, 1]])[:, 1:]
    counted = tf.cumsum(tf.cast(begins, tf.int32), axis=1)
    words = tf.where(is_piece if every_piece else begins, counted - 1, -1)
    splits = splits_of(tf.reduce_sum(tf.cast(begins, tf.int32), axis=1))
    first, last = (tf.cast(tf.where(each)[:, 1], tf.int32) for each in (begins, is_piece & ~after))
    windows = WordWindows(features, tf.range(tf.shape(ids)[0]), words)
    return windows, ragged(first, splits), ragged(last + 1, splits)


def cut(texts: tf.Tensor, starts: tf.RaggedTensor, ends: tf.RaggedTensor) -> tf.RaggedTensor:
    """The bytes of each range: string [batch, (ranges)]. `tf.strings.substr` would copy texts."""
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
        # The op ends a text at NUL. The tokenizer drops NUL and U+0001 alike.
        texts = tf.strings.regex_replace(texts, r"\x00", "\x01")
        _, starts, _ = tf_text.regex_split_with_offsets(texts, "|".join(_COMPOUNDS), r"\S.*")
    starts = starts.with_row_splits_dtype(tf.int32)
    return tf.cast(starts.values, tf.int32) + tf.gather(text_starts, owners(starts.row_splits))
