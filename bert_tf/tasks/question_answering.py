"""The part of a context that answers a question (paper, section 4.2), or none (section 4.3)."""

import dataclasses
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from bert_tf.atomic import write_text
from bert_tf.config import QuestionAnsweringData
from bert_tf.data.batching import batches_by_length
from bert_tf.data.question_windows import WindowRows
from bert_tf.data.squad import Question, read_squad, read_tfds
from bert_tf.data.tfds_rows import SPLITS
from bert_tf.decoding.question_answering import QuestionAnswerer
from bert_tf.decoding.spans import Answers, SpanRules
from bert_tf.errors import UserError
from bert_tf.metrics.squad import answer_metrics, answer_or_none_metrics, best_null_threshold
from bert_tf.models import Encoder, SpanClassifier
from bert_tf.progress import Progress, warn
from bert_tf.tasks.task import Metrics, Task
from bert_tf.text import WindowPreprocessor

FORMATS = ("squad", "tfds")
# Questions that are answered at a time.
_EVALUATION_BATCH = 32


@dataclasses.dataclass(frozen=True)
class Predictions:
    """Answers to questions, in their order.

    Attributes:
        answers: the fields of `Answers` as arrays.
        null_threshold: odds above which the answer is that there is none; None without such.
    """

    answers: Answers
    null_threshold: float | None

    def texts(self) -> list[str]:
        """The answers."""
        texts = self.best_texts()
        if self.null_threshold is None:
            return texts
        is_none = self.answers.null_odds > np.float32(self.null_threshold)
        return ["" if none else text for none, text in zip(is_none, texts, strict=True)]

    def best_texts(self) -> list[str]:
        """The best answers, whether or not there is none."""
        return _decoded(self.answers.best_answer)


