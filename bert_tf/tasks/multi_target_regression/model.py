"""Several numbers for a text or a pair of texts, such as a price and a size."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import keras
import numpy as np
import tensorflow as tf

from bert_tf.asking import Outputs, Row
from bert_tf.config.arguments import checked
from bert_tf.data.arrow import DataTable
from bert_tf.data.columns import Columns, Target, as_list, quoted
from bert_tf.data.targets import check_class_names, finite_number
from bert_tf.encoder.encoder import Encoder
from bert_tf.errors import UserError
from bert_tf.export.litert.form import DeviceForm, of_scores
from bert_tf.export.service import Tensors
from bert_tf.io.json_files import as_json
from bert_tf.tasks.inputs import columns_of
from bert_tf.tasks.regression.model import TextRegressor
from bert_tf.tasks.task_model import TaskModel
from bert_tf.tasks.texts.metrics import regression_metrics
from bert_tf.text import Tokenizer


@dataclasses.dataclass(frozen=True)
class Numbers(Target):
    """A number for each of several targets."""

    names: tuple[str, ...]
    what: ClassVar[str] = "numbers"
    plural: ClassVar[str] = "numbers"

    def checked_one(self, rows: Columns, row: int, given: Any) -> tuple[float, ...]:
        place = rows.at(row, self.what)
        if isinstance(given, Mapping):
            missing = [name for name in self.names if name not in given]
            if missing:
                raise UserError(f"{place} has no {missing[0]!r}; give {', '.join(self.names)}")
            given = [given[name] for name in self.names]
        if isinstance(given, int | float | np.number | str | bytes):
            raise UserError(f"{place} is {quoted(given)}; give {len(self.names)} numbers")
        values = as_list(given, place)
        if len(values) != len(self.names):
            raise UserError(
                f"{place} has {len(values)} numbers, but the targets are {', '.join(self.names)}"
            )
        return tuple(
            finite_number(value, f"{place}, {name},")
            for value, name in zip(values, self.names, strict=True)
        )

    def numbers(self, rows: Columns) -> np.ndarray:
        """float32 [rows, targets]; 0 for a row without numbers."""
        zeros = (0.0,) * len(self.names)
        return np.array([each or zeros for each in rows.known_targets()], np.float32)

    def encoded(self, y: Any) -> tf.Tensor:
        """float32 [batch, targets]: a tensor of them, or a dict of columns by their names."""
        if isinstance(y, Mapping):
            y = tf.stack([tf.cast(y[name], tf.float32) for name in self.names], axis=1)
        return tf.cast(y, tf.float32)


@keras.saving.register_keras_serializable("bert_tf")
class MultiTargetRegressor(TextRegressor):
    """The regressor that predicts several numbers: `TextRegressor(…, targets=[…])`.

    `fit` takes a list of numbers for each text, in the order of `targets`, or a dict of columns by
    their names. Called with the encoder's inputs, the model returns float32 [batch, targets].
    """

    setting_names: ClassVar[tuple[str, ...]] = ("pair", "max_length", "targets")

    @checked
    def __init__(
        self,
        encoder: Encoder,
        tokenizer: Tokenizer | None,
        targets: Sequence[str] | None = None,
        pair: bool | None = None,
        max_length: int | None = None,
        dropout: float | None = None,
        **kwargs: Any,
    ):
        names = [] if targets is None else as_list(targets, "targets")
        if not names or not all(isinstance(name, str) for name in names):
            raise UserError("targets must be the names of one or more numbers to predict")
        check_class_names(names)
        self.targets = tuple(names)
        super().__init__(encoder, tokenizer, None, pair, max_length, dropout, **kwargs)
        self.head["num_classes"] = len(names)

    @classmethod
    def named_outputs(cls, names: Sequence[str], count: int) -> dict[str, Any]:
        return {"targets": list(names) or [f"target_{number}" for number in range(count)]}

    @property
    def outputs_of_head(self) -> int:
        return len(self.targets)

    @property
    def settings(self) -> dict[str, Any]:
        return super().settings | {"targets": list(self.targets)}

    @property
    def target(self) -> Numbers:
        return Numbers(self.targets)

    def named(self, table: DataTable, target: Any = None) -> tuple[Any, Any]:
        # Each target is in the column of its name.
        x, _ = super().named(table, ())
        if target is None and {*self.target.names} & {*table.names}:
            table.check(self.target.names)
            target = {name: x[name] for name in self.target.names}
        return x, target

    def given(self, x: Any, y: Any = None, *args: Any, **kwargs: Any) -> Columns:
        # `y` may be a dict of columns.
        if isinstance(y, Mapping):
            missing = [name for name in self.targets if name not in y]
            if missing:
                raise UserError(f"y has no {missing[0]!r}; give {', '.join(self.targets)}")
            y = list(map(list, zip(*columns_of(y, self.targets), strict=True)))
        return super().given(x, y, *args, **kwargs)

    def outputs_of(self, vectors: tf.Tensor, training: bool = False) -> tf.Tensor:
        return TaskModel.outputs_of(self, vectors, training=training)

    def device_form(self) -> DeviceForm:
        return of_scores(self, len(self.targets))

    def decode(self, scores: tf.Tensor) -> Tensors:
        """`scores` float32 and `targets` string, their names, both [batch, targets]."""
        names = tf.constant(self.targets)[tf.newaxis, :]
        return {"scores": scores, "targets": tf.tile(names, [tf.shape(scores)[0], 1])}

    def official_metrics(self, predictions: np.ndarray, rows: Columns) -> dict[str, float]:
        """The `regression_metrics`: means over the targets, and the metrics of each target."""
        pairs = zip(self.targets, predictions.T, self.target.numbers(rows).T, strict=True)
        found = {name: regression_metrics(*both) for name, *both in pairs}
        means = {
            name: float(np.mean([each[name] for each in found.values()]))
            for name in ("spearman", "pearson", "loss")
        }
        return means | {f"{m}_{name}": v for name, each in found.items() for m, v in each.items()}

    @staticmethod
    def answer(outputs: Outputs, place: int, row: Row) -> dict[str, float]:
        names, numbers = (as_json(outputs[name][place]) for name in ("targets", "scores"))
        return dict(zip(names, numbers, strict=True))
