"""Few labels: SetFit (Tunstall et al. 2022, arXiv 2209.11055).

The encoder learns from pairs of the labelled texts: vectors of texts with the same label become
close, and vectors of others become orthogonal. The head is a logistic regression on the vectors.
Pairs, loss and defaults are those of setfit 1.2.
"""

from typing import Any

import keras
import numpy as np
import tensorflow as tf

from bert_tf.asking import say_cut
from bert_tf.config.arguments import checked
from bert_tf.config.train import FinetuningTrain
from bert_tf.console import logger
from bert_tf.data.columns import Columns
from bert_tf.errors import UserError
from bert_tf.models.encoder_model import scope_of
from bert_tf.optimization import make_optimizer
from bert_tf.tasks import inputs
from bert_tf.tasks.embedding.losses import CosineRegression
from bert_tf.tasks.embedding.model import TextEmbedder
from bert_tf.tasks.fitting import is_compiled_by_user, random_seed, scored, validation_rows

# setfit's defaults, with PyTorch's optimizer.
_RECIPE = FinetuningTrain(
    epochs=1,
    batch_size=16,
    learning_rate=2e-5,
    bias_correction=True,
    adam_epsilon=1e-8,
    decay_after_warmup=True,
)
_MOST_TEXTS = 2000  # the number of pairs is quadratic in the number of texts


def contrastive_pairs(targets: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """All pairs of texts, and of a text with itself; as many with equal labels as with different.

    Targets are classes, int [texts], or float [texts, classes] of 0 and 1, where texts that share a
    label count as equal. The rarer kind is repeated (setfit's `sampling_strategy="oversampling"`).
    Returns the numbers of the texts, int [pairs] each, and float32 [pairs], 1 for equal labels.
    """
    same = targets[:, None] == targets if targets.ndim == 1 else targets @ targets.T > 0
    first, second = np.triu_indices(len(targets))
    alike, source = same[first, second], np.random.default_rng(seed)
    kinds = [source.permutation(np.flatnonzero(alike == kind)) for kind in (True, False)]
    count = max(map(len, kinds))
    chosen = np.concatenate([np.resize(kind, count) for kind in kinds if len(kind)])
    return first[chosen], second[chosen], alike[chosen].astype(np.float32)


@checked
def train(
    model: Any,
    x: Any = None,
    y: Any = None,
    batch_size: int | None = None,
    epochs: int = 1,
    verbose: int | str = "auto",
    *,
    learning_rate: float | None = None,
    seed: int | None = None,
    validation_data: Any = None,
    lora: Any = None,
    **others: Any,
) -> keras.callbacks.History:
    """Trains a classifier as `fit` with `few_shot=True`; the arguments are those of `fit`."""
    for name, value in others.items():
        if value is not None:
            raise UserError(f"{name} has no effect with few_shot; remove it")
    if is_compiled_by_user(model):
        raise UserError("few_shot has an optimizer of its own; do not compile the model")
    if isinstance(x, tuple | tf.data.Dataset) or inputs.is_for_keras(x):
        raise UserError("few_shot compares single texts; give a list of them, and their labels")
    given = {"batch_size": batch_size, "learning_rate": learning_rate, "lora": lora}
    recipe = {name: value for name, value in given.items() if value is not None}
    recipe |= {"epochs": epochs, "seed": random_seed() if seed is None else seed}
    rows = model.given(x, y)
    model.learn_from(rows)
    held = None if validation_data is None else validation_rows(model, validation_data, None)
    if held is not None:
        model.target.numbers(held)
    model.remember({})  # forgets the results of an earlier `fit`
    history = learn(model, rows, _RECIPE.model_copy(update=recipe), verbose)
    if held is not None:
        metrics = scored(model, held, None, 0)
        model.remember(metrics)
        history.history |= {f"val_{name}": [value] for name, value in metrics.items()}
    return history


def learn(
    model: Any, rows: Columns, recipe: FinetuningTrain, verbose: int | str = "auto"
) -> keras.callbacks.History:
    """Trains the encoder on pairs of the rows, and then the head."""
    texts = rows.values[0]
    if len(rows.values) > 1 or len(texts) > _MOST_TEXTS:
        raise UserError(
            f"few_shot compares every two single texts, of at most {_MOST_TEXTS}, but there are "
            f"{len(texts)} {'pairs' if len(rows.values) > 1 else 'texts'}; remove few_shot"
        )
    targets = model.target.numbers(rows)
    given = np.eye(len(model.labels))[targets] if targets.ndim == 1 else targets
    for label, share in zip(model.labels, given.mean(axis=0), strict=True):
        if share in (0, 1):
            have = "no text has" if share == 0 else "all texts have"
            raise UserError(f"{have} the label {label!r}; few_shot requires texts with and without")
    say_cut(model, rows.values)
    if model.pooling is None:
        model.read_vectors(**(model.of_embedder or {"pooling": "mean"}))
        logger.info(f"few_shot: the head reads pooling={model.pooling!r} of the tokens' vectors")
    first, second, alike = contrastive_pairs(targets, recipe.seed)
    logger.info(f"few_shot: {len(alike)} pairs of {len(texts)} texts")
    embedder = TextEmbedder(
        model.encoder, model.tokenizer, model.pooling, model.normalize, max_length=model.max_length
    )
    batch_size, epochs = min(recipe.batch_size, len(alike)), round(recipe.epochs or 1)
    with scope_of(model):
        embedder.compile(
            make_optimizer(recipe, len(alike) // batch_size * epochs),
            CosineRegression(),
            accumulation_steps=recipe.accumulation_steps,
            rematerialize=recipe.rematerialize,
        )
    pairs = tuple([texts[number] for number in numbers] for numbers in (first, second))
    options = {"seed": recipe.seed, "lora": recipe.lora}
    history = embedder.fit(pairs, alike, batch_size, epochs, verbose, **options)
    model.updates = embedder.updates
    _fit_head(model, embedder.predict(texts, verbose=0), targets)
    return history


def _fit_head(model: Any, vectors: np.ndarray, targets: np.ndarray) -> None:
    """Makes the head a logistic regression, with scikit-learn's defaults as in setfit."""
    # The import is slow, and most classifiers are not trained in this way.
    from sklearn.linear_model import LogisticRegression

    columns = [targets] if targets.ndim == 1 else targets.T
    found = [LogisticRegression(max_iter=1000).fit(vectors, column) for column in columns]
    kernel = np.concatenate([each.coef_ for each in found]).T
    bias = np.concatenate([each.intercept_ for each in found])
    if targets.ndim == 1 and len(model.labels) == 2:  # the logit of the second class
        kernel, bias = (np.concatenate([-each, each], axis=-1) / 2 for each in (kernel, bias))
    model.classifier.kernel.assign(kernel)
    model.classifier.bias.assign(bias)
