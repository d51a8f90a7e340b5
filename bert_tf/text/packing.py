"""Packing pieces into BERT's input: [CLS] a [SEP], or [CLS] a [SEP] b [SEP].

Source: google-research/bert, `run_classifier.convert_single_example` and `_truncate_seq_pair`.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import tensorflow as tf

from bert_tf.errors import UserError
from bert_tf.text.tokenizer import Tokenizer

Features = dict[str, tf.Tensor]
Padding = Literal["max_length", "batch"]
Cut = Literal["end", "middle"]  # of a text that is too long


class Preprocessor:
    """Turns strings into the encoder's three inputs, in the graph; also for `tf.data.Dataset.map`.

    >>> tokenizer = Tokenizer("[PAD] [UNK] [CLS] [SEP] [MASK] the cat sat .".split())
    >>> preprocess = Preprocessor(tokenizer, max_length=8)
    >>> features = preprocess(["The cat sat.", "The cat"])
    >>> features["input_word_ids"].numpy().tolist()
    [[2, 5, 6, 7, 8, 3, 0, 0], [2, 5, 6, 3, 0, 0, 0, 0]]
    >>> features["input_mask"].numpy().tolist()
    [[1, 1, 1, 1, 1, 1, 0, 0], [1, 1, 1, 1, 0, 0, 0, 0]]

    Pairs are a tuple of first texts and second texts. The second text has type 1:

    >>> features = preprocess((["The cat"], ["sat."]))
    >>> features["input_word_ids"].numpy().tolist()
    [[2, 5, 6, 3, 7, 8, 3, 0]]
    >>> features["input_type_ids"].numpy().tolist()
    [[0, 0, 0, 0, 1, 1, 1, 0]]

    Args:
        tokenizer: makes the pieces.
        max_length: most tokens in a row, special ones included.
        padding: "max_length" pads every row to `max_length`; "batch" only to the longest row.
        cut: what is cut off a text that is too long; see `truncate`.

    Raises:
        UserError: `max_length` has no room for [CLS] a [SEP] b [SEP], or `padding` is unknown.
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        max_length: int = 128,
        padding: Padding = "max_length",
        cut: Cut = "end",
    ):
        if max_length < 5:
            raise UserError(f"max_length is {max_length}; [CLS] a [SEP] b [SEP] needs 5 or more")
        if padding not in ("max_length", "batch"):
            raise UserError(f"padding is {padding!r}; choose 'max_length' or 'batch'")
        self.tokenizer, self.max_length = tokenizer, max_length
        self.padding, self.cut = padding, cut

    def __call__(self, texts: Any) -> Features:
        """Tokenizes and packs a batch.

        Args:
            texts: string [batch], as a tensor, array or list of strings; one string is a batch of
                one. For two texts a row, a tuple (or a list of tensors) of two of these.

        Returns:
            The dict of `pack`.

        Raises:
            UserError: there are neither one nor two texts a row, or pairs are given one by one,
                as in [(question, answer), (question, answer)].
        """
        return pack(self.pieces(texts), self.tokenizer, self.max_length, self.padding, self.cut)

    def pieces(self, texts: Any) -> list[tf.RaggedTensor]:
        """The pieces of the one or two texts of each row, RaggedTensors int32 [batch, (pieces)]."""
        segments = [_as_batch(each) for each in _segments(texts)]
        # One call for both texts, so that a graph holds the tokenizer once.
        pieces = self.tokenizer.tokenize(tf.concat(segments, axis=0))
        if len(segments) == 1:
            return [pieces]
        if not segments[0].shape.is_compatible_with(segments[1].shape):
            first, second = (each.shape[0] for each in segments)
            raise UserError(
                f"the numbers of first and second texts differ ({first} and {second}); give "
                "one second text for each first text"
            )
        size = tf.size(segments[0])
        return [pieces[:size], pieces[size:]]


def trim(features: Mapping[str, tf.Tensor]) -> Features:
    """Drops the columns that are padding in every row; without rows, two are left."""
    lengths = tf.reduce_sum(features["input_mask"], axis=1)
    # [CLS] and [SEP] are in every row.
    width = tf.maximum(tf.reduce_max(lengths), 2)
    return {name: each[:, :width] for name, each in features.items()}


def _segments(texts: Any) -> Sequence:
    """One or two batches of texts."""
    if not isinstance(texts, list | tuple):
        return [texts]
    if isinstance(texts, list):
        if not texts or isinstance(texts[0], str | bytes):
            return [texts]
        # Two pairs in a list would pass for two batches of two texts.
        if isinstance(texts[0], list | tuple):
            raise UserError(
                f"a list of {type(texts[0]).__name__}s is not a batch of texts; give a list of "
                "texts or, for pairs, (first_texts, second_texts)"
            )
    if len(texts) not in (1, 2):
        raise UserError(f"each row has {len(texts)} texts; BERT takes one or two")
    return texts


