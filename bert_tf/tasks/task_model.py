"""The common base of all task models: one Keras model that takes strings and answers with strings.

A task model owns its encoder, its preprocessing, its labels and its decoding. Each family defines
in a subclass what its rows are, and how they are encoded, decoded and scored.
"""

import contextlib
import os
import random
import re
from abc import abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Protocol, Self

import keras
import numpy as np
import tensorflow as tf

from bert_tf.asking import Answers, Outputs, Row, tensors_of
from bert_tf.checkpoints import conversion
from bert_tf.checkpoints.description import vocabulary_hash
from bert_tf.config.train import FinetuningTrain
from bert_tf.data.batching import TrainingRows, training_batches
from bert_tf.encoder.dropout import Dropout
from bert_tf.encoder.encoder import Encoder
from bert_tf.encoder.frozen import freeze
from bert_tf.encoder.linear import Linear
from bert_tf.errors import UserError
from bert_tf.export.saving import save_task
from bert_tf.export.served_model import Device, Form
from bert_tf.export.service import Signature, Tensors
from bert_tf.io.atomic import atomic_path
from bert_tf.io.vocabulary import read_beside, write_beside
from bert_tf.models.encoder_model import EncoderModel
from bert_tf.optimization import make_optimizer
from bert_tf.tasks import inputs, loading
from bert_tf.tasks.inputs import Given
from bert_tf.tasks.keras_files import FORMAT
from bert_tf.text import Preprocessor, Tokenizer


