"""Masked language modelling on the fly: which tokens to predict, and what replaces them.

The rule is create_masked_lm_predictions of google-research/bert (create_pretraining_data.py): of a
row of n tokens, [CLS] and [SEP] counted, round(0.15 n) are chosen, at least one and at most
`max_predictions`, never [CLS] or [SEP]; of the chosen, 80% become [MASK], 10% a random id from the
whole vocabulary, 10% stay. The shares can be changed. Here TensorFlow ops do it for a whole batch,
and every random number follows from a seed, so that the masks of batch k can be made again.
"""

import dataclasses
from collections.abc import Sequence
from typing import Any, NamedTuple

import tensorflow as tf

from bert_tf.io.vocabulary import ids_of


class MaskedBatch(NamedTuple):
    """Inputs and targets of language modelling; unused places hold 0."""

    input_word_ids: tf.Tensor  # int32 [batch, seq_len], with the replacements
    positions: tf.Tensor  # int32 [batch, max_predictions], ascending
    ids: tf.Tensor  # int32 [batch, max_predictions], the true ids there
    weights: tf.Tensor  # float32 [batch, max_predictions], 1 for predictions


def causal_lm_targets(
    input_word_ids: tf.Tensor, input_mask: tf.Tensor, reversed: bool = False
) -> MaskedBatch:
    """Language modelling without masks: every token predicts the next one, or the one before it.

    It needs an encoder whose attention goes one way only (paper, section 5.1). There are as many
    predictions as pairs of neighbours, seq_len - 1. [CLS] and [SEP] take part: a text has to begin
    and to end.
    """
    positions, true_ids = tf.range(tf.shape(input_word_ids)[1] - 1)[None, :], input_word_ids[:, 1:]
    if reversed:
        positions, true_ids = positions + 1, input_word_ids[:, :-1]
    used = input_mask[:, 1:]
    return MaskedBatch(input_word_ids, positions * used, true_ids * used, tf.cast(used, tf.float32))


@dataclasses.dataclass(frozen=True)
class Masking:
    """Masks batches by one rule."""

    vocabulary: Sequence[str]
    max_predictions: int | tf.Tensor  # the most tokens chosen per row
    rate: float = 0.15  # the share of a row's tokens to choose
    # Whether all pieces of a word are chosen or none. A word is a piece and the `##` pieces right
    # after it; a word with more pieces than may still be chosen in the row is skipped.
    whole_word: bool = False
    mask_share: float = 0.8  # the share of the chosen tokens that become [MASK]
    random_share: float = 0.1  # the share that become a random token; the rest stay

    def __call__(
        self,
        input_word_ids: tf.Tensor,
        input_mask: tf.Tensor,
        seed: tf.Tensor,
        worker: int = 0,
        workers: int = 1,
    ) -> MaskedBatch:
        """Masks one batch, or one worker's share of it.

        Inputs and mask are int32 [batch, seq_len]; `seed` [2] gives the same masks on any CPU. The
        rows are `worker::workers` of the global batch that `seed` is for, and are masked as in
        that batch.
        """
        rows, seq_len = tf.unstack(tf.shape(input_word_ids))
        mine = slice(worker, None, workers)
        seeds = tf.unstack(tf.random.split(seed, 3))

        def draw(seed: tf.Tensor, columns: tf.Tensor | int, **limits: Any) -> tf.Tensor:
            shape = [rows * workers, columns]
            return tf.random.stateless_uniform(shape, seed, alg="philox", **limits)[mine]

        order = draw(seeds[0], seq_len)
        choice = draw(seeds[1], self.max_predictions)
        words = self.vocabulary
        random_ids = draw(seeds[2], self.max_predictions, maxval=len(words), dtype=tf.int32)

        cls_id, sep_id, mask_id = map(ids_of(words).get, ("[CLS]", "[SEP]", "[MASK]"))
        maskable = (input_mask > 0) & (input_word_ids != cls_id) & (input_word_ids != sep_id)
        # In 64 bits, with halves rounded to even, as by Python's `round` in the reference.
        length = tf.cast(tf.reduce_sum(input_mask, axis=1), tf.float64)
        number = tf.maximum(1, tf.cast(tf.round(length * self.rate), tf.int32))
        number = tf.minimum(self.max_predictions, number)
        if self.whole_word:
            continues = tf.constant([token.startswith("##") for token in words])
            continues_word = tf.gather(continues, input_word_ids)
            positions = _choose_words(maskable, continues_word, number, order, self.max_predictions)
        else:
            positions = _choose_tokens(maskable, number, order, self.max_predictions)
        used = positions < seq_len
        # Unused columns point to [CLS], which is never chosen, and write its own id back.
        positions = tf.where(used, positions, 0)
        true_ids = tf.gather(input_word_ids, positions, batch_dims=1)
        replaced = tf.where(
            choice < self.mask_share,
            mask_id,
            tf.where(choice < self.mask_share + self.random_share, random_ids, true_ids),
        )
        row = tf.broadcast_to(tf.range(rows)[:, None], tf.shape(positions))
        masked = tf.tensor_scatter_nd_update(
            input_word_ids, tf.stack([row, positions], axis=-1), tf.where(used, replaced, true_ids)
        )
        return MaskedBatch(
            masked, positions, tf.where(used, true_ids, 0), tf.cast(used, tf.float32)
        )


