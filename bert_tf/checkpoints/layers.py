"""Smaller models that take some layers of a larger one, such as students in distillation."""

import dataclasses
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

from bert_tf.checkpoints import native, tensors
from bert_tf.checkpoints.checkpoint import Checkpoint
from bert_tf.errors import UserError

Weight = TypeVar("Weight")
_LAYER = re.compile(r"(?<=/)layer_(\d+)(?=/)")
_CHOICES = ("spread", "first", "last")


def spread(layers: int, number: int) -> list[int]:
    """The last layer of each of `number` equal parts of `layers` (TinyBERT's uniform strategy)."""
    return [-(-layers * (part + 1) // number) - 1 for part in range(number)]


def chosen(layers: int, number: int | None, choice: str | Sequence[int]) -> list[int]:
    """The numbers of the layers that a smaller model takes from one of `layers` layers."""
    taken = list(range(layers) if isinstance(choice, str) else choice)
    if not isinstance(choice, str):
        for each in taken:
            if not isinstance(each, int) or isinstance(each, bool) or not 0 <= each < layers:
                raise UserError(
                    f"the teacher has no layer {each!r}; its layers are 0 to {layers - 1}"
                )
        if number not in (None, len(taken)):
            raise UserError(
                f"a student with {number} layers requires {number} chosen layers of the teacher, "
                f"not {len(taken)}"
            )
    elif choice not in _CHOICES:
        raise UserError(
            f"unknown layers {choice!r}; choose {', '.join(_CHOICES)}, or a list of numbers"
        )
    number = len(taken) if number is None else number
    if not 1 <= number <= layers:
        raise UserError(
            f"a student with {number} layers cannot be made from a teacher with {layers}; choose "
            f"1 to {layers}"
        )
    if choice == "spread":
        return spread(layers, number)
    return taken[-number:] if choice == "last" else taken[:number]


def of_layers(
    names: Iterable[str], weights: Mapping[str, Weight], layers: Sequence[int]
) -> dict[str, Weight]:
    """The weights of a smaller model, taken from a larger one's `weights`, by our names."""
    numbers = [int(each) for name in weights for each in _LAYER.findall(name)]
    last = max(numbers, default=0)
    found = {}
    for name in names:
        # A weight that only the last layer has, such as the LayerNorm at the end of a pre-norm
        # stack, comes from the last layer.
        own = _LAYER.search(name)
        places = [str(last)] if own is None else [str(layers[int(own[1])]), str(last)]
        sources = [_LAYER.sub(f"layer_{place}", name) for place in places]
        source = next((each for each in sources if each in weights), None)
        if source is None:
            raise UserError(
                f"layer {places[0]} of the teacher has no weight {name}; choose other layers"
            )
        found[name] = weights[source]
    return found


def with_layers(checkpoint: Checkpoint, layers: Sequence[int]) -> Checkpoint:
    """A checkpoint of a smaller model: some layers of another, and everything else as it is."""
    weights, _ = checkpoint.weights()
    number = checkpoint.encoder.num_hidden_layers
    beyond = re.compile(rf"/layer_({'|'.join(map(str, range(len(layers), number)))})/")
    names = [name for name in weights if len(layers) == number or not beyond.search(name)]
    encoder = dataclasses.replace(checkpoint.encoder, num_hidden_layers=len(layers))
    return dataclasses.replace(
        checkpoint,
        description=dataclasses.replace(checkpoint.description, encoder=encoder),
        tensors=tensors.of_arrays(of_layers(names, weights, layers)),
        table=native.TABLE,
    )
