"""How one weight of ours is called, and laid out, in another format.

A format is a `Table` of `Row`s. A row works both ways: it reads their tensors into our weight and
cuts our weight into their tensors. What a format has no place for is kept in it all the same,
under our own name with the prefix "bert_tf/", where the format's own reader does not look.
"""

import dataclasses
from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from bert_tf.checkpoints.description import Description

UNMAPPED = "bert_tf/"


class Layout(NamedTuple):
    """How the numbers of one tensor are arranged.

    Attributes:
        to_ours: their array -> ours.
        to_theirs: our array and the number of attention heads -> theirs.
    """

    to_ours: Callable[[np.ndarray], np.ndarray]
    to_theirs: Callable[[np.ndarray, int], np.ndarray]


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
    """One weight of ours and what it is made of.

    Attributes:
        ours: our name; `{n}` is the layer.
        theirs: their names. Where they are several, ours is their stack along the last axis.
        layout: how each of theirs is arranged.
    """

    ours: str
    theirs: tuple[str, ...]
    layout: Layout = SAME

    def of_layer(self, layer: int) -> "Row":
        """The row with `{n}` filled in."""
        number = str(layer)
        return Row(
            self.ours.replace("{n}", number),
            tuple(name.replace("{n}", number) for name in self.theirs),
            self.layout,
        )

    def read(self, tensor: Callable[[str], np.ndarray]) -> np.ndarray:
        """Our array, where `tensor` gives the array of one of their names.

        Raises:
            ValueError: their arrays have other shapes than such a weight can have.
        """
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
) -> tuple[Row, ...]:
    """The rows of layers: gamma and beta of a layer normalization, kernel and bias of any other.

    >>> for row in rows_of({"encoder/pooler": "pooler."}, names={"kernel": "weight"}):
    ...     print(row.ours, row.theirs)
    encoder/pooler/kernel ('pooler.weight',)
    encoder/pooler/bias ('pooler.bias',)

    Args:
        layers: our name of each -> what stands before their names of its weights.
        kernel: how their kernels are arranged.
        names: our names of the weights in a layer -> theirs, where they differ.
    """
    rows = []
    for ours, theirs in layers.items():
        parts = ("gamma", "beta") if ours.endswith("layer_norm") else ("kernel", "bias")
        for part in parts:
            prefixes = (theirs,) if isinstance(theirs, str) else theirs
            found = tuple(prefix + names.get(part, part) for prefix in prefixes)
            rows.append(Row(f"{ours}/{part}", found, kernel if part == "kernel" else SAME))
    return tuple(rows)


# The models that classify or rate whole texts.
TEXT_HEADS = ("TextClassifier", "MultiLabelClassifier", "TextRegressor", "Reranker")


def text_heads(rows: tuple[Row, ...]) -> dict[str, tuple[Row, ...]]:
    """The same rows for each of `TEXT_HEADS`."""
    return dict.fromkeys(TEXT_HEADS, rows)


@dataclasses.dataclass(frozen=True)
class Table:
    """The correspondences of one format.

    Attributes:
        encoder: rows of the encoder, those with `{n}` once for all layers.
        heads: rows of the head of each model class.
        homeless: what stands before our names of weights that have no row.
    """

    encoder: tuple[Row, ...]
    heads: Mapping[str, tuple[Row, ...]]
    homeless: str = UNMAPPED

    def rows(self, model: str, layers: int) -> dict[str, Row]:
        """The rows of a model of class `model` with so many layers, by our names."""
        rows = []
        for row in self.encoder:
            rows += [row.of_layer(n) for n in range(layers)] if "{n}" in row.ours else [row]
        return {row.ours: row for row in (*rows, *self.heads.get(model, ()))}

    def write(
        self, weights: Mapping[str, np.ndarray], description: Description
    ) -> dict[str, np.ndarray]:
        """Our weights under their names; those without a row keep ours, with the prefix."""
        sizes = description.encoder
        rows = self.rows(description.model, sizes.num_hidden_layers)
        theirs: dict[str, np.ndarray] = {}
        for name, array in weights.items():
            row = rows.get(name, self.without_row(name))
            theirs |= row.write(array, sizes.num_attention_heads)
        return theirs

    def without_row(self, ours: str) -> Row:
        """How a weight is kept that has no row."""
        return Row(ours, (self.homeless + ours,))
