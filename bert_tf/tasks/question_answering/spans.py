"""Turning scores of starts and ends into answers, which are cut from the context.

The rules are those of google-research/bert, `run_squad.write_predictions`: candidates are pairs of
the best starts and ends of each window; a text counts once, where its score is highest; among equal
scores the earlier window, then the better start, then the better end wins. Unlike the reference,
which rebuilds the answer from its pieces, this code cuts it from the context.
"""

import dataclasses
from collections.abc import Callable
from typing import NamedTuple

import tensorflow as tf

from bert_tf.config.arguments import checked_argument
from bert_tf.models.logits import PADDING_SCORE
from bert_tf.text.rows import positions
from bert_tf.text.windows import QuestionWindows


@dataclasses.dataclass(frozen=True)
class SpanRules:
    """The rules by which answers are chosen; the defaults are the reference's. `n_best` counts the
    starts and ends to combine in each window, and the answers to return.
    """

    n_best: int = 20
    max_answer_length: int = 30
    unanswerable: bool = False
    null_threshold: float = 0.0

    def __post_init__(self) -> None:
        for name, value in dataclasses.asdict(self).items():
            checked_argument(name, value)

    @property
    def candidates(self) -> int:
        """The maximum length of a list of n best, including "no answer", which may be one more."""
        return self.n_best + self.unanswerable


class SpanAnswers(NamedTuple):
    """Answers to a batch of questions; "no answer" is "", from -1 to -1.

    Attributes:
        answer: string [batch], bytes `start` to `end` of the context.
        start, end: int32 [batch].
        score: float32 [batch], the answer's probability among the n best.
        null_score: float32 [batch], the score of "no answer": start and end at [CLS], in the window
            where this score is lowest.
        nbest_answers: string [batch, candidates], the best first, padded with "".
        nbest_scores: float32 [batch, candidates], their probabilities, padded with 0.
        nbest_starts, nbest_ends: int32 [batch, candidates], padded with -1.
        nbest_start_logits, nbest_end_logits: float32 [batch, candidates], padded with 0.
        best_answer: string [batch], the best answer that is not "", as long as there is a token
            in the context.
        null_odds: float32 [batch], `null_score` less the score of `best_answer`.
    """

    answer: tf.Tensor
    start: tf.Tensor
    end: tf.Tensor
    score: tf.Tensor
    null_score: tf.Tensor
    nbest_answers: tf.Tensor
    nbest_scores: tf.Tensor
    nbest_starts: tf.Tensor
    nbest_ends: tf.Tensor
    nbest_start_logits: tf.Tensor
    nbest_end_logits: tf.Tensor
    best_answer: tf.Tensor
    null_odds: tf.Tensor


class _Spans(NamedTuple):
    """Spans that may be answers, each field [spans]: logits float32, bytes int32."""

    start_logits: tf.Tensor
    end_logits: tf.Tensor
    starts: tf.Tensor
    ends: tf.Tensor

    @property
    def scores(self) -> tf.Tensor:
        # In the reference's precision, so that scores that are equal there are equal here.
        return tf.cast(self.start_logits, tf.float64) + tf.cast(self.end_logits, tf.float64)

    def at(self, places: tf.Tensor) -> "_Spans":
        return _Spans(*(tf.gather(each, places) for each in self))


def decode(
    start_logits: tf.Tensor,
    end_logits: tf.Tensor,
    windows: QuestionWindows,
    contexts: tf.Tensor,
    rules: SpanRules,
) -> SpanAnswers:
    """The answers that follow from the logits, float32 [windows, seq_len], of all windows."""
    # Strings live on the CPU; otherwise the small integer ops would be sent to a GPU and back.
    with tf.device("/CPU:0"):
        batch = tf.size(contexts)
        window, spans = _candidates(start_logits, end_logits, windows, batch, rules)
        rows = tf.gather(windows.rows, window)
        splits = tf.searchsorted(rows, tf.range(batch + 1))
        null = _null(start_logits, end_logits, windows.rows, batch)

        def of_row(row: tf.Tensor) -> SpanAnswers:
            here = spans.at(tf.range(splits[row], splits[row + 1]))
            return _choose(contexts[row], here, null.at(row[None]), rules)

        # Row by row, so that the context of a row is not copied for each of its many candidates.
        return tf.map_fn(of_row, tf.range(batch), fn_output_signature=_form(rules))


class BestSpan(NamedTuple):
    """The best answer in one window; "no answer" is from -1 to -1.

    All are [1]. `start` and `end`, int32, are its first token and the token after its last one.
    `score`, float32, is its probability among all spans, including "no answer" if that is
    allowed. `null_score`, float32, is the score of "no answer": start and end at [CLS].
    """

    start: tf.Tensor
    end: tf.Tensor
    score: tf.Tensor
    null_score: tf.Tensor


