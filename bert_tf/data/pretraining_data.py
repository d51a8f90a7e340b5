"""Token shards -> tf.data batches for pre-training, with new pairs and new masks every epoch.

Batch k follows from (seed, shards, k) alone. `Examples` finds and packs its rows with NumPy;
TensorFlow ops mask them with random numbers that follow from (seed, k). So a run that is taken up
again starts its dataset at its step, at once.
"""

import contextlib
import os
from collections.abc import Iterator

import numpy as np
import tensorflow as tf

from bert_tf.config import RunConfig
from bert_tf.data.corpus import Corpus
from bert_tf.data.examples import ExampleRule, Examples
from bert_tf.data.masking import Masking
from bert_tf.data.pairing import SPECIAL_TOKENS_PAIR, SPECIAL_TOKENS_SINGLE
from bert_tf.data.token_shards import DEV, TRAIN, TokenShards, write_token_shards
from bert_tf.data.until_exit import map_until_exit
from bert_tf.errors import UserError
from bert_tf.progress import Progress, say
from bert_tf.text import Tokenizer

# Held-out batches are the same for every seed of training, so that their losses compare.
_DEV_SEED = 0


def build(config: RunConfig, out: str | os.PathLike) -> TokenShards:
    """Writes the corpus that `config` names as token shards into the folder `out`.

    Raises:
        UserError: as `Corpus`, `bert_tf.Tokenizer` and `write_token_shards`.
    """
    corpus = Corpus(config.data.path, config.data.format)
    tokenizer = Tokenizer(config.tokenizer.vocab, config.tokenizer.lower_case)
    kilobytes = corpus.size // 1000 + 1
    progress = Progress("tokenizing", kilobytes, unit="kB")

    def update() -> None:
        progress.update(min(corpus.position // 1000, kilobytes - 1), line=True)

    try:
        shards = write_token_shards(
            corpus, tokenizer, out, dev_fraction=config.data.dev_fraction, progress=update
        )
        progress.update(kilobytes)
    finally:
        progress.close()
    for part, each in shards.parts.items():
        documents, tokens = (sum(getattr(s, k) for s in each) for k in ("documents", "tokens"))
        say(f"{out}: {part} {documents:,} documents, {tokens:,} tokens, {len(each)} shards")
    return shards


class PretrainingData:
    """Batches for masked language modelling and next sentence prediction.

    Args:
        folder: token shards.
        batch_size: rows of the global batch.
        max_length: tokens of a row, special tokens included.
        max_predictions: columns for masked tokens; by default as many as a full row may have.
        seed: what all randomness of the training batches follows from.
        next_sentence: pairs of segments with a label; otherwise single segments without.
        short_probability: share of the documents that are cut into shorter examples.
        masking_rate: share of a row's tokens to predict.
        whole_word_masking: choose whole words.

    Attributes:
        vocabulary: the tokens in the order of their ids.
        lower_case: whether the text was lower-cased.
        steps_per_epoch: batches after which every shard has had its turn.

    Raises:
        UserError: shards that are missing or have changed, fewer than two documents where
            `next_sentence` needs two, a batch larger than the data, a length without room.
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
    ):
        shortest = 2 + (SPECIAL_TOKENS_PAIR if next_sentence else SPECIAL_TOKENS_SINGLE)
        if max_length < shortest:
            raise UserError(f"max_length is {max_length}; an example needs at least {shortest}")
        if max_predictions is None:
            max_predictions = max(1, round(max_length * masking_rate))
        if not 1 <= max_predictions <= max_length:
            raise UserError(
                f"max_predictions is {max_predictions}; it must be from 1 to max_length "
                f"({max_length})"
            )
        self._shards = TokenShards(folder)
        self.vocabulary = self._shards.vocabulary
        self.lower_case = self._shards.lower_case
        self._batch_size, self._max_length, self._seed = batch_size, max_length, seed
        self._next_sentence = next_sentence
        self._masking = Masking(self.vocabulary, max_predictions, masking_rate, whole_word_masking)
        self._rule = ExampleRule(max_length, short_probability, next_sentence)
        # The text of a UserError: the error itself would hold on to the datasets in its traceback.
        self._failure: str | None = None
        self._train = self._examples(TRAIN, seed)
        if batch_size > self._train.per_epoch:
            raise UserError(
                f"a batch of {batch_size} is larger than the data: {folder} gives about "
                f"{self._train.per_epoch} examples of {max_length} tokens"
            )
        self.steps_per_epoch = self._train.per_epoch // batch_size

    def dataset(self, start_step: int = 0, worker: int = 0, workers: int = 1) -> tf.data.Dataset:
        """The batches from `start_step` on, without end.

        Args:
            start_step: number of batches that came before.
            worker, workers: the rows `worker::workers` of every global batch.

        Returns:
            A dataset of (inputs, targets). Inputs: `input_word_ids`, `input_mask`,
            `input_type_ids` int32 [batch, seq_len], `masked_lm_positions` int32 [batch,
            max_predictions]. Targets: `masked_lm_ids` int32 and `masked_lm_weights` float32 [batch,
            max_predictions], and, with next_sentence, `next_sentence_labels` int32 [batch], 0 for a
            true next segment and 1 for a random one.

        Raises:
            UserError: the global batch cannot be shared equally; the first shards have changed.
                A shard found changed later on ends the dataset with a TensorFlow error, which
                `explained_errors` turns back.
        """
        if self._batch_size % workers:
            raise UserError(
                f"train.batch_size {self._batch_size} is not a multiple of {workers} workers"
            )
        steps = tf.data.Dataset.counter(start_step)
        return self._batches(self._train, self._seed, steps, start_step, worker, workers)

    def dev_dataset(self, steps: int) -> tf.data.Dataset:
        """`steps` held-out batches, the same ones every time and for every seed.

        If the held-out documents give fewer, their later batches are new examples of the same text.

        Raises:
            UserError: the shards were made without a held-out part, or it is too small.
        """
        if not self._shards.parts[DEV]:
            raise UserError(
                f"{self._shards.folder} has no held-out documents; make the shards again with a "
                "larger data.dev_fraction"
            )
        examples = self._examples(DEV, _DEV_SEED)
        return self._batches(examples, _DEV_SEED, tf.data.Dataset.range(steps), 0, 0, 1)

    @contextlib.contextmanager
    def explained_errors(self) -> Iterator[None]:
        """Around a loop over the datasets: raises the `UserError` behind a TensorFlow error."""
        try:
            yield
        except tf.errors.OpError:
            if self._failure is None:
                raise
            raise UserError(self._failure) from None

    def _examples(self, part: str, seed: int) -> Examples:
        shards = self._shards.parts[part]
        documents = sum(shard.documents for shard in shards)
        if self._next_sentence and documents < 2:
            raise UserError(
                f"next sentence prediction is impossible: the {part} part of {self._shards.folder} "
                f"has {documents} document{'s' * (documents != 1)} and needs 2; add documents, "
                "change data.dev_fraction, or turn next sentence prediction off"
            )
        if not documents:
            raise UserError(
                f"all documents of {self._shards.folder} are held out; lower data.dev_fraction"
            )
        return Examples(self._shards, shards, self._rule, seed)

    def _batches(
        self,
        examples: Examples,
        seed: int,
        steps: tf.data.Dataset,
        first: int,
        worker: int,
        workers: int,
    ) -> tf.data.Dataset:
        size, rows = self._batch_size, self._batch_size // workers
        # Makes the first plan here, where a changed shard can be reported as what it is.
        examples.rows(first * size, first * size + 1)

        def read(step: np.ndarray) -> tuple[np.ndarray, ...]:
            start = int(step) * size
            try:
                packed, labels = examples.rows(start + worker, start + size, workers)
            except UserError as error:
                self._failure = str(error)
                raise
            return step, *packed, labels

        def mask(
            step: tf.Tensor,
            ids: tf.Tensor,
            first_length: tf.Tensor,
            length: tf.Tensor,
            labels: tf.Tensor,
        ) -> tuple[dict[str, tf.Tensor], dict[str, tf.Tensor]]:
            ids = tf.ensure_shape(ids, [rows, self._max_length])
            first_length, length, labels = (
                tf.ensure_shape(column, [rows]) for column in (first_length, length, labels)
            )
            input_mask = tf.sequence_mask(length, self._max_length, tf.int32)
            first_mask = tf.sequence_mask(first_length, self._max_length, tf.int32)
            masked = self._masking(
                ids, input_mask, tf.stack([seed, tf.ensure_shape(step, [])]), worker, workers
            )
            inputs = {
                "input_word_ids": masked.input_word_ids,
                "input_mask": input_mask,
                "input_type_ids": input_mask - first_mask,
                "masked_lm_positions": masked.positions,
            }
            targets = {"masked_lm_ids": masked.ids, "masked_lm_weights": masked.weights}
            if self._next_sentence:
                targets["next_sentence_labels"] = labels
            return inputs, targets

        # One batch is read at a time, so that a pool is planned once; two are masked at a time.
        packed = map_until_exit(steps, read, [tf.int64, *[tf.int32] * 4])
        return packed.map(mask, num_parallel_calls=2, deterministic=True).prefetch(tf.data.AUTOTUNE)
