"""Questions and contexts as windows to train on."""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import tensorflow as tf

from bert_tf.data.batching import EncodedRows
from bert_tf.data.squad import Question
from bert_tf.progress import Progress
from bert_tf.text import WindowPreprocessor
from bert_tf.text.answers import find_answers

# Questions that are cut at a time.
_CHUNK = 256


@dataclasses.dataclass(frozen=True)
class WindowRows:
    """Windows over contexts, with the tokens at which the answer starts and ends.

    Attributes:
        encoded: the packed windows.
        starts, ends: int32 [rows], 0 in windows without the answer.
    """

    encoded: EncodedRows
    starts: np.ndarray
    ends: np.ndarray

    @classmethod
    def cut(cls, questions: Sequence[Question], preprocess: WindowPreprocessor) -> "WindowRows":
        """All windows of all questions, in their order."""
        positions: list[tuple[np.ndarray, np.ndarray]] = []

        def features(progress: Progress) -> Iterator[Mapping[str, tf.Tensor]]:
            for windows, starts, ends in _windows(questions, preprocess, progress):
                positions.append((starts.numpy(), ends.numpy()))
                yield windows

        with Progress("cutting windows", len(questions), unit="questions") as progress:
            encoded = EncodedRows.gather(features(progress))
        return cls(encoded, *(np.concatenate(each) for each in zip(*positions, strict=True)))

    @property
    def lengths(self) -> np.ndarray:
        """int64 [rows]: tokens of each row."""
        return self.encoded.lengths

    def take(self, rows: np.ndarray) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
        """The encoder's inputs [batch, seq_len], and targets `start` and `end` [batch]."""
        return self.encoded.take(rows), {"start": self.starts[rows], "end": self.ends[rows]}


def _windows(
    questions: Sequence[Question], preprocess: WindowPreprocessor, progress: Progress
) -> Iterator[tuple[Mapping[str, tf.Tensor], tf.Tensor, tf.Tensor]]:
    """Features of a chunk's windows, and first and last tokens of the answers in them."""
    text, number = tf.TensorSpec([None], tf.string), tf.TensorSpec([None], tf.int32)

    @tf.function(input_signature=[text, text, number, number])
    def cut(asked: tf.Tensor, contexts: tf.Tensor, starts: tf.Tensor, ends: tf.Tensor):
        windows = preprocess((asked, contexts))
        return windows.features, *find_answers(windows, starts, ends)

    for first in range(0, len(questions), _CHUNK):
        chunk = questions[first : first + _CHUNK]
        spans = [each.answer_bytes() or (-1, -1) for each in chunk]
        starts, ends = np.array(spans, np.int32).T
        yield cut([each.question for each in chunk], [each.context for each in chunk], starts, ends)
        progress.update(first + len(chunk), line=True)
