"""The common base of all task models: one Keras model that takes strings and answers with strings.

A task model owns its encoder, its preprocessing, its labels and its decoding. Each family defines
in a subclass what its rows are, and how they are encoded, decoded and scored.
"""

import contextlib
import dataclasses
import os
from abc import abstractmethod
from collections import UserDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Protocol, Self

import keras
import numpy as np
import tensorflow as tf

from bert_tf.asking import Answers, Outputs, Row, Text, encoded, tensors_of
from bert_tf.checkpoints import conversion
from bert_tf.checkpoints.description import vocabulary_hash
from bert_tf.checkpoints.layers import chosen, of_layers
from bert_tf.checkpoints.names import weight_names
from bert_tf.config.arguments import checked
from bert_tf.data.batching import EncodedRows, TrainingRows, training_batches
from bert_tf.distillation.losses import Matched
from bert_tf.encoder.dropout import Dropout
from bert_tf.encoder.encoder import Encoder
from bert_tf.encoder.linear import Linear
from bert_tf.encoder.saving import freeze
from bert_tf.errors import UserError
from bert_tf.export import LITERT, SAVED_MODEL
from bert_tf.export.litert.calibration import rows_of_texts
from bert_tf.export.litert.form import DeviceForm, StringsForm
from bert_tf.export.litert.saving import Inputs, LiteForm, save_lite
from bert_tf.export.saving import save_task
from bert_tf.export.served_model import Device, Form
from bert_tf.export.service import Signature, Tensors
from bert_tf.io.atomic import atomic_path
from bert_tf.io.vocabulary import read_beside, write_beside
from bert_tf.models.encoder_model import EncoderModel
from bert_tf.tasks import fitting, from_checkpoint, inputs
from bert_tf.tasks.inputs import Given
from bert_tf.tasks.keras_files import FORMAT
from bert_tf.text import Preprocessor, Tokenizer
from bert_tf.training.custom_gradients import gradients_forgotten

# Texts that are tokenized at a time.
_CHUNK = 1024


