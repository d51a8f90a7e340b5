"""Comparison with Model Garden's own classes (tf-models-official, the extra `model-garden`).

These classes use legacy Keras, and restore their weights from a checkpoint.
"""

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from bert_tf.checkpoints import heads
from bert_tf.checkpoints.description import Description
from bert_tf.checkpoints.model_garden import PREFIX
from bert_tf.dependencies import optional
from bert_tf.encoder.config import EncoderConfig
from bert_tf.encoder.encoder import INPUTS
from bert_tf.errors import UserError

# The largest difference of outputs that rounding explains: float32 sums in another order.
TOLERANCE = 2e-5

# The most tokens of a row.
_LENGTH = 64


def require() -> None:
    """Raises UserError where tf-models-official is not installed."""
    _official("modeling.networks")


def make_encoder(config: EncoderConfig) -> Any:
    """A new `BertEncoderV2` of the sizes in `config`, with random weights."""
    encoder = _official("modeling.networks").BertEncoderV2(
        vocab_size=config.vocab_size,
        hidden_size=config.hidden_size,
        num_layers=config.num_hidden_layers,
        num_attention_heads=config.num_attention_heads,
        max_sequence_length=config.max_position_embeddings,
        type_vocab_size=config.type_vocab_size,
        inner_dim=config.intermediate_size,
        inner_activation=_GELU[config.hidden_act],
        norm_first=False,
    )
    encoder(encoder.inputs)
    return encoder


def verify(folder: Path, description: Description, ours: keras.Model) -> float:
    """The largest difference of outputs between Model Garden's classes, from `folder`, and ours."""
    encoder = make_encoder(description.encoder)
    theirs, items = _with_head(encoder, description)
    try:
        restored = tf.train.Checkpoint(**items).restore(str(folder / PREFIX))
        restored.assert_existing_objects_matched()
    except (AssertionError, ValueError) as error:
        reason = str(error).splitlines()[0]
        raise UserError(
            f"Model Garden's {type(theirs).__name__} cannot open {folder}: {reason}"
        ) from None
    batch = _batch(description.encoder)
    head = heads.of(description.model)
    if heads.MASKED_LM in head.pretraining:
        tokens = int(tf.reduce_min(tf.reduce_sum(batch["input_mask"], axis=1)))
        batch["masked_lm_positions"] = tf.tile(tf.range(tokens)[tf.newaxis], (2, 1))
    expected = _outputs(theirs(dict(batch)), description)
    given = batch
    if head.sentence_transformers == heads.CROSS_ENCODER:
        # Each row is the only passage of its query.
        given = {name: values[:, tf.newaxis] for name, values in batch.items()}
    found = _outputs(ours(given), description)
    real = batch["input_mask"].numpy().astype(bool)
    largest = 0.0
    for name, value in expected.items():
        difference = np.abs(found[name].reshape(value.shape) - value)
        if value.shape[:2] == real.shape:  # an output for each token, padding included
            difference = difference[real]
        largest = max(largest, float(difference.max()))
    return largest


def _official(module: str) -> Any:
    with warnings.catch_warnings():  # its imports warn of their own age
        warnings.simplefilter("ignore")
        return optional(f"official.nlp.{module}", "model-garden", "Model Garden's own classes")


def _with_head(encoder: Any, description: Description) -> tuple[Any, dict[str, Any]]:
    """The model around an encoder, and the objects that its checkpoint is restored into."""
    models = _official("modeling.models")
    kind, head = description.model, heads.of(description.model)
    if kind == heads.ENCODER:
        return encoder, {"encoder": encoder}
    if heads.MASKED_LM in head.pretraining:
        layers = _official("modeling.layers")
        others = []
        if description.head.get("next_sentence"):
            width = description.encoder.hidden_size
            others = [layers.ClassificationHead(width, 2, name="next_sentence")]
        gelu = _GELU[description.encoder.hidden_act]
        model = models.BertPretrainerV2(encoder, mlm_activation=gelu, classification_heads=others)
        model(model.inputs)
        return model, model.checkpoint_items | {"model": model}
    if "model_garden" not in head.places:
        raise UserError(f"Model Garden has no class for a {kind}; only its encoder can be verified")
    classes = description.head.get("num_classes") or head.outputs
    cls = getattr(models, head.places["model_garden"].reader)
    model = cls(encoder, classes) if classes else cls(encoder)
    return model, {"model": model}


def _batch(config: EncoderConfig) -> dict[str, tf.Tensor]:
    random = np.random.RandomState(0)
    shape = (2, min(_LENGTH, config.max_position_embeddings))
    mask = np.ones(shape, np.int32)
    mask[1, shape[1] // 2 :] = 0
    ids, types = (random.randint(0, n, shape) for n in (config.vocab_size, config.type_vocab_size))
    pairs = zip(INPUTS, (ids, mask, types), strict=True)
    return {name: tf.constant(array, tf.int32) for name, array in pairs}


def _outputs(found: Any, description: Description) -> dict[str, np.ndarray]:
    if isinstance(found, list | tuple):
        found = dict(zip(("start", "end"), found, strict=True))
    elif not isinstance(found, Mapping):
        found = {"logits": found}
    if description.model == heads.ENCODER:
        found = {name: found[name] for name in ("sequence_output", "pooled_output")}
    elif "mlm_logits" in found:
        # Model Garden's pre-training model returns the outputs of its encoder too.
        name = "masked_lm" if description.model == heads.PRETRAINER else "logits"
        others = {each: found[each] for each in ("next_sentence",) if each in found}
        found = {name: found["mlm_logits"]} | others
    return {name: np.asarray(value) for name, value in found.items()}


# Named functions: Model Garden writes the activation's name into its configuration.
def _erf_gelu(x: tf.Tensor) -> tf.Tensor:
    return tf.nn.gelu(x, approximate=False)


def _tanh_gelu(x: tf.Tensor) -> tf.Tensor:
    return tf.nn.gelu(x, approximate=True)


_GELU = {"gelu": _erf_gelu, "gelu_new": _tanh_gelu}
