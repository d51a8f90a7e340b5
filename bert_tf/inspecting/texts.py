"""Pictures of a classifier, and of a regression, of texts or pairs of texts."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from bert_tf.data.labelled_texts import LabelledTexts
from bert_tf.inspecting import charts, sections
from bert_tf.inspecting.importance import Importances, Inputs, log_odds
from bert_tf.inspecting.looks import Look, Mark, Section
from bert_tf.inspecting.markup import Html, figures, tag
from bert_tf.inspecting.pictures import Pictures
from bert_tf.inspecting.projection import pooled, row_vectors
from bert_tf.inspecting.subject import Subject
from bert_tf.metrics.regression import regression_metrics
from bert_tf.predict.rows import Row, text_of
from bert_tf.text import Preprocessor

_NOTE = "Each point is a text of the dev data, seen by the pooled vector, which the head reads."


class DevRows(NamedTuple):
    """Some rows of the dev data.

    Attributes:
        outputs: float32 [rows, ...], the model's.
        targets: [rows], what is given.
        vectors: float32 [rows, hidden], what the head reads.
        texts: of each row.
    """

    outputs: np.ndarray
    targets: np.ndarray
    vectors: np.ndarray
    texts: list[str]


class TextPictures(Pictures):
    """What classification and regression share."""

    def __init__(self, subject: Subject):
        super().__init__(subject)
        self.accepted = (subject.model.input_names,)
        self._preprocess = Preprocessor(subject.tokenizer, subject.max_length, padding="batch")

    def look(self, row: Row) -> Look:
        """See `Pictures`."""
        subject = self.subject
        texts = [text_of(row, name) for name in self.accepted[0]]
        inputs = self._preprocess(tuple(tf.constant([text]) for text in texts))
        output = subject.model(inputs, training=False)
        answer, explained = self.answer(inputs, output)
        encoded = subject.encoder.encode(inputs, training=False)
        vector = pooled(subject.encoder, encoded, inputs["input_mask"])[0].numpy()
        seen = subject.seen("", inputs, explained)
        heading = tuple(map(sections.shortened, texts))
        return Look(heading, answer, (seen,), (Mark(heading[0], vector),))

    def dev(self, rows: int, marks: Sequence[Mark]) -> list[Section]:
        """See `Pictures`."""
        subject = self.subject
        everything: LabelledTexts = subject.read_dev()
        chosen = sections.draw(len(everything), rows)
        data = everything.take(chosen.tolist())
        encoded = subject.model.encoded(data.columns)
        outputs = subject.model.infer(data)
        vectors = row_vectors(subject.encoder, pooled, encoded.take, encoded.lengths)
        texts = [subject.read_back(encoded.take(np.array([i]))) for i in range(len(chosen))]
        return self.of_dev(DevRows(outputs, subject.model.targets(data), vectors, texts), marks)

    @abstractmethod
    def answer(self, inputs: Inputs, output: tf.Tensor) -> tuple[Html, list[Importances]]:
        """What the model says, [1, ...], and what the tokens add to it."""

    @abstractmethod
    def of_dev(self, rows: DevRows, marks: Sequence[Mark]) -> list[Section]:
        """The pictures of some dev data."""


class ClassificationPictures(TextPictures):
    """Pictures of a classifier."""

    def answer(self, inputs: Inputs, output: tf.Tensor) -> tuple[Html, list[Importances]]:
        """See `TextPictures`."""
        subject, names = self.subject, self.subject.model.labels
        best = int(tf.argmax(output[0]))
        explained = subject.explain(
            [f"the log-odds of {names[best]}"],
            inputs,
            lambda rows: log_odds(subject.model(rows, training=False), best)[:, None],
        )
        return charts.bars(names, tf.nn.softmax(output[0]).numpy()), explained

    def of_dev(self, rows: DevRows, marks: Sequence[Mark]) -> list[Section]:
        """See `TextPictures`."""
        names = self.subject.model.labels
        return [
            *sections.by_label(
                rows.vectors, rows.texts, rows.targets.tolist(), names, marks, _NOTE
            ),
            *sections.classes(names, tf.nn.softmax(rows.outputs).numpy(), rows.targets, "texts"),
        ]


class RegressionPictures(TextPictures):
    """Pictures of a regression."""

    def answer(self, inputs: Inputs, output: tf.Tensor) -> tuple[Html, list[Importances]]:
        """See `TextPictures`."""
        subject = self.subject
        explained = subject.explain(
            ["the score"], inputs, lambda rows: subject.model(rows, training=False)[:, None]
        )
        return tag("p", "score ", tag("strong", figures(float(output[0])))), explained

    def of_dev(self, rows: DevRows, marks: Sequence[Mark]) -> list[Section]:
        """See `TextPictures`."""
        outputs, targets = rows.outputs, rows.targets
        told = [f"{given:.3g}: {text}" for given, text in zip(targets, rows.texts, strict=True)]
        low, high = float(targets.min()), float(targets.max())
        colours = [charts.between(float(x - low) / max(high - low, 1e-9)) for x in targets]
        legend = charts.legend(
            [f"{low:.3g}", f"{high:.3g}"], [charts.between(0), charts.between(1)]
        )
        found = regression_metrics(outputs, targets)
        note = (
            f"{len(targets)} rows: Pearson {figures(found['pearson'])}, Spearman "
            f"{figures(found['spearman'])}, mean squared error {figures(found['loss'])}."
        )
        both = charts.scatter(
            np.stack([targets, outputs], axis=1),
            [sections.shortened(each) for each in told],
            colours,
            ("given", "predicted"),
            diagonal=True,
        )
        return [
            *sections.projection(rows.vectors, told, colours, legend, marks, _NOTE),
            Section("Predicted beside given", both, note),
        ]
