"""How likely an answer starts and ends at each word of a context."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from bert_tf.text import QuestionWindows


class SpanShares(NamedTuple):
    """How likely an answer starts and ends at each word of a context.

    Attributes:
        starts, ends: int [words], byte ranges in the context.
        start, end: float64 [words], probabilities, each summing to 1.
    """

    starts: np.ndarray
    ends: np.ndarray
    start: np.ndarray
    end: np.ndarray

    @classmethod
    def of(
        cls, windows: QuestionWindows, start: np.ndarray, end: np.ndarray, vocabulary: Sequence[str]
    ) -> "SpanShares":
        """The probabilities that follow from the logits of all windows of one context.

        The softmax goes over all pieces of the context, since answers of all windows compete. A
        piece has the logits, float32 [windows, seq_len], of the window in which it has most
        context. The probabilities of a word's pieces are added.
        """
        shown = windows.has_most_context.numpy()
        order = np.argsort(windows.pieces.numpy()[shown], kind="stable")
        ids, starts, ends = (
            each.numpy()[shown][order]
            for each in (windows.features["input_word_ids"], windows.starts, windows.ends)
        )
        if not len(ids):
            return cls(*(np.zeros(0, kind) for kind in (int, int, float, float)))
        continues = np.array([vocabulary[number].startswith("##") for number in ids])
        # Pieces of one character share its bytes.
        continues[1:] |= starts[1:] < np.maximum.accumulate(ends)[:-1]
        continues[0] = False
        first = np.flatnonzero(~continues)
        return cls(
            starts[first],
            np.maximum.reduceat(ends, first),
            *(
                np.add.reduceat(tf.nn.softmax(logits[shown][order].astype(np.float64)), first)
                for logits in (start, end)
            ),
        )


def words_of(
    context: bytes, shares: SpanShares, answer: tuple[int, int]
) -> tuple[list[tuple[str, str, float, float, bool]], str]:
    """The words of a context, in UTF-8, with what surrounds them.

    For each word: the text before it, the word, how likely an answer starts and ends there, and
    whether it is part of the answer, a byte range (-1, -1 for none). And the text after the last.
    """
    words, shown = [], 0
    for first, last, start, end in zip(*(each.tolist() for each in shares), strict=True):
        before, word = (
            part.decode("utf-8", "replace") for part in (context[shown:first], context[first:last])
        )
        words.append((before, word, start, end, answer[0] <= first and last <= answer[1]))
        shown = last
    return words, context[shown:].decode("utf-8", "replace")
