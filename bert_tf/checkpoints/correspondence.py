"""How one weight of ours is called, and laid out, in another format.

A format is a `Table` of `Row`s. A row works both ways: it reads their tensors into our weight and
cuts our weight into their tensors. What a format has no place for is kept in it all the same,
under our own name behind "bert_tf/", where the format's own reader does not look.
"""

import dataclasses
from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

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


def linear(ours: str, *theirs: str, kernel: Layout = SAME, weight: str = "kernel") -> list[Row]:
    """The rows of a kernel, which they call `weight`, and of its bias."""
    return [
        Row(f"{ours}/kernel", tuple(name + weight for name in theirs), kernel),
        Row(f"{ours}/bias", tuple(f"{name}bias" for name in theirs)),
    ]


def layer_norm(ours: str, theirs: str, gamma: str = "gamma", beta: str = "beta") -> list[Row]:
    """The rows of a layer normalization."""
    return [Row(f"{ours}/gamma", (theirs + gamma,)), Row(f"{ours}/beta", (theirs + beta,))]


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
        self, weights: Mapping[str, np.ndarray], model: str, layers: int, heads: int
    ) -> dict[str, np.ndarray]:
        """Our weights under their names, and behind "bert_tf/" those that have no place."""
        rows = self.rows(model, layers)
        theirs: dict[str, np.ndarray] = {}
        for name, array in weights.items():
            theirs |= rows.get(name, self.without_row(name)).write(array, heads)
        return theirs

    def without_row(self, ours: str) -> Row:
        """How a weight is kept that has no row."""
        return Row(ours, (self.homeless + ours,))