class Network(Protocol):
    """What computes a model's outputs: the model, or what stands for it in an export."""

    def __call__(self, inputs: Mapping[str, tf.Tensor]) -> Any:
        """Maps the encoder's inputs to the outputs of the task model's `call`; it never trains."""

    def function(self, compute: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """`compute`, which uses the model by its parts, as the graph is to have it."""


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
    # The default of `max_length`, at most the positions of the encoder; None takes all of them.
    default_max_length: ClassVar[int | None] = 128
    # The arguments of `answers` by which one call of `predict` differs from another.
    answer_options: ClassVar[tuple[str, ...]] = ()
    has_labels: ClassVar[bool] = False
    # Whether `fit` takes targets besides the inputs; None: it takes them if they are given.
    has_targets: ClassVar[bool | None] = True

    labels: tuple[str, ...]
    max_length: int

    # Keras's.
    optimizer: Any
    # Whether the rows of a batch are of similar length, which leaves little padding.
    group_by_length: ClassVar[bool] = True
    _compiled_by_fit = False
    _epochs_drawn = 0

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
        self.labels = ()
        self.origin: Any = None
        # The vocabulary's hash and the casing, where the tokenizer is still to be loaded.
        self._vocabulary: tuple[str | None, bool] = (None, True)
        # Traced signatures. Keras tracks what a plain dict holds, but not this.
        self._functions: UserDict[str, Callable] = UserDict()
        self._network: Network | None = None
        self._tokenizer: Tokenizer | None = None
        if tokenizer is not None:
            self._set_tokenizer(tokenizer)

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
        return from_checkpoint.model_from(cls, path, labels, settings, dtype=dtype, layout=layout)

    @property
    def tokenizer(self) -> Tokenizer:
        """The tokenizer. Raises UserError if the model was made without one."""
        if self._tokenizer is None:
            raise UserError(
                f"this {type(self).__name__} was made from its configuration, which holds no "
                "vocabulary; load the whole .keras file instead"
            )
        return self._tokenizer

    # This is no property, because Keras would save its value as a part of the model.
    def network(self) -> Network:
        """What computes the outputs for strings: this model, or what stands for it in an export."""
        return self if self._network is None else self._network

    def with_network(self, network: Network) -> Self:
        """This model, with the same weights, whose signatures compute with another network."""
        model = object.__new__(type(self))
        model.__dict__ |= self.__dict__ | {"_network": network, "_functions": UserDict()}
        return model

    @property
    def has_tokenizer(self) -> bool:
        """Whether the model was made with a tokenizer."""
        return self._tokenizer is not None

    def _set_tokenizer(self, tokenizer: Tokenizer) -> None:
        self.encoder.config.check_vocabulary(tokenizer.vocab_size)
        self._tokenizer = tokenizer
        self._functions.clear()

    @property
    def settings(self) -> dict[str, Any]:
        """The arguments of the constructor that are kept in checkpoints, without the head's."""
        return {name: getattr(self, name) for name in self.setting_names}

    def preprocessor(self) -> Preprocessor:
        """The preprocessor that packs texts, or pairs, into rows of at most `max_length` tokens."""
        return Preprocessor(self.tokenizer, self.max_length, padding="batch")

    def encoded(self, columns: Sequence[Sequence[Text]]) -> EncodedRows:
        """Texts, or pairs of texts, as ids without padding."""
        preprocess = self.preprocessor()

        def packed() -> Iterator[dict[str, tf.Tensor]]:
            for start in range(0, len(columns[0]), _CHUNK):
                chunk = [map(encoded, column[start : start + _CHUNK]) for column in columns]
                yield preprocess(tuple(tf.constant([*each], tf.string) for each in chunk))

        return EncodedRows.gather(packed())

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

    def rebuilt(self, encoder: Encoder) -> Self:
        """The same model with new weights, around another encoder."""
        model = self._made(encoder, self.settings)
        model.origin = self.origin
        return model

    def _made(self, encoder: Encoder, settings: Mapping[str, Any]) -> Self:
        """A model with the tokenizer, the labels and the head's arguments of this one."""
        head = {name: value for name, value in self.head.items() if name != "num_classes"}
        own = {"labels": self.labels} if self.has_labels else {}
        # The constructors of subclasses take other arguments than this class's.
        make: Callable[..., Self] = type(self)
        return make(encoder, self._tokenizer, **own, **head, **settings)

    @property
    def given_settings(self) -> dict[str, Any]:
        """The settings without those that `fit` finds on validation data."""
        return self.settings

    @checked
    def student(
        self,
        num_hidden_layers: int | None = None,
        layers: str | Sequence[int] = "spread",
        dtype: str | keras.DTypePolicy | None = None,
    ) -> Self:
        """A smaller model that starts from some layers of this one, to be trained by it.

        Embeddings, pooler, head, tokenizer, labels and settings are this model's. Then
        `student.fit(texts, teacher=model)` distils this model; see docs/how_to/distillation.md.

        >>> from bert_tf import Encoder, EncoderConfig, NextSentence
        >>> tokenizer = Tokenizer("[PAD] [UNK] [CLS] [SEP] [MASK] cat".split())
        >>> config = EncoderConfig(6, hidden_size=4, num_hidden_layers=4, num_attention_heads=1)
        >>> teacher = NextSentence(Encoder(config), tokenizer)
        >>> teacher.student(2).encoder.config.num_hidden_layers
        2

        Args:
            num_hidden_layers: its layers; None is as many as `layers` names, or else all.
            layers: "spread" takes every k-th up to the last, as TinyBERT's uniform mapping;
                "first" and "last" take those; or a list of their numbers, counted from 0.
            dtype: Keras's dtype policy; None is this model's.

        Raises:
            UserError: there are not so many layers, or the model has no labels yet.
        """
        self._check_ready()
        config = self.encoder.config
        taken = chosen(config.num_hidden_layers, num_hidden_layers, layers)
        config = dataclasses.replace(config, num_hidden_layers=len(taken))
        encoder = self.encoder.copied(config=config, dtype=dtype or self.encoder.dtype_policy)
        model = self._made(encoder, self.given_settings)
        weights = weight_names(model)
        for name, weight in of_layers(weights, weight_names(self), taken).items():
            weights[name].assign(weight)
        return model

    def name_classes(self, labels: Sequence[Any]) -> None:
        """Names the classes, and creates the head that predicts them, in this model's strategy.

        Raises:
            UserError: a label that cannot name a class, or occurs twice.
        """
        names, _ = inputs.label_texts(inputs.as_list(labels, "labels"))
        inputs.check_class_names(names)
        with self._scope():
            self.set_labels(tuple(names))

    def set_labels(self, labels: tuple[str, ...]) -> None:
        """Sets the checked labels of `name_classes`; a subclass creates its head."""
        self.labels = labels
        self._functions.clear()

    # ---- Training and evaluation --------------------------------------------------------------

    fit = fitting.fit
    evaluate = fitting.evaluate

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

    def given_or_unlabelled(self, x: Any, y: Any, sample_weight: Any) -> Given:
        """As `given`; without `y`, the inputs alone."""
        if y is not None or self.has_targets is not True:
            return self.given(x, y, sample_weight)
        columns = inputs.columns_of(x, self.names_of(x))
        inputs.check_count(columns, columns[0], "labels")
        return Given(columns, None, inputs.weights_of(sample_weight, columns))

    def given(self, x: Any, y: Any = None, sample_weight: Any = None) -> Given:
        """The arguments of `fit` or `evaluate` as lists.

        Raises:
            UserError: a target for each row is missing, or columns of different lengths.
        """
        columns = inputs.columns_of(x, self.names_of(x))
        if self.has_targets and y is None:
            raise UserError(
                "the labels are missing; give them as the second argument, after "
                f"{' and '.join(self.input_names)}"
            )
        if self.has_targets is False and y is not None:
            raise UserError(f"a {type(self).__name__} learns from texts alone; remove y")
        targets = None if y is None else inputs.as_list(y, "labels")
        inputs.check_count(columns, columns[0] if targets is None else targets, "labels")
        return Given(columns, targets, inputs.weights_of(sample_weight, columns))

    def _given_of(self, x: Any, y: Any, steps: int | None, what: str = "x") -> Given:
        """As `given`; `x` may also be a dataset of (x, y)."""
        if isinstance(x, tf.data.Dataset):
            x, y = inputs.from_dataset(x, steps, what)
        return self.given(x, y)

    def _given_from(self, data: Any, steps: int | None) -> Given:
        """The validation data as lists."""
        if isinstance(data, tf.data.Dataset):
            return self._given_of(data, None, steps, "validation_data")
        if not isinstance(data, tuple | list) or len(data) != 2:
            raise UserError("validation_data must be two entries, (inputs, labels)")
        return self._given_of(data[0], data[1], steps, "validation_data")

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
            raise UserError(
                f"class_weight is for classes, but a {type(self).__name__} has none; remove it"
            )
        numbers, weights = {name: i for i, name in enumerate(self.labels)}, {}
        for key, weight in class_weight.items():
            number = numbers.get(str(key), key)
            if not isinstance(number, int | np.integer) or not 0 <= number < len(self.labels):
                raise UserError(
                    f"class_weight has {key!r}, which is not a label; the labels are "
                    f"{', '.join(self.labels)}"
                )
            weights[int(number)] = float(weight)
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
            fitting.random_seed() if seed is None else seed,
            first,
            length=self.max_length if is_tpu else None,
            group_by_length=self.group_by_length,
            shuffle=shuffle,
        )

    def is_compiled_by_user(self) -> bool:
        """Whether the model was compiled, and not by `fit` itself."""
        return self.compiled and not self._compiled_by_fit

    def check_not_compiled(self, option: str, place: str) -> None:
        """Raises UserError if an option of `fit` has no use, since the user compiled the model.

        Args:
            option: its name.
            place: what takes it then.
        """
        if self.is_compiled_by_user():
            raise UserError(
                f"{option} has no effect on a compiled model; give it to {place}, or remove it"
            )

    def _scope(self) -> Any:
        """The scope in which this model's variables are made."""
        return (self.distribute_strategy or tf.distribute.get_strategy()).scope()

    def _learn_from_dataset(self, dataset: tf.data.Dataset, steps: int | None) -> None:
        """Checks a dataset of strings, and sets what it decides."""
        inputs.check_batched(dataset, "x")
        element = dataset.element_spec
        if self.has_targets and (not isinstance(element, tuple) or len(element) < 2):
            raise UserError("the dataset has no labels; its elements must be (x, y)")
        if dataset.cardinality() == tf.data.INFINITE_CARDINALITY and steps is None:
            raise UserError("the dataset is endless; give steps_per_epoch")
        if self.has_labels and not self.labels:
            raise UserError(
                "the classes of a dataset are unknown before training; give labels= when you "
                "create the model, as in from_checkpoint(…, labels=['bad', 'good'])"
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
                f"' is unknown; the labels are {', '.join(self.labels)}",
            ]
        )
        with tf.control_dependencies([tf.debugging.Assert(tf.reduce_all(is_known), [said])]):
            return tf.argmax(matches, axis=-1, output_type=tf.int32)

    def _check_ready(self) -> None:
        """Raises UserError if the model has no head yet."""
        if self.has_labels and not self.labels:
            raise self._without_labels()

    def _without_labels(self) -> UserError:
        """The error message for a model that has no head yet."""
        return UserError(
            f"this {type(self).__name__} has no labels yet; train it with fit, or load a "
            "checkpoint with a head"
        )

    # ---- Saving -------------------------------------------------------------------------------

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
                "the vocabulary in the .keras file is not the one that was saved; copy the file "
                "again"
            )
        self._set_tokenizer(Tokenizer(vocabulary, lower_case))

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
            format: "bert_tf", "huggingface" (transformers), "sentence_transformers" (of a
                `TextEmbedder`), "tf1" (google-research/bert) or "model_garden"
                (tf-models-official).

        Raises:
            UserError: an unknown format, or one that is not for such a model, a model without
                labels, or a folder that exists or cannot
                be written.
        """
        conversion.save(self, folder, format)

    @checked
    def export(
        self,
        filepath: str | os.PathLike,
        format: str = SAVED_MODEL,
        verbose: bool | None = None,
        input_signature: Any = None,
        *,
        version: int | None = None,
        precision: str | None = None,
        freeze: bool = False,
        device: Device = "cpu",
        lengths: Sequence[int] | None = None,
        inputs: Inputs = "ids",
        calibration: Any = None,
        **kwargs: Any,
    ) -> None:
        """Writes a SavedModel that takes strings and returns answers, or a LiteRT file.

        With `input_signature`, or in another format, it is Keras's `export` of the model of ids.

        Args:
            filepath: the folder to write, or the file, which ends in `.tflite`; it must not exist
                yet.
            format: "tf_saved_model", "litert", or another of Keras's formats.
            verbose: as in Keras.
            input_signature: as in Keras.
            version: writes the folder of this number in `filepath`, as TensorFlow Serving expects.
            precision: of a SavedModel "float32" or "bfloat16", and None is the precision of the
                model; of a LiteRT file "float32", which None is too, "float16" or "int8".
            freeze: whether the weights of a SavedModel become constants, in that precision.
            device: "cpu" computes on the CPU, in the form that is fastest there; "any" leaves the
                device to the program that runs the SavedModel, for example a GPU.
            lengths: tokens of a row in a LiteRT file, of which the shortest that fits is used; None
                is `max_length` alone.
            inputs: whether a LiteRT file takes "ids", mask and segments, or "strings".
            calibration: for a LiteRT file of precision "int8", inputs as `predict` takes them, from
                which fixed ranges of numbers are found.
            **kwargs: as in Keras.

        Raises:
            UserError: the model has no labels yet, an argument is for another format, LiteRT lacks
                an operation, or what is to be written exists or cannot be written.
        """
        if input_signature is None and format == SAVED_MODEL:
            self._check_ready()
            with gradients_forgotten():
                save_task(self, filepath, Form(precision, freeze, device), version)
            return
        if input_signature is None and format == LITERT:
            self._check_ready()
            rows = None if calibration is None else rows_of_texts(self, calibration)
            form = LiteForm(precision or "float32", lengths, inputs, rows)
            with gradients_forgotten():
                save_lite(self, filepath, form)
            return
        if input_signature is None:
            raise UserError(
                f"format {format!r} exports a model that takes ids; give the input_signature of "
                "its inputs"
            )
        super().export(
            filepath, format=format, verbose=verbose, input_signature=input_signature, **kwargs
        )

    # ---- Answering ----------------------------------------------------------------------------

    @checked
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
            **columns: the columns by their names instead of `x`, and what the class says of one
                call, such as the `prompt` of a `TextEmbedder`.

        Raises:
            UserError: the inputs are not what the model takes.
        """
        options = {name: columns.pop(name) for name in self.answer_options if name in columns}
        x = columns or x
        if inputs.is_for_keras(x):
            if options:
                raise UserError(f"{', '.join(options)} is for strings, not for ids; remove it")
            return super().predict(x, batch_size, verbose, steps, callbacks)
        if isinstance(x, tf.data.Dataset):
            x, _ = inputs.from_dataset(x, steps, "x")
        self._check_ready()
        return self.answers(self, x, batch_size, verbose, **options)

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
            raise UserError(f"no input {missing[0]!r}; the model takes {' and '.join(specs)}")
        tensors = {name: tf.convert_to_tensor(given[name], tf.string) for name in specs}
        return self._function("serving_default")(tensors)

    def function(self, compute: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """`compute` itself: in its own graph the model uses its parts directly."""
        return compute

    def ranks(self, signature: str) -> dict[str, int]:
        specs = self._signature(signature).inputs
        return {name: spec.shape.rank for name, spec in specs.items()}

    def signature_names(self) -> tuple[str, ...]:
        return tuple(self.signatures())

    def ask(self, signature: str, rows: Sequence[Row]) -> Outputs:
        outputs = self._function(signature)(tensors_of(rows, self.ranks(signature)))
        return {name: value.numpy() for name, value in outputs.items()}

    def _signature(self, name: str) -> Signature:
        known = self.signatures()
        found = known | self.inner_signatures()
        if name not in found:
            raise UserError(f"no signature {name!r}; the signatures are {', '.join(known)}")
        return found[name]

    def _function(self, name: str) -> Callable[[Tensors], Tensors]:
        """A signature as a function of the graph, traced once for the same settings."""
        self._check_ready()
        key = f"{name} with {self.settings}"
        if key not in self._functions:
            signature = self._signature(name)
            traced = tf.function(signature.answer, autograph=False)
            # Nobody takes a gradient of an answer.
            with gradients_forgotten():
                self._functions[key] = traced.get_concrete_function(dict(signature.inputs))
        return self._functions[key]

    # ---- What a family defines -----------------------------------------------------------------

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


def losses_of_classes() -> dict[str, Any]:
    """The loss and the metric of a model that chooses one of several classes, for `compile`.

    >>> {name: type(value).__name__ for name, value in losses_of_classes().items()}
    {'loss': 'SparseCategoricalCrossentropy', 'metrics': 'list'}
    """
    return {
        "loss": keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        "metrics": [keras.metrics.SparseCategoricalAccuracy("accuracy")],
    }
