"""Sliding windows over a text too long for one input, as for question answering.

Source: google-research/bert, `run_squad.convert_examples_to_features` and `_check_is_max_context`.
"""

import dataclasses
from collections.abc import Sequence
from typing import NamedTuple

import tensorflow as tf

from bert_tf.errors import UserError
from bert_tf.text.packing import Cut, Features, Preprocessor, join, pack, trim, truncate
from bert_tf.text.parts import MAX_BYTES, map_in_groups, shared
from bert_tf.text.rows import counts, owners, ragged, splits_of
from bert_tf.text.tokenizer import Tokenizer


class Windows(NamedTuple):
    """The windows of a batch of long texts, those of the first row first."""

    features: Features  # the encoder's three inputs, each int32 [windows, seq_len]
    rows: tf.Tensor  # int32 [windows], the row of the batch that each window comes from
    pieces: tf.Tensor  # int32 [windows, seq_len], a token's piece in the row's long text, or -1
    # bool [windows, seq_len]: whether this is the window that shows the piece with most context.
    has_most_context: tf.Tensor


def at_tokens(
    values: tf.RaggedTensor, rows: tf.Tensor, places: tf.Tensor, missing: float
) -> tf.Tensor:
    """The value of each token of some windows: [windows, seq_len], `missing` at -1.

    `values` are [batch, (pieces)] or [batch, (words)]; `rows`, int32 [windows], has the row of each
    window, and `places`, int32 [windows, seq_len], the place of each token's value in that row.
    """
    first = tf.cast(tf.gather(values.row_starts(), rows), tf.int32)[:, None]
    padded = tf.concat([values.values, [tf.cast(missing, values.dtype)]], axis=0)
    return tf.gather(padded, tf.where(places < 0, tf.size(values.values), first + places))


