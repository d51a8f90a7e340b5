"""The part of a context that answers a question (paper, section 4.2), or none (section 4.3)."""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

import keras
import numpy as np
import tensorflow as tf

from bert_tf import asking
from bert_tf.asking import Outputs, Row, Text, batches, characters, plain, rows_of
from bert_tf.config.arguments import checked
from bert_tf.data.batching import TrainingRows
from bert_tf.data.columns import Columns, as_list, is_missing
from bert_tf.distillation.losses import Matched
from bert_tf.encoder.encoder import Encoder
from bert_tf.errors import UserError
from bert_tf.export.litert.form import DeviceForm, StringsForm, output
from bert_tf.export.service import Signature, Tensors
from bert_tf.io.json_files import as_json
from bert_tf.models.logits import hide_padding
from bert_tf.tasks import inputs
from bert_tf.tasks.question_answering import FAMILY
from bert_tf.tasks.question_answering.metrics import (
    answer_metrics,
    answer_or_none_metrics,
    best_null_threshold,
)
from bert_tf.tasks.question_answering.spans import SpanAnswers, SpanRules, best_span, decode
from bert_tf.tasks.question_answering.squad import COLUMNS, AnswerSpan, given_texts, ids_of, usable
from bert_tf.tasks.task_model import Asked, TaskModel, head_dropout, in_chunks, of_columns, of_ids
from bert_tf.tasks.uncertainty import Draw
from bert_tf.text import Tokenizer, WindowPreprocessor
from bert_tf.text.parts import map_rows
from bert_tf.text.windows import QuestionWindows, find_answers

# How many questions are cut into windows at a time.
_CHUNK = 256
# The outputs for the best answer besides its text.
_NUMBERS = ("start", "end", "score", "null_score")


@dataclasses.dataclass(frozen=True)
class AnswerPredictions:
    """Answers to questions, by the ids of the questions. `fields` are arrays in the order of the
    questions. `best` has an answer even where it is more likely that there is none. If `null_odds`
    exceed `null_threshold`, there is no answer; a threshold of None gives every question one.
    """

    fields: SpanAnswers
    best: dict[str, str]
    null_odds: dict[str, float]
    null_threshold: float | None

    @property
    def answers(self) -> dict[str, str]:
        """The answers; "" is no answer."""
        if self.null_threshold is None:
            return self.best
        most = np.float32(self.null_threshold)
        return {id: "" if self.null_odds[id] > most else text for id, text in self.best.items()}


