"""Trains tiny models on one device and on several, in a process of its own.

    python -m tests.models.on_replicas DEVICES OUT.npz CASE...

TensorFlow makes virtual devices only before it starts, and groups them only once.
"""

import contextlib
import sys

import keras
import numpy as np
import tensorflow as tf

from bert_tf import (
    MultipleNegativesRanking,
    Reranker,
    TextClassifier,
    TextEmbedder,
    TextRegressor,
)
from bert_tf.encoder.encoder import Encoder
from bert_tf.encoder.layers import Dropout
from bert_tf.models.pretrainer import PreTrainer
from bert_tf.optimization import LAMB, AdamW, WarmupLinearDecay
from bert_tf.tasks.reranking.losses import LOSSES
from tests import tiny

CONFIG = tiny.encoder_config(
    vocab_size=30, initializer_range=0.3, max_position_embeddings=12, **tiny.NO_DROPOUT
)
# The last batch of each epoch leaves replicas with fewer rows than others, or with none.
ROWS, BATCH, EPOCHS = 21, 8, 2

# Model, optimizer, parts of each batch. A large epsilon keeps the step from hiding the scale of
# the gradient; where it is clipped, the norm is far above that of clipping on every step.
UNCLIPPED = {"clip_norm": None, "epsilon": 0.1}
CLIPPED = {"clip_norm": 0.05, "epsilon": 0.1}
CASES = {
    "pretrainer": ("pretrainer", AdamW, UNCLIPPED, 1),
    "pretrainer_in_parts": ("pretrainer", AdamW, CLIPPED, 2),
    "pretrainer_lamb": ("pretrainer", LAMB, {"clip_norm": 0.05}, 3),
    "classifier": ("classifier", AdamW, CLIPPED, 1),
    "classifier_in_parts": ("classifier", AdamW, UNCLIPPED, 2),
    "regression": ("regression", AdamW, UNCLIPPED, 1),
    "regression_in_parts": ("regression", AdamW, UNCLIPPED, 3),
    "list_net": ("list_net", AdamW, UNCLIPPED, 1),
    "lambda_loss_in_parts": ("lambda_loss", AdamW, UNCLIPPED, 2),
    "embedder": ("embedder", AdamW, UNCLIPPED, 1),
    "embedder_in_parts": ("embedder", AdamW, CLIPPED, 2),
    "classifier_lamb": ("classifier", LAMB, UNCLIPPED, 1),
}


def train(case: str, strategy: tf.distribute.Strategy | None = None) -> dict[str, np.ndarray]:
    """The history of losses and metrics, those of evaluation, and all weights after `fit`."""
    kind, make_optimizer, options, parts = CASES[case]
    keras.utils.set_random_seed(1)
    with strategy.scope() if strategy else contextlib.nullcontext():
        encoder, loss = Encoder(CONFIG), {}
        if kind == "pretrainer":
            model = PreTrainer(encoder)
        elif kind == "embedder":
            model = TextEmbedder(encoder, None)
            loss = {"loss": MultipleNegativesRanking(symmetric=True)}
        elif kind == "regression":
            model, loss = TextRegressor(encoder, None), {"loss": "mse"}
        elif kind in LOSSES:
            model, loss = Reranker(encoder, None), {"loss": LOSSES[kind]()}
        else:
            model = TextClassifier(encoder, None, range(2))
            entropy = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
            loss = {"loss": entropy, "metrics": ["accuracy"]}
        optimizer = make_optimizer(WarmupLinearDecay(1e-2, 10, 2), **options)
        model.compile(optimizer, accumulation_steps=parts, rematerialize=parts > 1, **loss)
    batches = tf.data.Dataset.from_tensor_slices(examples(kind)).batch(BATCH)
    history = model.fit(batches, epochs=EPOCHS, shuffle=False, verbose=0).history
    evaluated = model.evaluate(batches, verbose=0, return_dict=True)
    results = {f"fit {name}": np.array(values) for name, values in history.items()}
    results |= {f"evaluate {name}": np.array(value) for name, value in evaluated.items()}
    return results | {f"weight {w.path}": w.numpy() for w in model.weights}


