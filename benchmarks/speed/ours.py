"""bert_tf: the graph of an export on ids, and Keras's `fit` step in training."""

from collections.abc import Callable
from typing import Any

import tensorflow as tf

import bert_tf
from benchmarks.speed import inputs
from benchmarks.speed.fitting import endless, training
from benchmarks.speed.turns import Job, serve
from benchmarks.threads import set_threads
from bert_tf.checkpoints import reading
from bert_tf.encoder.config import POLICIES
from bert_tf.export.served_model import ServedModel


def prepare(settings: dict[str, Any]) -> Job:
    """The job that `settings` names."""
    set_threads(settings)
    return _WORKS[settings["work"]](settings)


def encode(settings: dict[str, Any]) -> Job:
    """Token ids to the last layer, without padding."""
    encoder = _load(bert_tf.Encoder, settings)
    tensors = {}

    def resize(batch: int, length: int) -> None:
        made = inputs.full_batch(batch, length, 30522)
        tensors.update({name: tf.constant(value) for name, value in made.items()})

    resize(settings["batch"], settings["length"])

    # As an export holds the encoder.
    served = ServedModel(encoder)
    last_layer = served.function(
        lambda features: tf.cast(served.encode(features).restore(), tf.float32)
    )
    function = tf.function(lambda **features: last_layer(features)).get_concrete_function(
        **{name: tf.TensorSpec([None, None], tf.int32, name) for name in tensors}
    )
    last = []

    def step() -> None:
        last[:] = tf.nest.flatten(function(**tensors))

    return Job(step, lambda: last[0].numpy(), resize)


def finetune(settings: dict[str, Any]) -> Job:
    """One update of a classifier; every batch has another length."""
    import keras

    model = _load(lambda encoder: bert_tf.TextClassifier(encoder, None, range(2)), settings)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer=_optimizer(), loss=loss)
    batches = endless(lambda seed: inputs.padded_batch(settings["batch"], 30522, seed), ("labels",))
    return training(model, batches)


def pretrain(settings: dict[str, Any]) -> Job:
    """One update of both heads."""
    model = _load(bert_tf.PreTrainer, settings)
    model.compile(optimizer=_optimizer())
    size = settings["batch"], settings["length"], 30522
    targets = ("masked_lm_ids", "masked_lm_weights", "next_sentence_labels")
    return training(model, endless(lambda seed: inputs.pretraining_batch(*size, seed), targets))


def _load(kind: Callable, settings: dict[str, Any]) -> Any:
    encoder = bert_tf.Encoder(
        reading.find(settings["weights"]).encoder, dtype=POLICIES[settings["precision"]]
    )
    model = encoder if kind is bert_tf.Encoder else kind(encoder)
    reading.find(settings["weights"]).fill(model)
    return model


def _optimizer() -> bert_tf.AdamW:
    return bert_tf.AdamW(1e-5)


_WORKS = {"encode": encode, "finetune": finetune, "pretrain": pretrain}

if __name__ == "__main__":
    serve(prepare)
