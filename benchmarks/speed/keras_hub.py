"""KerasHub's backbone and classifier on TensorFlow, from the weights of transformers."""

from typing import Any

import numpy as np
import tensorflow as tf

from benchmarks.speed import inputs
from benchmarks.speed.fitting import endless, training
from benchmarks.speed.turns import Job, serve
from bert_tf.encoder.config import POLICIES

_NAMES = {
    "input_word_ids": "token_ids",
    "input_mask": "padding_mask",
    "input_type_ids": "segment_ids",
}


def prepare(settings: dict[str, Any]) -> Job:
    """The job that `settings` names: encode or finetune."""
    tf.config.threading.set_intra_op_parallelism_threads(settings["threads"])
    tf.config.threading.set_inter_op_parallelism_threads(1)
    return {"encode": encode, "finetune": finetune}[settings["work"]](settings)


def encode(settings: dict[str, Any]) -> Job:
    """Token ids to the last layer, without padding."""
    backbone = _backbone(settings, settings["precision"])
    batch = _renamed(inputs.full_batch(settings["batch"], settings["length"], 30522))
    tensors = {name: tf.constant(value) for name, value in batch.items()}
    function = tf.function(lambda each: tf.cast(backbone(each)["sequence_output"], tf.float32))
    last = []

    def step() -> None:
        last[:] = [function(tensors)]

    return Job(step, lambda: last[0].numpy())


def finetune(settings: dict[str, Any]) -> Job:
    """One update of a classifier; every batch has another length."""
    import keras
    import keras_hub

    model = keras_hub.models.BertTextClassifier(
        _backbone(settings, POLICIES[settings["precision"]]), num_classes=2, preprocessor=None
    )
    model.compile(
        optimizer=keras.optimizers.AdamW(1e-5, weight_decay=0.01, epsilon=1e-6, global_clipnorm=1),
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        jit_compile=False,
    )
    batches = endless(
        lambda seed: _renamed(inputs.padded_batch(settings["batch"], 30522, seed)), ("labels",)
    )
    return training(model, batches)


def _backbone(settings: dict[str, Any], dtype: str) -> Any:
    import keras
    import keras_hub

    backbone = keras_hub.models.BertBackbone.from_preset(settings["weights"], dtype=dtype)
    # It has the tanh form of GELU, whatever the checkpoint says.
    for layer in backbone.transformer_layers:
        layer._feedforward_intermediate_dense.activation = keras.activations.gelu
    return backbone


def _renamed(batch: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {_NAMES.get(name, name): value for name, value in batch.items()}


if __name__ == "__main__":
    serve(prepare)
