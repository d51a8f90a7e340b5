"""The common base of all task models: one Keras model that takes strings and answers with strings.

A task model owns its encoder, its preprocessing, its labels and its decoding. Each family defines
in a subclass what its rows are, and how they are encoded, decoded and scored.
"""

import dataclasses
import inspect
import os
import re
from abc import abstractmethod
from collections import UserDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple, Protocol, Self, TypeVar, cast

import keras
import numpy as np
import tensorflow as tf

from bert_tf.asking import (
    Answers,
    Changed,
    Outputs,
    Row,
    Text,
    columns_of,
    each_answer,
    encoded,
    plain,
    rows_of,
    say_cut,
    texts_in,
)
from bert_tf.asking.saved_model import NETWORK, tensors_of
from bert_tf.checkpoints import conversion, peft
from bert_tf.checkpoints.description import vocabulary_hash
from bert_tf.checkpoints.growth import with_tokens
from bert_tf.checkpoints.layers import chosen, of_layers
from bert_tf.checkpoints.names import weight_names
from bert_tf.config.arguments import checked, checked_argument
from bert_tf.console import Progress, logger
from bert_tf.data.arrow import DataTable
from bert_tf.data.batching import EncodedRows, TrainingRows, flat, training_batches
from bert_tf.data.columns import Column, Columns, Target, TextColumn, as_list
from bert_tf.data.mapped import joined
from bert_tf.data.targets import Label, check_class_names, class_names
from bert_tf.distillation.losses import Matched
from bert_tf.encoder.encoder import Encoder
from bert_tf.encoder.layers import Dropout, Linear
from bert_tf.errors import UserError
from bert_tf.export import FORMATS, SAVED_MODEL, Inputs, misplaced
from bert_tf.export.calibration import rows_of_texts
from bert_tf.export.litert.form import DeviceForm, StringsForm, of_packed
from bert_tf.export.saving import save_model
from bert_tf.export.served_model import Device, Form, SharedModel
from bert_tf.export.service import Signature, Tensors, ids
from bert_tf.io.atomic import atomic_path
from bert_tf.io.refusals import explained
from bert_tf.io.remote import exists, local_path
from bert_tf.io.vocabulary import TokenizerSettings, read_beside, write_beside
from bert_tf.models.encoder_model import EncoderModel, scope_of
from bert_tf.tasks import fitting, from_checkpoint, inputs, long_texts, registry
from bert_tf.tasks.keras_files import FORMAT
from bert_tf.tasks.uncertainty import Draw
from bert_tf.text import Preprocessor, Tokenizer
from bert_tf.text.packing import Cut, Features, trim
from bert_tf.text.parts import first_equal, map_rows, shared
from bert_tf.text.windows import TextWindows
from bert_tf.training.adapter import without_adapter

ONE: tuple[Column, ...] = (TextColumn("text"),)
PAIR: tuple[Column, ...] = (
    TextColumn("text_a", example="A man plays the guitar."),
    TextColumn("text_b", example="Someone makes music."),
)
_CHUNK = 1024  # texts that are tokenized at a time
_COUNTED = 2**16  # rows whose tokens are counted at a time


Model = TypeVar("Model", bound="TaskModel")
Predicted = Literal["classes", "labels", "values"]