def _choose_tokens(
    maskable: tf.Tensor, number: tf.Tensor, order: tf.Tensor, columns: int | tf.Tensor
) -> tf.Tensor:
    """Random maskable positions, int32 [batch, columns], ascending; seq_len in unused columns."""
    seq_len = tf.shape(maskable)[1]
    score, position = tf.math.top_k(tf.where(maskable, order, -1.0), columns)
    chosen = (score >= 0) & (tf.range(columns)[None, :] < number[:, None])
    return tf.sort(tf.where(chosen, position, seq_len), axis=1)


def _choose_words(
    maskable: tf.Tensor,
    continues_word: tf.Tensor,
    number: tf.Tensor,
    order: tf.Tensor,
    columns: int | tf.Tensor,
) -> tf.Tensor:
    """Like `_choose_tokens`, but whole words at a time; a word that no longer fits is skipped.

    Words are laid out in random order and taken until one does not fit. From there on, words that
    are larger than the room that is left can never fit; they are dropped, and the rest moves up.
    The largest remaining word gets smaller each time, so a few rounds are enough.
    """
    batch, seq_len = tf.unstack(tf.shape(maskable))
    index = tf.range(seq_len)[None, :]
    after_text = tf.pad(maskable[:, :-1], [[0, 0], [1, 0]])
    starts_word = maskable & ~(continues_word & after_text)
    word = tf.maximum(tf.cumsum(tf.cast(starts_word, tf.int32), axis=1) - 1, 0)
    slot = word + seq_len * tf.range(batch)[:, None]
    sizes = tf.math.unsorted_segment_sum(
        tf.reshape(tf.cast(maskable, tf.int32), [-1]), tf.reshape(slot, [-1]), batch * seq_len
    )

    word_order = tf.where(maskable, tf.gather(order, word, batch_dims=1), 2.0)
    position = tf.argsort(word_order, axis=1, stable=True)
    size = tf.gather(tf.gather(sizes, slot), position, batch_dims=1)
    # The whole size of a word counts at its first piece, so that at each of its pieces the running
    # sum is the number of tokens chosen up to the end of the word.
    size_at_start = tf.where(tf.gather(starts_word, position, batch_dims=1), size, 0)

    def until(taken: tf.Tensor) -> tf.Tensor:
        return tf.cumsum(tf.where(taken, size_at_start, 0), axis=1)

    def overflows(taken: tf.Tensor) -> tf.Tensor:
        return taken & (until(taken) > number[:, None])

    def drop_too_large(taken: tf.Tensor) -> tuple[tf.Tensor]:
        overflow = overflows(taken)
        first = tf.argmax(overflow, axis=1, output_type=tf.int32)[:, None]
        before = tf.gather(until(taken) - size, first, batch_dims=1)
        room = number[:, None] - before
        has_overflow = tf.reduce_any(overflow, axis=1, keepdims=True)
        return (taken & ~(has_overflow & (index >= first) & (size > room)),)

    maskable_in_order = tf.gather(maskable, position, batch_dims=1)
    (taken,) = tf.while_loop(
        lambda taken: tf.reduce_any(overflows(taken)), drop_too_large, (maskable_in_order,)
    )
    return tf.sort(tf.where(taken, position, seq_len), axis=1)[:, :columns]