class Network(Protocol):
    """The interface of a model inside its signatures; in an export it is a `ServedModel`.

    Its attributes are those of the task model.
    """

    def __call__(self, inputs: Mapping[str, tf.Tensor], training: bool = False) -> Any:
        """Maps the encoder's inputs to the outputs of the task model's `call`; it never trains."""

    def function(self, compute: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """`compute`, which uses the model by its parts, as the graph is to have it."""

    def __getattr__(self, name: str) -> Any: ...


# Rows in one step of a fine-tuning, as in its configuration.
_BATCH_SIZE = FinetuningTrain.model_fields["batch_size"].default
# The seed that TensorFlow reports where none was set.
_NO_SEED = 87654321


class TaskModel(EncoderModel):
    """A model of one task, from strings to answers.

    Args:
        encoder: the encoder.
        tokenizer: its tokenizer.
        head: the arguments of the head, kept for checkpoints.
        max_length: most tokens of an input; None is `default_max_length`, or as many as the encoder
            has positions.
        uses_pooler: whether the head reads the pooled output.

    Attributes:
        labels: names of the classes; () before the first `fit`, and for tasks without classes.
        max_length: as above.
        origin: where the model was loaded from (`bert_tf.export.model_card.Origin`).

    Raises:
        UserError: a tokenizer or a length that does not fit the encoder.
    """

    # Names of what `serving_default` returns, by which a SavedModel of the family is known.
    answer_names: ClassVar[tuple[str, ...]]
    # The arguments of the constructor that decide how strings are read and answers are made.
    setting_names: ClassVar[tuple[str, ...]] = ("max_length",)
    # Of a model that is not given another one, as far as the encoder has positions; None is all.
    default_max_length: ClassVar[int | None] = 128
    has_labels: ClassVar[bool] = False
    # Whether `fit` takes targets besides the inputs.
    has_targets: ClassVar[bool] = True
    # Keras's.
    optimizer: Any

    def __init__(
        self,
        encoder: Encoder,
        tokenizer: Tokenizer | None,
        head: dict[str, Any],
        max_length: int | None = None,
        uses_pooler: bool = True,
        **kwargs: Any,
    ):
        super().__init__(encoder, head, uses_pooler=uses_pooler, **kwargs)
        encoder.config.check_length("max_length", max_length or 0)
        longest = encoder.config.max_position_embeddings
        if max_length is None:
            max_length = min(self.default_max_length or longest, longest)
        self.max_length = max_length
        self.labels: tuple[str, ...] = ()
        self.origin: Any = None
        # The vocabulary's hash and the casing, where the tokenizer is still to be loaded.
        self._vocabulary: tuple[str | None, bool] = (None, True)
        self._functions = _Functions()
        self._compiled_by_fit = False
        self._epochs_drawn = 0
        self._tokenizer: Tokenizer | None = None
        if tokenizer is not None:
            self._set_tokenizer(tokenizer)

    # ---- What a family says -----------------------------------------------------------------

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
    def signatures(self, network: Network | None = None) -> dict[str, Signature]:
        """The signatures of the exported model by name; "serving_default" is one of them.

        Args:
            network: used in place of this model, for example with frozen weights; None is the
                model itself.
        """

    @classmethod
    @abstractmethod
    def answers(
        cls, model: Answers, x: Any, batch_size: int | None = None, verbose: int | str = "auto"
    ) -> Any:
        """Answers of a model of this class, or of a SavedModel of one, as Python values.

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

    @classmethod
    def class_for(cls, settings: Mapping[str, Any]) -> type[Self]:
        """The class of the model with such arguments; by default this one."""
        del settings
        return cls

    def settle(self) -> None:
        """Decides the settings that a checkpoint left open; by default there are none."""

    def make_dropout(self, rate: float | None) -> Dropout:
        """The head's dropout; None takes the encoder's rate."""
        if rate is None:
            rate = self.encoder.config.hidden_dropout_prob
        return Dropout(rate, name="dropout", dtype=self.dtype_policy)

    def make_linear(self, outputs: int, name: str) -> Linear:
        """A linear layer of the head."""
        return Linear(
            outputs,
            initializer_range=self.encoder.config.initializer_range,
            name=name,
            dtype=self.dtype_policy,
        )

    def preprocessor(self) -> Preprocessor:
        """The preprocessor that packs texts, or pairs, into rows of at most `max_length` tokens."""
        return Preprocessor(self.tokenizer, self.max_length, padding="batch")

    def own_losses(self) -> dict[str, Any]:
        """Loss and metrics for `compile`; {} if they are built in."""
        return {}

    def inner_signatures(self) -> dict[str, Signature]:
        """Signatures that evaluation calls, and that are not exported."""
        return {}

    # ---- Making and loading -----------------------------------------------------------------

    @classmethod
    def from_checkpoint(
        cls,
        path: str | os.PathLike,
        *,
        labels: Sequence[str | int] | None = None,
        dtype: str | keras.DTypePolicy | None = None,
        layout: str = "unpadded",
        **settings: Any,
    ) -> Self:
        """A model with the weights of a checkpoint; a message reports what was loaded.

        A head of the same task is loaded with its labels and settings. Otherwise the head is new.

        Args:
            path: a run folder, a `.keras` file, a checkpoint of any format, or a name on the
                Hugging Face Hub such as "google-bert/bert-base-uncased". A path that exists wins.
            labels: names of the classes; None takes those of the checkpoint, or of the first `fit`.
            dtype: Keras's dtype policy, such as "mixed_bfloat16".
            layout: as for `Encoder`.
            **settings: arguments of the constructor, such as `max_length`.

        Raises:
            UserError: there is no checkpoint at `path`, it is damaged, or a setting is unknown.
        """
        return loading.from_checkpoint(
            cls, path, labels=labels, dtype=dtype, layout=layout, settings=settings
        )

    @property
    def tokenizer(self) -> Tokenizer:
        """The tokenizer. Raises UserError if the model was made without one."""
        if self._tokenizer is None:
            raise UserError(
                f"this {type(self).__name__} was made from its configuration, which holds no "
                "vocabulary; load the whole .keras file instead"
            )
        return self._tokenizer

    @property
    def has_tokenizer(self) -> bool:
        """Whether the model was made with a tokenizer."""
        return self._tokenizer is not None

    @property
    def settings(self) -> dict[str, Any]:
        """The arguments of the constructor that are kept in checkpoints, without the head's."""
        return {name: getattr(self, name) for name in self.setting_names}

    def rebuilt(self, encoder: Encoder) -> Self:
        """The same model with new weights, around another encoder."""
        head = {name: value for name, value in self.head.items() if name != "num_classes"}
        own = {"labels": self.labels} if self.has_labels else {}
        # The constructors of subclasses take other arguments than this class's.
        make: Callable[..., Self] = type(self)
        model = make(encoder, self._tokenizer, **own, **head, **self.settings)
        model.origin = self.origin
        return model

    def name_classes(self, labels: Sequence[Any]) -> None:
        """Names the classes, and creates the head that predicts them, in this model's strategy.

        Raises:
            UserError: a label that cannot name a class, or occurs twice.
        """
        names, _ = inputs.label_texts(list(labels))
        inputs.check_class_names(names)
        with self._scope():
            self.set_labels(tuple(names))

    def set_labels(self, labels: tuple[str, ...]) -> None:
        """Sets the checked labels of `name_classes`; a subclass creates its head."""
        self.labels = labels
        self._functions.clear()

    def _set_tokenizer(self, tokenizer: Tokenizer) -> None:
        self.encoder.config.check_vocabulary(tokenizer.vocab_size)
        self._tokenizer = tokenizer
        self._functions.clear()

    def get_config(self) -> dict[str, Any]:
        """Plain data from which `from_config` builds the same model, without the vocabulary.

        The vocabulary itself is an asset of the `.keras` file.
        """
        config = super().get_config()
        config.pop("num_classes", None)
        known, lower_case = self._vocabulary
        if self._tokenizer is not None:
            known = vocabulary_hash(self._tokenizer.vocabulary)
            lower_case = self._tokenizer.lower_case
        own: dict[str, Any] = {"vocabulary": known, "lower_case": lower_case, "format": FORMAT}
        if self.has_labels:
            own["labels"] = list(self.labels)
        return config | self.settings | own

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: Any = None) -> Self:
        """The model that `get_config` described, with new weights and no vocabulary yet."""
        fields = dict(config)
        written = fields.pop("format", FORMAT)
        if type(written) is not int:
            raise UserError(f"the format of this {cls.__name__} is {written!r}, not a number")
        if written > FORMAT:
            raise UserError(
                f"this {cls.__name__} was saved by a later bert_tf (format {written}); update "
                "bert_tf to load it"
            )
        frozen = fields.pop("frozen", ())
        vocabulary = fields.pop("vocabulary", None), fields.pop("lower_case", True)
        encoder = keras.saving.deserialize_keras_object(fields.pop("encoder"))
        model = cls(encoder, None, **fields)
        model._vocabulary = vocabulary
        freeze(model, frozen)
        return model

    def save_assets(self, folder: str) -> None:
        """Writes the vocabulary into a folder of the `.keras` file."""
        if self._tokenizer is not None:
            write_beside(Path(folder), self._tokenizer.vocabulary)

    def load_assets(self, folder: str) -> None:
        """Reads the vocabulary back.

        Raises:
            UserError: it is missing, damaged, or not the one that the model was saved with.
        """
        known, lower_case = self._vocabulary
        if known is None:
            return
        vocabulary = read_beside(Path(folder))
        if vocabulary is None or vocabulary_hash(vocabulary) != known:
            raise UserError(
                "the vocabulary in the .keras file is not the one that it was saved with"
            )
        self._set_tokenizer(Tokenizer(vocabulary, lower_case))

    # ---- Saving -------------------------------------------------------------------------------

    def save(self, filepath: str | os.PathLike, overwrite: bool = True, **kwargs: Any) -> None:
        """Keras's `save`: a `.keras` file with vocabulary and labels inside, written atomically.

        Args:
            filepath: ends in `.keras`.
            overwrite: whether a file that is there is replaced.
            **kwargs: as in Keras.

        Raises:
            UserError: the file cannot be written, or is there and `overwrite` is false.
        """
        path = Path(filepath)
        if path.suffix != ".keras":
            super().save(filepath, overwrite=overwrite, **kwargs)
            return
        if path.exists() and not overwrite:
            raise UserError(f"{path} exists already; choose another file, or set overwrite=True")
        with self._without_recipe(), atomic_path(path, is_file=True) as new:
            super().save(new, overwrite=True, **kwargs)

    @contextlib.contextmanager
    def _without_recipe(self) -> Iterator[None]:
        """Hides the optimizer that `fit` made: the next `fit` makes its own."""
        if not self._compiled_by_fit:
            yield
            return
        optimizer, self.optimizer = self.optimizer, None
        try:
            yield
        finally:
            self.optimizer = optimizer

    def save_checkpoint(self, folder: str | os.PathLike, format: str = "bert_tf") -> None:
        """Writes the model with its tokenizer as a new folder of another program's format.

        Args:
            folder: it must not exist yet.
            format: "bert_tf", "huggingface" (transformers), "tf1" (google-research/bert) or
                "model_garden" (tf-models-official).

        Raises:
            UserError: an unknown format, a model without labels, or a folder that exists or cannot
                be written.
        """
        conversion.save(self, folder, format)

    def export(
        self,
        filepath: str | os.PathLike,
        format: str = "tf_saved_model",
        verbose: bool | None = None,
        input_signature: Any = None,
        *,
        version: int | None = None,
        precision: str | None = None,
        freeze: bool = False,
        device: Device = "cpu",
        **kwargs: Any,
    ) -> None:
        """Writes a SavedModel that takes strings and returns answers.

        With `input_signature`, or in another format, it is Keras's `export` of the model of ids.

        Args:
            filepath: the folder to write; it must not exist yet.
            format: "tf_saved_model", or another of Keras's formats.
            verbose: as in Keras.
            input_signature: as in Keras.
            version: writes the folder of this number in `filepath`, as TensorFlow Serving expects.
            precision: "float32" or "bfloat16"; None is the precision of the model.
            freeze: whether the weights become constants, in that precision.
            device: "cpu" computes on the CPU, in the form that is fastest there; "any" leaves the
                device to the program that runs the export, for example a GPU.
            **kwargs: as in Keras.

        Raises:
            UserError: the model has no labels yet, or the folder exists or cannot be written.
        """
        if input_signature is None and format == "tf_saved_model":
            self._check_ready()
            save_task(self, filepath, Form(precision, freeze, device), version)
            return
        if input_signature is None:
            raise UserError(
                f"format {format!r} holds a model of ids; give the input_signature of its inputs"
            )
        super().export(
            filepath, format=format, verbose=verbose, input_signature=input_signature, **kwargs
        )

    # ---- Training -----------------------------------------------------------------------------

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Keras's `compile`, with the loss of the task as the default; see `EncoderModel`.

        A compiled model is trained as it was compiled. Otherwise `fit` compiles it.
        """
        if len(args) < 2 and kwargs.get("loss") is None:
            own = self.own_losses()
            kwargs = own | {name: value for name, value in kwargs.items() if value is not None}
        super().compile(*args, **kwargs)
        self._compiled_by_fit = False

    def get_compile_config(self) -> dict[str, Any] | None:
        """Keras's configuration; None if `fit` compiled the model."""
        return None if self._compiled_by_fit else super().get_compile_config()

    def fit(
        self,
        x: Any = None,
        y: Any = None,
        batch_size: int | None = None,
        epochs: int = 1,
        verbose: int | str = "auto",
        callbacks: Any = None,
        validation_split: float = 0.0,
        validation_data: Any = None,
        shuffle: bool = True,
        class_weight: Mapping[Any, float] | None = None,
        sample_weight: Any = None,
        initial_epoch: int = 0,
        steps_per_epoch: int | None = None,
        validation_steps: int | None = None,
        validation_batch_size: int | None = None,
        validation_freq: int | Collection[int] = 1,
        *,
        learning_rate: float | None = None,
        seed: int | None = None,
    ) -> keras.callbacks.History:
        """Keras's `fit`, on strings or on ids.

        A model that was not compiled is compiled in each call with the paper's recipe: AdamW,
        10 % warm-up, linear decay over all steps, clipping at norm 1, weight decay 0.01.

        Strings in memory are tokenized once. Rows of similar length share a batch; rows that fill
        no batch at the end of an epoch are left for the next one. A dataset of strings is tokenized
        in its pipeline, and keeps its own batches. The logs carry the official metrics of the
        validation data as `val_…`.

        Args:
            x: the inputs, see the class; or a batched dataset of (x, y).
            y: the targets, see the class.
            batch_size: rows of a batch (32).
            class_weight: weights by the class's number or name.
            learning_rate: the highest learning rate, if the model is not compiled (5e-5).
            seed: decides the order of the rows; None follows `keras.utils.set_random_seed`.
            epochs: as in Keras, and so are all parameters that are not named here.

        Returns:
            Keras's history.

        Raises:
            UserError: inputs or targets that do not fit the model or each other; one sentence with
                the position.
        """
        options = {
            "epochs": epochs,
            "verbose": verbose,
            "initial_epoch": initial_epoch,
            "validation_freq": validation_freq,
        }
        if inputs.is_for_keras(x):
            return super().fit(
                x,
                y,
                batch_size,
                callbacks=callbacks,
                validation_split=validation_split,
                validation_data=validation_data,
                shuffle=shuffle,
                class_weight=class_weight,
                sample_weight=sample_weight,
                steps_per_epoch=steps_per_epoch,
                validation_steps=validation_steps,
                validation_batch_size=validation_batch_size,
                **options,
            )
        if learning_rate is not None and self.compiled and not self._compiled_by_fit:
            raise UserError(
                "learning_rate is for a model that is not compiled; give it to the optimizer in "
                "compile, or leave it out"
            )
        if isinstance(x, tf.data.Dataset):
            if y is not None or sample_weight is not None or validation_split:
                raise UserError(
                    "a dataset holds its targets and weights itself; leave out y, sample_weight "
                    "and validation_split"
                )
            self._learn_from_dataset(x, steps_per_epoch)
            if class_weight is not None and len(x.element_spec) > 2:
                raise UserError(
                    "the dataset has weights of its own, which Keras does not combine with "
                    "class_weight; multiply them in the dataset"
                )
            batches, steps = self._encoded_dataset(x), steps_per_epoch or _steps_of(x)
            weights = {"class_weight": self._weights_by_number(class_weight)}
        else:
            given = self.given(x, y, sample_weight)
            if validation_split and validation_data is None:
                given, validation_data = given.split(validation_split)
            rows = self.rows(given)
            self.learn_from(rows)
            examples = self.examples(rows, given.weights, self._weights_by_number(class_weight))
            batch_size = min(batch_size or _BATCH_SIZE, len(examples.lengths))
            steps = steps_per_epoch or len(examples.lengths) // batch_size
            first = (self._epochs_drawn + initial_epoch) * steps
            batches = self._batches(examples, batch_size, seed, first, shuffle)
            self._epochs_drawn += epochs - initial_epoch
            weights, steps_per_epoch = {}, steps
        validation, keras_validation = self._validation(
            validation_data, validation_steps, validation_batch_size or batch_size, options
        )
        if not self.compiled or self._compiled_by_fit:
            self._compile_for(steps * epochs, learning_rate)
        try:
            return super().fit(
                batches,
                callbacks=_first(validation, callbacks),
                shuffle=False,
                steps_per_epoch=steps_per_epoch,
                **weights,
                **keras_validation,
                **options,
            )
        except tf.errors.InvalidArgumentError as error:
            raise _explained(error) from None

    def evaluate(
        self,
        x: Any = None,
        y: Any = None,
        batch_size: int | None = None,
        verbose: int | str = "auto",
        sample_weight: Any = None,
        steps: int | None = None,
        callbacks: Any = None,
        return_dict: bool = False,
        **kwargs: Any,
    ) -> Any:
        """The official metrics on strings; on ids, Keras's `evaluate`.

        Args:
            x: as for `fit`.
            y: as for `fit`.
            batch_size: rows of a batch (32).
            verbose: 0 shows no progress.
            steps: batches to take of a dataset.
            sample_weight: as in Keras, for ids.
            callbacks: as in Keras, for ids.
            return_dict: as in Keras, for ids.
            **kwargs: Keras's own.

        Returns:
            On strings a dict of metrics, the same that `bert-tf evaluate` prints.

        Raises:
            UserError: as `fit`.
        """
        if inputs.is_for_keras(x):
            return super().evaluate(
                x, y, batch_size, verbose, sample_weight, steps, callbacks, return_dict, **kwargs
            )
        if sample_weight is not None:
            raise UserError("the official metrics count all rows alike; leave out sample_weight")
        self._check_ready()
        given = self._given_of(x, y, steps)
        rows = self.rows(given)
        if given.targets is None and self.has_targets:
            raise UserError("the labels are missing; give them as the second argument of evaluate")
        return self.official_metrics(self.infer(rows, batch_size, verbose), rows)

    def given(self, x: Any, y: Any = None, sample_weight: Any = None) -> Given:
        """The arguments of `fit` or `evaluate` as lists.

        Raises:
            UserError: a target for each row is missing, or columns of different lengths.
        """
        columns = inputs.columns_of(x, self.names_of(x))
        if not self.has_targets:
            if y is not None:
                raise UserError(f"a {type(self).__name__} learns from texts alone; leave out y")
            inputs.check_count(columns, columns[0], "texts")
            return Given(columns, None, inputs.weights_of(sample_weight, columns))
        if y is None:
            raise UserError(
                "the labels are missing; give them as the second argument, after "
                f"{' and '.join(self.input_names)}"
            )
        targets = inputs.as_list(y, "labels")
        inputs.check_count(columns, targets, "labels")
        return Given(columns, targets, inputs.weights_of(sample_weight, columns))

    def names_of(self, x: Any) -> tuple[str, ...]:
        """Names of the inputs that `x` should have."""
        return self.input_names

    def _given_of(self, x: Any, y: Any, steps: int | None, what: str = "x") -> Given:
        """As `given`; `x` may also be a dataset of (x, y)."""
        if isinstance(x, Given):
            return x
        if isinstance(x, tf.data.Dataset):
            x, y = inputs.from_dataset(x, steps, what)
        return self.given(x, y)

    def _validation(
        self, data: Any, steps: int | None, batch_size: int | None, options: Mapping[str, Any]
    ) -> tuple["_Validation | None", dict[str, Any]]:
        """The callback that validates on strings, and the arguments of Keras's `fit` for ids."""
        if data is None:
            return None, {}
        x = data[0] if isinstance(data, tuple | list) and len(data) else data
        if not isinstance(data, Given) and inputs.is_for_keras(x):
            return None, {
                "validation_data": data,
                "validation_steps": steps,
                "validation_batch_size": batch_size,
            }
        rows = self.rows(self._given_from(data, steps))
        # What is wrong with them shows before the training.
        self.check_targets(rows)
        return _Validation(self, rows, batch_size, options), {}

    def _given_from(self, data: Any, steps: int | None) -> Given:
        """The validation data as lists."""
        if isinstance(data, tf.data.Dataset | Given):
            return self._given_of(data, None, steps, "validation_data")
        if not isinstance(data, tuple | list) or len(data) != 2:
            raise UserError("validation_data must be two entries, (inputs, labels)")
        return self._given_of(data[0], data[1], steps, "validation_data")

    def check_targets(self, rows: Any) -> None:
        """Raises UserError if rows have targets that the model cannot predict."""

    def remember(self, metrics: Mapping[str, float]) -> None:
        """Keeps values found on dev data, such as a threshold; by default there are none.

        Args:
            metrics: the result of `official_metrics` on the dev data.
        """

    def score(self, rows: Any, batch_size: int | None = None, verbose: int | str = "auto") -> dict:
        """The official metrics of the model on rows."""
        return self.official_metrics(self.infer(rows, batch_size, verbose), rows)

    def _weights_by_number(
        self, class_weight: Mapping[Any, float] | None
    ) -> dict[int, float] | None:
        """Weights by class number, from weights by number or by name.

        Raises:
            UserError: a weight of an unknown class.
        """
        if class_weight is None:
            return None
        if not self.has_labels:
            raise UserError(f"class_weight is for classes, which a {type(self).__name__} has not")
        weights = {}
        for key, weight in class_weight.items():
            name = str(key)
            if name in self.labels:
                number = self.labels.index(name)
            elif isinstance(key, int | np.integer) and 0 <= key < len(self.labels):
                number = int(key)
            else:
                raise UserError(
                    f"class_weight has {key!r}, which is no label; there are "
                    f"{', '.join(self.labels)}"
                )
            weights[number] = float(weight)
        return weights

    def _batches(
        self,
        examples: TrainingRows,
        batch_size: int,
        seed: int | None,
        first: int,
        shuffle: bool,
    ) -> tf.data.Dataset:
        is_tpu = isinstance(self.distribute_strategy, tf.distribute.TPUStrategy)
        return training_batches(
            examples,
            batch_size,
            random_seed() if seed is None else seed,
            first,
            length=self.max_length if is_tpu else None,
            shuffle=shuffle,
        )

    def _compile_for(self, steps: int, learning_rate: float | None) -> None:
        """Compiles with the paper's recipe for so many steps."""
        steps = max(steps, 1)
        recipe = FinetuningTrain(steps=steps)
        if learning_rate is not None:
            recipe = recipe.model_copy(update={"learning_rate": learning_rate})
        with self._scope():
            self.compile(optimizer=make_optimizer(recipe, steps))
        self._compiled_by_fit = True

    def _scope(self) -> Any:
        """The scope in which this model's variables are made."""
        return (self.distribute_strategy or tf.distribute.get_strategy()).scope()

    def _learn_from_dataset(self, dataset: tf.data.Dataset, steps: int | None) -> None:
        """Checks a dataset of strings, and sets what it decides."""
        inputs.check_batched(dataset, "x")
        element = dataset.element_spec
        if not isinstance(element, tuple) or len(element) < 2:
            raise UserError("the dataset has no labels; its elements must be (x, y)")
        if dataset.cardinality() == tf.data.INFINITE_CARDINALITY and steps is None:
            raise UserError("the dataset is endless; give steps_per_epoch")
        if self.has_labels and not self.labels:
            raise UserError(
                "the classes of a dataset are not known beforehand; give labels= when the model is "
                "made, as in from_checkpoint(…, labels=['bad', 'good'])"
            )

    def class_of(self, names: tf.Tensor) -> tf.Tensor:
        """The number of each class in a graph: string [...] -> int32 [...]."""
        matches = names[..., tf.newaxis] == tf.constant(self.labels)
        is_known = tf.reduce_any(matches, axis=-1)
        unknown = tf.boolean_mask(names, ~is_known)
        said = tf.strings.join(
            [
                "in the dataset, the label '",
                tf.concat([unknown, [""]], axis=0)[0],
                f"' is unknown; there are {', '.join(self.labels)}",
            ]
        )
        with tf.control_dependencies([tf.debugging.Assert(tf.reduce_all(is_known), [said])]):
            return tf.argmax(matches, axis=-1, output_type=tf.int32)

    def _encoded_dataset(self, dataset: tf.data.Dataset) -> tf.data.Dataset:
        """A dataset of strings as one of ids, tokenized in the pipeline."""
        mapped = dataset.map(
            lambda *batch: self.encode(*batch), num_parallel_calls=tf.data.AUTOTUNE
        )
        return mapped.prefetch(tf.data.AUTOTUNE)

    # ---- Answering ----------------------------------------------------------------------------

    def predict(
        self,
        x: Any = None,
        batch_size: int | None = None,
        verbose: int | str = "auto",
        steps: int | None = None,
        callbacks: Any = None,
        **columns: Any,
    ) -> Any:
        """Answers in Python values; on ids, Keras's `predict`.

        Args:
            x: the inputs, as the class says: a column, a tuple of columns, or a dataset. One row
                gives one answer.
            batch_size: rows of a batch (32).
            verbose: 0 shows no progress.
            steps: batches to take of a dataset.
            callbacks: as in Keras, for ids.
            **columns: the columns by their names instead of `x`.

        Raises:
            UserError: the inputs are not what the model takes.
        """
        x = columns or x
        if inputs.is_for_keras(x):
            return super().predict(x, batch_size, verbose, steps, callbacks)
        if isinstance(x, tf.data.Dataset):
            x, _ = inputs.from_dataset(x, steps, "x")
        self._check_ready()
        return self.answers(self, x, batch_size, verbose)

    def serve(self, inputs: Any = None, **named: Any) -> Tensors:
        """The exported signature `serving_default`: string tensors in, a dict of tensors out.

        Args:
            inputs: a dict of the inputs, or the tensor if there is only one.
            **named: the inputs by name instead.

        Raises:
            UserError: an input is missing.
        """
        self._check_ready()
        specs = self._signature("serving_default").inputs
        given = named or (inputs if isinstance(inputs, Mapping) else {next(iter(specs)): inputs})
        missing = [name for name in specs if name not in given]
        if missing:
            raise UserError(f"there is no {missing[0]}; the model takes {' and '.join(specs)}")
        tensors = {name: tf.convert_to_tensor(given[name], tf.string) for name in specs}
        return self._function("serving_default")(tensors)

    def ranks(self, signature: str) -> dict[str, int]:
        """See `bert_tf.asking.Answers`."""
        specs = self._signature(signature).inputs
        return {name: spec.shape.rank for name, spec in specs.items()}

    def ask(self, signature: str, rows: Sequence[Row]) -> Outputs:
        """See `bert_tf.asking.Answers`."""
        outputs = self._function(signature)(tensors_of(rows, self.ranks(signature)))
        return {name: value.numpy() for name, value in outputs.items()}

    def _signature(self, name: str) -> Signature:
        known = self.signatures()
        if name in known:
            return known[name]
        inner = self.inner_signatures()
        if name in inner:
            return inner[name]
        raise UserError(f"there is no signature {name!r}; there are {', '.join(known)}")

    def _function(self, name: str) -> Callable[[Tensors], Tensors]:
        """A signature as a function of the graph, traced once for the same settings."""
        self._check_ready()

        def make() -> Callable[[Tensors], Tensors]:
            signature = self._signature(name)
            traced = tf.function(signature.answer, autograph=False)
            return traced.get_concrete_function(dict(signature.inputs))

        return self._functions.get(f"{name} with {self.settings}", make)

    def _network(self, network: Network | None) -> Network:
        return network or _Live(self)

    def _check_ready(self) -> None:
        """Raises UserError if the model has no head yet."""
        if self.has_labels and not self.labels:
            raise self._without_labels()

    def _without_labels(self) -> UserError:
        """The error message for a model that has no head yet."""
        return UserError(
            f"this {type(self).__name__} has no labels yet; train it with fit, or load a "
            "checkpoint with its head"
        )