def examples(kind: str) -> tuple[dict, dict | np.ndarray]:
    """Inputs and targets of ROWS rows, of different lengths and with different weights."""
    random = np.random.RandomState(0)
    lengths = random.randint(1, 8, (ROWS, 1))
    x = {
        "input_word_ids": random.randint(0, 30, (ROWS, 7)).astype(np.int32),
        "input_mask": (np.arange(7) < lengths).astype(np.int32),
        "input_type_ids": random.randint(0, 2, (ROWS, 7)).astype(np.int32),
    }
    if kind == "embedder":
        # Each row with the one before it; some texts are there more than once in a batch.
        pairs = np.stack([np.arange(ROWS), np.arange(ROWS) - 1], axis=1) % (ROWS - 3)
        return {name: values[pairs] for name, values in x.items()}, pairs.astype(np.int32)
    labels = random.randint(0, 2, ROWS).astype(np.int32)
    if kind == "classifier":
        return x, labels
    if kind == "regression":
        return x, random.rand(ROWS).astype(np.float32)
    if kind in LOSSES:
        # The same texts, as up to three passages of each query.
        is_there = np.arange(3) < random.randint(1, 4, (ROWS, 1))
        x = {
            name: np.stack([np.roll(values, passage, axis=0) for passage in range(3)], axis=1)
            for name, values in x.items()
        }
        x["input_mask"] *= is_there[..., None]
        return x, np.where(is_there, random.randint(0, 3, (ROWS, 3)), np.nan).astype(np.float32)
    counted = (random.rand(ROWS, 3) < 0.5) & (random.rand(ROWS, 1) < 0.7)
    return x | {"masked_lm_positions": np.zeros((ROWS, 3), np.int32)}, {
        "masked_lm_ids": random.randint(0, 30, (ROWS, 3)).astype(np.int32),
        "masked_lm_weights": counted.astype(np.float32),
        "next_sentence_labels": labels,
    }


def clipped_step(strategy: tf.distribute.Strategy) -> np.ndarray:
    """A weight after a step from gradients that are large on each replica and add up to [0, 1]."""
    replicas = strategy.num_replicas_in_sync
    with strategy.scope():
        weight = keras.Variable(np.ones(2, "float32"))
        optimizer = AdamW(0.1, clip_norm=1.0, epsilon=1.0)
        optimizer.build([weight])

    @tf.function
    def step() -> None:
        def on_replica() -> None:
            number = tf.distribute.get_replica_context().replica_id_in_sync_group
            large = tf.where(number == 0, 3.0 * (replicas - 1), -3.0)
            optimizer.apply([tf.stack([large, 1.0 / replicas])], [weight])

        strategy.run(on_replica)

    step()
    return weight.numpy()


def dropout_masks(strategy: tf.distribute.Strategy) -> np.ndarray:
    """int [2 calls, devices, 64]: which elements each device keeps."""
    with strategy.scope():
        dropout = Dropout(0.5, seed=7)

    @tf.function
    def draw() -> tf.Tensor:
        return strategy.run(lambda: dropout(tf.ones([64]), training=True))

    calls = [strategy.experimental_local_results(draw()) for _ in range(2)]
    return np.array([[mask.numpy() > 0 for mask in masks] for masks in calls])


def main(devices: int, out: str, cases: list[str]) -> None:
    """Writes what every case gives on one device and on `devices`."""
    cpu = tf.config.list_physical_devices("CPU")[0]
    tf.config.set_logical_device_configuration(
        cpu, [tf.config.LogicalDeviceConfiguration()] * devices
    )
    strategy = tf.distribute.MirroredStrategy([f"CPU:{i}" for i in range(devices)])
    results = {"clipped_step": clipped_step(strategy), "dropout": dropout_masks(strategy)}
    for case in cases:
        for place, where in (("one", None), ("several", strategy)):
            found = train(case, where)
            results |= {f"{place}:{case}:{name}": value for name, value in found.items()}
    np.savez(out, **results)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], sys.argv[3:])