@keras.saving.register_keras_serializable("bert_tf")
class QuestionAnswerer(TaskModel):
    """Finds the answer to a question in a context of any length.

    `QuestionAnswerer.from_checkpoint("google-bert/bert-base-uncased")` starts from pre-trained
    weights. Here the encoder is tiny and has random weights, so the answer is random too:

    >>> from bert_tf import EncoderConfig
    >>> tokenizer = Tokenizer("[PAD] [UNK] [CLS] [SEP] [MASK] who sat the cat .".split())
    >>> config = EncoderConfig(10, hidden_size=8, num_hidden_layers=1, num_attention_heads=2)
    >>> qa = QuestionAnswerer(Encoder(config), tokenizer)
    >>> context = "The cat sat."
    >>> found = qa.predict(question="Who sat", context=context)
    >>> list(found)
    ['answer', 'start', 'end', 'score', 'null_score', 'nbest']
    >>> context[found["start"] : found["end"]] == found["answer"]
    True

    `fit` takes (questions, contexts) with answers. An answer is a text that occurs once in the
    context; a dict of a `text` and its `start`, a character of the context; a list of these; or
    None or "" if the context holds no answer. A question whose answer occurs more often, or not at
    all, is left out, and a message names it. A dataset needs both `text` and `start`. `fit` also
    takes rows as in SQuAD: dicts with question, context and answers. `predict` returns dicts:
    `answer`, the characters `start` to `end` (exclusive) of the context, `score`, its probability
    among the `nbest`, and `null_score`. "No answer" is "", with `start` and `end` -1.

    A linear layer gives every token a score as the start and as the end of the answer. Called with
    the encoder's inputs, the model returns a dict of float32 logits, `start` and `end`, both
    [batch, seq_len]; at padding they are so low that their probability is 0.

    Args:
        encoder, tokenizer: what reads the texts.
        unanswerable: whether a context may hold no answer, as in SQuAD 2.0; None lets the first
            `fit` decide.
        max_length: tokens in a window over the context (384).
        stride: pieces from the start of a window to that of the next.
        max_question_length: pieces to keep of a question.
        n_best: answers to return with their probabilities.
        max_answer_length: the maximum number of pieces of an answer.
        dropout: rate on the vectors; None is 0, as in BERT. DistilBERT's is 0.1.
        null_threshold: no answer is given if the null score exceeds the best answer's score by more
            than this. None uses the best value on the validation data, and 0 before that is known.

    Raises:
        UserError: a window has no room for the longest question, or a number is not positive.
    """

    columns = COLUMNS
    setting_names = (
        "unanswerable",
        "max_length",
        "stride",
        "max_question_length",
        "n_best",
        "max_answer_length",
        "null_threshold",
    )
    # The value of the reference implementation.
    default_max_length = 384
    cuts_texts = False

    @checked
    def __init__(
        self,
        encoder: Encoder,
        tokenizer: Tokenizer | None,
        unanswerable: bool | None = None,
        max_length: int | None = None,
        stride: int = 128,
        max_question_length: int = 64,
        n_best: int = 20,
        max_answer_length: int = 30,
        null_threshold: float | None = None,
        dropout: float | None = None,
        **kwargs: Any,
    ):
        head = {"dropout": dropout}
        super().__init__(
            encoder, tokenizer, head, max_length=max_length, uses_pooler=False, **kwargs
        )
        self.dropout = head_dropout(self, dropout or 0.0)
        self.unanswerable = unanswerable
        self.stride = stride
        self.max_question_length = max_question_length
        self.n_best = n_best
        self.max_answer_length = max_answer_length
        self.null_threshold = null_threshold
        # Whether the threshold is to be found on the validation data of each `fit`.
        self._finds_threshold = null_threshold is None
        self.rules()
        if tokenizer is not None:
            self.windows()
        self.span = self.make_linear(2, "span")
        self.build()

    def build(self, input_shape: Any = None) -> None:
        shape = (None, self.encoder.config.output_size)
        self.dropout.build(shape)
        self.span.build(shape)
        self.built = True

    def call(self, inputs: Mapping[str, tf.Tensor], training: bool = False) -> dict[str, tf.Tensor]:
        encoded = self.encoder.encode(inputs, training=training)
        tokens = self.dropout(encoded.layers[-1], training=training)
        scores = encoded.layout.restore(tf.cast(self.span(tokens), tf.float32))
        start, end = tf.unstack(scores, axis=-1)
        mask = inputs["input_mask"]
        return {"start": hide_padding(start, mask), "end": hide_padding(end, mask)}

    def own_losses(self) -> dict[str, Any]:
        cross_entropy = keras.losses.SparseCategoricalCrossentropy
        return {
            "loss": {name: cross_entropy(from_logits=True) for name in ("start", "end")},
            "loss_weights": {"start": 0.5, "end": 0.5},
        }

    def matched(self, outputs: Mapping[str, tf.Tensor], y: Any) -> Sequence[Matched]:
        # The token of the start and that of the end, as a mean.
        half = tf.fill([tf.shape(outputs["start"])[0]], 0.5)
        return [Matched("classes", outputs[name], half) for name in ("start", "end")]

    @property
    def target(self) -> AnswerSpan:
        return AnswerSpan(self.unanswerable)

    @property
    def given_settings(self) -> dict[str, Any]:
        found = {"null_threshold": None} if self._finds_threshold else {}
        return super().given_settings | found

    def windows(self) -> WindowPreprocessor:
        return WindowPreprocessor(
            self.tokenizer, self.max_length, self.stride, self.max_question_length
        )

    def rules(self) -> SpanRules:
        return SpanRules(
            self.n_best, self.max_answer_length, bool(self.unanswerable), self.null_threshold or 0.0
        )

    def given(
        self, x: Any, y: Any = None, sample_weight: Any = None, may_lack_targets: bool = False
    ) -> Columns:
        # `x` may be rows as in SQuAD, and `y` the columns of a dataset. None is no answer.
        if y is None and (columns := _squad_rows(x)) is not None:
            x, y = columns[:2], columns[2]
        elif may_lack_targets and y is not None and not isinstance(x, tuple | Mapping):
            x, y = (x, y), None  # fit(questions, contexts, teacher=…)
        if y is None and not may_lack_targets or not isinstance(x, tuple | Mapping):
            raise UserError(
                "the answers are missing; give (questions, contexts) and answers, or rows of SQuAD"
            )
        if isinstance(y, Mapping):
            texts = as_list(y["text"], "answers")
            starts = as_list(y["start"], "starts") if "start" in y else [None] * len(texts)
            inputs.check_count((texts,), starts, "starts")
            y = [{"text": each[0], "start": each[1]} for each in zip(texts, starts, strict=True)]
        if y is not None:
            y = [() if is_missing(each) else each for each in as_list(y, "answers")]
        return super().given(x, y, sample_weight, may_lack_targets)

    def learn_from(self, rows: Columns) -> None:
        answers = rows.known_targets()
        if self.unanswerable is None and all(each is None for each in answers):
            raise UserError(
                "rows without answers do not show whether a question can be unanswerable; create "
                "the student with unanswerable=True or False"
            )
        if self.unanswerable is None:
            self.unanswerable = () in answers
            self._functions.clear()

    def _learn_from_dataset(self, dataset: tf.data.Dataset, steps: int | None) -> None:
        super()._learn_from_dataset(dataset, steps)
        y = dataset.element_spec[1]
        if not isinstance(y, Mapping) or not {"text", "start"} <= {*y}:
            raise UserError(
                "the answers of a dataset are a dict of text and start, the character at which it "
                "starts; give both, or lists of texts instead of the dataset"
            )

    def examples(
        self, rows: Columns, class_weight: Mapping[int, float] | None = None
    ) -> TrainingRows:
        rows = usable(rows)
        spans, more = self.target.numbers(rows), [] if rows.weights is None else [rows.weights]
        text, span = tf.TensorSpec([None], tf.string), tf.TensorSpec([None, 2], tf.int32)
        specs = [text, text, span, *(tf.TensorSpec([None], tf.float32) for _ in more)]
        cut = tf.function(self._cut, specs, autograph=False)

        def windows(first: int) -> Iterator[tuple]:
            chunks = in_chunks(rows.values, _CHUNK, first, "cutting windows", "questions")
            for number, texts in enumerate(chunks, start=first):
                part = slice(number * _CHUNK, (number + 1) * _CHUNK)
                features, *others = cut(*texts, spans[part], *(each[part] for each in more))
                yield features, dict(zip(("targets", "weights"), others, strict=False))

        return TrainingRows.gather(windows, self.tokens)

    def _cut(
        self, questions: tf.Tensor, contexts: tf.Tensor, spans: tf.Tensor, weights: Any = None
    ) -> tuple:
        """The windows of some rows: inputs, tokens of starts and ends of answers, maybe weights."""
        windows = self.windows()((questions, contexts))
        starts, ends = find_answers(windows, spans[:, 0], spans[:, 1])
        more = () if weights is None else (tf.gather(weights, windows.rows),)
        return windows.features, {"start": starts, "end": ends}, *more

    def encode(self, x: Any, y: Any, weights: Any = None) -> tuple:
        # `y` is a dict of `text` string [batch] and `start` int [batch].
        questions, contexts = x
        texts, starts = y["text"], tf.cast(y["start"], tf.int32)
        has_answer = starts >= 0
        zeros = tf.zeros_like(starts)
        before = tf.strings.substr(contexts, zeros, tf.maximum(starts, 0), unit="UTF8_CHAR")
        first, sizes = tf.strings.length(before), tf.strings.length(texts)
        is_there = tf.strings.substr(contexts, first, sizes) == texts
        lost = tf.boolean_mask(texts, has_answer & ~is_there)
        one = tf.concat([lost, [""]], axis=0)[0]
        said = tf.strings.join(
            ["in the dataset, the answer '", one, "' is not at its start in the context"]
        )
        with tf.control_dependencies([tf.debugging.Assert(tf.size(lost) == 0, [said])]):
            spans = tf.stack([tf.where(has_answer, i, -1) for i in (first, first + sizes)], axis=1)
        return self._cut(questions, contexts, spans, weights)

    def infer(
        self, rows: Columns, batch_size: int | None = None, verbose: int | str = "auto"
    ) -> AnswerPredictions:
        """The answers; if there is no threshold yet, the one that is best on `rows` is used."""
        asked = rows_of(rows.values, self.input_names)
        parts, order = [], []
        for chosen, answered in batches(self, "answers", asked, batch_size, verbose, "answering"):
            parts.append([answered[name] for name in SpanAnswers._fields])
            order += chosen
        place = np.argsort(order)
        fields = SpanAnswers(*(np.concatenate(each)[place] for each in zip(*parts, strict=True)))
        ids = ids_of(rows)
        best = dict(zip(ids, map(plain, fields.best_answer), strict=True))
        null_odds = dict(zip(ids, fields.null_odds.tolist(), strict=True))
        threshold = self.null_threshold
        if not self.unanswerable:
            threshold = None
        elif threshold is None:
            known = rows.targets is not None
            threshold = best_null_threshold(given_texts(rows), best, null_odds) if known else 0.0
        return AnswerPredictions(fields, best, null_odds, threshold)

    def official_metrics(self, predictions: AnswerPredictions, rows: Columns) -> dict[str, float]:
        given = given_texts(rows)
        if predictions.null_threshold is None:
            return answer_metrics(given, predictions.answers)
        metrics = answer_or_none_metrics(
            given, predictions.answers, predictions.best, predictions.null_odds
        )
        return metrics | {"null_threshold": predictions.null_threshold}

    def resampled(self, predictions: Any, rows: Any, draw: Draw) -> tuple[Any, Any]:
        # A question that is drawn twice has two ids.
        ids, taken = super().resampled(ids_of(rows), rows, draw)
        both = [
            {str(place): known[id] for place, id in enumerate(ids)}
            for known in (predictions.best, predictions.null_odds)
        ]
        drawn = dataclasses.replace(predictions, best=both[0], null_odds=both[1])
        return drawn, dataclasses.replace(taken, ids=None)

    def remember(self, metrics: Mapping[str, float]) -> None:
        if self._finds_threshold:
            self.null_threshold = metrics.get("null_threshold")
            self._functions.clear()

    def signatures(self) -> dict[str, Signature]:
        """`answer`, `start`, `end` and so on; the signature "answers" has all of `SpanAnswers`."""

        def found(given: Mapping[str, tf.Tensor]) -> Tensors:
            return self.find(given)._asdict()

        def answer(given: Mapping[str, tf.Tensor]) -> Tensors:
            fields = found(given)
            return {name: fields[name] for name in FAMILY.outputs}

        return {
            "serving_default": of_columns(self, answer),
            "answers": of_columns(self, found, is_inner=True),
        }

    def ids_signatures(self) -> dict[str, Signature]:
        """As `signatures`, with all logits, for rows of one window each. Starts and ends are token
        positions in the row. Answers with the same ids count once.
        """
        width = 8  # characters of an id in a text that is made of ids

        def answer(given: Mapping[str, tf.Tensor]) -> Tensors:
            logits, ids = map_rows(self.network(), given), given["input_word_ids"]
            rows, tokens = (tf.range(tf.shape(ids)[axis]) for axis in (0, 1))
            tokens = tf.where(_in_context(given), tokens, -1)
            bounds = (width * each for each in (tokens, tokens + 1))
            windows = QuestionWindows(dict(given), rows, tokens, tokens >= 0, *bounds)
            texts = tf.strings.reduce_join(tf.strings.as_string(ids, width=width, fill="0"), axis=1)
            found = decode(logits["start"], logits["end"], windows, texts, self.rules())._asdict()
            places = {n: each // width for n, each in found.items() if each.dtype == tf.int32}
            found |= places | {f"{name}_logits": each for name, each in logits.items()}
            return {name: found[name] for name in FAMILY.ids_outputs}

        return super().ids_signatures() | {"serving_default": of_ids(self, answer)}

    def device_form(self) -> DeviceForm:
        """The best answer in one window, see `BestSpan`, and the logits of all its tokens."""

        def answer(features: Mapping[str, tf.Tensor]) -> Tensors:
            logits, rules = self.network()(features), self.rules()
            span = best_span(logits["start"], logits["end"], _in_context(features), rules)
            return {f"{name}_logits": logits[name] for name in ("start", "end")} | span._asdict()

        def restore(
            outputs: Mapping[str, tf.Tensor], features: Mapping[str, tf.Tensor]
        ) -> dict[str, tf.Tensor]:
            mask = features["input_mask"]
            names = ("start", "end")
            return {name: hide_padding(outputs[f"{name}_logits"], mask) for name in names}

        outputs = {"start_logits": output(None), "end_logits": output(None)}
        outputs |= {name: output(dtype=tf.int32) for name in ("start", "end")}
        outputs |= {name: output() for name in ("score", "null_score")}
        return DeviceForm(outputs, answer, restore)

    def strings_form(self) -> StringsForm:
        """As `device_form`, with bytes of the context; only the first window of it is read."""
        form = self.device_form()

        def answer(given: Mapping[str, tf.Tensor], tokenizer: Any, length: int) -> Tensors:
            asked = tokenizer.packed_question(
                given["question"], given["context"], length, self.max_question_length
            )
            found = form.answer(asked.features)
            start, last = found["start"], found["end"] - 1
            is_there = start >= 0
            byte = tf.gather(asked.starts[0], tf.maximum(start, 0))
            end = tf.gather(asked.ends[0], tf.maximum(last, 0))
            bytes_ = {"start": tf.where(is_there, byte, -1), "end": tf.where(is_there, end, -1)}
            return {name: found[name] for name in _NUMBERS} | bytes_

        def respond(
            outputs: Mapping[str, np.ndarray], rows: Sequence[Mapping[str, Any]]
        ) -> dict[str, np.ndarray]:
            contexts = [asking.encoded(row["context"]) for row in rows]
            spans = zip(contexts, outputs["start"], outputs["end"], strict=True)
            answers = [context[max(start, 0) : max(end, 0)] for context, start, end in spans]
            texts = np.array(answers, object)
            best = {"nbest_answers": texts[:, None], "nbest_scores": outputs["score"][:, None]}
            return {**outputs, "answer": texts, **best}

        outputs = {name: form.outputs[name] for name in _NUMBERS}
        return StringsForm(self.input_names, outputs, answer, lambda row: [row], respond)

    def find(self, given: Mapping[str, tf.Tensor]) -> SpanAnswers:
        """The answers to a batch of `question` and `context`, string [batch], in a graph."""
        windows = self.windows()((given["question"], given["context"]))
        logits = map_rows(self.network(), windows.features)
        return decode(logits["start"], logits["end"], windows, given["context"], self.rules())

    @classmethod
    def asked(cls, model: asking.Answers, x: Any) -> Asked:
        # `x` may be rows as in SQuAD.
        columns = _squad_rows(x)
        return super().asked(model, x if columns is None else columns[:2])

    @staticmethod
    def answer(outputs: Outputs, place: int, row: Row) -> dict[str, Any]:
        character = characters(cast(Text, row["context"]))
        best = zip(outputs["nbest_answers"][place], outputs["nbest_scores"][place], strict=True)
        return {
            "answer": as_json(outputs["answer"][place]),
            "start": character(int(outputs["start"][place])),
            "end": character(int(outputs["end"][place])),
            "score": as_json(outputs["score"][place]),
            "null_score": as_json(outputs["null_score"][place]),
            "nbest": [
                {"answer": as_json(text), "score": as_json(score)}
                for text, score in best
                if text or score
            ],
        }


def _squad_rows(x: Any) -> tuple[list, list, list | None] | None:
    """Questions, contexts and answers, maybe None, of rows as in SQuAD; None for something else."""
    if not isinstance(x, list | tuple) or not x or not isinstance(x[0], Mapping):
        return None
    for number, row in enumerate(x):
        missing = [name for name in ("question", "context") if name not in row]
        if missing:
            raise UserError(f"row {number} has no {missing[0]}; the keys are {', '.join(row)}")
    answers = [row["answers"] for row in x] if all("answers" in row for row in x) else None
    return [row["question"] for row in x], [row["context"] for row in x], answers


def _in_context(features: Mapping[str, tf.Tensor]) -> tf.Tensor:
    """bool [rows, seq_len]: the tokens of the context in rows of ids."""
    # The last token, [SEP], is not part of the context.
    follows = tf.pad(features["input_mask"][:, 1:], [[0, 0], [0, 1]])
    return (features["input_type_ids"] == 1) & (follows == 1)
