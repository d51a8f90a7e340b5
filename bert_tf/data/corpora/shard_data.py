"""Token shards to `tf.data` batches for pre-training, with new pairs and new masks every epoch.

Batch k follows from (seed, shards, k) alone. `Examples` finds and packs its rows with NumPy.
TensorFlow ops mask them with random numbers that follow from (seed, k). So a run that resumes
starts its dataset at its step, at once.
"""

import contextlib
import os

import numpy as np
import tensorflow as tf

from bert_tf.console import logger
from bert_tf.data.corpora.causal_lm import CausalLMTargets
from bert_tf.data.corpora.examples import Examples
from bert_tf.data.corpora.masking import Masking
from bert_tf.data.corpora.pairing import SPECIAL_TOKENS_PAIR, SPECIAL_TOKENS_SINGLE, ExampleRule
from bert_tf.data.corpora.steps import StepReader
from bert_tf.data.corpora.token_shards import DEV, TRAIN, TokenShards
from bert_tf.errors import UserError

# A share of random next sentences of which there is hardly anything to learn.
_MOSTLY = 0.9

# Held-out batches are the same for every seed of training, so that their losses compare.
_DEV_SEED = 0


class ShardData:
    """Batches for language modelling, masked or not, and next sentence prediction.

    >>> from bert_tf.data.corpora.shard_writing import write_token_shards
    >>> from bert_tf.text import Tokenizer
    >>> tokenizer = Tokenizer("[PAD] [UNK] [CLS] [SEP] [MASK] the cat sat".split())
    >>> documents = [["The cat", "sat"], ["the cat sat", "the cat"]]
    >>> _ = write_token_shards(documents, tokenizer, "shards")
    >>> data = ShardData("shards", batch_size=2, max_length=10)
    >>> inputs, targets = next(iter(data.dataset()))
    >>> for name, tensor in (inputs | targets).items():
    ...     print(name, tensor.dtype.name, tensor.shape)
    input_word_ids int32 (2, 10)
    input_mask int32 (2, 10)
    input_type_ids int32 (2, 10)
    masked_lm_positions int32 (2, 2)
    masked_lm_ids int32 (2, 2)
    masked_lm_weights float32 (2, 2)
    next_sentence_labels int32 (2,)

    Args:
        folder: token shards.
        batch_size: rows of the global batch.
        max_length: tokens of a row, special tokens included.
        max_predictions: columns for masked tokens; by default as many as a full row may have.
        seed: decides everything that is random in the training batches.
        next_sentence: pairs of segments with a label; otherwise single segments without.
        short_probability: share of the documents (without next_sentence, of the examples) that are
            cut to a random shorter length.
        masking_rate: share of a row's tokens to predict.
        whole_word_masking: choose whole words.
        mask_share: share of the chosen tokens that become [MASK].
        random_share: share of them that become a random token; the rest stay.
        cross_documents: without next_sentence, fill rows across the ends of documents, with [SEP]
            between.
        attention: the encoder's. If it goes one way, nothing is masked, and each token predicts its
            neighbour: the next one if "left_to_right", the one before if "right_to_left".

    Attributes:
        vocabulary: the tokens in the order of their ids.
        lower_case: whether the text was lower-cased.
        steps_per_epoch: batches after which every shard has had its turn.
        max_predictions: columns for predictions.

    Raises:
        UserError: shards that are missing or have changed, fewer than two documents where
            `next_sentence` needs two, a batch larger than the data, a length without room, next
            sentence prediction where [CLS] sees no other token.
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
        masking_rate: float = 0.15,
        whole_word_masking: bool = False,
        mask_share: float = 0.8,
        random_share: float = 0.1,
        cross_documents: bool = True,
        attention: str = "bidirectional",
    ):
        check_objective(next_sentence, attention)
        check_sizes(max_length, max_predictions, next_sentence, attention)
        self._shards = TokenShards(folder)
        self.vocabulary = self._shards.vocabulary
        self.lower_case = self._shards.lower_case
        self._batch_size, self._max_length, self._seed = batch_size, max_length, seed
        self._next_sentence = next_sentence
        self._masking: Masking | None = None
        self._causal_lm = CausalLMTargets(reversed=attention == "right_to_left")
        self.max_predictions = max_length - 1
        if attention == "bidirectional":
            if max_predictions is None:
                max_predictions = max(1, round(max_length * masking_rate))
            self.max_predictions = max_predictions
            self._masking = Masking(
                self.vocabulary,
                max_predictions,
                masking_rate,
                whole_word_masking,
                mask_share,
                random_share,
            )
        joined = cross_documents and not next_sentence
        self._rule = ExampleRule(max_length, short_probability, next_sentence, joined)
        self._reader = StepReader()
        self._train = self._examples(TRAIN, seed)
        if next_sentence and self._train.random_next > _MOSTLY:
            logger.warning(
                f"{self._train.random_next:.0%} of the pairs in {folder} have a random next "
                "sentence, as nearly every document or stretch of text is a single one; end "
                "sentences with a line break, or set data.next_sentence to false"
            )
        if batch_size > self._train.per_epoch:
            raise UserError(
                f"a batch of {batch_size} is larger than the data: {folder} gives about "
                f"{self._train.per_epoch} examples of {max_length} tokens"
            )
        self.steps_per_epoch = self._train.per_epoch // batch_size

    def dataset(self, start_step: int = 0, worker: int = 0, workers: int = 1) -> tf.data.Dataset:
        """The batches from `start_step` on, without end.

        The global batch is the same for any number of workers, and each reads only the shards that
        its rows come from (see `order`).

        Args:
            start_step: number of batches that came before.
            worker, workers: the rows `worker::workers` of every global batch.

        Returns:
            A dataset of (inputs, targets). Inputs: `input_word_ids`, `input_mask`,
            `input_type_ids` int32 [batch, seq_len], `masked_lm_positions` int32 [batch,
            predictions]. Targets: `masked_lm_ids` int32 and `masked_lm_weights` float32 [batch,
            predictions], and, with next_sentence, `next_sentence_labels` int32 [batch], 0 for a
            true next segment and 1 for a random one. There are max_predictions predictions, or
            seq_len - 1 where every token predicts its neighbour.

        Raises:
            UserError: the global batch cannot be shared equally; the first shards have changed.
                A shard found changed later on ends the dataset with a TensorFlow error, which
                `explained_errors` turns back.
        """
        if self._batch_size % workers:
            raise UserError(
                f"train.batch_size {self._batch_size} is not a multiple of {workers} workers"
            )
        return self._batches(self._train, self._seed, start_step, None, worker, workers)

    def dev_dataset(self, steps: int, worker: int = 0, workers: int = 1) -> tf.data.Dataset | None:
        """`steps` held-out batches, the same ones every time and for every seed.

        If the held-out documents give fewer, their later batches are new examples of the same text.

        Args:
            steps: number of batches.
            worker, workers: as for `dataset`.

        Returns:
            A dataset as `dataset` gives; None for shards made with a `dev_fraction` of 0.

        Raises:
            UserError: the held-out part is too small.
        """
        if not self._shards.dev_fraction:
            return None
        return self._batches(self._examples(DEV, _DEV_SEED), _DEV_SEED, 0, steps, worker, workers)

    @property
    def examples(self) -> dict[str, int]:
        """How many examples an epoch of the part `train` has, and one of the part `dev`."""
        dev = self._examples(DEV, _DEV_SEED).per_epoch if self._shards.dev_fraction else 0
        return {TRAIN: self._train.per_epoch, DEV: dev}

    def explained_errors(self) -> contextlib.AbstractContextManager[None]:
        """Around a loop over the datasets: raises the `UserError` behind a TensorFlow error."""
        return self._reader.explained_errors()

    def _examples(self, part: str, seed: int) -> Examples:
        shards = self._shards.parts[part]
        documents = sum(shard.documents for shard in shards)
        if part == TRAIN and not documents:
            raise UserError(
                f"all documents of {self._shards.folder} are held out; lower data.dev_fraction, or "
                "set it to 0"
            )
        if part == DEV and not documents:
            raise UserError(
                f"{self._shards.folder} has no held-out documents; make the shards again with a "
                "larger data.dev_fraction, or with 0 to train without"
            )
        if self._next_sentence and documents < 2:
            raise UserError(
                f"next sentence prediction is impossible: the {part} part of {self._shards.folder} "
                "has 1 document and needs 2; add documents, change data.dev_fraction, or set "
                "data.next_sentence to false"
            )
        return Examples(self._shards, shards, self._rule, seed)

    def _batches(
        self,
        examples: Examples,
        seed: int,
        first: int,
        steps: int | None,
        worker: int,
        workers: int,
    ) -> tf.data.Dataset:
        def read(start: int, stop: int, step: int) -> tuple[np.ndarray, ...]:
            packed, labels = examples.rows(start, stop, step)
            return *packed, labels

        def finish(
            stretch: tf.Tensor,
            ids: tf.Tensor,
            first_length: tf.Tensor,
            length: tf.Tensor,
            labels: tf.Tensor,
        ) -> tuple[dict[str, tf.Tensor], dict[str, tf.Tensor]]:
            ids = tf.ensure_shape(ids, [None, self._max_length])
            first_length, length, labels = (
                tf.ensure_shape(column, [None]) for column in (first_length, length, labels)
            )
            input_mask = tf.sequence_mask(length, self._max_length, tf.int32)
            first_mask = tf.sequence_mask(first_length, self._max_length, tf.int32)
            if self._masking is None:
                made = self._causal_lm(ids, input_mask)
            else:
                made = self._masking(ids, input_mask, tf.stack([seed, stretch]), worker, workers)
            inputs = {
                "input_word_ids": made.input_word_ids,
                "input_mask": input_mask,
                "input_type_ids": input_mask - first_mask,
                "masked_lm_positions": made.positions,
            }
            targets = {"masked_lm_ids": made.ids, "masked_lm_weights": made.weights}
            if self._next_sentence:
                targets["next_sentence_labels"] = labels
            return inputs, targets

        return self._reader.batches(
            read, [tf.int32] * 4, finish, self._batch_size, first, steps, worker, workers
        )


def check_sizes(
    max_length: int, max_predictions: int | None, next_sentence: bool, attention: str
) -> None:
    """Raises a `UserError` if rows have no room for an example, or for the tokens to predict.

    >>> check_sizes(4, None, next_sentence=True, attention="bidirectional")
    Traceback (most recent call last):
        ...
    bert_tf.errors.UserError: train.max_length is 4; an example needs at least 5 tokens
    """
    shortest = 2 + (SPECIAL_TOKENS_PAIR if next_sentence else SPECIAL_TOKENS_SINGLE)
    if max_length < shortest:
        raise UserError(
            f"train.max_length is {max_length}; an example needs at least {shortest} tokens"
        )
    if attention != "bidirectional" or max_predictions is None:
        return
    if not 1 <= max_predictions <= max_length:
        raise UserError(
            f"data.max_predictions_per_seq is {max_predictions}; it must be from 1 to "
            f"train.max_length ({max_length})"
        )


def check_objective(next_sentence: bool, attention: str) -> None:
    """Raises a `UserError` if next sentence prediction is impossible with this attention.

    >>> check_objective(next_sentence=True, attention="left_to_right")
    Traceback (most recent call last):
        ...
    bert_tf.errors.UserError: next sentence prediction is impossible with left_to_right ...
    """
    if next_sentence and attention == "left_to_right":
        raise UserError(
            "next sentence prediction is impossible with left_to_right attention, where [CLS] sees "
            "no other token; set data.next_sentence to false"
        )
