"""Any number of labels for a text or a pair of texts."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from bert_tf.asking import Outputs, Row
from bert_tf.config.arguments import checked
from bert_tf.data.columns import Columns, as_list
from bert_tf.data.targets import Labels
from bert_tf.encoder.encoder import Encoder
from bert_tf.errors import UserError
from bert_tf.export.service import Tensors
from bert_tf.io.json_files import as_json
from bert_tf.tasks.classification.model import TextClassifier
from bert_tf.tasks.multi_label_classification.metrics import (
    DEFAULT_THRESHOLD,
    best_thresholds,
    multi_label_metrics,
    sigmoid,
)
from bert_tf.tasks.uncertainty import Draw
from bert_tf.text import Tokenizer

_THRESHOLD = "threshold_"  # the prefix of the name of a label in the metrics


@dataclasses.dataclass(frozen=True)
class LabelPredictions:
    """Predictions for texts: logits, float32 [rows, classes], and the threshold of each label."""

    logits: np.ndarray
    thresholds: tuple[float, ...]


@keras.saving.register_keras_serializable("bert_tf")
class MultiLabelClassifier(TextClassifier):
    """The classifier that gives a text any number of labels: `TextClassifier(…, multi_label=True)`.

    `fit` takes a list of labels for each text; the list may be empty. Each label has a probability
    of its own, and is given if this reaches the label's threshold. With the encoder's inputs, the
    model returns float32 logits [batch, classes]; `fit` on ids takes float32 [batch, classes] of 0
    and 1.

    Args:
        thresholds: the minimum probability for giving a label: a dict by name, or a list in the
            order of labels; labels that are not named have 0.5. None uses the thresholds with the
            best F1 on the validation data of each `fit`, and 0.5 before these are known.
        others: as for `TextClassifier`.
    """

    predicts = "labels"
    setting_names = ("pair", "max_length", "thresholds")
    answer_options = ()

    @checked
    def __init__(
        self,
        encoder: Encoder,
        tokenizer: Tokenizer | None,
        labels: Sequence[Any] | None = None,
        pair: bool | None = None,
        max_length: int | None = None,
        dropout: float | None = None,
        multi_label: bool = True,
        thresholds: Mapping[str, float] | Sequence[float] | None = None,
        abstain: None = None,
        **kwargs: Any,
    ):
        if abstain is not None:
            raise UserError("abstain is for one label per text; give thresholds instead")
        if not multi_label:
            raise UserError(
                "the checkpoint gives a text any number of labels; remove multi_label=False"
            )
        self._given_thresholds = thresholds  # as they were given; None lets each `fit` find them
        self.thresholds: tuple[float, ...] | None = None  # in the order of the labels
        super().__init__(encoder, tokenizer, labels, pair, max_length, dropout, **kwargs)

    def name_classes(self, labels: Sequence[Any]) -> None:
        super().name_classes(labels)
        if self._given_thresholds is not None:
            self.thresholds = _in_order(self._given_thresholds, self.labels)

    @property
    def target(self) -> Labels:
        return Labels(self.labels)

    @property
    def given_settings(self) -> dict[str, Any]:
        return super().given_settings | {"thresholds": self._given_thresholds}

    def decode(self, scores: tf.Tensor) -> Tensors:
        """`labels` string [batch, classes]: the given labels, ordered by logit and then by class,
        padded with ""; `probabilities` and `classes` as of a `TextClassifier`.
        """
        names = tf.constant(self.labels)
        probabilities = tf.nn.sigmoid(self.calibrated(scores))
        is_given = probabilities >= tf.constant(self._known_thresholds())
        hidden = tf.where(is_given, scores, -float("inf"))
        order = tf.argsort(hidden, direction="DESCENDING", stable=True)
        is_given = tf.gather(is_given, order, batch_dims=1)
        return {
            "labels": tf.where(is_given, tf.gather(names, order), ""),
            "probabilities": probabilities,
            "classes": tf.tile(names[tf.newaxis, :], [tf.shape(scores)[0], 1]),
        }

    def infer(
        self, rows: Columns, batch_size: int | None = None, verbose: int | str = "auto"
    ) -> LabelPredictions:
        """The logits; if there are no thresholds yet, those that are best on `rows` are used."""
        logits = super().infer(rows, batch_size, verbose)
        if self.thresholds is None and rows.targets is not None:
            return LabelPredictions(logits, best_thresholds(logits, self.target.numbers(rows)))
        return LabelPredictions(logits, self._known_thresholds())

    def official_metrics(self, predictions: Any, rows: Columns) -> dict[str, float]:
        """The results of `multi_label_metrics`, and each threshold as `threshold_` + label."""
        thresholds = predictions.thresholds
        metrics = multi_label_metrics(
            predictions.logits, self.target.numbers(rows), thresholds, self.labels
        )
        return metrics | {
            _THRESHOLD + name: threshold
            for name, threshold in zip(self.labels, thresholds, strict=True)
        }

    def resampled(self, predictions: Any, rows: Any, draw: Draw) -> tuple[Any, Any]:
        logits, taken = super().resampled(predictions.logits, rows, draw)
        return dataclasses.replace(predictions, logits=logits), taken

    def remember(self, metrics: Mapping[str, float]) -> None:
        super().remember(metrics)
        if self._given_thresholds is None:
            found = [metrics.get(_THRESHOLD + name) for name in self.labels]
            known = tuple(each for each in found if each is not None)
            self.thresholds = known if known and len(known) == len(found) else None

    def rescale(self, factor: float) -> None:
        # Thresholds that were found are adapted, so that they give the same labels as before. Given
        # thresholds apply to the new probabilities.
        super().rescale(factor)
        if self._given_thresholds is None and self.thresholds is not None:
            logits = np.log(self.thresholds) - np.log1p(-np.asarray(self.thresholds))
            self.thresholds = tuple(sigmoid(logits / factor).tolist())

    def _known_thresholds(self) -> tuple[float, ...]:
        return self.thresholds or (DEFAULT_THRESHOLD,) * len(self.labels)

    @staticmethod
    def answer(outputs: Outputs, place: int, row: Row) -> dict[str, Any]:
        classes = as_json(outputs["classes"][place])
        probabilities = as_json(outputs["probabilities"][place])
        return {
            "labels": [name for name in as_json(outputs["labels"][place]) if name],
            "probabilities": dict(zip(classes, probabilities, strict=True)),
        }


def _in_order(
    given: Mapping[str, float] | Sequence[float], labels: Sequence[str]
) -> tuple[float, ...]:
    if isinstance(given, Mapping):
        unknown = [name for name in given if name not in labels]
        if unknown:
            raise UserError(
                f"thresholds has {unknown[0]!r}, but the labels are {', '.join(labels)}"
            )
        given = [given.get(name, DEFAULT_THRESHOLD) for name in labels]
    given = as_list(given, "thresholds")
    if len(given) != len(labels):
        raise UserError(
            f"there are {len(given)} thresholds, but {len(labels)} labels; give one for each"
        )
    for name, value in zip(labels, given, strict=True):
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
            raise UserError(f"the threshold for {name!r} is {value!r}; it must be from 0 to 1")
    return tuple(map(float, given))
