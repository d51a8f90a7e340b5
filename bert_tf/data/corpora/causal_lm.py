"""Language modelling without masks: every token predicts the next one, or the one before it.

It needs an encoder whose attention goes one way only (paper, section 5.1).
"""

import tensorflow as tf

from bert_tf.data.corpora.masking import MaskedBatch


class CausalLMTargets:
    """Positions and targets of a language model that reads in one direction.

    >>> ids, mask = tf.constant([[2, 5, 6, 3, 0]]), tf.constant([[1, 1, 1, 1, 0]])
    >>> batch = CausalLMTargets()(ids, mask)
    >>> batch.positions.numpy().tolist(), batch.ids.numpy().tolist()
    ([[0, 1, 2, 0]], [[5, 6, 3, 0]])
    >>> batch.weights.numpy().tolist()
    [[1.0, 1.0, 1.0, 0.0]]
    >>> CausalLMTargets(reversed=True)(ids, mask).ids.numpy().tolist()  # at positions 1, 2 and 3
    [[2, 5, 6, 0]]

    Args:
        reversed: read from right to left, so that a token predicts the one before it.
    """

    def __init__(self, reversed: bool = False):
        self._reversed = reversed

    def __call__(self, input_word_ids: tf.Tensor, input_mask: tf.Tensor) -> MaskedBatch:
        """Targets for a batch; the inputs stay as they are.

        Args:
            input_word_ids: int32 [batch, seq_len].
            input_mask: int32 [batch, seq_len], 1 for tokens and 0 for padding at the end.

        Returns:
            As many predictions as there are pairs of neighbours, seq_len - 1. [CLS] and [SEP] take
            part: a text has to begin and to end.
        """
        first = tf.range(tf.shape(input_word_ids)[1] - 1)[None, :]
        used = input_mask[:, 1:]
        positions, true_ids = first, input_word_ids[:, 1:]
        if self._reversed:
            positions, true_ids = first + 1, input_word_ids[:, :-1]
        return MaskedBatch(
            input_word_ids, positions * used, true_ids * used, tf.cast(used, tf.float32)
        )
