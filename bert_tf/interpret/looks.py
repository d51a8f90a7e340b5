"""What a page shows of a text and of the dev data, as numbers and pictures."""

import base64
import dataclasses
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf
from markupsafe import Markup

from bert_tf.encoder.encoder import Encoder, Inputs
from bert_tf.interpret.importance import Importances
from bert_tf.templates import macros

# Tokens of an input that are shown; a map of more could not be read.
MOST_TOKENS = 96


class AttentionMaps(NamedTuple):
    """The attention of all heads in one input, between the tokens at int [shown] places.

    Float32 [layers, heads, shown, shown] say how much of each token (last axis) a token takes.
    """

    layers: tuple[str, ...]
    places: np.ndarray
    probabilities: np.ndarray


class Explanation(NamedTuple):
    """One input of the encoder: where the heads look, and what its tokens add to an output.

    In a notebook it is shown as a picture. `explained` is empty without an output to explain. The
    offsets, int [tokens, 2], are the characters that each token stands for; -1 for [CLS] and [SEP].
    """

    title: str
    tokens: tuple[str, ...]
    shown: AttentionMaps
    explained: tuple[Importances, ...]
    offsets: np.ndarray | None = None

    @property
    def output(self) -> str:
        """The first output that is explained, in words, such as "the log-odds of good"; or ""."""
        return self.explained[0].of if self.explained else ""

    @property
    def importance(self) -> np.ndarray:
        """float32 [tokens]: what each token adds to `output` (integrated gradients), or zeros."""
        return self.explained[0].values if self.explained else np.zeros(len(self.tokens), "f4")

    @property
    def attention(self) -> np.ndarray:
        """float32 [layers, heads, tokens, tokens]: how much of each token (last) a token takes."""
        return self.shown.probabilities

    def _repr_html_(self) -> str:
        picture = macros("bert_tf/interpret/charts.html").importances
        drawn = [picture(found, self.tokens) for found in self.explained]
        return Markup().join(drawn or [Markup.escape(" ".join(self.tokens))])

    @property
    def maps(self) -> dict[str, Any]:
        """The attention as viewer.js reads it: 16 bits per probability, accurate to 1e-5."""
        probabilities = self.attention
        numbers = np.rint(probabilities * (2**16 - 1)).astype("<u2")
        return {
            "tokens": [self.tokens[place] for place in self.shown.places],
            "layers": self.shown.layers,
            "heads": probabilities.shape[1],
            "data": base64.b64encode(numbers.tobytes()).decode(),
        }


class Mark(NamedTuple):
    """A point of the projection, float32 [hidden], and the text next to it."""

    name: str
    vector: np.ndarray


@dataclasses.dataclass(frozen=True)
class Look:
    """A text, or both of a pair, that was looked at, with the answer and its points."""

    heading: tuple[str, ...]
    answer: Markup
    inputs: tuple[Explanation, ...]
    marks: tuple[Mark, ...]


class PageSection(NamedTuple):
    """A part of the page about the dev data; the note says how to read the picture."""

    title: str
    picture: Markup
    note: str


def attention_maps(encoder: Encoder, inputs: Inputs, places: np.ndarray) -> AttentionMaps:
    """The attention in one input, each int32 [1, tokens] without padding, at int [shown] places."""
    towers, names, maps = encoder.towers().values(), [], []
    for tower in towers:
        direction = f" {tower.config.attention.replace('_', ' ')}" if len(towers) > 1 else ""
        encoded = tower.encode(inputs, with_intermediates=True)
        for number, intermediates in enumerate(encoded.intermediates, start=1):
            names.append(f"{number}{direction}")
            of_all = tf.cast(intermediates["attention_probabilities"][0], tf.float32).numpy()
            maps.append(of_all[:, places][:, :, places])
    return AttentionMaps(tuple(names), places, np.stack(maps))


def shown_places(type_ids: np.ndarray, focus: int = 0, most: int = MOST_TOKENS) -> np.ndarray:
    """Which tokens of an input to show, int [shown]: all, or some where there are too many.

    Of one text that is a stretch around `focus`; of a pair also the start of the first text.
    """
    tokens = len(type_ids)
    if tokens <= most:
        return np.arange(tokens)
    second = int(type_ids.argmax())  # 0 where there is none
    head = min(second, most // 2)
    stretch = most - head
    start = min(max(focus - stretch // 2, second), tokens - stretch)
    return np.concatenate([np.arange(head), np.arange(start, start + stretch)])
