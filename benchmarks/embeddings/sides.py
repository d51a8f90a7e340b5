"""The contestants. Each imports its library when it is made, and only that."""

import itertools
import types
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from benchmarks.embeddings.data import Pairs

OURS, SERVED, THEIRS = "bert_tf", "bert_tf, SavedModel", "sentence-transformers"
# What is trained on: pairs with scores, or questions with their paragraphs.
LOSSES = ("cosent", "ranking")


def open_side(settings: dict[str, Any]) -> Any:
    """The contestant of the name `side`; see the classes."""
    return {OURS: Ours, SERVED: Served, THEIRS: Theirs}[settings["side"]](settings)


class Ours:
    """bert_tf's `TextEmbedder`.

    Args:
        settings: `checkpoint`, a folder of sentence-transformers; `length`, most tokens of a text,
            or None for the checkpoint's own; `intra_op` and `inter_op` threads.
    """

    def __init__(self, settings: dict[str, Any]):
        import bert_tf
        from benchmarks.threads import set_threads

        set_threads(settings)
        given = {} if settings["length"] is None else {"max_length": settings["length"]}
        self.model = bert_tf.TextEmbedder.from_checkpoint(settings["checkpoint"], **given)

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        """float32 [texts, width]."""
        return self.model.predict(list(texts), verbose=0)

    def export(self, folder: str) -> None:
        """Writes a SavedModel."""
        self.model.export(folder)

    def fit(
        self,
        pairs: Pairs,
        loss: str,
        epochs: int,
        batch_size: int,
        learning_rate: float,
        seed: int,
    ) -> None:
        """Fine-tunes with the optimizer settings of PyTorch, as `benchmarks.quality` does."""
        import keras

        import bert_tf
        from benchmarks.quality.tasks import AS_TRANSFORMERS
        from bert_tf.config.train import FinetuningTrain
        from bert_tf.optimization import make_optimizer

        keras.utils.set_random_seed(seed)
        steps = len(pairs.first) // batch_size * epochs
        recipe = FinetuningTrain(steps=steps, learning_rate=learning_rate, **AS_TRANSFORMERS)
        losses = {"cosent": bert_tf.CoSENT, "ranking": bert_tf.MultipleNegativesRanking}
        self.model.compile(optimizer=make_optimizer(recipe, steps), loss=losses[loss]())
        targets = [] if pairs.scores is None else [pairs.scores]
        how = {"epochs": epochs, "batch_size": batch_size, "seed": seed, "verbose": 0}
        self.model.fit((pairs.first, pairs.second), *targets, **how)


class Served:
    """A SavedModel that `Ours` exported, as a program without bert_tf uses it.

    Args:
        settings: `model`, its folder; `intra_op` and `inter_op` threads.
    """

    def __init__(self, settings: dict[str, Any]):
        import benchmarks.lean  # noqa: F401  before TensorFlow

        # isort: split
        import tensorflow as tf

        from benchmarks.threads import set_threads

        set_threads(settings)
        self._constant = tf.constant
        self._loaded = tf.saved_model.load(settings["model"])
        self._answer = self._loaded.signatures["serving_default"]

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        """float32 [texts, width]."""
        return self._answer(text=self._constant(list(texts)))["embedding"].numpy()


class Theirs:
    """`SentenceTransformer` on PyTorch.

    Args:
        settings: as for `Ours`, with `threads`.
    """

    def __init__(self, settings: dict[str, Any]):
        import sentence_transformers
        import torch
        import transformers

        transformers.utils.logging.set_verbosity_error()
        transformers.utils.logging.disable_progress_bar()
        torch.set_num_threads(settings["threads"])
        self.model = sentence_transformers.SentenceTransformer(
            settings["checkpoint"], device="cpu", local_files_only=True
        )
        if settings["length"] is not None:
            self.model.max_seq_length = settings["length"]

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        """float32 [texts, width]."""
        return self.model.encode(list(texts), show_progress_bar=False)

    def fit(
        self,
        pairs: Pairs,
        loss: str,
        epochs: int,
        batch_size: int,
        learning_rate: float,
        seed: int,
    ) -> None:
        """Fine-tunes with the loss of the library and the loop of transformers' examples.

        In a batch of questions no text occurs twice, as the library advises for that loss.
        """
        import torch
        import transformers
        from sentence_transformers.sentence_transformer import losses

        from benchmarks.quality.huggingface import updates

        class WithLoss(torch.nn.Module):
            """What `updates` trains: a model with its loss built in."""

            def __init__(self, criterion: torch.nn.Module):
                super().__init__()
                self.criterion = criterion

            def forward(self, features: list[dict], labels: Any) -> types.SimpleNamespace:
                return types.SimpleNamespace(loss=self.criterion(features, labels))

        transformers.set_seed(seed)
        known = {"cosent": losses.CoSENTLoss, "ranking": losses.MultipleNegativesRankingLoss}
        drawn = batches(pairs, epochs, batch_size, seed, without_duplicates=loss == "ranking")
        rows = list(drawn)

        def features() -> Iterator[dict[str, Any]]:
            for batch in rows:
                columns = ([column[i] for i in batch] for column in (pairs.first, pairs.second))
                labels = pairs.scores and torch.tensor([pairs.scores[i] for i in batch])
                yield {"features": [self.model.preprocess(c) for c in columns], "labels": labels}

        model = WithLoss(known[loss](self.model))
        for _ in updates(model, features(), len(rows), learning_rate):
            pass
        self.model.eval()


def batches(
    pairs: Pairs, epochs: int, batch_size: int, seed: int, without_duplicates: bool
) -> Iterator[list[int]]:
    """The rows of each batch, in the order in which bert_tf's `fit` draws them.

    Args:
        pairs: the rows.
        epochs: how often each row is taken.
        batch_size: rows of a batch; a last batch of an epoch with fewer rows is left out.
        seed: decides the order.
        without_duplicates: whether a row whose text is in the batch already waits for the next one.
    """
    count = len(pairs.first)
    for epoch in range(epochs):
        order = np.random.default_rng([seed, epoch]).permutation(count).tolist()
        while len(order) >= batch_size:
            batch = order[:batch_size]
            if without_duplicates:
                batch = list(itertools.islice(_different(pairs, order), batch_size))
                if len(batch) < batch_size:
                    break
            taken = set(batch)
            order = [row for row in order if row not in taken]
            yield batch


def _different(pairs: Pairs, order: Sequence[int]) -> Iterator[int]:
    """The rows that share no text with an earlier one of them."""
    seen: set[str] = set()
    for row in order:
        texts = {pairs.first[row], pairs.second[row]}
        if not texts & seen:
            seen |= texts
            yield row
