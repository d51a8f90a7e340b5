"""Tagged words as windows to train on."""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import tensorflow as tf

from bert_tf.data.batching import EncodedRows
from bert_tf.text import WordPreprocessor, WordWindows

# Texts that are cut at a time.
_CHUNK = 256
# The label of tokens that are no word's first piece, or have more context in another window.
_IGNORED = -1


@dataclasses.dataclass(frozen=True)
class TaggedWindows:
    """Windows with a label for each token; every word has its label in exactly one of them.

    Attributes:
        encoded: the packed windows.
        labels: int32 [tokens], windows laid end to end; -1 at tokens that have none.
    """

    encoded: EncodedRows
    labels: np.ndarray

    @classmethod
    def cut(
        cls,
        texts: Sequence[Sequence[str]],
        labels: Sequence[Sequence[int]],
        preprocess: WordPreprocessor,
    ) -> "TaggedWindows":
        """All windows of texts given as words, with a label for each word."""
        of_tokens: list[np.ndarray] = []

        def features() -> Iterator[Mapping[str, tf.Tensor]]:
            for first in range(0, len(texts), _CHUNK):
                chunk = slice(first, first + _CHUNK)
                windows = preprocess(ragged(texts[chunk]))
                of_tokens.append(_labels(windows, labels[chunk]))
                yield windows.features

        encoded = EncodedRows.gather(features())
        return cls(encoded, np.concatenate(of_tokens))

    @property
    def lengths(self) -> np.ndarray:
        """int64 [windows]: tokens of each."""
        return self.encoded.lengths

    def take(self, rows: np.ndarray) -> tuple[dict[str, np.ndarray], np.ndarray]:
        """The encoder's inputs, and labels, all int32 [batch, seq_len]."""
        inputs = self.encoded.take(rows)
        mask = inputs["input_mask"].astype(bool)
        labels = np.full(mask.shape, _IGNORED, np.int32)
        starts = self.encoded.starts
        labels[mask] = np.concatenate([self.labels[starts[row] : starts[row + 1]] for row in rows])
        return inputs, labels


def ragged(texts: Sequence[Sequence[str]]) -> tf.RaggedTensor:
    """Texts given as words: RaggedTensor string [batch, (words)]."""
    words = tf.constant([word for text in texts for word in text], tf.string)
    return tf.RaggedTensor.from_row_lengths(words, [len(text) for text in texts])


def _labels(windows: WordWindows, labels: Sequence[Sequence[int]]) -> np.ndarray:
    """int32 [tokens]: the label of each token of the windows, padding left out."""
    flat = np.array([label for of_text in labels for label in of_text] + [_IGNORED], np.int32)
    first_words = np.cumsum([0, *(len(of_text) for of_text in labels)])
    words = windows.words.numpy()
    places = np.where(words < 0, -1, first_words[windows.rows.numpy()][:, None] + words)
    return flat[places][windows.features["input_mask"].numpy().astype(bool)]
