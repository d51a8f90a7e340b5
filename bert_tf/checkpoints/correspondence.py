"""The names of our weights in another format, and how their numbers are arranged there.

A format has a `Table` of `Row`s. A row works both ways: it makes our weight from their tensors, and
their tensors from our weight. A weight that the format has no place for is stored under our name
with the prefix "bert_tf/", where the format's own reader does not look.
"""

import dataclasses
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bert_tf.checkpoints import heads
from bert_tf.checkpoints.description import Description
from bert_tf.checkpoints.tensors import Tensors, joined, open_file, save
from bert_tf.io.files import is_there

UNMAPPED = "bert_tf/"
# The file of the weights that a format has no place for, next to its own files.
OWN_WEIGHTS_FILE = "bert_tf.safetensors"


def save_own(folder: Path, own: Mapping[str, np.ndarray]) -> None:
    """Writes the weights that a format has no place for, by our names, to a file of their own."""
    if own:
        save(folder / OWN_WEIGHTS_FILE, own)


def with_own(folder: Path, found: Tensors) -> Tensors:
    """Tensors of a format, and those that `save_own` wrote to its folder, with the prefix."""
    if not is_there(folder / OWN_WEIGHTS_FILE):
        return found
    own = open_file(folder / OWN_WEIGHTS_FILE)
    return joined(found, own.renamed({UNMAPPED + name: name for name in own.shapes}))


class Layout(NamedTuple):
    """How the numbers of one tensor are arranged, as functions in both directions."""

    to_ours: Callable[[np.ndarray], np.ndarray]
    to_theirs: Callable[[np.ndarray, int], np.ndarray]  # takes the number of heads too


SAME = Layout(lambda array: array, lambda array, heads: array)
# A kernel as [output, input], where ours is [input, output].
TRANSPOSED = Layout(np.transpose, lambda array, heads: np.transpose(array))
# [..., heads, head_size] for our [..., hidden], and [heads, head_size, n] for our [hidden, n].
HEADS_LAST = Layout(
    lambda array: array.reshape(*array.shape[:-2], -1),
    lambda array, heads: array.reshape(*array.shape[:-1], heads, -1),
)
HEADS_FIRST = Layout(
    lambda array: array.reshape(-1, array.shape[-1]),
    lambda array, heads: array.reshape(heads, -1, array.shape[-1]),
)


@dataclasses.dataclass(frozen=True)
class Row:
    """One weight of ours and the tensors that make it; `{n}` in a name is the layer's number."""

    ours: str
    theirs: tuple[str, ...]  # concatenated along the last axis, they make ours
    layout: Layout = SAME

    def read(self, tensor: Callable[[str], np.ndarray]) -> np.ndarray:
        """Our array; `tensor` reads their arrays. Raises ValueError if their shapes cannot fit."""
        parts = [self.layout.to_ours(tensor(name)) for name in self.theirs]
        return np.concatenate(parts, axis=-1) if len(parts) > 1 else parts[0]

    def write(self, array: np.ndarray, heads: int) -> dict[str, np.ndarray]:
        """Their arrays by name."""
        parts = np.split(array, len(self.theirs), axis=-1)
        arrays = (self.layout.to_theirs(part, heads) for part in parts)
        return dict(zip(self.theirs, arrays, strict=True))


def rows_of(
    layers: Mapping[str, str | tuple[str, ...]],
    kernel: Layout = SAME,
    names: Mapping[str, str] = {},
    with_heads: bool = False,
) -> tuple[Row, ...]:
    """The rows of layers: gamma and beta of a layer normalization, kernel and bias of any other.

    A table of embeddings and the bias of a masked language model are weights themselves.
    `with_heads` says that the weights of attention have an axis for the heads.
    """
    rows = []
    for ours, theirs in layers.items():
        prefixes = (theirs,) if isinstance(theirs, str) else theirs
        if ours.endswith(("_embeddings", "/output_bias")):
            rows.append(Row(ours, prefixes))
            continue
        layouts = {"kernel": kernel}
        if with_heads and ours.endswith("/query_key_value"):
            layouts = {"kernel": HEADS_LAST, "bias": HEADS_LAST}
        elif with_heads and ours.endswith("/attention/output"):
            layouts = {"kernel": HEADS_FIRST}
        parts = ("gamma", "beta") if ours.endswith("layer_norm") else ("kernel", "bias")
        for part in parts:
            found = tuple(prefix + names.get(part, part) for prefix in prefixes)
            rows.append(Row(f"{ours}/{part}", found, layouts.get(part, SAME)))
    return tuple(rows)


@dataclasses.dataclass(frozen=True)
class Table:
    """The correspondences of one format, named as in `conversion.save`."""

    format: str
    encoder: tuple[Row, ...] = ()
    pretraining: tuple[Row, ...] = ()
    kernel: Layout = SAME  # of the kernel of a task's head
    names: Mapping[str, str] = dataclasses.field(default_factory=dict)  # in a task's head
    prefix: str = UNMAPPED  # stands before our names of weights without a row

    def rows(self, model: str, layers: int) -> dict[str, Row]:
        """The rows of a model of the class `model`, with this number of layers, by our names."""
        rows: list[Row] = []
        for row in self.encoder:
            for n in range(layers if "{n}" in row.ours else 1):
                ours, *theirs = (name.replace("{n}", str(n)) for name in (row.ours, *row.theirs))
                rows.append(Row(ours, tuple(theirs), row.layout))
        head = heads.of(model)
        if heads.MASKED_LM in head.pretraining:
            rows += self.pretraining
        if self.format in head.places:
            place = head.places[self.format]
            rows += rows_of({head.layer: place.prefix}, self.kernel, self.names)
        return {row.ours: row for row in rows}

    def heads_in(self, tensors: Tensors) -> dict[str, int]:
        """The classes of models that may have the head in `tensors`, with its number of outputs."""
        found = {}
        for model, head in heads.known().items():
            place = head.places.get(self.format)
            bias = f"{place.prefix}{self.names.get('bias', 'bias')}" if place else ""
            if place and place.reader and len(tensors.shapes.get(bias, ())) == 1:
                (found[model],) = tensors.shapes[bias]
        return found

    def model_in(self, tensors: Tensors) -> tuple[str, dict[str, Any]]:
        """The class of the model that the tensors are from, and its head's arguments."""
        theirs = {row.ours: row.theirs[0] for row in self.pretraining}
        if theirs["masked_lm/output_bias"] in tensors.shapes:
            next_sentence = theirs["next_sentence/bias"] in tensors.shapes
            return heads.PRETRAINER, {"next_sentence": next_sentence}
        return heads.chosen(self.heads_in(tensors))

    def write(
        self, weights: Mapping[str, np.ndarray], description: Description
    ) -> dict[str, np.ndarray]:
        """The weights under the format's names; without a row, under our name with the prefix."""
        sizes = description.encoder
        rows = self.rows(description.model, sizes.num_hidden_layers)
        theirs: dict[str, np.ndarray] = {}
        for name, array in weights.items():
            row = rows.get(name, self.without_row(name))
            theirs |= row.write(array, sizes.num_attention_heads)
        return theirs

    def without_row(self, ours: str) -> Row:
        """The row of a weight that this format has no place for."""
        return Row(ours, (self.prefix + ours,))