class Network(Protocol):
    """Computes a model's outputs: the model itself, or the network of an export in its place."""

    def __call__(self, inputs: Mapping[str, tf.Tensor]) -> Any:
        """Maps the encoder's inputs to the outputs of the task model's `call`; it never trains."""

    # Whether, for a model that reads windows, an input is a whole row with its windows end to end.
    reads_rows: ClassVar[bool]

    def function(self, compute: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """Wraps `compute`, which calls parts of the model, in the form that the graph requires."""


class TaskModel(EncoderModel):
    """A model of one task, from strings to answers.

    Args:
        encoder: the encoder.
        tokenizer: its tokenizer.
        head: the arguments of the head, kept for checkpoints.
        max_length: the maximum number of tokens of an input; None is `default_max_length`, or as
            many as the encoder has positions.
        uses_pooler: whether the head reads the pooled output.

    Attributes:
        labels: names of the classes; () before the first `fit`, and for tasks without classes.
        origin: where the model was loaded from (`bert_tf.export.model_card.Origin`).

    Raises:
        UserError: a tokenizer or a length that does not fit the encoder.
    """

    call_rank = 2  # the number of axes of the inputs of `call`
    # The arguments of the constructor that decide how strings are read and answers are made.
    setting_names: ClassVar[tuple[str, ...]] = ("max_length",)
    # The default of `max_length`, at most the positions of the encoder; None takes all of them.
    default_max_length: ClassVar[int | None] = 128
    # Whether the ends of longer texts are cut off; other models read such texts in windows.
    cuts_texts: ClassVar[bool] = True
    # The arguments that can be given to a single call of `predict`: settings, which `export` takes
    # too, or arguments of `asked`.
    answer_options: ClassVar[tuple[str, ...]] = ()
    # Those of them that can still change with a LiteRT file, because Python applies them.
    device_options: ClassVar[tuple[str, ...]] = ("abstain",)
    has_labels: ClassVar[bool] = False
    # Whether the class has probabilities that `calibrate` can change.
    calibrates: ClassVar[bool] = False
    # Whether `fit` trains the model; if not, the head must come from the checkpoint.
    trains: ClassVar[bool] = True
    # What `call` returns: logits of "classes" (exactly one is right), logits of "labels" (any
    # number can be right), or "values". This decides the loss, and what a student learns.
    predicts: ClassVar[Predicted | None] = None
    # Whether the rows of a batch are of similar length, which leaves little padding.
    group_by_length: ClassVar[bool] = True

    labels: tuple[str, ...]
    max_length: int
    # How longer texts are read, and which part of them is left out; see `long_texts.set_up`.
    long_text: str
    cut: Cut
    window_pooling: str | None
    stride: Any
    max_windows: int | None
    optimizer: Any  # Keras's

    def __init__(
        self,
        encoder: Encoder,
        tokenizer: Tokenizer | None,
        head: dict[str, Any],
        max_length: int | None = None,
        uses_pooler: bool = True,
        **kwargs: Any,
    ):
        # TextClassifier -> text_classifier
        kwargs.setdefault("name", re.sub("(?<=[a-z])(?=[A-Z])", "_", type(self).__name__).lower())
        super().__init__(encoder, head, uses_pooler=uses_pooler, **kwargs)
        encoder.config.check_length("max_length", max_length or 0)
        longest = encoder.config.max_position_embeddings
        if max_length is None:
            max_length = min(self.default_max_length or longest, longest)
        self.max_length = max_length
        self.pooled_width = encoder.config.output_size  # of the vector that the head reads
        self.labels = ()
        self.origin: Any = None
        self.pair: bool | None = False  # whether a row is two texts; None lets `fit` decide
        self.temperature = 1.0  # the divisor of logits before they become probabilities
        self.abstain: float | None = None  # the minimum probability of an answer
        # The folder in which the next call of `examples` keeps tokenized rows; None keeps them in
        # memory. See `mapped.joined`.
        self.tokens: Path | None = None
        long_texts.set_up(self)
        # The default head, see `make_head`.
        self.dropout: Any = None
        self.classifier: Any = None
        self.window_attention: Any = None
        self._of_classes = "classifier"  # the layer that `name_classes` makes
        self._compiled_by_fit, self._epochs_drawn = False, 0
        # The vocabulary's hash and the tokenizer's settings, until the tokenizer is loaded.
        self._vocabulary: tuple[str | None, TokenizerSettings] = (None, TokenizerSettings())
        # Traced signatures. Keras would track the contents of a plain dict, but not of a UserDict.
        self._functions: UserDict[str, Any] = UserDict()
        self._network: Network | None = None
        self._tokenizer: Tokenizer | None = None
        if tokenizer is not None:
            _set_tokenizer(self, tokenizer)

    @classmethod
    def from_checkpoint(
        cls,
        path: str | os.PathLike,
        *,
        labels: Sequence[str | int] | None = None,
        dtype: str | keras.DTypePolicy | None = None,
        layout: str = "unpadded",
        add_tokens: Sequence[str] = (),
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
            add_tokens: texts that the tokenizer keeps whole from now on, such as ["<e1>", "</e1>"].
                The word embeddings, and the bias of a masked language model, get a row for each
                text: the mean of the rows of the pieces into which the text was cut before.
            **settings: arguments of the constructor, such as `max_length`.

        Raises:
            UserError: there is no checkpoint at `path`, it is damaged, or a setting is unknown; or
                as for `Tokenizer.with_tokens`.
        """
        checkpoint = with_tokens(from_checkpoint.find(path), add_tokens)
        tokenizer = Tokenizer.from_checkpoint(checkpoint)
        options = {"dtype": dtype, "layout": layout}
        model = from_checkpoint.built(cls, checkpoint, path, labels, settings, tokenizer, **options)
        report = checkpoint.fill(model, model.labels)
        if not model.trains:
            if report.why:
                raise UserError(f"{path}: {report.why}; give those labels, or leave them out")
            from_checkpoint.check_head(report, model, path)
        logger.info(f"{path}: {report}")
        if registry.family_of(type(model).__name__) is from_checkpoint.family_at(checkpoint):
            model.origin = from_checkpoint.origin_of(checkpoint, path)
        return model

    @property
    def tokenizer(self) -> Tokenizer:
        """The tokenizer. Raises UserError if the model was made without one."""
        if self._tokenizer is None:
            raise UserError(
                f"this {type(self).__name__} was made from its configuration, which holds no "
                "vocabulary; load the whole .keras file instead"
            )
        return self._tokenizer

    # This is not a property, because Keras would save its value as a part of the model.
    def network(self) -> Network:
        """Computes the outputs for strings: this model, or an export's network in its place."""
        return self._network or self._once("network", lambda: SharedModel(self))

    def with_network(self, network: Network) -> Self:
        """This model, with the same weights, whose signatures compute with another network."""
        return self._with(_network=network, _functions=UserDict())

    def _with(self, **attributes: Any) -> Self:
        model = object.__new__(type(self))
        # `model.__dict__ |= …` would also set the attribute `__dict__`. Keras would count the
        # metrics in it as separate ones, and `fit` would report those, which stay 0.
        model.__dict__.update(vars(self) | attributes)
        return model

    @property
    def has_tokenizer(self) -> bool:
        return self._tokenizer is not None

    @property
    def settings(self) -> dict[str, Any]:
        """The arguments of the constructor that are kept in checkpoints, without the head's."""
        own = {name: getattr(self, name) for name in self.setting_names}
        if self.temperature != 1.0:
            own["temperature"] = self.temperature
        if self.abstain is not None:
            own["abstain"] = self.abstain
        return own | long_texts.settings_of(self)

    def preprocessor(self) -> Preprocessor:
        """The preprocessor that packs texts, or pairs, into rows of at most `max_length` tokens."""
        return Preprocessor(self.tokenizer, self.max_length, padding="batch", cut=self.cut)

    def packed(self, texts: Sequence[tf.Tensor]) -> Features:
        """One or two columns of texts, string [batch], as inputs of `call`."""
        return trim(long_texts.reader(self).at_once(texts).end_to_end())

    def encoded(self, columns: Sequence[Sequence[Text]]) -> EncodedRows:
        """Texts, or pairs, as ids without padding. The folder `tokens` is used for one call."""

        def pieces(first: int) -> Iterator[dict[str, np.ndarray]]:
            return (flat(self.packed(texts)) for texts in in_chunks(columns, _CHUNK, first))

        folder, self.tokens = self.tokens, None  # it would return the same ids for other texts
        return EncodedRows.of_arrays(joined(pieces, folder))

    def count_cut(self, columns: Sequence[Sequence[Any]]) -> tuple[int, str]:
        """The number of rows that are cut, since they have more tokens than the model reads; and a
        phrase that says what these rows have and how they are cut. A column holds texts, or lists
        of texts, each of which is packed with the other columns.
        """
        if not self.cuts_texts:
            return 0, ""
        count = len(columns[0]) if columns else 0
        starts = range(0, count, _COUNTED)
        parts = ([column[start : start + _COUNTED] for column in columns] for start in starts)
        return sum(_count_cut(self, part) for part in parts), long_texts.unread(self)

    def make_linear(self, outputs: int, name: str) -> Linear:
        return Linear(
            outputs,
            initializer_range=self.encoder.config.initializer_range,
            name=name,
            dtype=self.dtype_policy,
        )

    def make_head(self, outputs: int | None, name: str, dropout: float | None = None) -> None:
        """Makes the default head: dropout on the pooled output, and a linear layer of this name.
        `outputs` None leaves the layer to `name_classes`. `dropout` None takes the encoder's rate.
        """
        self.dropout = head_dropout(self, dropout)
        self.classifier = None if outputs is None else self.make_linear(outputs, name)
        self.build()

    def build(self, input_shape: Any = None) -> None:
        for layer in (self.window_attention, self.dropout, self.classifier):
            if layer is not None and not layer.weights:
                layer.build((None, self.pooled_width))
        self.built = True

    def call(self, inputs: Mapping[str, tf.Tensor], training: bool = False) -> Any:
        """Maps the encoder's inputs to float32 [batch, outputs]."""
        fitting.check_ready(self)
        if self.long_text != long_texts.WINDOWS:
            return self.outputs_of(self.vectors_of(inputs, training), training)
        windows, rows = long_texts.split(self, inputs)
        scored = long_texts.scored(self, windows, training)
        vectors = long_texts.pooled(self, scored, rows, tf.shape(inputs["input_mask"])[0])
        return self.outputs_of(vectors, training)

    def vectors_of(self, inputs: Mapping[str, tf.Tensor], training: bool = False) -> tf.Tensor:
        """The vectors that the head reads, from inputs [rows, seq_len]; here the pooled output."""
        return self.encoder.pooled(inputs, training=training)

    def outputs_of(self, vectors: tf.Tensor, training: bool = False) -> Any:
        """The outputs of `call` for these vectors, [rows, width]."""
        vectors = tf.ensure_shape(vectors, [None, self.pooled_width])
        return tf.cast(self.classifier(self.dropout(vectors, training=training)), tf.float32)

    def window_scores(self, inputs: Mapping[str, tf.Tensor]) -> tf.Tensor:
        """The logarithms of the windows' weights in a mean; by default the weights are equal."""
        return tf.zeros(tf.shape(inputs["input_mask"])[:1])

    def read(self, texts: Sequence[tf.Tensor]) -> TextWindows:
        """One or two columns of texts, string [batch], as tokens; a graph holds the reader once."""
        key = f"reader with {self.traced_settings}"
        return self._once(key, lambda: shared(long_texts.reader(self)))(list(texts))

    def _once(self, key: str, make: Callable[[], Any]) -> Any:
        """The result of `make`, which is kept until the graphs of this model are cleared."""
        if key not in self._functions:
            self._functions[key] = make()
        return self._functions[key]

    def rebuilt(self, encoder: Encoder) -> Self:
        model = _like(self, encoder, self.settings)
        model.origin = self.origin
        return model

    @property
    def traced_settings(self) -> dict[str, Any]:
        """The settings on which the graphs of signatures depend."""
        return self.settings

    @property
    def given_settings(self) -> dict[str, Any]:
        """The settings without those that are found on held-out data."""
        return {name: value for name, value in self.settings.items() if name != "temperature"}

    @checked
    def student(
        self,
        num_hidden_layers: int | None = None,
        layers: str | Sequence[int] = "spread",
        dtype: str | keras.DTypePolicy | None = None,
    ) -> Self:
        """A student for the distillation of this model: a smaller one, made of some of its layers.

        Embeddings, pooler, head, tokenizer, labels and settings are this model's. Then
        `student.fit(texts, teacher=model)` distils this model; see docs/how_to/distillation.md.

        >>> from bert_tf import Encoder, EncoderConfig, NextSentence
        >>> tokenizer = Tokenizer("[PAD] [UNK] [CLS] [SEP] [MASK] cat".split())
        >>> config = EncoderConfig(6, hidden_size=4, num_hidden_layers=4, num_attention_heads=1)
        >>> teacher = NextSentence(Encoder(config), tokenizer)
        >>> teacher.student(2).encoder.config.num_hidden_layers
        2

        Args:
            num_hidden_layers: the student's layers; None is as many as `layers` lists, or else all.
            layers: "spread" takes every k-th layer up to the last, as TinyBERT's uniform mapping;
                "first" and "last" take the layers at that end; or a list of layer numbers, from 0.
            dtype: Keras's dtype policy; None is this model's.

        Raises:
            UserError: the model has fewer layers, or no labels yet.
        """
        fitting.check_ready(self)
        config = self.encoder.config
        taken = chosen(config.num_hidden_layers, num_hidden_layers, layers)
        config = dataclasses.replace(config, num_hidden_layers=len(taken))
        encoder = self.encoder.copied(config=config, dtype=dtype or self.encoder.dtype_policy)
        model = _like(self, encoder, self.given_settings)
        weights = weight_names(model)
        for name, weight in of_layers(weights, weight_names(self), taken).items():
            weights[name].assign(weight)
        return model

    def name_classes(self, labels: Sequence[Any]) -> None:
        """Names the classes, and creates the head that predicts them, in this model's strategy."""
        names = class_names(as_list(labels, "labels"))
        check_class_names(names)
        self.labels, self.head["num_classes"] = tuple(names), len(names)
        self._functions.clear()
        with scope_of(self):
            setattr(self, self._of_classes, self.make_linear(len(names), self._of_classes))
            self.build()

    # ---- Training and evaluation --------------------------------------------------------------

    fit = fitting.fit
    evaluate = fitting.evaluate
    calibrate = fitting.calibrate

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
        return None if self._compiled_by_fit else super().get_compile_config()

    def given(
        self, x: Any, y: Any = None, sample_weight: Any = None, may_lack_targets: bool = False
    ) -> Columns:
        """The arguments of `fit` or `evaluate` as checked rows. Errors name the position."""
        columns, target, targets = self.columns_of(x), self.target, None
        names = tuple(column.name for column in columns)
        values = inputs.columns_of(x, names)
        if target is None and y is not None:
            raise UserError(f"a {type(self).__name__} learns from texts alone; remove y")
        if target is not None and y is None and not (may_lack_targets or target.is_optional):
            raise UserError(
                f"the {target.plural} are missing; give them as the second argument, after "
                f"{' and '.join(names)}"
            )
        if target is not None and y is not None:
            targets = as_list(y, target.plural)
            inputs.check_count(values, targets, target.plural)
        weights = inputs.weights_of(sample_weight, values)
        classes = getattr(y, "classes", ())
        rows = Columns(names, values, targets, weights=weights, classes=tuple(classes))
        return rows.checked(columns, target)

    def named(self, table: DataTable, target: Any = None) -> tuple[Any, Any]:
        """The inputs in a table as a dict of columns, and the targets or None. The table names them
        as `predict` or files do. `target` is the targets or their column, which None finds.
        """
        names = table.named()
        x = {name: table.column(column) for name, column in names.items()}
        for column in self.columns_of(x):
            table.check([names.get(column.name, column.name)])
            if column.rank == 1:
                table.check_texts([names[column.name]])
        if target is None and self.target is not None:
            target = table.first_of(self.target.column_names)
        return x, x[target] if isinstance(target, str) else target

    def _batches(
        self, examples: TrainingRows, batch_size: int, seed: int | None, first: int, shuffle: bool
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

    def _learn_from_dataset(self, dataset: tf.data.Dataset, steps: int | None) -> None:
        inputs.check_batched(dataset, "x")
        element = dataset.element_spec
        needs_targets = self.target is not None and not self.target.is_optional
        if needs_targets and (not isinstance(element, tuple) or len(element) < 2):
            raise UserError("the dataset has no labels; its elements must be (x, y)")
        if dataset.cardinality() == tf.data.INFINITE_CARDINALITY and steps is None:
            raise UserError("the dataset is endless; give steps_per_epoch")
        if self.has_labels and not self.labels:
            raise UserError(
                "the classes of a dataset are unknown before training; give labels= when you "
                "create the model, as in from_checkpoint(…, labels=['bad', 'good'])"
            )
        x = inputs.inputs_of(element)
        names = [column.name for column in self.columns_of(x)]
        given = len(x) if isinstance(x, tuple | Mapping) else 1
        if self.pair is not None and given != len(names):
            raise UserError(
                f"the model takes {' and '.join(names)}, but the dataset has {given} columns"
            )
        if self.pair is None:
            self.pair = len(names) == 2

    # ---- Saving -------------------------------------------------------------------------------

    def get_config(self) -> dict[str, Any]:
        """Plain data for `from_config`. The vocabulary itself is an asset of the `.keras` file."""
        config = super().get_config()
        config.pop("num_classes", None)
        known, settings = self._vocabulary
        if self._tokenizer is not None:
            known = vocabulary_hash(self._tokenizer.vocabulary)
            settings = self._tokenizer.settings
        own: dict[str, Any] = {
            "vocabulary": known,
            "lower_case": settings.lower_case,
            "format": FORMAT,
        }
        if settings.besides_casing:
            own["tokenizer_settings"] = settings.besides_casing
        if self.has_labels:
            own["labels"] = list(self.labels)
        return config | self.settings | own

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: Any = None) -> Self:
        fields = dict(config)
        written = fields.pop("format", FORMAT)
        if type(written) is not int:
            raise UserError(f"the format of this {cls.__name__} is {written!r}, not a number")
        if written > FORMAT:
            raise UserError(
                f"this {cls.__name__} was saved by a later bert_tf (format {written}); update "
                "bert_tf to load it"
            )
        settings = TokenizerSettings.from_parts(
            fields.pop("lower_case", True),
            fields.pop("tokenizer_settings", {}),
            f"this {cls.__name__}",
        )
        vocabulary = fields.pop("vocabulary", None), settings
        model = cast(Self, super().from_config(fields | {"tokenizer": None}))
        model._vocabulary = vocabulary
        return model

    def save_assets(self, folder: str) -> None:
        if self._tokenizer is not None:
            write_beside(Path(folder), self._tokenizer.vocabulary)

    def load_assets(self, folder: str) -> None:
        known, settings = self._vocabulary
        if known is None:
            return
        vocabulary = read_beside(Path(folder))
        if vocabulary is None or vocabulary_hash(vocabulary) != known:
            raise UserError(
                "the vocabulary in the .keras file is not the one that was saved; copy the file "
                "again"
            )
        _set_tokenizer(self, Tokenizer.of(vocabulary, settings))

    @without_adapter
    def save(self, filepath: str | os.PathLike, overwrite: bool = True, **kwargs: Any) -> None:
        """Keras's `save`: a `.keras` file with vocabulary and labels inside, written atomically.

        Args:
            filepath: ends in `.keras`.
            overwrite: whether an existing file is replaced.
            **kwargs: as in Keras.

        Raises:
            UserError: the file cannot be written, or it exists and `overwrite` is false.
        """
        path = local_path(filepath)
        if path.suffix != ".keras":
            with explained(path):
                super().save(filepath, overwrite=overwrite, **kwargs)
            return
        if not overwrite and exists(path):
            raise UserError(f"{path} exists already; choose another file, or set overwrite=True")
        hidden = self.optimizer if self._compiled_by_fit else None
        if hidden is not None:
            self.optimizer = None  # the next `fit` makes its own
        try:
            with atomic_path(path, is_file=True) as new:
                super().save(new, overwrite=True, **kwargs)
        finally:
            if hidden is not None:
                self.optimizer = hidden

    @without_adapter
    def save_weights(self, filepath: str | os.PathLike, *args: Any, **kwargs: Any) -> None:
        with explained(filepath):
            super().save_weights(filepath, *args, **kwargs)

    save_adapter = peft.save
    load_adapter = peft.load

    @without_adapter
    def save_checkpoint(self, folder: str | os.PathLike, format: str = "bert_tf") -> None:
        """Writes the model with its tokenizer as a new folder of another program's format.

        Args:
            folder: it must not exist yet.
            format: "bert_tf", "huggingface" (transformers), "sentence_transformers" (of a
                `TextEmbedder`), "tf1" (google-research/bert), "model_garden"
                (tf-models-official) or "keras_hub".

        Raises:
            UserError: an unknown format, or one that is not for such a model, a model without
                labels, or a folder that exists or cannot be written.
        """
        conversion.save(self, folder, format)

    @without_adapter
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
        inputs: Inputs | None = None,
        calibration: Any = None,
        **kwargs: Any,
    ) -> None:
        """Writes a SavedModel that takes strings or ids and returns answers, or one file.

        With `input_signature`, or a format that only Keras has, it is Keras's `export` of ids.

        Args:
            filepath: the folder to write, or the file, which ends in `.tflite` or `.onnx`; it must
                not exist yet.
            format: "tf_saved_model", "litert", "onnx", or another of Keras's formats.
            verbose: as in Keras.
            input_signature: as in Keras.
            version: writes the folder of this number in `filepath`, as TensorFlow Serving expects.
            precision: for a SavedModel "float32", "bfloat16", "int8", or None, the precision of the
                model; for a LiteRT file "float32", which is the same as None, "float16" or "int8".
            freeze: whether the weights of a SavedModel become constants, in that precision.
            device: "cpu" computes on the CPU, in the form that is fastest there; "any" leaves the
                device to the program that runs the SavedModel, for example a GPU.
            lengths: the lengths of rows in tokens for which a LiteRT file is made; it uses the
                shortest that fits. None is `max_length` alone.
            inputs: whether the export takes "strings", the default of a SavedModel, or "ids" with
                mask and segments, the default of a file.
            calibration: for precision "int8", inputs as `predict` takes them, from which fixed
                ranges of numbers are found; a SavedModel requires them.
            **kwargs: settings that `predict` takes for one call, such as `abstain` or `vectors`;
                the export always applies them. In other formats as in Keras.

        Raises:
            UserError: the model has no labels yet, an argument is for another format, LiteRT lacks
                an operation, or the file or folder exists or cannot be written.
        """
        options: dict[str, Any] = {"version": version, "freeze": freeze, "device": device}
        options |= {"lengths": lengths, "inputs": inputs, "calibration": calibration}
        of_strings = format if input_signature is None else "of ids"
        if wrong := misplaced(of_strings, options):
            raise UserError(
                f"{wrong[0]} is for format {wrong[1]!r} without input_signature; remove it"
            )
        if input_signature is None and format in FORMATS:
            fitting.check_ready(self)
            of_call = inspect.signature(self.asked).parameters
            settings = {name for name in self.answer_options if hasattr(self, name)}
            if unknown := kwargs.keys() - (settings - of_call.keys()):
                raise UserError(
                    f"a {type(self).__name__} has no export option {min(unknown)}; remove it"
                )
            model = self.with_options(self, kwargs)
            rows = None if calibration is None else rows_of_texts(model, calibration)
            form = Form(precision, freeze, device, rows)
            save_model(model, filepath, format, inputs, form, version, lengths)
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

    @inputs.columns_may_follow
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
            x: the inputs, as the class says: a column, a tuple of columns, a table with named
                columns, a dataset, or a generator, which is read to its end. A second column may
                also follow the first. One row gives one answer.
            batch_size: rows of a batch (32).
            verbose: 0 shows no progress.
            steps: batches to take from a dataset; for ids, `steps` and `callbacks` are as in Keras.
            **columns: the columns by their names instead of `x`, and the options of the class for
                one call, such as the `prompt` of a `TextEmbedder`.

        Raises:
            UserError: the inputs are not what the model takes.
        """
        options = {name: columns.pop(name) for name in self.answer_options if name in columns}
        x, _ = inputs.of_table(self, x)
        x = inputs.of_generator(inputs.by_name(x, columns, self.input_names))
        if inputs.is_for_keras(x):
            if options:
                raise UserError(f"{', '.join(options)} is for strings, not for ids; remove it")
            return super().predict(x, batch_size, verbose, steps, callbacks)
        if isinstance(x, tf.data.Dataset):
            x, _ = inputs.from_dataset(x, steps, "x")
            if self.columns[0].rank == 2 and isinstance(x[0], list):
                x = {self.input_names[0]: x}
        fitting.check_ready(self)
        return self.answers(self, x, batch_size, verbose, **options)

    def explain(self, x: Any = None, **columns: Any) -> Any:
        """What the answers depend on, as `bert-tf inspect` draws it.

        Args:
            x: as for `predict`.
            **columns: as for `predict`.

        Returns:
            For each row a `bert_tf.interpret.looks.Explanation`: `tokens`, their character
            `offsets`, the `output` that is explained, the `importance` of each token for it
            (integrated gradients, Sundararajan, Taly and Yan 2017), and the `attention` of all
            heads. A notebook shows it as a picture. For a list of texts, such as choices, there is
            one for each text, the best first. For tags, there is one for each window of a long
            text; for a question, one for the window with the answer.

        Raises:
            UserError: as `predict`; or the model reads windows of long texts.
        """
        fitting.check_ready(self)
        family = registry.family_of_class(type(self))
        if family is None:
            raise UserError(f"a {type(self).__name__} has no pictures; register its TaskFamily")
        pictures = family.pictures_class().of_model(self)
        known, names = {each.name: each for each in self.columns}, pictures.accepted[0]
        of_names = [known.get(name) or TextColumn(name) for name in names]
        rows, single = inputs.asked(inputs.by_name(x, columns, names), of_names)

        def of_text(value: Any) -> str | list[str]:
            return plain(value) if isinstance(value, str | bytes) else [*map(plain, value)]

        found = [
            pictures.explain({name: of_text(value) for name, value in row.items()}) for row in rows
        ]
        return found[0] if single else found

    def serve(self, inputs: Any = None, **named: Any) -> Tensors:
        """The exported signature `serving_default`: string tensors in, a dict of tensors out.

        Args:
            inputs: a dict of the inputs, or the tensor if there is only one.
            **named: the inputs by name instead.

        Raises:
            UserError: an input is missing.
        """
        fitting.check_ready(self)
        specs = _signature(self, "serving_default").inputs
        given = named or (inputs if isinstance(inputs, Mapping) else {next(iter(specs)): inputs})
        missing = [name for name in specs if name not in given]
        if missing:
            raise UserError(f"no input {missing[0]!r}; the model takes {' and '.join(specs)}")
        tensors = {name: tf.convert_to_tensor(given[name], tf.string) for name in specs}
        return _traced(self, "serving_default")(tensors)

    def ranks(self, signature: str) -> dict[str, int]:
        specs = _signature(self, signature).inputs
        return {name: spec.shape.rank for name, spec in specs.items()}

    def signature_names(self) -> tuple[str, ...]:
        return tuple(name for name, each in self.signatures().items() if not each.is_inner)

    def ask(self, signature: str, rows: Sequence[Row]) -> Outputs:
        outputs = _traced(self, signature)(tensors_of(rows, self.ranks(signature)))
        return {name: value.numpy() for name, value in outputs.items()}

    # ---- What a family defines -----------------------------------------------------------------
    #
    # By default a row is one text or two, packed into one row of tokens; the head is a linear layer
    # on the pooled output; and the head's outputs for a row are decoded, scored and returned.

    @property
    def columns(self) -> tuple[Column, ...]:
        """The inputs of a row; an attribute of the class if all models of the family share them."""
        return PAIR if self.pair else ONE

    @property
    @abstractmethod
    def target(self) -> Target | None:
        """The target of a row; None if the model learns from the inputs alone."""

    def decode(self, scores: tf.Tensor) -> Tensors:
        """The outputs of `serving_default`, each [batch, ...], from what `call` computes."""
        raise NotImplementedError

    def decoded(self, scores: tf.Tensor) -> Tensors:
        """As `decode`, but abstains if unsure; rows with equal scores have equal outputs."""
        first, found = first_equal(scores), abstaining(self.decode(scores), self.abstain)
        return {name: tf.gather(each, first) for name, each in found.items()}

    @staticmethod
    @abstractmethod
    def answer(outputs: Outputs, place: int, row: Row) -> Any:
        """The answer to a row, at its place in the outputs of `serving_default` for a batch."""

    @abstractmethod
    def official_metrics(self, predictions: Any, rows: Any) -> dict[str, float]:
        """The official metrics of predictions; {} if the rows have no targets."""

    def resampled(self, predictions: Any, rows: Any, draw: Draw) -> tuple[Any, Any]:
        """Predictions and rows at places that are drawn. Raises UserError if there are no rows."""
        if not isinstance(predictions, np.ndarray | list):
            raise UserError(f"a {type(self).__name__} has no metrics of rows; remove confidence")
        places = draw(len(rows))
        taken = [predictions[place] for place in places]
        return np.stack(taken) if isinstance(predictions, np.ndarray) else taken, rows.take(places)

    def own_losses(self) -> dict[str, Any]:
        """Loss and metrics for `compile`, by default those for `predicts`; {} if built in."""
        return _LOSSES[self.predicts]() if self.predicts else {}

    def matched(self, outputs: Any, y: Any) -> Sequence[Matched]:
        """The parts of the outputs of `call` that a student learns; `y` only gives their form."""
        if self.predicts is None:
            raise UserError(
                f"a {type(self).__name__} cannot be distilled: its class does not define matched"
            )
        return [Matched(self.predicts, outputs if outputs.shape.rank > 1 else outputs[:, None])]

    def remember(self, metrics: Mapping[str, float]) -> None:
        """Keeps a threshold or temperature found on dev data, from these metrics; {} forgets it."""
        if not metrics and self.temperature != 1.0:
            logger.info("training sets the temperature back to 1; calibrate again afterwards")
        self.temperature = metrics.get("temperature", 1.0)

    def rescale(self, factor: float) -> None:
        """Multiplies the temperature, and adapts all that depends on it."""
        self.temperature *= factor

    def calibrated(self, scores: Any) -> Any:
        """The outputs of `call` as logits whose softmax or sigmoid gives the probabilities."""
        return scores if self.temperature == 1.0 else scores / self.temperature

    def calibration_targets(self, rows: Columns) -> np.ndarray:
        """The targets of `infer`'s results, -1 for none. Raises UserError if not `calibrates`."""
        if not self.calibrates:
            raise UserError(f"a {type(self).__name__} has no class probabilities to calibrate")
        return cast(Target, self.target).numbers(rows)

    def device_form(self) -> DeviceForm:
        """The form of the model's answers on a device; by default it cannot answer there."""
        raise UserError(
            f"a {type(self).__name__} cannot be exported to LiteRT or ONNX; export a SavedModel"
        )

    @classmethod
    def named_outputs(cls, names: Sequence[str], count: int) -> dict[str, Any]:
        """Constructor arguments that name the outputs of a checkpoint's head; `names` may be ()."""
        return {"labels": names or range(count)} if cls.has_labels else {}

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        """A model of the class that the arguments select: this one, or one of `options`."""
        return super().__new__(registry.class_for(cls, kwargs), *args, **kwargs)

    # ---- What a family with other rows defines too ---------------------------------------------

    @property
    def input_names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

    def columns_of(self, x: Any) -> tuple[Column, ...]:
        """The columns that `x` should have; while `pair` is None, `x` decides."""
        if self.pair is None:
            names = {column.name for column in PAIR}
            is_pair = isinstance(x, tuple) or isinstance(x, Mapping) and names <= set(x)
            return PAIR if is_pair else ONE
        return self.columns

    def learn_from(self, rows: Columns) -> None:
        """Sets what the first training rows decide: the labels, and one text or two."""
        if self.pair is None:
            self.pair = len(rows.values) == 2
        if self.has_labels and not self.labels:
            self.name_classes(cast(Label, self.target).found_in(rows))

    def examples(
        self, rows: Columns, class_weight: Mapping[int, float] | None = None
    ) -> TrainingRows:
        """Encodes rows to train on; targets may be None, and classes without a weight have 1."""
        targets = cast(Target, self.target).numbers(rows)
        weights = rows.weights
        if class_weight is not None:
            of_rows = np.array([class_weight.get(int(each), 1.0) for each in targets], np.float32)
            weights = of_rows if weights is None else weights * of_rows
        return TrainingRows(self.encoded(rows.values), targets, weights)

    def encode(self, x: Any, y: Any, weights: Any = None) -> tuple:
        """As `examples`, in a graph, for a batch of a dataset, where `x` is a tuple of columns."""
        features, targets = self.packed(x), cast(Target, self.target).encoded(y)
        return keras.utils.pack_x_y_sample_weight(features, targets, weights)

    def infer(self, rows: Any, batch_size: int | None = None, verbose: int | str = "auto") -> Any:
        """Input of `official_metrics`: by default calibrated outputs of `call`, [rows, ...]."""
        found = each_answer(
            self,
            "scores",
            rows_of(rows.values, self.input_names),
            lambda outputs, place, _: outputs["scores"][place],
            batch_size,
            verbose,
        )
        return self.calibrated(np.stack(found))

    def scores(self, given: Mapping[str, tf.Tensor]) -> Any:
        """The outputs of `call` for strings, in bounded memory; equal for equal token ids."""
        texts = [given[name] for name in self.input_names]
        return long_texts.outputs(self, self.read(texts))

    def signatures(self) -> dict[str, Signature]:
        """The signatures by name, which compute with `network`; inner ones are for evaluation."""

        def answer(given: Mapping[str, tf.Tensor]) -> Tensors:
            return self.decoded(self.scores(given))

        return {
            "serving_default": of_columns(self, answer),
            "scores": of_columns(self, lambda given: {"scores": self.scores(given)}, True),
        }

    def ids_signatures(self) -> dict[str, Signature]:
        """The signatures of an export that takes the encoder's inputs; they use only operations of
        TensorFlow's core. For strings, Python calls the inner signature NETWORK, by default `call`.
        """
        return {
            "serving_default": of_ids(self, lambda given: self.decoded(self.scores_of_ids(given))),
            NETWORK: Signature(ids(self.call_rank), self.network(), {}, is_inner=True),
        }

    def scores_of_ids(self, given: Mapping[str, tf.Tensor]) -> Any:
        """As `scores`, for the inputs of an export that takes ids."""
        return map_rows(self.network(), given)

    def strings_form(self) -> StringsForm:
        """How the model answers strings on a device; by default as `device_form` says."""
        form, names = self.device_form(), self.input_names

        def respond(outputs: Mapping[str, np.ndarray], _: Any) -> Tensors:
            found = {name: tf.constant(values) for name, values in outputs.items()}
            return self.decoded(form.restore(found, {}))

        answer = of_packed(form, names, self.cut)
        return StringsForm(names, form.outputs, answer, lambda row: [row], respond)

    @classmethod
    def answers(
        cls,
        model: Answers,
        x: Any,
        batch_size: int | None = None,
        verbose: int | str = "auto",
        **options: Any,
    ) -> Any:
        """Answers of a model of this class, or of an export of one, to inputs as for `predict`."""
        of_asked = inspect.signature(cls.asked).parameters if options else ()
        asked = {name: options.pop(name) for name in of_asked if name in options}
        rows, single, signature = cls.asked(model, x, **asked)
        model = cls.with_options(model, options)
        say_cut(model, columns_of(rows))
        answers = each_answer(
            model,
            signature,
            rows,
            lambda outputs, place, row: cls.answer(outputs, place, rows[row]),
            batch_size,
            verbose,
        )
        return answers[0] if single else answers

    @classmethod
    def asked(cls, model: Answers, x: Any) -> "Asked":
        """The rows of a call of `predict`; a family names the options that it takes here."""
        return Asked(*inputs.asked(x, asked_columns(cls, model)))

    def check_settings(self) -> None:
        """Raises UserError if a setting that one call of `predict` may change has a wrong value."""

    @classmethod
    def with_options(cls, model: Any, options: Mapping[str, Any]) -> Any:
        """A model or an export, or a copy of it with other settings; None keeps a setting."""
        if not options:
            return model
        arguments, changed = inspect.signature(cls.__init__).parameters, {}
        for name, value in options.items():
            if name not in cls.answer_options:
                raise UserError(f"a {cls.__name__} has no option {name}; remove it")
            default = arguments[name].default if name in arguments else None
            if value is not None and value != model.settings.get(name, default):
                changed[name] = checked_argument(name, value)
        if not changed:
            return model
        if isinstance(model, TaskModel):
            strings = vars(model).get("ask")  # of a LiteRT file
            if not is_on_device(model) or {*changed} <= {*cls.device_options}:
                copy = model._with(**changed)
                copy.check_settings()
                if strings is not None:
                    copy.__dict__["ask"] = strings.__self__.answering(copy.strings_form())
                return copy
        elif [*changed] == ["abstain"] and changed["abstain"] >= model.settings.get("abstain", 0):
            return Changed(model, lambda _, outputs: abstaining(outputs, changed["abstain"]))
        name, value = next(iter(changed.items()))
        raise UserError(
            f"the export answers with {name}={model.settings.get(name)!r}; export the model again "
            f"with {name}={value!r}, or leave it out"
        )

    def exported_functions(self) -> dict[str, Callable]:
        """Functions by name that an export has for Python programs, besides `serve`."""
        return {}


class Asked(NamedTuple):
    """Rows to answer, whether `predict` was given a single one, and the signature to call."""

    rows: Sequence[Row]
    single: bool
    signature: str = "serving_default"


def is_on_device(model: TaskModel) -> bool:
    """Whether a LiteRT file computes the answers of a model."""
    return model._network is not None or "ask" in vars(model)


def in_chunks(
    columns: Sequence[Sequence[Text]],
    size: int,
    first: int = 0,
    title: str = "tokenizing",
    unit: str = "rows",
) -> Iterator[list[tf.Tensor]]:
    """Columns of texts as tensors, string [rows] each, of `size` rows at a time, with progress
    under the title. The `first` chunks are left out.
    """
    rows = len(columns[0])
    with Progress(title, rows, first * size, unit) as progress:
        for start in range(first * size, rows, size):
            chunk = [[*map(encoded, column[start : start + size])] for column in columns]
            yield [tf.constant(texts, tf.string) for texts in chunk]
            progress.update(min(start + size, rows), line=True)


_LOSSES: Mapping[str, Callable[[], dict[str, Any]]] = {
    "classes": lambda: {
        "loss": keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        "metrics": [keras.metrics.SparseCategoricalAccuracy("accuracy")],
    },
    "labels": lambda: {
        "loss": keras.losses.BinaryCrossentropy(from_logits=True),
        "metrics": [keras.metrics.BinaryAccuracy("accuracy", threshold=0.0)],
    },
    "values": lambda: {"loss": keras.losses.MeanSquaredError()},
}


def head_dropout(model: TaskModel, rate: float | None) -> Dropout:
    """The dropout of a head; None takes the encoder's rate."""
    if rate is None:
        rate = model.encoder.config.hidden_dropout_prob
    return Dropout(rate, name="dropout", dtype=model.dtype_policy)


def _count_cut(model: TaskModel, columns: Sequence[Sequence[Any]]) -> int:
    is_read = long_texts.reader(model).reads
    rows = [[[*map(encoded, texts_in(each))] for each in row] for row in zip(*columns, strict=True)]

    def most(texts: list[bytes], size: Callable[[bytes], int]) -> int:
        return max(map(size, texts), default=0)

    # A text has no more pieces than bytes, so a row that fits in bytes is not tokenized.
    rows = [row for row in rows if not is_read([most(texts, len) for texts in row])]
    texts = [*dict.fromkeys(text for row in rows for texts in row for text in texts)]
    pieces: dict[bytes, int] = {}
    for start in range(0, len(texts), _CHUNK):
        chunk = texts[start : start + _CHUNK]
        counts = model.tokenizer.tokenize(chunk).row_lengths().numpy()
        pieces |= zip(chunk, counts.tolist(), strict=True)
    return sum(not is_read([most(texts, pieces.__getitem__) for texts in row]) for row in rows)


def asked_columns(cls: type[TaskModel], model: Answers) -> tuple[Column, ...]:
    """The columns that `answers` takes: those of all models of the class, or of this one."""
    own: Any = cls.columns
    if isinstance(own, tuple):
        return own
    return tuple(map(TextColumn, model.ranks("serving_default")))


def _set_tokenizer(model: TaskModel, tokenizer: Tokenizer) -> None:
    model.encoder.config.check_vocabulary(tokenizer.vocab_size)
    model._tokenizer = tokenizer
    model._functions.clear()


def _like(model: Model, encoder: Encoder, settings: Mapping[str, Any]) -> Model:
    head = {name: value for name, value in model.head.items() if name != "num_classes"}
    own = {"labels": model.labels} if model.has_labels else {}
    # The constructors of subclasses take other arguments than that of `TaskModel`.
    make: Callable[..., Model] = type(model)
    return make(encoder, model._tokenizer, **own, **head, **settings)


def _signature(model: TaskModel, name: str) -> Signature:
    known = model.signatures()
    if name not in known:
        raise UserError(
            f"no signature {name!r}; the signatures are {', '.join(model.signature_names())}"
        )
    return known[name]


def _traced(model: TaskModel, name: str) -> Callable[[Tensors], Tensors]:
    fitting.check_ready(model)

    def traced() -> Callable[[Tensors], Tensors]:
        signature = _signature(model, name)
        function = tf.function(signature.answer, autograph=False)
        return function.get_concrete_function(dict(signature.inputs))

    return model._once(f"{name} with {model.traced_settings}", traced)


def of_columns(
    model: TaskModel, answer: Callable[[Mapping[str, tf.Tensor]], Tensors], is_inner: bool = False
) -> Signature:
    """A signature that takes the columns of a model."""
    specs = {
        each.name: tf.TensorSpec([None] * each.rank, tf.string, each.name) for each in model.columns
    }
    return Signature(specs, answer, request_of(model.columns), is_inner)


def request_of(columns: Sequence[Column]) -> dict[str, list]:
    """The first request to a server, of one row."""
    texts = {each.name: each.example for each in columns}
    return {name: [each if isinstance(each, str) else [*each]] for name, each in texts.items()}


def of_ids(model: TaskModel, answer: Callable[[Mapping[str, tf.Tensor]], Tensors]) -> Signature:
    """A signature that takes the encoder's inputs, [batch, seq_len] or [batch, group, seq_len]."""
    texts: list[list] = [*request_of(model.columns).values()]
    is_group = [each.rank for each in model.columns] == [1, 2]
    if is_group:
        texts = [texts[0] * len(texts[1][0]), texts[1][0]]
    elif model.columns[0].rank == 2:
        texts = [[" ".join(texts[0][0])]]
    # In plain text "[MASK]" is several pieces.
    reader = model._with(_tokenizer=model.tokenizer.with_settings(special_tokens="whole"))
    features = reader.packed([*map(tf.constant, texts)])
    rows = {name: each.numpy().tolist() for name, each in features.items()}
    request = {name: [each] if is_group else each for name, each in rows.items()}
    return Signature(ids(3 if is_group else 2), answer, request)


def abstaining(outputs: Mapping[str, Any], least: float | None) -> dict[str, Any]:
    """Outputs of a classifier: `label` is "", or `choice` -1, if no probability reaches `least`."""
    if least is None:
        return dict(outputs)
    name, nothing = ("label", "") if "label" in outputs else ("choice", -1)
    is_sure = tf.reduce_max(outputs["probabilities"], axis=1) >= least
    found = tf.where(is_sure, outputs[name], nothing)
    is_numpy = isinstance(outputs[name], np.ndarray)
    return {**outputs, name: found.numpy() if is_numpy else found}