def slide(
    long: tf.RaggedTensor,
    tokenizer: Tokenizer,
    max_length: int,
    stride: int,
    short: tf.RaggedTensor | None = None,
    max_windows: int | None = None,
) -> Windows:
    """Cuts long texts into overlapping windows, each [CLS] short [SEP] window [SEP].

    A text that fits, or is empty, has one window. Every window is `max_length` tokens wide. `long`
    and `short` are RaggedTensors int32 [batch, (pieces)]; `short` must leave room for one piece.
    """
    starts = tf.cast(long.row_starts(), tf.int32)
    lengths = tf.cast(long.row_lengths(), tf.int32)
    before = 1 if short is None else 2 + tf.cast(short.row_lengths(), tf.int32)
    room = tf.zeros_like(lengths) + (max_length - 1 - before)
    step = tf.minimum(stride, room)
    count = 1 + tf.maximum(-((room - lengths) // step), 0)
    count = tf.minimum(count, max_windows or tf.int32.max)
    first_window = splits_of(count)
    rows = owners(first_window)
    window = tf.range(tf.size(rows)) - tf.gather(first_window, rows)
    start = window * tf.gather(step, rows)
    size = tf.minimum(tf.gather(room, rows), tf.gather(lengths, rows) - start)
    in_long = tf.gather(starts, rows) + start
    taken = tf.ragged.range(in_long, in_long + size)
    segments = [taken.with_values(tf.gather(long.values, taken.values))]
    if short is not None:
        segments = [tf.gather(short, rows), *segments]
    place = tf.range(max_length) - (max_length - 1 - tf.gather(room, rows))[:, None]
    is_piece = (place >= 0) & (place < size[:, None])
    best = _has_most_context(place, is_piece, in_long, size, tf.size(long.values))
    return Windows(
        features=join(segments, tokenizer, max_length),
        rows=rows,
        pieces=tf.where(is_piece, start[:, None] + place, -1),
        has_most_context=best,
    )


def _has_most_context(
    place: tf.Tensor, is_piece: tf.Tensor, in_long: tf.Tensor, size: tf.Tensor, pieces: tf.Tensor
) -> tf.Tensor:
    """Which windows show each piece best: bool [windows, seq_len].

    A window starts at `in_long` among all `pieces`; `place` is that of a token in its window's
    part.
    """
    # The reference's score in the reference's precision, so that rounding breaks ties alike.
    context = tf.minimum(place, size[:, None] - 1 - place)
    score = tf.cast(context, tf.float64) + 0.01 * tf.cast(size, tf.float64)[:, None]
    piece = tf.where(is_piece, in_long[:, None] + place, pieces)
    best = tf.gather(tf.math.unsorted_segment_max(score, piece, pieces + 1), piece)
    # Of equally good windows the first is chosen.
    window = tf.broadcast_to(tf.range(tf.size(size))[:, None], tf.shape(piece))
    last = tf.size(size)
    candidate = tf.where(score == best, window, last)
    chosen = tf.gather(tf.math.unsorted_segment_min(candidate, piece, pieces + 1), piece)
    return is_piece & (window == chosen)


class TextWindows(NamedTuple):
    """The result of `TextReader`: the windows of all rows, those of the first row first."""

    features: Features  # the encoder's three inputs, each int32 [windows, seq_len]
    counts: tf.Tensor  # int32 [batch], the windows of each row; there is at least one

    @property
    def rows(self) -> tf.Tensor:
        """int32 [windows]: the row that each window comes from."""
        return owners(splits_of(self.counts))

    def end_to_end(self) -> Features:
        """The windows of each row one after the other; all but the last are full."""
        splits, shape = splits_of(self.counts), tf.stack([tf.size(self.counts), -1])
        return {
            name: tf.reshape(ragged(each, splits).to_tensor(), shape)
            for name, each in self.features.items()
        }


@dataclasses.dataclass(frozen=True)
class TextReader:
    """Turns any number of texts, or pairs, into the encoder's inputs, as a SavedModel gets them.

    Of a pair, the second text is cut into windows. Each window also holds the first text, which
    gets at most half of the room unless the second one leaves more. Without a stride each row has
    one window, so that longer texts are cut.
    """

    tokenizer: Tokenizer
    max_length: int
    cut: Cut = "end"
    stride: int | None = None  # pieces from the start of a window to that of the next
    max_windows: int | None = None  # of a row; what lies beyond them is left out
    max_bytes: int = MAX_BYTES  # of text that are tokenized at a time; see `map_in_groups`

    def __call__(self, texts: Sequence[tf.Tensor]) -> TextWindows:
        """Tokenizes and packs one or two columns of texts, each string [batch]."""
        columns = dict(zip(("first", "second"), texts, strict=False))
        # All groups are equally wide; columns that none of them needs are cut off at the end.
        windows = map_in_groups(
            shared(lambda rows: self.at_once([*rows.values()])), columns, self.max_bytes
        )
        return windows._replace(features=trim(windows.features))

    def at_once(self, texts: Sequence[tf.Tensor]) -> TextWindows:
        """As `__call__`, but for few texts, all at once; all windows are `max_length` wide."""
        segments = Preprocessor(self.tokenizer, self.max_length).pieces(tuple(texts))
        if self.stride is None:
            features = pack(segments, self.tokenizer, self.max_length, cut=self.cut)
            return TextWindows(features, tf.ones(tf.shape(texts[0]), tf.int32))
        short = truncate(segments, self.max_length - 3)[0] if len(segments) == 2 else None
        windows = slide(
            segments[-1], self.tokenizer, self.max_length, self.stride, short, self.max_windows
        )
        return TextWindows(windows.features, counts(windows.rows, tf.size(texts[0])))

    def reads(self, lengths: Sequence[int]) -> bool:
        """Whether all pieces of a row are read; its texts have `lengths` pieces."""
        room = self.max_length - 1 - len(lengths)
        if sum(lengths) <= room or self.stride is None:
            return sum(lengths) <= room
        *first, last = lengths
        if sum(first) > room - room // 2:
            return False
        room -= sum(first)
        step, most = min(self.stride, room), self.max_windows
        return most is None or last <= room + (most - 1) * step


class QuestionWindows(NamedTuple):
    """`Windows` with the bytes of each token in its context, int32 [windows, seq_len], or -1."""

    features: Features
    rows: tf.Tensor
    pieces: tf.Tensor
    has_most_context: tf.Tensor
    starts: tf.Tensor
    ends: tf.Tensor


class WindowPreprocessor:
    """Turns questions and contexts of any length into the encoder's inputs, in the graph.

    >>> tokenizer = Tokenizer("[PAD] [UNK] [CLS] [SEP] [MASK] who sat the cat .".split())
    >>> preprocess = WindowPreprocessor(tokenizer, max_length=8, stride=1, max_question_length=2)
    >>> windows = preprocess((["Who sat"], ["The cat sat."]))
    >>> windows.features["input_word_ids"].numpy().tolist()  # [CLS] question [SEP] context [SEP]
    [[2, 5, 6, 3, 7, 8, 6, 3], [2, 5, 6, 3, 8, 6, 9, 3]]
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        max_length: int = 384,
        stride: int = 128,
        max_question_length: int = 64,
    ):
        for name, value in (("stride", stride), ("max_question_length", max_question_length)):
            if value < 1:
                raise UserError(f"{name} must be at least 1, got {value}")
        if max_length < max_question_length + 4:
            raise UserError(
                f"max_length is {max_length}, too short for questions of {max_question_length} "
                f"pieces; give {max_question_length + 4} or more, or lower max_question_length"
            )
        self.tokenizer, self.max_length = tokenizer, max_length
        self.stride, self.max_question_length = stride, max_question_length

    def __call__(self, texts: tuple) -> QuestionWindows:
        """Tokenizes and cuts a batch of questions and contexts, each string [batch]."""
        questions, contexts = (tf.convert_to_tensor(each, tf.string) for each in texts)
        size = tf.size(questions)
        # One call for both, so that a graph holds the tokenizer once. Stacking fails if there are
        # more questions than contexts, or fewer.
        both = tf.reshape(tf.stack([questions, contexts]), [-1])
        pieces = self.tokenizer.tokenize_with_offsets(both)
        ids, starts, ends = (each[size:] for each in pieces)
        (short,) = truncate([pieces.ids[:size]], self.max_question_length)
        windows = slide(ids, self.tokenizer, self.max_length, self.stride, short)
        offsets = (at_tokens(each, windows.rows, windows.pieces, -1) for each in (starts, ends))
        return QuestionWindows(*windows, *offsets)


def find_answers(
    windows: QuestionWindows, starts: tf.Tensor, ends: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor]:
    """The first and last token of the answer in each window: two tensors int32 [windows].

    `starts` and `ends`, int32 [batch], are the bytes of the answer in its context, or -1. Both
    tokens are 0, [CLS], in a window that does not show all pieces that overlap the answer.
    """
    start, end = (tf.gather(each, windows.rows)[:, None] for each in (starts, ends))
    is_answer = (windows.pieces >= 0) & (windows.starts < end) & (windows.ends > start)
    batch = tf.size(starts)
    none = tf.int32.max
    first = tf.reduce_min(tf.where(is_answer, windows.pieces, none), axis=1)
    first = tf.math.unsorted_segment_min(first, windows.rows, batch)
    last = tf.reduce_max(tf.where(is_answer, windows.pieces, -none), axis=1)
    last = tf.math.unsorted_segment_max(last, windows.rows, batch)
    is_first, is_last = (
        windows.pieces == tf.gather(each, windows.rows)[:, None] for each in (first, last)
    )
    is_whole = tf.reduce_any(is_first, axis=1) & tf.reduce_any(is_last, axis=1)
    return tuple(
        tf.where(is_whole, tf.argmax(each, axis=1, output_type=tf.int32), 0)
        for each in (is_first, is_last)
    )