class QuestionAnswering(Task):
    """Trains a `SpanClassifier` on windows over contexts, and answers with its best spans."""

    best_metric = "f1"
    data: QuestionAnsweringData

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self._null_threshold = self.data.null_threshold
        self._windows = WindowPreprocessor(
            self.tokenizer,
            self.config.train.max_length,
            self.data.stride,
            self.data.max_question_length,
        )
        self._answerer: tuple[keras.Model, Any] | None = None

    def files(self, split: str) -> dict[str, Path]:
        """See `Task`; of TFDS, the name and the split."""
        if self.data.format not in FORMATS:
            raise UserError(
                f"unknown data.format {self.data.format!r}; choose one of {', '.join(FORMATS)}"
            )
        name = getattr(self.data, split)
        if self.data.format == "tfds":
            name = name or SPLITS[split]
        else:
            name = name or f"{split}-v{'2.0' if self.data.unanswerable else '1.1'}.json"
        return {"": Path(self.data.path) / name}

    def train_files(self) -> list[Path]:
        """See `Task`; those of `data.extra_train` follow."""
        return [*super().train_files(), *map(Path, self.data.extra_train or ())]

    def train_examples(self) -> WindowRows:
        """See `Task`."""
        path, *others = self.train_files()
        questions = self._usable(path, self.read(path)[: self.data.train_rows])
        for more in others:
            questions += self._usable(more, self.read(more))
        return WindowRows.cut(questions, self._windows)

    def model(self, encoder: Encoder) -> SpanClassifier:
        """See `Task`."""
        return SpanClassifier(encoder)

    def compile(self, model: keras.Model, **options: Any) -> None:
        """Compiles `model` with the mean of the cross-entropies of start and end."""
        model.compile(**SpanClassifier.losses_to_compile(), **options)

    def read(self, path: Path) -> list[Question]:
        """The questions of a file, or of TFDS where no file has such a name.

        Other than those of the training and dev files, they may all have no answers told.
        """
        if self.data.format == "tfds" and not path.is_file():
            questions = read_tfds(str(path.parent), path.name)
        else:
            questions = read_squad(path)
        may_be_untold = not self.needs_labels(path) and not any(map(_is_told, questions))
        for each in questions:
            if not (may_be_untold or _is_told(each)):
                raise UserError(
                    f"{path}: question {each.id} has no answers; write them, or is_impossible: "
                    "true if there is none"
                )
            if each.answers == () and not self.data.unanswerable:
                raise UserError(
                    f"{path}: question {each.id} has no answer; set data.unanswerable: true, as "
                    "for SQuAD 2.0"
                )
        return questions

    def remember(self, metrics: Metrics) -> None:
        """Takes over the threshold found on the dev data, unless it is configured."""
        if self.data.null_threshold is None:
            self._null_threshold = metrics.get("null_threshold")

    def predict(self, model: keras.Model, data: Sequence[Question]) -> Predictions:
        """The answers; where no threshold is known yet, the one that is best on `data`."""
        answer = self._answer(model)
        # The longest first, so that what does not fit memory shows at once.
        lengths = np.array([len(each.context) for each in data])
        parts, order = [], []
        with Progress("answering", len(data), unit="questions") as progress:
            for chosen in batches_by_length(lengths, _EVALUATION_BATCH):
                batch = [data[i] for i in chosen]
                answers = answer(
                    tf.constant([each.question for each in batch]),
                    tf.constant([each.context for each in batch]),
                )
                parts.append([each.numpy() for each in answers])
                order.append(chosen)
                progress.update(sum(map(len, order)), line=True)
        place = np.argsort(np.concatenate(order))
        fields = (np.concatenate(each)[place] for each in zip(*parts, strict=True))
        predictions = Predictions(Answers(*fields), None)
        if not self.data.unanswerable:
            return predictions
        threshold = self._null_threshold
        if threshold is None:
            best = _best_answers(predictions, data)
            threshold = best_null_threshold(data, *best) if _are_told(data) else 0.0
        return dataclasses.replace(predictions, null_threshold=threshold)

    def score(self, predictions: Predictions, data: Sequence[Question]) -> dict[str, float]:
        """See `answer_metrics` and `answer_or_none_metrics`; the latter with `null_threshold`.

        There are none where the answers are not told.
        """
        if not _are_told(data):
            return {}
        answers = _by_id(data, predictions.texts())
        if predictions.null_threshold is None:
            return answer_metrics(data, answers)
        metrics = answer_or_none_metrics(data, answers, *_best_answers(predictions, data))
        return metrics | {"null_threshold": predictions.null_threshold}

    def write_predictions(
        self, predictions: Predictions, data: Sequence[Question], folder: Path, name: str
    ) -> None:
        """Writes `name`.json as the official scripts read it, and the n best beside.

        `name`_nbest.json holds the n best with probabilities and logits in the reference's form.
        For version 2.0 `name`_null_odds.json is the script's `--na-prob-file`, and
        `name`_best_answers.json the answers before it is decided whether there is none.
        """
        files = {"": _by_id(data, predictions.texts())}
        files["_nbest"] = _by_id(data, list(_n_best(predictions.answers, self.data.unanswerable)))
        if self.data.unanswerable:
            files["_best_answers"], files["_null_odds"] = _best_answers(predictions, data)
        for ending, content in files.items():
            text = json.dumps(content, indent=1, ensure_ascii=False)
            write_text(folder / f"{name}{ending}.json", text + "\n")

    def _usable(self, path: Path | str, questions: list[Question]) -> list[Question]:
        """The questions whose answer is found, or that have none; of the others it warns."""
        lost = [each for each in questions if each.answers and not each.answer_bytes()]
        if lost:
            warn(
                f"{path}: {len(lost)} of {len(questions)} questions are left out, since no answer "
                f"stands at its offset; the first is {lost[0].id}"
            )
        if len(lost) == len(questions):
            raise UserError(
                f"{path}: no answer stands at its offset, none of {len(questions)}; answer_start "
                "counts the characters of the context before it"
            )
        left_out = {each.id for each in lost}
        return [each for each in questions if each.id not in left_out]

    def _answer(self, model: keras.Model) -> Any:
        """The answerer of a model, traced once."""
        if self._answerer is None or self._answerer[0] is not model:
            # The threshold does not matter here: `Predictions` applies it.
            rules = SpanRules(self.data.n_best, self.data.max_answer_length, self.data.unanswerable)
            answerer = QuestionAnswerer(model, self._windows, rules)
            strings = tf.TensorSpec([None], tf.string)
            self._answerer = model, tf.function(answerer, input_signature=[strings, strings])
        return self._answerer[1]


def _is_told(question: Question) -> bool:
    """Whether it is told what the answer is, or that there is none."""
    return question.answers is not None


def _are_told(questions: Sequence[Question]) -> bool:
    return all(map(_is_told, questions))


def _by_id(questions: Sequence[Question], values: Sequence[Any]) -> dict[str, Any]:
    return {each.id: value for each, value in zip(questions, values, strict=True)}


def _best_answers(
    predictions: Predictions, questions: Sequence[Question]
) -> tuple[dict[str, str], dict[str, float]]:
    """The best answer to each question, and the odds that there is none."""
    odds = predictions.answers.null_odds.tolist()
    return _by_id(questions, predictions.best_texts()), _by_id(questions, odds)


def _n_best(answers: Answers, unanswerable: bool) -> Iterator[list[dict[str, Any]]]:
    """The n best of each question as the reference writes them."""
    columns = (answers.nbest_scores, answers.nbest_start_logits, answers.nbest_end_logits)
    names = ("text", "probability", "start_logit", "end_logit")
    for texts, *numbers in zip(answers.nbest_answers, *columns, strict=True):
        # What follows is padding; of the entries only "no answer" is "" too.
        count = sum(text != b"" for text in texts) + unanswerable
        fields = (_decoded(texts[:count]), *(each[:count].tolist() for each in numbers))
        yield [dict(zip(names, entry, strict=True)) for entry in zip(*fields, strict=True)]


def _decoded(texts: np.ndarray) -> list[str]:
    return [text.decode("utf-8", "replace") for text in texts]
