"""The common base of models with one prediction for a text or a pair of texts."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import keras
import numpy as np
import tensorflow as tf

from bert_tf.asking import Answers, Outputs, each_answer, rows_of
from bert_tf.data.batching import TrainingRows
from bert_tf.distillation.losses import Matched
from bert_tf.encoder.encoder import Encoder
from bert_tf.errors import UserError
from bert_tf.export.litert.form import StringsForm, of_packed
from bert_tf.export.service import Signature, Tensors, strings
from bert_tf.tasks import inputs
from bert_tf.tasks.inputs import Given
from bert_tf.tasks.task_model import TaskModel
from bert_tf.tasks.texts.labelled_texts import LabelledTexts, Texts
from bert_tf.text import GroupPreprocessor, Tokenizer
from bert_tf.text.parts import first_equal, map_rows

_ONE, _PAIR = ("text",), ("text_a", "text_b")
_EXAMPLES = {
    _ONE: {"text": ["What a lovely film."]},
    _PAIR: {"text_a": ["A man plays the guitar."], "text_b": ["Someone makes music."]},
}


@dataclasses.dataclass(frozen=True)
class EncodedTexts(TrainingRows):
    """Texts ready for the model.

    >>> from bert_tf.data.batching import EncodedRows
    >>> encoded = EncodedRows(np.array([2, 5, 3, 2, 3]), np.zeros(5, int), np.array([0, 3, 5]))
    >>> inputs, targets = EncodedTexts(encoded, np.array([1, 0])).take(np.array([0, 1]))
    >>> inputs["input_word_ids"].tolist(), targets.tolist()
    ([[2, 5, 3], [2, 3, 0]], [1, 0])

    Attributes:
        encoded: the packed texts.
        targets: [rows], int32 classes or float32 numbers.
        weights: float32 [rows], the weight of each row; None if all count equally.
    """

    targets: np.ndarray
    weights: np.ndarray | None = None

    def take(self, rows: np.ndarray) -> tuple:
        """The model's inputs, targets [batch], and weights if there are any."""
        weights = None if self.weights is None else self.weights[rows]
        return keras.utils.pack_x_y_sample_weight(self.inputs(rows), self.targets_of(rows), weights)

    def targets_of(self, rows: np.ndarray) -> np.ndarray:
        """The targets of some rows, [batch]."""
        return self.targets[rows]

    def inputs(self, rows: np.ndarray) -> dict[str, np.ndarray]:
        """The encoder's inputs, [batch, seq_len]."""
        return self.encoded.take(rows)


