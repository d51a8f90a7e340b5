"""A checkpoint of any format, opened: what it is, and its tensors, not yet in memory."""

import dataclasses
import math
from collections.abc import Callable, Sequence
from pathlib import Path

import keras
import numpy as np

from bert_tf.checkpoints import embedder, names
from bert_tf.checkpoints.correspondence import Row, Table
from bert_tf.checkpoints.description import Description, vocabulary_hash
from bert_tf.checkpoints.sizes import encoder_shapes
from bert_tf.checkpoints.tensors import Tensors
from bert_tf.encoder.config import EncoderConfig
from bert_tf.errors import UserError

_FLOATS = ("float16", "bfloat16", "float32", "float64")
# Weights named in a report, before it only counts the rest.
_NAMED = 6
# The layers of heads that have an output for each label.
_CLASSIFIERS = ("classifier", "feature_classifier")
# A class of models -> other classes whose heads it takes: they are the same weights.
_HEADS_OF = {
    "PreTrainer": ("MaskedLM", "NextSentence"),
    "MaskedLM": ("PreTrainer",),
    "NextSentence": ("PreTrainer",),
    "MultiLabelClassifier": ("TextClassifier",),
    "Reranker": ("TextRegressor",),
    "TextRegressor": ("Reranker",),
}
# The arguments of heads that decide the shapes of their weights, and what these count or name.
_HEAD_SIZES = {"num_classes": "labels", "lstm_units": "LSTM units", "features": "features"}


