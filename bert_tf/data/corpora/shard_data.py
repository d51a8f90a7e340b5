"""Token shards to `tf.data` batches for pre-training, with new pairs and new masks every epoch.

`Examples` finds and packs the rows with NumPy. TensorFlow ops mask the rows of batch k with random
numbers that follow from (seed, k).
"""

import os
from typing import Any

import tensorflow as tf

from bert_tf.console import logger
from bert_tf.data.corpora.examples import Examples
from bert_tf.data.corpora.masking import Masking, causal_lm_targets
from bert_tf.data.corpora.pairing import SPECIAL_TOKENS_PAIR, SPECIAL_TOKENS_SINGLE, ExampleRule
from bert_tf.data.corpora.steps import DEV_SEED, Elements, StepData, Tensors
from bert_tf.data.corpora.token_shards import DEV, TRAIN, TokenShards
from bert_tf.errors import UserError

_MOSTLY = 0.9  # a model can hardly learn anything from a larger share of random next sentences


class ShardData(StepData):
    """Batches for language modelling, masked or not, and next sentence prediction.

    With next_sentence, examples are pairs of segments with a label; otherwise single segments. With
    `cross_documents` these go on across the ends of documents, with [SEP] between. If the encoder's
    attention goes one way, nothing is masked, and each token predicts its neighbour: the next one
    if "left_to_right", the one before if "right_to_left". `masking` holds `rate`, `whole_word`,
    `mask_share` and `random_share` of `Masking`. By default there are as many columns for masked
    tokens as a full row may have.
    """

    def __init__(
        self,
        folder: str | os.PathLike,
        batch_size: int,
        max_length: int,
        max_predictions: int | None = None,
        seed: int = 0,
        next_sentence: bool = True,
        short_probability: float = 0.1,
        cross_documents: bool = True,
        attention: str = "bidirectional",
        **masking: Any,
    ):
        check_rows(max_length, max_predictions, next_sentence, attention)
        self._shards = TokenShards(folder)
        self.vocabulary = self._shards.vocabulary
        self.tokenizer = self._shards.tokenizer
        self._masking: Masking | None = None
        self._reversed = attention == "right_to_left"
        self.max_predictions = max_length - 1
        if attention == "bidirectional":
            rate = masking.get("rate", Masking.rate)
            self.max_predictions = max_predictions or max(1, round(max_length * rate))
            self._masking = Masking(self.vocabulary, self.max_predictions, **masking)
        joined = cross_documents and not next_sentence
        self._rule = ExampleRule(max_length, short_probability, next_sentence, joined)
        train = self._examples(TRAIN, seed)
        size = f"{folder} gives about {train.per_epoch} examples of {max_length} tokens"
        super().__init__(train, batch_size, size)
        if next_sentence and train.random_next > _MOSTLY:
            logger.warning(
                f"{train.random_next:.0%} of the pairs in {folder} have a random next sentence, "
                "because nearly every document is a single sentence; end sentences with a line "
                "break, or set data.next_sentence to false"
            )

    @property
    def examples(self) -> dict[str, int]:
        """How many examples an epoch of the part `train` has, and one of the part `dev`."""
        dev = self._held_out()
        return {TRAIN: self._train.per_epoch, DEV: dev.per_epoch if dev else 0}

    def _held_out(self) -> Examples | None:
        return self._examples(DEV, DEV_SEED) if self._shards.dev_fraction else None

    def _examples(self, part: str, seed: int) -> Examples:
        shards = self._shards.parts[part]
        documents = sum(shard.documents for shard in shards)
        if part == TRAIN and not documents:
            raise UserError(
                f"all documents of {self._shards.folder} are held out, so none is left for "
                "training; lower data.dev_fraction"
            )
        if part == DEV and not documents:
            raise UserError(
                f"{self._shards.folder} has no held-out documents; give four documents or more, or "
                "write the shards again with a larger data.dev_fraction, or with 0 to hold out none"
            )
        if self._rule.next_sentence and documents < 2:
            raise UserError(
                f"next sentence prediction is impossible: the {part} part of "
                f"{self._shards.folder} has 1 document, and at least 2 are required; add "
                "documents, change data.dev_fraction, or set data.next_sentence to false"
            )
        return Examples(self._shards, shards, self._rule, seed)

    def _elements(
        self, examples: Examples, stretch: tf.Tensor, columns: Tensors, worker: int, workers: int
    ) -> Elements:
        ids, first_length, length, labels = columns
        input_mask = tf.sequence_mask(length, ids.shape[1], tf.int32)
        first_mask = tf.sequence_mask(first_length, ids.shape[1], tf.int32)
        if self._masking is None:
            made = causal_lm_targets(ids, input_mask, self._reversed)
        else:
            seed = tf.stack([examples.seed, stretch])
            made = self._masking(ids, input_mask, seed, worker, workers)
        inputs = {
            "input_word_ids": made.input_word_ids,
            "input_mask": input_mask,
            "input_type_ids": input_mask - first_mask,
            "masked_lm_positions": made.positions,
        }
        targets = {"masked_lm_ids": made.ids, "masked_lm_weights": made.weights}
        if self._rule.next_sentence:
            targets["next_sentence_labels"] = labels
        return inputs, targets


def check_rows(
    max_length: int, max_predictions: int | None, next_sentence: bool, attention: str
) -> None:
    """Raises UserError if the sizes of rows or the attention make the training task impossible."""
    if next_sentence and attention == "left_to_right":
        raise UserError(
            "next sentence prediction is impossible with left_to_right attention, because [CLS] "
            "sees no other token; set data.next_sentence to false"
        )
    shortest = 2 + (SPECIAL_TOKENS_PAIR if next_sentence else SPECIAL_TOKENS_SINGLE)
    if max_length < shortest:
        raise UserError(
            f"train.max_length is {max_length}, but an example requires at least {shortest} "
            "tokens; raise it"
        )
    if attention != "bidirectional" or max_predictions is None:
        return
    if not 1 <= max_predictions <= max_length:
        raise UserError(
            f"data.max_predictions_per_seq is {max_predictions}; set it to a number from 1 to "
            f"train.max_length ({max_length})"
        )