def losses_of_classes() -> dict[str, Any]:
    """The loss and the metric of a model that chooses one of several classes, for `compile`.

    >>> {name: type(value).__name__ for name, value in losses_of_classes().items()}
    {'loss': 'SparseCategoricalCrossentropy', 'metrics': 'list'}
    """
    return {
        "loss": keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        "metrics": [keras.metrics.SparseCategoricalAccuracy("accuracy")],
    }


class _Live:
    """A task model as its own signatures use it; see `Network`."""

    def __init__(self, model: TaskModel):
        self._model = model

    def __call__(self, inputs: Mapping[str, tf.Tensor], training: bool = False) -> Any:
        return self._model(inputs, training=False)

    def function(self, compute: Callable[[Any], Any]) -> Callable[[Any], Any]:
        return compute

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)


class _Functions:
    """Traced functions by name. As an object of its own Keras does not look into it."""

    def __init__(self) -> None:
        self._made: dict[str, Callable] = {}

    def get(self, name: str, make: Callable[[], Callable]) -> Callable:
        if name not in self._made:
            self._made[name] = make()
        return self._made[name]

    def clear(self) -> None:
        self._made.clear()


class _Validation(keras.callbacks.Callback):
    """Adds the official metrics of the validation data to the logs of an epoch, as `val_…`.

    It comes before all other callbacks, which find them there.
    """

    def __init__(
        self, owner: TaskModel, rows: Any, batch_size: int | None, options: Mapping[str, Any]
    ):
        super().__init__()
        self._owner, self._rows, self._batch_size = owner, rows, batch_size
        self._verbose, self._every = options["verbose"], options["validation_freq"]
        self.metrics: dict[str, float] = {}

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        """Evaluates if this epoch is one to validate."""
        every = self._every
        due = (epoch + 1) % every == 0 if isinstance(every, int) else epoch + 1 in every
        if due:
            # With 2, Keras writes a line for each epoch and nothing else.
            verbose = 0 if self._verbose == 2 else self._verbose
            self.metrics = self._owner.score(self._rows, self._batch_size, verbose)
            if logs is not None:
                logs.update({f"val_{name}": value for name, value in self.metrics.items()})

    def on_train_end(self, logs: dict[str, Any] | None = None) -> None:
        """Lets the model keep what was found on the validation data."""
        if self.metrics:
            self._owner.remember(self.metrics)


