"""What a family of tasks defines for its model: its rows, their encoding, decoding and scores."""

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Protocol, Self

import numpy as np
import tensorflow as tf

from bert_tf.asking import Answers
from bert_tf.data.batching import TrainingRows
from bert_tf.distillation.losses import Matched
from bert_tf.errors import UserError
from bert_tf.export.litert.form import DeviceForm, StringsForm
from bert_tf.export.service import Signature
from bert_tf.models.encoder_model import EncoderModel
from bert_tf.tasks.inputs import Given


class Network(Protocol):
    """What computes a model's outputs: the model, or what stands for it in an export."""

    def __call__(self, inputs: Mapping[str, tf.Tensor]) -> Any:
        """Maps the encoder's inputs to the outputs of the task model's `call`; it never trains."""

    def function(self, compute: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """`compute`, which uses the model by its parts, as the graph is to have it."""


class TaskInterface(EncoderModel):
    """The methods of a task model that its family defines, the abstract ones first.

    Attributes:
        labels: names of the classes; () before the first `fit`, and for tasks without classes.
        max_length: most tokens of an input.
    """

    # Names of what `serving_default` returns, by which a SavedModel of the family is known.
    answer_names: ClassVar[tuple[str, ...]]
    # The arguments of the constructor that decide how strings are read and answers are made.
    setting_names: ClassVar[tuple[str, ...]] = ("max_length",)
    # The default of `max_length`, at most the positions of the encoder; None takes all of them.
    default_max_length: ClassVar[int | None] = 128
    # The arguments of `answers` by which one call of `predict` differs from another.
    answer_options: ClassVar[tuple[str, ...]] = ()
    has_labels: ClassVar[bool] = False
    # Whether `fit` takes targets besides the inputs; None: it takes them if they are given.
    has_targets: ClassVar[bool | None] = True

    labels: tuple[str, ...]
    max_length: int

    @property
    @abstractmethod
    def input_names(self) -> tuple[str, ...]:
        """Names of the columns that `fit` and `evaluate` take, those of a row together."""

    @abstractmethod
    def rows(self, given: Given) -> Any:
        """Checks the rows of a user, and brings them into the form in which files are read.

        Raises:
            UserError: an input or a target has a wrong type or value; with its position.
        """

    @abstractmethod
    def learn_from(self, rows: Any) -> None:
        """Sets what the first training rows decide: the labels, and one text or two.

        Raises:
            UserError: the rows do not fit what was decided before.
        """

    @abstractmethod
    def examples(
        self,
        rows: Any,
        weights: np.ndarray | None = None,
        class_weight: Mapping[int, float] | None = None,
    ) -> TrainingRows:
        """Encodes rows to train on; each is tokenized once.

        Args:
            rows: with targets.
            weights: float32 [rows], the weight of each row.
            class_weight: class -> the weight of its rows; others have weight 1.

        Raises:
            UserError: a target that the model cannot predict.
        """

    @abstractmethod
    def encode(self, x: Any, y: Any, weights: Any = None) -> tuple:
        """As `examples`, in a graph, for a batch of a dataset: inputs, targets, maybe weights."""

    @abstractmethod
    def infer(self, rows: Any, batch_size: int | None = None, verbose: int | str = "auto") -> Any:
        """The predictions for all rows, in their order, for `official_metrics`."""

    @abstractmethod
    def official_metrics(self, predictions: Any, rows: Any) -> dict[str, float]:
        """The official metrics of predictions; {} if the rows have no targets."""

    @abstractmethod
    def signatures(self) -> dict[str, Signature]:
        """The signatures of the exported model by name; "serving_default" is one of them.

        They compute with `network`.
        """

    @classmethod
    @abstractmethod
    def answers(
        cls, model: Answers, x: Any, batch_size: int | None = None, verbose: int | str = "auto"
    ) -> Any:
        """Answers of a model of this class, or of a SavedModel of one, as Python values.

        A subclass may add arguments, which it names in `answer_options`.

        Args:
            model: the model, or the SavedModel.
            x: the inputs: a column, a tuple of columns, or a dict of columns by their names.
            batch_size: rows of a batch (32).
            verbose: 0 shows no progress.

        Returns:
            A list with an answer for each row; for a single row, its answer.

        Raises:
            UserError: the inputs are not what the model takes.
        """

    def device_form(self) -> DeviceForm:
        """What the model answers on a device.

        Raises:
            UserError: the family has no such form; by default it has none.
        """
        raise UserError(
            f"a {type(self).__name__} cannot be exported to LiteRT; export a SavedModel instead"
        )

    def strings_form(self) -> StringsForm:
        """How the model is asked with strings on a device.

        Raises:
            UserError: the family has no such form; by default it has none.
        """
        raise UserError(
            f"LiteRT lacks operations that a {type(self).__name__} requires to read strings; "
            "export a file that takes ids"
        )

    @classmethod
    def class_for(cls, settings: Mapping[str, Any]) -> type[Self]:
        """The class of the model with such arguments; by default this one."""
        del settings
        return cls

    def settle(self) -> None:
        """Decides the settings that a checkpoint left open; by default there are none."""

    def check_targets(self, rows: Any) -> None:
        """Raises UserError if rows have targets that the model cannot predict."""

    def remember(self, metrics: Mapping[str, float]) -> None:
        """Keeps values found on dev data, such as a threshold; by default there are none.

        Args:
            metrics: the result of `official_metrics` on the dev data.
        """

    def matched(self, outputs: Any, y: Any) -> Sequence[Matched]:
        """What of the outputs of `call` a student learns from its teacher.

        Args:
            outputs: of `call`, for some rows.
            y: the targets of the rows; only their form is used, such as which tokens count.

        Raises:
            UserError: the family does not define it.
        """
        raise UserError(
            f"a {type(self).__name__} cannot be distilled: its class does not define matched"
        )

    def with_any_targets(self, rows: Any) -> Any:
        """Rows with targets that `examples` takes, where these have none; they do not count."""
        return rows

    def joined(self, rows: Any, more: Any) -> Any:
        """Rows, with others of the same kind after them; by default both are lists."""
        return [*rows, *more]

    def learns_without_targets(self, rows: Any) -> bool:
        """Whether rows without targets have a loss of their own; by default they have none."""
        del rows
        return False

    def own_losses(self) -> dict[str, Any]:
        """Loss and metrics for `compile`; {} if they are built in."""
        return {}

    def exported_functions(self) -> dict[str, Callable]:
        """What a program that loads an export in Python finds in it besides `serve`, by name.

        By default there is nothing.
        """
        return {}

    def inner_signatures(self) -> dict[str, Signature]:
        """Signatures that evaluation calls, and that are not exported."""
        return {}

    def names_of(self, x: Any) -> tuple[str, ...]:
        """Names of the inputs that `x` should have."""
        return self.input_names
