"""Exports as objects: a SavedModel or a LiteRT file that answers as its task model does."""

import contextlib
import functools
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn, Self

import numpy as np
import tensorflow as tf

from bert_tf.asking import Answers, Outputs, Row, rows_of, without_nan
from bert_tf.asking.lite import LiteNetwork, LiteStrings
from bert_tf.asking.record import Record, is_saved_model
from bert_tf.asking.saved_model import NETWORK, SavedModel, SavedNetwork
from bert_tf.checkpoints import native, tensors
from bert_tf.checkpoints.checkpoint import Checkpoint
from bert_tf.checkpoints.description import Description, vocabulary_hash
from bert_tf.compat import without_values
from bert_tf.data import arrow
from bert_tf.errors import UserError
from bert_tf.export.litert import saving
from bert_tf.io.remote import local_path
from bert_tf.io.vocabulary import read_beside
from bert_tf.tasks import inputs, registry
from bert_tf.tasks.from_checkpoint import built, family_at
from bert_tf.tasks.task_model import asked_columns
from bert_tf.text import Tokenizer

_SAVED_MODEL, _LITE_FILE = "SavedModel", "LiteRT file"
_OTHER_ANSWERS = "does not answer as its description says; export it again"
_REFUSAL = re.compile(r"assertion failed: \[(.*?)\]|UserError: .*?(answers NaN.*)")


def frozen_kind(path: str | os.PathLike) -> str | None:
    """The kind of export at `path`; None if it is not an export."""
    if Path(path).suffix == saving.SUFFIX:
        return _LITE_FILE
    return _SAVED_MODEL if is_saved_model(path) else None


