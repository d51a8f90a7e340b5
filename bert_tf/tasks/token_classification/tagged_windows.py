"""Tagged words as windows to train on."""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import tensorflow as tf

from bert_tf.data.batching import EncodedRows, TrainingRows
from bert_tf.tasks.token_classification.tagged_sentences import IGNORED
from bert_tf.text import WordPreprocessor, WordWindows
from bert_tf.text.windows import at_tokens

# Texts that are cut at a time.
_CHUNK = 256


@dataclasses.dataclass(frozen=True)
class TaggedWindows(TrainingRows):
    """Windows with a label for each token; every word has its label in exactly one of them.

    >>> from bert_tf.text import Tokenizer
    >>> tokenizer = Tokenizer("[PAD] [UNK] [CLS] [SEP] [MASK] the cat ##s sat .".split())
    >>> windows = TaggedWindows.cut([["The", "cats"]], [[0, 1]], WordPreprocessor(tokenizer))
    >>> inputs, labels = windows.take(np.array([0]))
    >>> inputs["input_word_ids"].tolist(), labels.tolist()
    ([[2, 5, 6, 7, 3]], [[-1, 0, 1, -1, -1]])

    Attributes:
        encoded: the packed windows.
        labels: int32 [tokens], one window after the other; -1 at tokens without a label.
        weights: float32 [tokens], the weight of each label; None if all count equally.
    """

    labels: np.ndarray
    weights: np.ndarray | None = None

    @classmethod
    def cut(
        cls,
        texts: Sequence[Sequence[str]],
        labels: Sequence[np.ndarray],
        preprocess: WordPreprocessor,
        weights: Sequence[np.ndarray] | None = None,
    ) -> "TaggedWindows":
        """All windows of texts given as words, with a label and perhaps a weight for each word."""
        labels_of_tokens, weights_of_tokens = [], []

        def features() -> Iterator[Mapping[str, tf.Tensor]]:
            for first in range(0, len(texts), _CHUNK):
                chunk = slice(first, first + _CHUNK)
                windows = preprocess(ragged_words(texts[chunk]))
                labels_of_tokens.append(_of_tokens(windows, labels[chunk], tf.int32, IGNORED))
                if weights is not None:
                    weights_of_tokens.append(_of_tokens(windows, weights[chunk], tf.float32, 0.0))
                yield windows.features

        encoded = EncodedRows.gather(features())
        joined = None if weights is None else np.concatenate(weights_of_tokens)
        return cls(encoded, np.concatenate(labels_of_tokens), joined)

    def take(self, rows: np.ndarray) -> tuple:
        """The encoder's inputs, the labels, and the weights if any, each [batch, seq_len]."""
        inputs = self.encoded.take(rows)
        mask = inputs["input_mask"].astype(bool)
        starts = self.encoded.starts

        def padded(values: np.ndarray, padding: float) -> np.ndarray:
            found = np.full(mask.shape, padding, values.dtype)
            found[mask] = np.concatenate([values[starts[row] : starts[row + 1]] for row in rows])
            return found

        weights = () if self.weights is None else (padded(self.weights, 0.0),)
        return inputs, padded(self.labels, IGNORED), *weights


def ragged_words(texts: Sequence[Sequence[str]]) -> tf.RaggedTensor:
    """Texts given as words: RaggedTensor string [batch, (words)].

    >>> ragged_words([["Ada", "sat"], ["Hello"]]).to_list()
    [[b'Ada', b'sat'], [b'Hello']]
    """
    return tf.ragged.constant(texts, tf.string, ragged_rank=1)


def _of_tokens(
    windows: WordWindows, values: Sequence[np.ndarray], dtype: tf.DType, missing: float
) -> np.ndarray:
    """[tokens]: the value of each word at its token; `missing` at other tokens."""
    of_words = tf.ragged.constant([list(each) for each in values], dtype, ragged_rank=1)
    of_tokens = at_tokens(of_words, windows.rows, windows.words, missing)
    return tf.boolean_mask(of_tokens, windows.features["input_mask"] > 0).numpy()
