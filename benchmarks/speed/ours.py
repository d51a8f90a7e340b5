"""bert_tf in training: Keras's `fit` step."""

from collections.abc import Callable
from typing import Any

import bert_tf
from benchmarks.speed import inputs
from benchmarks.speed.fitting import endless, training
from benchmarks.speed.turns import Job, serve
from benchmarks.threads import set_threads
from bert_tf.checkpoints import reading
from bert_tf.encoder.config import POLICIES


def prepare(settings: dict[str, Any]) -> Job:
    """The job that `settings` names."""
    set_threads(settings)
    return _WORKS[settings["work"]](settings)


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
    model = kind(encoder)
    reading.find(settings["weights"]).fill(model)
    return model


def _optimizer() -> bert_tf.AdamW:
    return bert_tf.AdamW(1e-5)


_WORKS = {"finetune": finetune, "pretrain": pretrain}

if __name__ == "__main__":
    serve(prepare)
