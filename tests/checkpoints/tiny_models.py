"""One tiny model of every class, and comparisons of what models hold and compute."""

from pathlib import Path

import keras
import numpy as np
import tensorflow as tf

from bert_tf import (
    MaskedLM,
    MultipleChoice,
    NextSentence,
    QuestionAnswerer,
    Reranker,
    TextClassifier,
    TextEmbedder,
    TextRegressor,
    TokenClassifier,
)
from bert_tf.checkpoints import reading
from bert_tf.checkpoints.checkpoint import LoadReport
from bert_tf.checkpoints.names import weight_names
from bert_tf.encoder.ablations import encoder_for
from bert_tf.encoder.config import EncoderConfig
from bert_tf.models.pretrainer import PreTrainer
from bert_tf.tasks import from_checkpoint

FIXTURES = Path(__file__).parents[1] / "fixtures"
INPUTS = ("input_word_ids", "input_mask", "input_type_ids")
TOLERANCE = 2e-5
PIECES = tuple("[PAD] [UNK] [CLS] [SEP] [MASK] a b c d ##a ##b ##c ##d .".split())
LABELS = ("nay", "yea", "perhaps")

_HEADS = {
    "encoder": lambda encoder: encoder,
    "pretrainer": PreTrainer,
    "masked_lm": lambda encoder: PreTrainer(encoder, next_sentence=False),
    "classifier": lambda encoder: TextClassifier(encoder, None, LABELS, dropout=0.3),
    "labeller": lambda encoder: TextClassifier(encoder, None, LABELS, multi_label=True),
    "filler": lambda encoder: MaskedLM(encoder, None),
    "follower": lambda encoder: NextSentence(encoder, None),
    "embedder": lambda encoder: TextEmbedder(
        encoder,
        None,
        pooling=["max", "mean"],
        normalize=True,
        dense=[{"units": 3, "activation": "ReLU"}, {"units": 4, "bias": False}],
        prompts={"query": "a b "},
    ),
    "regressor": lambda encoder: TextRegressor(encoder, None),
    "span": lambda encoder: QuestionAnswerer(encoder, None, max_length=7, max_question_length=2),
    "tokens": lambda encoder: TokenClassifier(encoder, None, LABELS),
    "choice": lambda encoder: MultipleChoice(encoder, None),
    "reranker": lambda encoder: Reranker(encoder, None, activation="identity"),
    "feature_tagger": lambda encoder: TokenClassifier(
        encoder, None, LABELS, features="last", lstm_units=4
    ),
}
KINDS = tuple(_HEADS)


def make(kind: str, **sizes) -> keras.Model:
    """A model whose weights are all far from zero."""
    fields = {
        "vocab_size": len(PIECES),
        "hidden_size": 8,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 12,
        "max_position_embeddings": 7,
    }
    model = _HEADS[kind](encoder_for(EncoderConfig(**fields | sizes)))
    random = np.random.RandomState(0)
    for weight in model.weights:
        weight.assign(random.normal(scale=0.4, size=weight.shape))
    return model


def labels_of(model: keras.Model) -> tuple[str, ...]:
    return getattr(model, "labels", ())


def load(path) -> tuple[keras.Model, LoadReport]:
    """The model of a checkpoint, with its weights."""
    checkpoint = reading.find(path)
    model = from_checkpoint.build(checkpoint, path)
    return model, checkpoint.fill(model)


def weights(model: keras.Model) -> dict[str, np.ndarray]:
    return {name: variable.numpy() for name, variable in weight_names(model).items()}


def inputs_of(expected) -> dict[str, tf.Tensor]:
    return {name: tf.constant(expected[name], tf.int32) for name in INPUTS}


def encoder_differences(model: keras.Model, expected) -> dict[str, float]:
    """Largest differences of the encoder's outputs where the mask is 1."""
    found = getattr(model, "encoder", model)(inputs_of(expected))
    mask = expected["input_mask"][..., None]
    names = [name for name in ("sequence_output", "pooled_output") if name in expected]
    masks = {"sequence_output": mask, "pooled_output": 1}
    return {n: np.abs((found[n] - expected[n]) * masks[n]).max() for n in names}


def outputs(model: keras.Model) -> list[np.ndarray]:
    """All that a model computes for one batch."""
    random = np.random.RandomState(1)
    shape = (2, 2, 7) if isinstance(model, MultipleChoice | Reranker) else (2, 7)
    inputs = {
        "input_word_ids": random.randint(0, len(PIECES), shape),
        "input_mask": np.ones(shape, np.int32),
        "input_type_ids": random.randint(0, 2, shape),
    }
    inputs["input_mask"][..., 1, 4:] = 0
    if isinstance(model, PreTrainer | MaskedLM):
        inputs["masked_lm_positions"] = np.array([[1, 2], [3, 0]])
    given = {name: tf.constant(value, tf.int32) for name, value in inputs.items()}
    return [np.asarray(value) for value in tf.nest.flatten(model(given))]
