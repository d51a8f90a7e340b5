"""What is shown of a text, and of the dev data: numbers and pictures, before they are a page."""

import dataclasses
from typing import NamedTuple

import numpy as np

from bert_tf.inspecting.attention import AttentionMaps
from bert_tf.inspecting.importance import Importances
from bert_tf.inspecting.markup import Html


class SeenInput(NamedTuple):
    """One input of the encoder.

    Attributes:
        title: what it is, where a text has several; else "".
        tokens: its pieces.
        attention: where the heads look.
        explained: what its tokens add to outputs.
    """

    title: str
    tokens: tuple[str, ...]
    attention: AttentionMaps
    explained: tuple[Importances, ...]


class Mark(NamedTuple):
    """Something of the text among the points of the projection.

    Attributes:
        name: the text next to it.
        vector: float32 [hidden].
    """

    name: str
    vector: np.ndarray


@dataclasses.dataclass(frozen=True)
class Look:
    """A text that was looked at.

    Attributes:
        heading: the text, or both of a pair.
        answer: what the model says.
        inputs: what it was given.
        marks: where it stands among others.
    """

    heading: tuple[str, ...]
    answer: Html
    inputs: tuple[SeenInput, ...]
    marks: tuple[Mark, ...]


class Section(NamedTuple):
    """A part of the page about the dev data.

    Attributes:
        title: its heading.
        picture: what is shown.
        note: how to read it.
    """

    title: str
    picture: Html
    note: str
