"""An opened checkpoint of any format: its description, and its tensors, which are read later."""

import dataclasses
import functools
import math
from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path

import keras
import numpy as np

from bert_tf.checkpoints import embedder, heads, names
from bert_tf.checkpoints.correspondence import Row, Table
from bert_tf.checkpoints.description import Description, vocabulary_hash
from bert_tf.checkpoints.tensors import Tensors
from bert_tf.console import escaped
from bert_tf.encoder.config import EncoderConfig
from bert_tf.errors import UserError
from bert_tf.io.vocabulary import fitted

_FLOATS = ("float16", "bfloat16", "float32", "float64")
_NAMED = 6  # the most weights that a report names; it counts the others
# The arguments that decide the shapes of a head's weights -> their names in messages.
_HEAD_SIZES = {"num_classes": "labels", "lstm_units": "LSTM units", "features": "features"}


@dataclasses.dataclass(frozen=True)
class LoadReport:
    """Where a model's weights came from, by our names; `ignored` has the checkpoint's names."""

    loaded: tuple[str, ...]
    new: tuple[str, ...]  # these weights keep their random values
    ignored: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    resized: tuple[str, ...] = ()  # those of `new` that the checkpoint has in another form
    why: str = ""  # how the two heads or their labels differ, in words

    def __str__(self) -> str:
        parts = [f"{len(self.loaded)} weights loaded"]
        missing = tuple(name for name in self.new if name not in self.resized)
        if missing:
            parts.append(f"newly initialised: {listed(missing)}")
        if self.resized:
            parts.append(f"newly initialised: {listed(self.resized)}, because {self.why}")
        if self.ignored:
            parts.append(f"ignored: {listed(self.ignored)}")
        return "; ".join((*parts, *self.notes))