class TextModel(TaskModel):
    """A linear layer on the pooled output, behind dropout.

    Args:
        encoder: the encoder.
        tokenizer: its tokenizer.
        outputs: how many outputs the head has; None creates it later.
        head: the subclass's own arguments.
        pair: whether a row is two texts; None lets the first `fit` decide.
        max_length: most tokens of a row, longer texts are cut.
        dropout: rate on the pooled output; None takes the encoder's.
        **kwargs: as for `TaskModel`.
    """

    setting_names: ClassVar[tuple[str, ...]] = ("pair", "max_length")
    # What the head's weights are called.
    head_name: ClassVar[str] = "classifier"
    # The form of its rows.
    texts_type: ClassVar[type[Texts]] = LabelledTexts

    def __init__(
        self,
        encoder: Encoder,
        tokenizer: Tokenizer | None,
        outputs: int | None,
        head: dict[str, Any],
        pair: bool | None = None,
        max_length: int | None = None,
        dropout: float | None = None,
        **kwargs: Any,
    ):
        super().__init__(encoder, tokenizer, {"dropout": dropout} | head, max_length, **kwargs)
        if tokenizer is not None:
            self.preprocessor()
        self.pair = pair
        self.classifier: Any = None
        self.dropout = self.make_dropout(dropout)
        if outputs is not None:
            self.classifier = self.make_linear(outputs, self.head_name)
        self.build()

    def build(self, input_shape: Any = None) -> None:
        """Creates the head's weights."""
        for layer in (self.dropout, self.classifier):
            if layer is not None and not layer.weights:
                layer.build((None, self.encoder.config.output_size))
        self.built = True

    def call(self, inputs: Mapping[str, tf.Tensor], training: bool = False) -> tf.Tensor:
        """Maps the encoder's inputs to float32 [batch, outputs]."""
        self._check_ready()
        pooled = self.encoder.pooled(inputs, training=training)
        return tf.cast(self.classifier(self.dropout(pooled, training=training)), tf.float32)

    @property
    def input_names(self) -> tuple[str, ...]:
        return _PAIR if self.pair else _ONE

    def names_of(self, x: Any) -> tuple[str, ...]:
        # The input decides, as long as the model takes one text or two.
        if self.pair is None:
            is_pair = isinstance(x, tuple) or isinstance(x, Mapping) and set(_PAIR) <= set(x)
            return _PAIR if is_pair else _ONE
        return self.input_names

    def rows(self, given: Given) -> Texts:
        names = _PAIR if len(given.columns) == 2 else _ONE
        if self.pair is not None and names != self.input_names:
            raise UserError(f"the model takes {' and '.join(self.input_names)}")
        columns = tuple(
            inputs.texts_of(column, name) for column, name in zip(given.columns, names, strict=True)
        )
        labels, classes = (None, ()) if given.targets is None else self.labels_of(given.targets)
        return self.texts_type(
            "the data", columns, labels, range(len(given)), place="row", classes=classes
        )

    def labels_of(self, targets: list) -> tuple[list[Any], tuple[str, ...]]:
        """The targets as labels of `texts_type`, and all classes in their order; () for numbers."""
        raise NotImplementedError

    def targets(self, rows: Any) -> np.ndarray:
        """[rows]: the targets as the model predicts them.

        Raises:
            UserError: a label that the model cannot predict.
        """
        raise NotImplementedError

    def learn_from(self, rows: Any) -> None:
        if self.pair is None:
            self.pair = len(rows.columns) == 2

    def settle(self) -> None:
        # Texts are single if the checkpoint does not say.
        self.pair = bool(self.pair)

    def matched(self, outputs: tf.Tensor, y: Any) -> Sequence[Matched]:
        # Classes, of which one is right.
        return [Matched("classes", outputs)]

    def any_label(self) -> Any:
        """A label that rows of `texts_type` may have."""
        return self.labels[0]

    def with_any_targets(self, rows: Texts) -> Texts:
        return dataclasses.replace(rows, labels=[self.any_label()] * len(rows))

    def joined(self, rows: Texts, more: Texts) -> Texts:
        columns = zip(rows.columns, more.columns, strict=True)
        return dataclasses.replace(
            rows,
            columns=tuple([*first, *second] for first, second in columns),
            labels=[*rows.known_labels(), *more.known_labels()],
            places=[*rows.places, *more.places],
        )

    def examples(
        self,
        rows: Texts,
        weights: np.ndarray | None = None,
        class_weight: Mapping[int, float] | None = None,
    ) -> EncodedTexts:
        targets = self.targets(rows)
        if class_weight is not None:
            of_rows = np.array([class_weight.get(int(each), 1.0) for each in targets], np.float32)
            weights = of_rows if weights is None else weights * of_rows
        return EncodedTexts(self.encoded(rows.columns), targets, weights)

    def check_targets(self, rows: Texts) -> None:
        self.targets(rows)

    def encode(self, x: Any, y: Any, weights: Any = None) -> tuple:
        if isinstance(x, Mapping):
            x = tuple(x[name] for name in self.names_of(x))
        features = self.preprocessor()(x)
        return keras.utils.pack_x_y_sample_weight(features, self.encode_targets(y), weights)

    def encode_targets(self, y: tf.Tensor) -> tf.Tensor:
        """Targets of a batch of a dataset in a graph."""
        raise NotImplementedError

    def _learn_from_dataset(self, dataset: tf.data.Dataset, steps: int | None) -> None:
        super()._learn_from_dataset(dataset, steps)
        x = dataset.element_spec[0]
        names = self.names_of(x)
        columns = len(x) if isinstance(x, tuple | Mapping) else 1
        if self.pair is not None and columns != len(names):
            raise UserError(
                f"the model takes {' and '.join(names)}, but the dataset has {columns} columns"
            )
        self.pair = names == _PAIR

    def infer(
        self, rows: Texts, batch_size: int | None = None, verbose: int | str = "auto"
    ) -> np.ndarray:
        """float32 [rows, outputs]: the logits, or [rows]: the numbers."""
        asked = rows_of(rows.columns, self.input_names)
        logits = each_answer(
            self, "logits", asked, lambda outputs, i, _: outputs["logits"][i], batch_size, verbose
        )
        return np.stack(logits)

    def logits(self, given: Mapping[str, tf.Tensor]) -> tf.Tensor:
        """The model's output for strings, in bounded memory however large the batch.

        Rows with the same token ids have the same output, that of the first of them.
        """
        preprocess = GroupPreprocessor(self.tokenizer, self.max_length)
        features = preprocess([given[name] for name in self.input_names])
        return map_rows(self.network(), features)

    def inner_signatures(self) -> dict[str, Signature]:
        return {"logits": self._of(lambda given: {"logits": self.logits(given)})}

    def signatures(self) -> dict[str, Signature]:
        return {"serving_default": self._of(lambda given: self._decoded(self.logits(given)))}

    def strings_form(self) -> StringsForm:
        """The inputs of `serving_default`, and the outputs of `device_form`."""
        form, names = self.device_form(), self.input_names

        def respond(outputs: Mapping[str, np.ndarray], _: Any) -> Tensors:
            found = {name: tf.constant(values) for name, values in outputs.items()}
            return self._decoded(form.restore(found, {}))

        return StringsForm(names, form.outputs, of_packed(form, names), lambda row: [row], respond)

    def decode(self, logits: tf.Tensor) -> Tensors:
        """The outputs of `serving_default` from the model's outputs."""
        raise NotImplementedError

    def _decoded(self, logits: tf.Tensor) -> Tensors:
        """As `decode`; rows with the same logits have the same outputs."""
        first = first_equal(logits)
        return {name: tf.gather(each, first) for name, each in self.decode(logits).items()}

    def _of(self, answer: Any) -> Signature:
        example = _EXAMPLES[self.input_names]
        return Signature(strings(*example), answer, example)

    @classmethod
    def answers(
        cls, model: Answers, x: Any, batch_size: int | None = None, verbose: int | str = "auto"
    ) -> Any:
        names = tuple(model.ranks("serving_default"))
        x, single = inputs.as_batch(x)
        columns = inputs.columns_of(x, names)
        checked = [inputs.texts_of(each, name) for each, name in zip(columns, names, strict=True)]
        answers = each_answer(
            model,
            "serving_default",
            rows_of(checked, names),
            lambda outputs, place, _: cls.answer(outputs, place),
            batch_size,
            verbose,
        )
        return answers[0] if single else answers

    @staticmethod
    def answer(outputs: Outputs, place: int) -> Any:
        """One row of the outputs of `serving_default`, as a Python value."""
        raise NotImplementedError