def best_span(
    start_logits: tf.Tensor, end_logits: tf.Tensor, is_context: tf.Tensor, rules: SpanRules
) -> BestSpan:
    """The best answer in one window, by operations that LiteRT has; all spans are considered.
    Logits are float32, `is_context` bool, both [1, seq_len].
    """
    start = tf.where(is_context, start_logits, PADDING_SCORE)
    end = tf.where(is_context, end_logits, PADDING_SCORE)
    # The best end of each start is the maximum of a window that begins there.
    scores = start + _over_answers(tf.nn.max_pool2d, end, rules, PADDING_SCORE)
    first = tf.argmax(scores, axis=1, output_type=tf.int32)
    length = tf.range(tf.shape(start_logits)[1])[tf.newaxis] - first[:, tf.newaxis]
    fits = (length >= 0) & (length < rules.max_answer_length)
    last = tf.argmax(tf.where(fits, end, 2 * PADDING_SCORE), axis=1, output_type=tf.int32)
    best = tf.reduce_max(scores, axis=1)
    null_score = start_logits[:, 0] + end_logits[:, 0]

    # The sum of exp(score) over all spans, after the largest possible score is subtracted.
    top_start, top_end = (tf.reduce_max(each, axis=1) for each in (start, end))
    top = top_start + top_end
    if rules.unanswerable:
        top = tf.maximum(top, null_score)
    ends = tf.exp(end - top_end[:, tf.newaxis])
    mean = _over_answers(tf.nn.avg_pool2d, ends, rules, 0.0)
    begun = tf.exp(start - top_start[:, tf.newaxis])
    total = tf.reduce_sum(begun * mean, axis=1) * float(rules.max_answer_length)
    total *= tf.exp(top_start + top_end - top)
    chosen = best
    if rules.unanswerable:
        total += tf.exp(null_score - top)
        is_null = null_score - best > rules.null_threshold
        first, last = tf.where(is_null, -1, first), tf.where(is_null, -2, last)
        chosen = tf.where(is_null, null_score, best)
    return BestSpan(first, last + 1, tf.exp(chosen - top) / total, null_score)


def _over_answers(
    pool: Callable[..., tf.Tensor], values: tf.Tensor, rules: SpanRules, padding: float
) -> tf.Tensor:
    """`pool` over the values of the longest answer that starts at each token: [1, seq_len]."""
    more = rules.max_answer_length - 1
    padded = tf.pad(values, [[0, 0], [0, more]], constant_values=padding)
    rows = padded[:, :, tf.newaxis, tf.newaxis]
    return pool(rows, [rules.max_answer_length, 1], 1, "VALID")[:, :, 0, 0]


def _form(rules: SpanRules) -> SpanAnswers:
    """The tensor specs of one row's `SpanAnswers`."""
    text, number = tf.TensorSpec([], tf.string), tf.TensorSpec([], tf.float32)
    place, numbers = tf.TensorSpec([], tf.int32), tf.TensorSpec([rules.candidates], tf.float32)
    return SpanAnswers(
        answer=text,
        start=place,
        end=place,
        score=number,
        null_score=number,
        nbest_answers=tf.TensorSpec([rules.candidates], tf.string),
        nbest_scores=numbers,
        nbest_starts=tf.TensorSpec([rules.candidates], tf.int32),
        nbest_ends=tf.TensorSpec([rules.candidates], tf.int32),
        nbest_start_logits=numbers,
        nbest_end_logits=numbers,
        best_answer=text,
        null_odds=number,
    )