@dataclasses.dataclass(frozen=True)
class Checkpoint:
    """A checkpoint on the disk.

    Attributes:
        folder: where its files are.
        description: what it is.
        tensors: its tensors, under the names of its table.
        table: maps those names to ours.
        vocabulary_there: returns the pieces of the checkpoint's vocabulary, or None if it has no
            vocabulary; raises UserError if the vocabulary is damaged.
        notes: messages for whoever reads the checkpoint.
    """

    folder: Path
    description: Description
    tensors: Tensors
    table: Table
    vocabulary_there: Callable[[], tuple[str, ...] | None]
    notes: tuple[str, ...] = ()

    @property
    def encoder(self) -> EncoderConfig:
        """The encoder's sizes."""
        return self.description.encoder

    def read_vocabulary(self) -> tuple[str, ...] | None:
        """The checked pieces of the checkpoint's vocabulary; None if it has no vocabulary."""
        return self._vocabulary

    @functools.cached_property  # so that warnings about it are printed only once
    def _vocabulary(self) -> tuple[str, ...] | None:
        vocabulary, expected_hash = self.vocabulary_there(), self.description.vocabulary
        if vocabulary is None:
            return None
        if expected_hash not in (None, vocabulary_hash(vocabulary)):
            raise UserError(
                f"the vocabulary in {self.folder} is not the one that the model was trained with; "
                "restore the original vocab.txt"
            )
        return fitted(vocabulary, self.encoder.vocab_size, self.folder)

    def check(self) -> "Checkpoint":
        """Checks that the tensors fit the sizes, and returns this checkpoint.

        Raises:
            UserError: the encoder's tensors are missing or have other shapes.
        """
        layers, many = self.encoder.num_hidden_layers, len(self.tensors.shapes)
        rows = self.table.rows(self.description.model, min(layers, many) + 1)
        found = 0
        while self._source(f"encoder/layer_{found}/output/bias", rows):
            found += 1
        if not found:
            raise self._no_encoder()
        if found != layers:
            more = "or more " if found > layers else ""
            raise UserError(
                f"{self.folder} has tensors for {found} {more}layers, but its configuration says "
                f"{layers}; copy both again"
            )
        shapes = names.encoder_shapes(self.encoder, layers) | self._dense_shapes()
        for name, shape in shapes.items():
            row = self._source(name, rows)
            if row is None:
                if name.startswith("encoder/pooler/"):
                    continue
                missing = rows.get(name, self.table.without_row(name)).theirs[0]
                raise UserError(f"{self.folder} lacks the weight {missing}; copy it again")
            if sum(math.prod(self.tensors.shapes[part]) for part in row.theirs) != math.prod(shape):
                raise UserError(
                    f"weight {row.theirs[0]} of {self.folder} has shape "
                    f"{list(self.tensors.shapes[row.theirs[0]])}, but by its configuration "
                    f"{row.ours} has shape {list(shape)}; copy both again"
                )
        longest = max(max(shape, default=0) for shape in self.tensors.shapes.values())
        for name, value in self.description.head.items():
            if type(value) is int and not 0 < value <= longest:
                raise UserError(
                    f"{self.folder}: {name} is {value}, which does not match the tensors; copy "
                    "the checkpoint again"
                )
        return self

    def _dense_shapes(self) -> dict[str, tuple[int, ...]]:
        """Our names and shapes of the weights of an embedder's dense layers."""
        if heads.of(self.description.model).sentence_transformers != heads.EMBEDDER:
            return {}
        dense = self.description.head.get("dense", ())
        pooling = self.description.settings.get("pooling", "mean")
        try:
            return embedder.dense_shapes(self.encoder.output_size, pooling, dense)
        except UserError as error:
            raise UserError(f"{self.folder} is damaged ({error}); copy it again") from None

    def weights(self) -> tuple[dict[str, np.ndarray], LoadReport]:
        """All weights of the checkpoint as float32 under our names, and where they came from.

        No model is built. A weight that the checkpoint lacks, such as the pooler of a masked
        language model, is in the report's `new`.
        """
        layers = self.encoder.num_hidden_layers
        rows = self.table.rows(self.description.model, layers)
        shapes = names.encoder_shapes(self.encoder, layers)
        prefix = self.table.prefix
        unmapped = [n.removeprefix(prefix) for n in self.tensors.shapes if n.startswith(prefix)]
        weights: dict[str, np.ndarray] = {}
        used: set[str] = set()
        for name in dict.fromkeys((*shapes, *rows, *unmapped)):
            row = self._source(name, rows)
            if row is not None:
                weights[name] = self._array(row, shapes.get(name))
                used.update(row.theirs)
        return weights, self._report(weights, shapes, used)

    def fill(self, model: keras.Model, labels: Sequence[str] = ()) -> LoadReport:
        """Gives `model` the weights that the checkpoint has for it.

        A head is filled only if its weights mean the same: if the checkpoint is of the model's
        class, or of a class whose head the model can take (`Head.takes_from`). If the numbers of
        labels differ, the layers whose shapes differ keep their random values. If the labels
        differ, the layer with an output for each label keeps its random values. If only the order
        of the labels differs, its outputs get the order of `labels`, the model's classes.
        """
        variables = names.weight_names(model)
        layers = getattr(model, "encoder", model).config.num_hidden_layers
        kind = type(model).__name__
        head = heads.of(kind)
        same_task = self.description.model == kind or head.takes_from(self.description.model)
        why = self._other_sizes(model) if same_task else ""
        order = None if why else self._order(labels)
        if same_task and not why and order is None:
            why = f"the checkpoint's labels are {listed(self.description.labels)}"
        rows = self.table.rows(self.description.model, layers)
        used, weights, resized = {}, {}, set()
        for name, variable in variables.items():
            in_head = not name.startswith("encoder/")
            row = self._source(name, rows) if same_task or not in_head else None
            if row is None:
                continue
            shape = tuple(variable.shape)
            by_label = _layer(name) in head.label_layers
            if in_head and why and (by_label or getattr(self._read(row), "shape", None) != shape):
                resized.add(_layer(name))
                continue
            array = self._array(row, shape)
            weights[name] = array[..., order] if by_label and order else array
            used[name] = row.theirs
        weights = {name: value for name, value in weights.items() if _layer(name) not in resized}
        if not any(name.startswith("encoder/") for name in weights):
            raise self._no_encoder()
        for name, value in weights.items():
            variables[name].assign(value)
        taken = {each for name in weights for each in used[name]}
        return dataclasses.replace(
            self._report(weights, variables, taken),
            resized=tuple(name for name in variables if _layer(name) in resized),
            why=why,
        )

    def _report(
        self, loaded: Iterable[str], expected: Iterable[str], used: Collection[str]
    ) -> LoadReport:
        """The report, from the `loaded` and the `expected` weights and the `used` tensors."""
        loaded = tuple(loaded)
        return LoadReport(
            loaded=loaded,
            new=tuple(name for name in expected if name not in loaded),
            ignored=tuple(name for name in self.tensors.shapes if name not in used),
            notes=self.notes,
        )

    def _no_encoder(self) -> UserError:
        return UserError(
            f"{self.folder} contains no weights of a BERT encoder; give the checkpoint of a BERT "
            "model"
        )

    def _other_sizes(self, model: keras.Model) -> str:
        """How the sizes of the model's head and of the checkpoint's differ; "" if they do not."""
        ours, theirs = getattr(model, "head", {}), self.description.head
        return " and ".join(
            f"the checkpoint has {theirs[size]} {what}, the model {ours[size]}"
            for size, what in _HEAD_SIZES.items()
            if size in ours and size in theirs and ours[size] != theirs[size]
        )

    def _order(self, labels: Sequence[str]) -> list[int] | None:
        """Each label's index in the checkpoint; [] for the same order, None for other labels."""
        ours, theirs = tuple(labels), self.description.labels
        numbers = tuple(map(str, range(len(ours))))
        if ours == theirs or () in (ours, theirs) or numbers in (ours, theirs):
            return []
        return [theirs.index(label) for label in ours] if {*ours} == {*theirs} else None

    def _source(self, name: str, rows: dict[str, Row]) -> Row | None:
        """The row of our weight `name` if the checkpoint has all its tensors; otherwise None."""
        for row in (rows.get(name), self.table.without_row(name)):
            if row is not None and all(each in self.tensors.shapes for each in row.theirs):
                return row
        return None

    def _read(self, row: Row) -> np.ndarray | None:
        """The array of one weight of ours, of any shape; None if its parts do not fit together."""
        try:
            return row.read(self.tensors.read)
        except UserError:
            raise
        except ValueError:
            return None

    def _array(self, row: Row, shape: tuple[int, ...] | None) -> np.ndarray:
        """The float32 array of one weight of ours, which must have `shape`; None allows any."""
        array = self._read(row)
        if array is None or shape not in (None, array.shape):
            theirs = self.tensors.shapes[row.theirs[0]] if array is None else array.shape
            ours = shape or ()
            raise UserError(
                f"weight {row.theirs[0]} of the checkpoint has shape {list(theirs)}, but "
                f"{row.ours} of the model has shape {list(ours)}; "
                + names.likely_cause(row.ours, tuple(theirs), ours)
            )
        if array.dtype.name not in _FLOATS:
            raise UserError(
                f"weight {row.theirs[0]} of {self.folder} is of type {array.dtype}, but bert_tf "
                "reads only floating-point weights; use the checkpoint from before quantization"
            )
        array = array.astype(np.float32, copy=False)
        names.check_finite(array, " and ".join(row.theirs), self.folder)
        return array


def _layer(name: str) -> str:
    """The layer of a head that a weight belongs to, for example "classifier"."""
    return name.split("/")[0]


def listed(many: tuple[str, ...]) -> str:
    """The first few names, and how many follow."""
    more = f" and {len(many) - _NAMED} more" if len(many) > _NAMED else ""
    return ", ".join(map(escaped, many[:_NAMED])) + more
