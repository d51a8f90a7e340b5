"""What a page shows of a text and of the dev data, as numbers and pictures."""

import base64
import dataclasses
from typing import Any, NamedTuple

import numpy as np
from markupsafe import Markup

from bert_tf.interpret.attention import AttentionMaps
from bert_tf.interpret.importance import Importances


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

    @property
    def maps(self) -> dict[str, Any]:
        """The attention as viewer.js reads it: 16 bits a probability, which is right to 1e-5."""
        probabilities = self.attention.probabilities
        numbers = np.rint(probabilities * (2**16 - 1)).astype("<u2")
        return {
            "tokens": [self.tokens[place] for place in self.attention.places],
            "layers": self.attention.layers,
            "heads": probabilities.shape[1],
            "data": base64.b64encode(numbers.tobytes()).decode(),
        }


class Mark(NamedTuple):
    """A point of the projection that belongs to a text.

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
        marks: its points in the projection.
    """

    heading: tuple[str, ...]
    answer: Markup
    inputs: tuple[SeenInput, ...]
    marks: tuple[Mark, ...]


class PageSection(NamedTuple):
    """A part of the page about the dev data.

    Attributes:
        title: its heading.
        picture: what is shown.
        note: how to read it.
    """

    title: str
    picture: Markup
    note: str