class FrozenTask(Answers):
    """A SavedModel or a LiteRT file that answers as the task model that was exported.

    `saved` is None for a LiteRT file, which `network` runs. `model` makes inputs from strings,
    and answers from the export's outputs; it is None for a SavedModel that takes strings.
    """

    def __init__(
        self,
        path: str,
        saved: SavedModel | None = None,
        model: Any = None,
        network: LiteNetwork | LiteStrings | None = None,
    ):
        self.path, self.model, self.network = path, model, network
        self.kind = _LITE_FILE if saved is None else _SAVED_MODEL
        self._saved, self._record = saved, None if saved is None else saved.record
        self._asked: Any = saved if model is None else model

    @classmethod
    def load(cls, path: str | os.PathLike) -> Self:
        if frozen_kind(path) == _SAVED_MODEL:
            return cls.of(SavedModel.load(path))
        content, record, vocabulary = saving.read(path)
        name, lengths = os.fspath(path), record.lengths
        model = _without_weights(name, record, vocabulary)
        if record.inputs == "strings":
            strings = LiteStrings(name, content, lengths, model.strings_form())
            model.ask = strings.ask
            return cls(name, None, model, strings)
        network = LiteNetwork(name, content, lengths, model.device_form())
        return cls(name, None, model.with_network(network), network)

    @classmethod
    def of(cls, saved: SavedModel) -> Self:
        """The task of a loaded SavedModel."""
        if saved.record is None or not saved.takes_ids:
            return cls(saved.path, saved)
        vocabulary = read_beside(Path(saved.path, "assets")) or ()
        model = _without_weights(saved.path, saved.record, vocabulary)
        family: Any = registry.family_of_class(type(model))
        names = {*(family.ids_outputs or family.outputs)}
        if saved.output_names() != names or not hasattr(saved.loaded, NETWORK):
            raise UserError(f"{saved.path} {_OTHER_ANSWERS}")
        return cls(saved.path, saved, model.with_network(SavedNetwork(saved)))

    @property
    def has_record(self) -> bool:
        """False for a SavedModel of bert_tf 0.2.0 or of another program."""
        return self._saved is None or self._record is not None

    @property
    def settings(self) -> Mapping[str, Any]:
        """The settings of the model that was exported; {} if the export does not say."""
        if self._saved is None:
            return self.model.settings
        return self._record.model.get("settings", {}) if self._record else {}

    def task_class(self) -> Any:
        if self._saved is None or self.model is not None:
            return type(self.model)
        outputs = self._saved.output_names()
        if self._record is None:  # an export of bert_tf 0.2.0, or of another program
            for family in registry.families():
                if outputs == {*family.outputs}:
                    return family.model_class()
            raise UserError(
                f"{self.path} returns {', '.join(sorted(outputs))}, which are not the outputs of a "
                "task; use serve"
            )
        name = self._record.class_name
        if (known := registry.family_of(name)) is None:
            raise UserError(f"{self.path} holds an unknown model {name!r}; update bert_tf")
        if outputs != {*known.outputs}:
            raise UserError(f"{self.path} {_OTHER_ANSWERS}")
        return known.model_class()

    @inputs.columns_may_follow
    def predict(
        self,
        x: Any = None,
        batch_size: int | None = None,
        verbose: int | str = "auto",
        **columns: Any,
    ) -> Any:
        """Answers in Python values; see `TaskModel.predict`."""
        if self._saved is None:
            with self._explained():
                return self.model.predict(x, batch_size, verbose, **columns)
        cls = self.task_class()
        options = {name: columns.pop(name) for name in cls.answer_options if name in columns}
        if isinstance(x, tf.data.Dataset):
            x, _ = inputs.from_dataset(x, None, "x")
        if arrow.is_table(x):
            table = arrow.of_object(x, "x")
            x = {name: table.column(column) for name, column in table.named().items()}
        names = [column.name for column in asked_columns(cls, self)]
        x = inputs.of_generator(inputs.by_name(x, columns, names))
        return cls.answers(self, x, batch_size, verbose, **options)

    def serve(self, inputs: Any = None, **named: Any) -> dict[str, tf.Tensor]:
        """Tensors in, a dict of tensors out; see `TaskModel.serve`."""
        name = "serving_default"
        if self._saved is not None:
            dtypes = {key: spec.dtype for key, spec in self._saved.specs(name).items()}
        else:
            dtypes = dict.fromkeys(self.ranks(name), tf.string)
        given = named or (inputs if isinstance(inputs, Mapping) else {next(iter(dtypes)): inputs})
        missing = [key for key in dtypes if key not in given]
        if missing:
            raise UserError(f"no input {missing[0]!r}; the model takes {' and '.join(dtypes)}")
        tensors = {key: tf.convert_to_tensor(given[key], dtype) for key, dtype in dtypes.items()}
        if self._saved is not None:
            return self._saved.call(name, tensors)
        columns = [each.numpy().tolist() for each in tensors.values()]
        outputs = self.ask(name, rows_of(columns, tuple(dtypes)))
        return {key: tf.constant(value) for key, value in outputs.items()}

    def similarity(
        self, a: Any, b: Any, batch_size: int | None = None, verbose: int | str = "auto"
    ) -> np.ndarray:
        """How alike texts or vectors are; see `TextEmbedder.similarity`."""
        owner = self.model if self._saved is None else self._saved.loaded
        compare = getattr(owner, "similarity", None)
        if compare is None:
            raise UserError(
                f"{self.path} returns no vectors; similarity requires the export of a TextEmbedder"
            )
        if self._saved is None:
            return compare(a, b, batch_size, verbose)
        return self.task_class().compared(self, compare, a, b, batch_size, verbose)

    def evaluate(self, *args: Any, **kwargs: Any) -> Any:
        """The official metrics on strings; see `evaluate` of the task model."""
        if self.model is None:
            self._only_predicts()
        with self._explained():
            return self.model.evaluate(*args, **kwargs)

    def count_cut(self, columns: Sequence[Sequence[Any]]) -> tuple[int, str]:
        """As `count_cut` of a task model; 0 if the export does not say how much text it reads."""
        may_cut = self._record is None or self._record.may_cut(columns)
        return self._unweighted.count_cut(columns) if may_cut and self._unweighted else (0, "")

    @functools.cached_property
    def _unweighted(self) -> Any:
        """The export's task model, without weights; None if the export does not describe it."""
        if self.model is not None or self._record is None:
            return self.model
        vocabulary = read_beside(Path(self.path, "assets"))
        return vocabulary and _without_weights(self.path, self._record, vocabulary)

    def ranks(self, signature: str) -> dict[str, int]:
        return self._asked.ranks(signature)

    def signature_names(self) -> tuple[str, ...]:
        return self._asked.signature_names()

    def ask(self, signature: str, rows: Sequence[Row]) -> Outputs:
        with self._explained():
            return without_nan(self._asked.ask(signature, rows), self.path)

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        """Raises UserError for inputs that an export of ids cannot take."""
        try:
            yield
        except tf.errors.InvalidArgumentError as error:
            found = _REFUSAL.search(str(error))
            if found is None or self.model is None:
                raise
            raise UserError(f"{self.path}: {found[1] or found[2]}") from None

    def _only_predicts(self, *_: Any, **__: Any) -> NoReturn:
        raise UserError(
            f"{self.path} is a {self.kind}, which can only predict; load the run or the checkpoint "
            "that it was exported from"
        )

    fit = compile = save = save_checkpoint = export = _only_predicts


def _without_weights(path: str, record: Record, vocabulary: tuple[str, ...]) -> Any:
    """The task model that an export describes, without weights; the export is its network."""
    folder = local_path(path)
    description = Description.from_dict(record.model, folder)
    if vocabulary_hash(vocabulary) != description.vocabulary:
        raise UserError(f"{path} is damaged (its vocabulary does not match); export it again")
    tokenizer = Tokenizer.of(vocabulary, description.tokenizer_settings(vocabulary))
    nothing = tensors.of_arrays({})
    checkpoint = Checkpoint(folder, description, nothing, native.TABLE, lambda: vocabulary)
    family = family_at(checkpoint)
    if family is None:
        raise UserError(f"{path} holds an unknown model {description.model!r}; update bert_tf")
    with without_values():
        return built(family.model_class(), checkpoint, path, None, {}, tokenizer)