@dataclasses.dataclass(frozen=True)
class LoadReport:
    """Where a model's weights came from.

    Attributes:
        loaded: our names of the weights that were read.
        new: our names of the weights that keep their random start.
        ignored: the checkpoint's names of the tensors that were not used.
        notes: what else there is to know, in words.
        resized: those of `new` that the checkpoint has in another size.
        why: what makes their sizes differ, in words.
    """

    loaded: tuple[str, ...]
    new: tuple[str, ...]
    ignored: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    resized: tuple[str, ...] = ()
    why: str = ""

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
        """The pieces of the checkpoint's vocabulary; None if it has no vocabulary.

        Raises:
            UserError: the vocabulary is damaged, or its hash is not the one in the description.
        """
        vocabulary, expected_hash = self.vocabulary_there(), self.description.vocabulary
        if vocabulary is None or expected_hash in (None, vocabulary_hash(vocabulary)):
            return vocabulary
        raise UserError(
            f"the vocabulary in {self.folder} is not the one that the model was trained with; "
            "restore the original vocab.txt"
        )

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
            raise UserError(
                f"{self.folder} contains no weights of a BERT encoder; give the checkpoint of a "
                "BERT model"
            )
        if found != layers:
            more = "or more " if found > layers else ""
            raise UserError(
                f"{self.folder} has tensors for {found} {more}layers, but its configuration says "
                f"{layers}; copy both again"
            )
        for name, shape in encoder_shapes(self.encoder, layers).items():
            row = self._source(name, rows)
            if row is not None:
                self._check_size(row, shape)
            elif not name.startswith("encoder/pooler/"):
                missing = rows.get(name, self.table.without_row(name)).theirs[0]
                raise UserError(f"{self.folder} lacks the weight {missing}; copy it again")
        for name, shape in self._dense_shapes().items():
            row = self._source(name, rows)
            if row is None:
                missing = rows.get(name, self.table.without_row(name)).theirs[0]
                raise UserError(f"{self.folder} lacks the weight {missing}; copy it again")
            self._check_size(row, shape)
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
        if self.description.model != embedder.MODEL:
            return {}
        dense = self.description.head.get("dense", ())
        pooling = self.description.settings.get("pooling", "mean")
        try:
            return embedder.dense_shapes(self.encoder.output_size, pooling, dense)
        except UserError as error:
            raise UserError(f"{self.folder} is damaged ({error}); copy it again") from None

    def weights(self) -> tuple[dict[str, np.ndarray], LoadReport]:
        """Every weight of the checkpoint under our names, float32, and where each came from.

        No model is built for this. What the checkpoint lacks, such as the pooler of a masked
        language model, is `new` in the report.

        Raises:
            UserError: a file is damaged, or a tensor is not of floating-point numbers.
        """
        layers = self.encoder.num_hidden_layers
        rows = self.table.rows(self.description.model, layers)
        shapes = encoder_shapes(self.encoder, layers)
        own = self.table.homeless
        unmapped = [name.removeprefix(own) for name in self.tensors.shapes if name.startswith(own)]
        weights: dict[str, np.ndarray] = {}
        used: set[str] = set()
        for name in dict.fromkeys((*shapes, *rows, *unmapped)):
            row = self._source(name, rows)
            if row is not None:
                weights[name] = self._array(row, shapes.get(name))
                used.update(row.theirs)
        return weights, LoadReport(
            loaded=tuple(weights),
            new=tuple(name for name in shapes if name not in weights),
            ignored=tuple(name for name in self.tensors.shapes if name not in used),
            notes=self.notes,
        )

    def fill(self, model: keras.Model, labels: Sequence[str] = ()) -> LoadReport:
        """Gives `model` every weight that the checkpoint has for it.

        The head's are taken only from a checkpoint of the same class of model, or of one in
        `_HEADS_OF`: other tasks' heads mean something else, even where they have the same shape.
        Where the model was made for another number of labels, the head's layers of other shapes
        keep their random start; so does the classifier where it was made for other labels. Where
        it has the same ones in another order, so has the model then what was learned for each.

        Args:
            model: what is filled.
            labels: names of its classes, in the order of the logits, where it is to learn such.

        Raises:
            UserError: a file is damaged, a shape does not fit, or there is no weight of the
                encoder at all.
        """
        variables = names.weight_names(model)
        layers = getattr(model, "encoder", model).config.num_hidden_layers
        kind = type(model).__name__
        same_task = self.description.model in (kind, *_HEADS_OF.get(kind, ()))
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
            by_label = _layer(name) in _CLASSIFIERS
            if in_head and why and (by_label or getattr(self._read(row), "shape", None) != shape):
                resized.add(_layer(name))
                continue
            array = self._array(row, shape)
            weights[name] = array[..., order] if by_label and order else array
            used[name] = row.theirs
        weights = {name: value for name, value in weights.items() if _layer(name) not in resized}
        if not any(name.startswith("encoder/") for name in weights):
            raise UserError(
                f"{self.folder} contains no weights of a BERT encoder; give the checkpoint of a "
                "BERT model"
            )
        for name, value in weights.items():
            variables[name].assign(value)
        taken = {each for name in weights for each in used[name]}
        return LoadReport(
            loaded=tuple(weights),
            new=tuple(name for name in variables if name not in weights),
            ignored=tuple(name for name in self.tensors.shapes if name not in taken),
            notes=self.notes,
            resized=tuple(name for name in variables if _layer(name) in resized),
            why=why,
        )

    def _other_sizes(self, model: keras.Model) -> str:
        """What makes the head of `model` another one than the checkpoint's; "" if nothing does."""
        ours, theirs = getattr(model, "head", {}), self.description.head
        return " and ".join(
            f"the checkpoint has {theirs[size]} {what}, the model {ours[size]}"
            for size, what in _HEAD_SIZES.items()
            if size in ours and size in theirs and ours[size] != theirs[size]
        )

    def _order(self, labels: Sequence[str]) -> list[int] | None:
        """Where each label stands in the checkpoint; [] as it stands here, None if it does not.

        Numbers in their order are no names of labels, but their places.
        """
        ours, theirs = tuple(labels), self.description.labels
        places = tuple(map(str, range(len(ours))))
        if ours == theirs or () in (ours, theirs) or places in (ours, theirs):
            return []
        return [theirs.index(label) for label in ours] if {*ours} == {*theirs} else None

    def _source(self, name: str, rows: dict[str, Row]) -> Row | None:
        """The row that gives weight `name` here, if any does."""
        for row in (rows.get(name), self.table.without_row(name)):
            if row is not None and all(each in self.tensors.shapes for each in row.theirs):
                return row
        return None

    def _check_size(self, row: Row, shape: tuple[int, ...]) -> None:
        """Raises UserError if the tensors are not as large as the sizes require."""
        found = sum(math.prod(self.tensors.shapes[name]) for name in row.theirs)
        if found != math.prod(shape):
            theirs = list(self.tensors.shapes[row.theirs[0]])
            raise UserError(
                f"weight {row.theirs[0]} of {self.folder} has shape {theirs}, but by its "
                f"configuration {row.ours} has shape {list(shape)}; copy both again"
            )

    def _read(self, row: Row) -> np.ndarray | None:
        """The array of one weight of ours, of any shape; None if theirs do not make one."""
        try:
            return row.read(self.tensors.read)
        except UserError:
            raise
        except ValueError:
            return None

    def _array(self, row: Row, shape: tuple[int, ...] | None) -> np.ndarray:
        """The float32 array of one weight of ours, which must have `shape`; None takes any."""
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
        return array.astype(np.float32, copy=False)


def _layer(name: str) -> str:
    """The layer of a head that a weight belongs to, for example "classifier"."""
    return name.split("/")[0]


def listed(many: tuple[str, ...]) -> str:
    """The first few names, and how many follow."""
    more = f" and {len(many) - _NAMED} more" if len(many) > _NAMED else ""
    return ", ".join(many[:_NAMED]) + more
