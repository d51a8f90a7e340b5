"""Questions and contexts as windows to train on."""

import dataclasses
from collections.abc import Iterator, Mapping

import numpy as np
import tensorflow as tf

from bert_tf.asking import encoded
from bert_tf.console import Progress
from bert_tf.data.batching import EncodedRows, TrainingRows
from bert_tf.data.columns import Columns
from bert_tf.text import WindowPreprocessor
from bert_tf.text.windows import find_answers

# Questions that are cut at a time.
_CHUNK = 256


@dataclasses.dataclass(frozen=True)
class WindowRows(TrainingRows):
    """Windows over contexts, with the tokens at which the answer starts and ends.

    A window [CLS] who [SEP] the cat [SEP], whose answer is "the cat":

    >>> types, bounds = np.array([0, 0, 0, 1, 1, 1]), np.array([0, 6])
    >>> encoded = EncodedRows(np.array([2, 5, 3, 6, 7, 3]), types, bounds)
    >>> rows = WindowRows(encoded, starts=np.array([3]), ends=np.array([4]))
    >>> inputs, targets = rows.take(np.array([0]))
    >>> inputs["input_word_ids"].tolist(), targets["start"].tolist(), targets["end"].tolist()
    ([[2, 5, 3, 6, 7, 3]], [3], [4])

    Attributes:
        encoded: the packed windows.
        starts, ends: int32 [rows], 0 in windows without the answer.
        weights: float32 [rows], the weight of each window; None if all count equally.
    """

    starts: np.ndarray
    ends: np.ndarray
    weights: np.ndarray | None = None

    @classmethod
    def cut(
        cls,
        asked: Columns,
        spans: np.ndarray,
        preprocess: WindowPreprocessor,
    ) -> "WindowRows":
        """All windows of all questions, in their order.

        Args:
            asked: the questions.
            spans: int32 [rows, 2], their answers; see `Span.numbers`.
            preprocess: cuts the contexts.
        """
        text, number = tf.TensorSpec([None], tf.string), tf.TensorSpec([None], tf.int32)

        @tf.function(input_signature=[text, text, number, number], autograph=False)
        def cut(questions: tf.Tensor, contexts: tf.Tensor, *answer: tf.Tensor) -> tuple:
            windows = preprocess((questions, contexts))
            return windows.features, *find_answers(windows, *answer), windows.rows

        found: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []

        def features(progress: Progress) -> Iterator[Mapping[str, tf.Tensor]]:
            for first in range(0, len(asked), _CHUNK):
                part = slice(first, first + _CHUNK)
                texts = (list(map(encoded, column[part])) for column in asked.values)
                windows, starts, ends, rows = cut(*texts, *spans[part].T)
                found.append((starts.numpy(), ends.numpy(), rows.numpy() + first))
                progress.update(first + len(spans[part]), line=True)
                yield windows

        with Progress("cutting windows", len(asked), unit="questions") as progress:
            packed = EncodedRows.gather(features(progress))
        starts, ends, rows = (np.concatenate(each) for each in zip(*found, strict=True))
        weights = asked.weights
        return cls(packed, starts, ends, None if weights is None else weights[rows])

    def take(self, rows: np.ndarray) -> tuple:
        """The encoder's inputs [batch, seq_len], targets `start` and `end`, and weights if any."""
        targets = {"start": self.starts[rows], "end": self.ends[rows]}
        weights = () if self.weights is None else (self.weights[rows],)
        return self.encoded.take(rows), targets, *weights