def _first(validation: _Validation | None, callbacks: Any) -> Any:
    """All callbacks, the validation before the user's."""
    if validation is None:
        return callbacks
    if isinstance(callbacks, keras.callbacks.CallbackList):
        validation.set_model(callbacks.model)
        callbacks.callbacks.insert(0, validation)
        return callbacks
    return [validation, *tf.nest.flatten(callbacks or [])]


def random_seed() -> int:
    """The seed that `keras.utils.set_random_seed` has set, or a random one.

    >>> keras.utils.set_random_seed(7)
    >>> random_seed()
    7
    """
    # Keras sets TensorFlow's seed too, which is the one that can be read.
    seed, _ = tf.compat.v1.get_seed(1)
    return random.randrange(2**31) if seed in (None, _NO_SEED) else int(seed)


def _steps_of(dataset: tf.data.Dataset) -> int:
    """The batches of a finite dataset, counted where their number is not known."""
    known = int(dataset.cardinality())
    return known if known >= 0 else int(dataset.reduce(0, lambda count, *_: count + 1))


def _explained(error: tf.errors.InvalidArgumentError) -> Exception:
    """A mistake in the rows of a dataset as a UserError; other errors as they are."""
    found = re.search(r"assertion failed: \[(in the dataset, [^\]]*)\]", str(error))
    # TensorFlow escapes quotation marks.
    return UserError(found[1].replace("\\'", "'")) if found else error
