"""Pictures of a model that finds the answer to a question in a context."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import tensorflow as tf
from markupsafe import Markup

from bert_tf.asking import plain
from bert_tf.asking.row_files import Row, text_of
from bert_tf.data.batching import EncodedRows, flat
from bert_tf.data.columns import Columns
from bert_tf.interpret import sections
from bert_tf.interpret.importance import Importances, Inputs
from bert_tf.interpret.looks import Look, Mark, PageSection
from bert_tf.interpret.pictures import Pictures
from bert_tf.interpret.projection import mean, row_vectors
from bert_tf.interpret.subject import Subject, without_padding
from bert_tf.tasks.question_answering.metrics import answer_metrics
from bert_tf.tasks.question_answering.spans import SpanAnswers, decode
from bert_tf.tasks.question_answering.squad import given_texts, ids_of
from bert_tf.templates import macros
from bert_tf.text import QuestionWindows
from bert_tf.text.parts import map_in_chunks

_TEMPLATE = macros("bert_tf/tasks/question_answering/answer.html")
_SHOWN = 5  # best answers that are shown
# Windows are long, so few share a batch.
_BATCH = 8
_GRADES = ("wrong", "partly right", "right")
_NOTE = (
    "Each point is a question of the dev data with the first window of its context: the mean of "
    "the last layer. The colour shows whether the predicted answer is one of the given answers."
)


class SpanShares(NamedTuple):
    """How likely an answer starts and ends at each word of a context. `starts`, `ends` are the
    bytes of words, int [words]; `start`, `end` float64 [words] sum to 1.
    """

    starts: np.ndarray
    ends: np.ndarray
    start: np.ndarray
    end: np.ndarray

    @classmethod
    def of(
        cls, windows: QuestionWindows, start: np.ndarray, end: np.ndarray, vocabulary: Sequence[str]
    ) -> "SpanShares":
        """The probabilities that follow from logits, float32 [windows, seq_len], of one context.

        The softmax goes over all pieces of the context, since answers of all windows compete. A
        piece has the logits of the window in which it has most context. The probabilities of a
        word's pieces are added.
        """
        shown = windows.has_most_context.numpy()
        order = np.argsort(windows.pieces.numpy()[shown], kind="stable")
        ids, starts, ends = (
            each.numpy()[shown][order]
            for each in (windows.features["input_word_ids"], windows.starts, windows.ends)
        )
        if not len(ids):
            return cls(*(np.zeros(0, kind) for kind in (int, int, float, float)))
        continues = np.array([vocabulary[number].startswith("##") for number in ids])
        # Pieces of one character share its bytes.
        continues[1:] |= starts[1:] < np.maximum.accumulate(ends)[:-1]
        continues[0] = False
        first = np.flatnonzero(~continues)

        def of_words(logits: np.ndarray) -> np.ndarray:
            shares = tf.nn.softmax(logits[shown][order].astype(np.float64))
            return np.add.reduceat(shares, first)

        ends = np.maximum.reduceat(ends, first)
        return cls(starts[first], ends, of_words(start), of_words(end))


def words_of(
    context: bytes, shares: SpanShares, answer: tuple[int, int]
) -> tuple[list[tuple[str, str, float, float, bool]], str]:
    """The words of a context in UTF-8, and the text after the last. Each word has the text before
    it, how likely an answer starts and ends there, and whether it is part of the answer, a byte
    range (-1, -1 for none).
    """
    words, shown = [], 0
    for first, last, start, end in zip(*(each.tolist() for each in shares), strict=True):
        before, word = plain(context[shown:first]), plain(context[first:last])
        words.append((before, word, start, end, answer[0] <= first and last <= answer[1]))
        shown = last
    return words, plain(context[shown:])


class _Asked(NamedTuple):
    """A question with its answer: windows of its context, and logits float32 [windows, seq_len]."""

    windows: QuestionWindows
    start: tf.Tensor
    end: tf.Tensor
    answers: SpanAnswers


class _Place(NamedTuple):
    """A window, and the tokens in it at which the answer starts and ends."""

    window: int
    first: int
    last: int


class QuestionPictures(Pictures):
    """Pictures of a `QuestionAnswerer`."""

    accepted = (("question", "context"),)

    def __init__(self, subject: Subject):
        super().__init__(subject)
        self._windows = subject.model.windows()
        self._rules = subject.model.rules()

    def look(self, row: Row) -> Look:
        # The page shows the window of a long context that has the answer.
        subject = self.subject
        question, context = text_of(row, "question"), text_of(row, "context")
        asked = self._ask([question], [context])
        place = _place(asked)
        inputs = without_padding(asked.windows.features, place.window)
        count = len(asked.windows.rows)
        title = f"window {place.window + 1} of {count}" if count > 1 else ""
        seen = subject.seen(title, inputs, self._explained(place, inputs), focus=place.first)
        encoded = subject.encoder.encode(inputs, training=False)
        vector = mean(subject.encoder, encoded, inputs["input_mask"])[0].numpy()
        mark = Mark(sections.shortened(question), vector)
        return Look((question,), self._answer(asked, context), (seen,), (mark,))

    def dev(self, rows: int, marks: Sequence[Mark]) -> list[PageSection]:
        subject = self.subject
        everything: Columns = subject.read_dev()
        data = everything.take(sections.draw(len(everything), rows).tolist())
        predictions = subject.model.infer(data)
        texts = [predictions.answers[id] for id in ids_of(data)]
        grades = [_grade(*each) for each in zip(given_texts(data).values(), texts, strict=True)]
        pairs = zip(data.column("question"), texts, strict=True)
        titles = [f"{question} – {text or 'no answer'}" for question, text in pairs]
        right = np.array(grades) == _GRADES.index("right")
        n_best = predictions.fields.nbest_answers.tolist()
        places = [best.index(text.encode()) for best, text in zip(n_best, texts, strict=True)]
        sure = predictions.fields.nbest_scores[np.arange(len(data)), places]
        what = "answers, whose probability is their share of the n best,"
        return [
            *sections.by_label(self._vectors(data), titles, grades, _GRADES, marks, _NOTE),
            sections.calibration(sure, right, what),
        ]

    @tf.function(input_signature=[tf.TensorSpec([1], tf.string)] * 2, autograph=False)
    def _ask(self, questions: tf.Tensor, contexts: tf.Tensor) -> _Asked:
        """The answer, found in the same way as by the served model, and its logits."""
        model = self.subject.model
        windows = self._windows((questions, contexts))
        logits = map_in_chunks(lambda rows: model(rows, training=False), windows.features)
        start, end = logits["start"], logits["end"]
        return _Asked(windows, start, end, decode(start, end, windows, contexts, self._rules))

    def _explained(self, place: _Place, inputs: Inputs) -> list[Importances]:
        subject = self.subject

        def score(rows: Inputs) -> tf.Tensor:
            logits = subject.model(rows, training=False)
            start, end = (tf.nn.log_softmax(logits[name]) for name in ("start", "end"))
            return start[:, place.first, None] + end[:, place.last, None]

        of = "the log-probability of the answer's start and end"
        if place.first == 0:
            of = "the log-probability of no answer (start and end at [CLS])"
        return subject.explain([of], inputs, score)

    def _answer(self, asked: _Asked, context: str) -> Markup:
        answers, rules = asked.answers, self._rules
        start, end = asked.start.numpy(), asked.end.numpy()
        shares = SpanShares.of(asked.windows, start, end, self.subject.tokenizer.vocabulary)
        span = int(answers.start[0]), int(answers.end[0])
        texts = [plain(text) or "(no answer)" for text in answers.nbest_answers[0].numpy()]
        best = zip(texts, answers.nbest_scores[0].numpy().tolist(), strict=True)
        likeliest = [(text, share) for text, share in best if share]
        return _TEMPLATE.answer(
            *words_of(context.encode(), shares, span),
            likeliest[:_SHOWN],
            float(answers.null_odds[0]),
            rules.null_threshold if rules.unanswerable else None,
        )

    def _vectors(self, data: Columns) -> np.ndarray:
        """float32 [questions, hidden]: the mean of the first window of each."""
        windows = self._windows(tuple(map(list, data.values)))
        _, first = np.unique(windows.rows, return_index=True)
        features = {name: tf.gather(each, first) for name, each in windows.features.items()}
        rows = EncodedRows.of_arrays(flat(features))
        return row_vectors(self.subject.encoder, mean, rows.take, rows.lengths, _BATCH)


def _place(asked: _Asked) -> _Place:
    """The place of the answer; "no answer" is [CLS] of the window in which it is least likely."""
    windows, start, end = asked.windows, int(asked.answers.start[0]), int(asked.answers.end[0])
    starts, ends = windows.starts.numpy(), windows.ends.numpy()
    begins = (starts == start) & windows.has_most_context.numpy()
    begins &= (ends == end).any(axis=1, keepdims=True)
    if start < 0 or not begins.any():
        return _Place(int(tf.argmin(asked.start[:, 0] + asked.end[:, 0])), 0, 0)
    window, first = (int(each[0]) for each in np.nonzero(begins))
    last = int(np.flatnonzero(ends[window] == end)[-1])
    return _Place(window, first, last)


def _grade(given: Sequence[str], text: str) -> int:
    """Whether an answer is right, as a place in `_GRADES`."""
    if not text or not given:
        return _GRADES.index("wrong" if text or given else "right")
    found = answer_metrics({"": given}, {"": text})
    grade = "right" if found["exact_match"] else "partly right" if found["f1"] else "wrong"
    return _GRADES.index(grade)