def _as_batch(texts: Any) -> tf.Tensor:
    try:
        texts = tf.convert_to_tensor(texts, tf.string)
    except (TypeError, ValueError) as error:
        raise UserError(
            f"the input is not a batch of texts ({error}); give a list of texts"
        ) from None
    if texts.shape.rank == 0:
        return texts[None]
    if texts.shape.rank not in (None, 1):
        raise UserError(
            f"texts must have shape [batch], not {texts.shape}; give pairs as two batches, "
            "(first, second)"
        )
    return tf.ensure_shape(texts, [None])


def pack(
    segments: Sequence[tf.RaggedTensor],
    tokenizer: Tokenizer,
    max_length: int | tf.Tensor,
    padding: Padding = "max_length",
    cut: Cut = "end",
) -> Features:
    """Joins one or two segments with the special tokens, truncated and padded.

    `segments` are RaggedTensors int32 [batch, (pieces)]; `max_length` is a number or a scalar
    int32. Returns `input_word_ids`, `input_mask` (1 at tokens), `input_type_ids` (1 in the second
    segment and its [SEP]), each int32 [batch, seq_len].
    """
    segments = truncate(segments, max_length - 1 - len(segments), cut)
    return join(segments, tokenizer, max_length if padding == "max_length" else None)


def truncate(
    segments: Sequence[tf.RaggedTensor], budget: int | tf.Tensor, cut: Cut = "end"
) -> list[tf.RaggedTensor]:
    """Shortens one or two segments [batch, (pieces)] to at most `budget` pieces together.

    The longer one loses one piece at a time; of equal ones, the second: `_truncate_seq_pair` in
    closed form.
    """
    budget = tf.cast(budget, segments[0].row_splits.dtype)
    counts = kept([segment.row_lengths() for segment in segments], budget)
    return [_shortened(*each, cut) for each in zip(segments, counts, strict=True)]


def head_of(count: int | tf.Tensor) -> Any:
    """How many of `count` pieces come from the start of a text whose middle is cut, not its end.

    It is 128 of 510, or the same share (Sun et al. 2019, arXiv 1905.05583).
    """
    return (count * 128 + 255) // 510


def kept(lengths: Sequence[tf.Tensor], budget: int | tf.Tensor) -> list[tf.Tensor]:
    """How many pieces `truncate` keeps of one or two segments of these lengths, int [...]."""
    if len(lengths) == 1:
        return [tf.minimum(lengths[0], budget)]
    first, second = lengths
    half = budget // 2
    return [
        tf.minimum(first, tf.maximum(budget - second, budget - half)),
        tf.minimum(second, tf.maximum(budget - first, half)),
    ]


def _shortened(rows: tf.RaggedTensor, count: tf.Tensor, cut: Cut) -> tf.RaggedTensor:
    """The `count[i]` values of row i that are left without its end or its middle."""
    starts, limits = rows.row_starts(), rows.row_limits()
    head = count if cut == "end" else head_of(count)
    places = tf.ragged.range(starts, starts + head)
    if cut == "middle":
        places = tf.concat([places, tf.ragged.range(limits - (count - head), limits)], axis=1)
    return places.with_values(tf.gather(rows.values, places.values))


def join(
    segments: Sequence[tf.RaggedTensor], tokenizer: Tokenizer, width: int | tf.Tensor | None
) -> Features:
    """Joins segments that fit. Rows are padded to `width`, or else to the longest row."""
    batch = segments[0].nrows()
    separator = tf.fill([batch, 1], tokenizer.sep_id)
    parts = [tf.fill([batch, 1], tokenizer.cls_id)]
    for segment in segments:
        parts += [segment, separator]
    rows = tf.concat(parts, axis=1)
    shape = tf.stack([-1, width]) if tf.is_tensor(width) else [None, width]
    word_ids = rows.to_tensor(tokenizer.pad_id, shape=shape)
    place = tf.range(tf.shape(word_ids, tf.int64)[1])
    in_row = place < rows.row_lengths()[:, None]
    in_second = in_row & (place >= segments[0].row_lengths()[:, None] + 2)
    return {
        "input_word_ids": word_ids,
        "input_mask": tf.cast(in_row, tf.int32),
        "input_type_ids": tf.cast(in_second, tf.int32),
    }