def _candidates(
    start_logits: tf.Tensor,
    end_logits: tf.Tensor,
    windows: QuestionWindows,
    batch: tf.Tensor,
    rules: SpanRules,
) -> tuple[tf.Tensor, _Spans]:
    """Every span that may be an answer, with its window, in the order of the windows. A row without
    such a span gets the best token of each window, so that there is always an answer; the reference
    answers "empty" instead.
    """
    size = tf.minimum(rules.n_best, tf.shape(start_logits)[1])
    both = tf.where(windows.has_most_context, start_logits + end_logits, -float("inf"))
    token = tf.argmax(both, axis=1, output_type=tf.int32)[:, None]
    # The best token follows the best starts and ends, and is paired with itself only.
    start, end = (
        tf.concat([tf.math.top_k(each, size).indices, token], axis=1)
        for each in (start_logits, end_logits)
    )
    is_token = tf.range(size + 1) == size
    may_start = tf.gather(windows.has_most_context, start, batch_dims=1)[:, :, None]
    may_end = tf.gather(windows.pieces >= 0, end, batch_dims=1)[:, None, :]
    length = end[:, None, :] - start[:, :, None] + 1
    fits = may_start & may_end & (length >= 1) & (length <= rules.max_answer_length)
    usual = fits & ~(is_token[:, None] | is_token)
    has_usual = tf.cast(tf.reduce_any(usual, axis=[1, 2]), tf.int32)
    has_usual = tf.math.unsorted_segment_max(has_usual, windows.rows, batch)
    lacks_usual = (tf.gather(has_usual, windows.rows) < 1)[:, None, None]
    stands_in = fits & is_token[:, None] & is_token & lacks_usual

    window, a, b = tf.unstack(tf.cast(tf.where(usual | stands_in), tf.int32), axis=1)
    start = tf.stack([window, tf.gather_nd(start, tf.stack([window, a], axis=1))], axis=1)
    end = tf.stack([window, tf.gather_nd(end, tf.stack([window, b], axis=1))], axis=1)
    return window, _Spans(
        tf.gather_nd(start_logits, start),
        tf.gather_nd(end_logits, end),
        tf.gather_nd(windows.starts, start),
        tf.gather_nd(windows.ends, end),
    )


def _null(
    start_logits: tf.Tensor, end_logits: tf.Tensor, rows: tf.Tensor, batch: tf.Tensor
) -> _Spans:
    """The span of "no answer" for each row: [batch]."""
    windows = tf.size(rows)
    nowhere = tf.fill([windows], -1)
    spans = _Spans(start_logits[:, 0], end_logits[:, 0], nowhere, nowhere)
    scores = spans.scores
    least = tf.gather(tf.math.unsorted_segment_min(scores, rows, batch), rows)
    window = tf.where(scores == least, tf.range(windows), windows)
    return spans.at(tf.math.unsorted_segment_min(window, rows, batch))


def _choose(context: tf.Tensor, spans: _Spans, null: _Spans, rules: SpanRules) -> SpanAnswers:
    """The answer of one row, among its spans and `null`, which is one span; see `SpanAnswers`."""
    null_score = null.scores[0]
    if rules.unanswerable:
        spans = _Spans(*(tf.concat(each, axis=0) for each in zip(spans, null, strict=True)))
    spans = spans.at(tf.argsort(spans.scores, direction="DESCENDING", stable=True))
    texts, text_of = tf.unique(
        tf.strings.substr(context, tf.maximum(spans.starts, 0), spans.ends - spans.starts)
    )
    first = tf.math.unsorted_segment_min(tf.range(tf.size(text_of)), text_of, tf.size(texts))
    rank = tf.range(tf.size(texts))
    is_null = texts == ""
    is_best = rank == _first(~is_null)
    kept = positions((rank < rules.n_best) | is_null | is_best)
    texts, spans = tf.gather(texts, kept), spans.at(tf.gather(first, kept))

    probabilities = tf.cast(tf.nn.softmax(spans.scores), tf.float32)

    count = tf.size(texts)
    best, nothing = _first(texts != ""), _first(texts == "")
    null_odds = null_score - _at(spans.scores, best, missing=2 * PADDING_SCORE)
    null_odds = tf.cast(null_odds, tf.float32)
    is_nothing = best == count
    if rules.unanswerable:
        is_nothing |= null_odds > rules.null_threshold
    chosen = tf.where(is_nothing, nothing, best)

    def padded(values: tf.Tensor, missing: int = 0) -> tf.Tensor:
        filled = tf.pad(values, [[0, rules.candidates - count]], constant_values=missing)
        return tf.ensure_shape(filled, [rules.candidates])

    return SpanAnswers(
        answer=_at(texts, chosen, missing=""),
        start=_at(spans.starts, chosen, missing=-1),
        end=_at(spans.ends, chosen, missing=-1),
        score=_at(probabilities, chosen, missing=0.0),
        null_score=tf.cast(null_score, tf.float32),
        nbest_answers=padded(texts),
        nbest_scores=padded(probabilities),
        nbest_starts=padded(spans.starts, -1),
        nbest_ends=padded(spans.ends, -1),
        nbest_start_logits=padded(spans.start_logits),
        nbest_end_logits=padded(spans.end_logits),
        best_answer=_at(texts, best, missing=""),
        null_odds=null_odds,
    )


def _first(mask: tf.Tensor) -> tf.Tensor:
    """The first place where `mask`, bool [n], is True; n if there is none."""
    return tf.reduce_min(tf.concat([positions(mask), [tf.size(mask)]], axis=0))


def _at(values: tf.Tensor, place: tf.Tensor, missing: object) -> tf.Tensor:
    """values[place]; `missing` at the place after the last."""
    return tf.concat([values, tf.constant([missing], values.dtype)], axis=0)[place]
