"""Runs of question answering: SQuAD's files of versions 1.1 and 2.0, and the same from TFDS."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bert_tf.asking import plain
from bert_tf.data import arrow
from bert_tf.data.columns import Columns
from bert_tf.data.tfds import SPLITS
from bert_tf.encoder.encoder import Encoder
from bert_tf.errors import UserError
from bert_tf.io.atomic import write_text
from bert_tf.io.remote import is_file
from bert_tf.tasks.question_answering import QuestionAnsweringData
from bert_tf.tasks.question_answering.model import AnswerPredictions, QuestionAnswerer
from bert_tf.tasks.question_answering.spans import SpanAnswers
from bert_tf.tasks.question_answering.squad import ids_of, read_arrow, read_squad, read_tfds, usable
from bert_tf.tasks.task import Task
from bert_tf.text import Tokenizer, WindowPreprocessor


class QuestionAnswering(Task):
    """Reads questions with contexts for a `QuestionAnswerer`."""

    best_metric = "f1"
    formats = ("squad", *arrow.FORMATS, "tfds")
    data: QuestionAnsweringData

    def default_name(self, split: str) -> str:
        # With TFDS a path is the name and the split.
        if self.data.format in arrow.FORMATS:
            return super().default_name(split)
        if self.data.format == "tfds":
            return SPLITS[split]
        return f"{split}-v{'2.0' if self.data.unanswerable else '1.1'}.json"

    def train_files(self) -> list[Path]:
        # The files of `data.extra_train` follow.
        return [*super().train_files(), *map(Path, self.data.extra_train or ())]

    def training_rows(self) -> Columns:
        # Questions whose answer is not at its offset are left out.
        path, *others = self.train_files()
        rows = usable(self.read(path).first(self.data.train_rows))
        for more in others:
            rows = rows.and_rows(usable(self.read(more)))
        return rows

    def model(self, encoder: Encoder, tokenizer: Tokenizer) -> QuestionAnswerer:
        data = self.data
        return QuestionAnswerer(
            encoder,
            tokenizer,
            unanswerable=data.unanswerable,
            max_length=self.config.train.max_length,
            stride=data.stride,
            max_question_length=data.max_question_length,
            n_best=data.n_best,
            max_answer_length=data.max_answer_length,
            null_threshold=data.null_threshold,
        )

    def check_settings(self, tokenizer: Tokenizer) -> None:
        length, data = self.config.train.max_length, self.data
        WindowPreprocessor(tokenizer, length, data.stride, data.max_question_length)

    def read(self, path: Path) -> Columns:
        if self.data.format == "tfds" and not is_file(path):
            rows = read_tfds(str(path.parent), path.name)
        elif arrow.reads(path, self.data.format):
            rows = read_arrow(path)
        else:
            rows = read_squad(path)
        if rows.targets is None and not self.needs_labels(path):
            return rows
        for id, answers in zip(ids_of(rows), rows.targets or [None] * len(rows), strict=True):
            if answers is None:
                raise UserError(
                    f"{path}: question {id} has no answers; write them, or is_impossible: true if "
                    "there is none"
                )
            if answers == () and not self.data.unanswerable:
                raise UserError(
                    f"{path}: question {id} has no answer; set data.unanswerable: true, as for "
                    "SQuAD 2.0"
                )
        return rows

    def write_predictions(
        self,
        model: QuestionAnswerer,
        predictions: AnswerPredictions,
        rows: Columns,
        folder: Path,
        name: str,
    ) -> None:
        """Writes `name`.json as the official scripts read it, and the n best as the reference does.
        For version 2.0 `name`_null_odds.json is the script's `--na-prob-file`, and
        `name`_best_answers.json has the answers before "no answer" replaces some of them.
        """
        n_best = zip(ids_of(rows), _n_best(predictions.fields, self.data.unanswerable), strict=True)
        files: dict[str, Any] = {"": predictions.answers, "_nbest": dict(n_best)}
        if self.data.unanswerable:
            files |= {"_best_answers": predictions.best, "_null_odds": predictions.null_odds}
        for ending, content in files.items():
            text = json.dumps(content, indent=1, ensure_ascii=False)
            write_text(folder / f"{name}{ending}.json", text + "\n")


def _n_best(answers: SpanAnswers, unanswerable: bool) -> Iterator[list[dict[str, Any]]]:
    """The n best of each question as the reference writes them."""
    columns = (answers.nbest_scores, answers.nbest_start_logits, answers.nbest_end_logits)
    names = ("text", "probability", "start_logit", "end_logit")
    for texts, *numbers in zip(answers.nbest_answers, *columns, strict=True):
        # Padding follows the entries. It is "", and among the entries only "no answer" is "".
        count = sum(text != b"" for text in texts) + unanswerable
        fields = (map(plain, texts[:count]), *(each[:count].tolist() for each in numbers))
        yield [dict(zip(names, entry, strict=True)) for entry in zip(*fields, strict=True)]
