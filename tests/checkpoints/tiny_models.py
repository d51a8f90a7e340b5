"""One tiny model of every class, comparisons of models, and changes of files."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
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
    UserError,
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
# Sizes of the rest of the family.
DISTILBERT = {"model_type": "distilbert", "type_vocab_size": 0, "hidden_act": "gelu"}
ELECTRA = {"model_type": "electra", "embedding_size": 6, "hidden_act": "gelu"}
# The names of outputs in transformers -> ours.
_NAMES = {
    "last_hidden_state": "sequence_output",
    "pooler_output": "pooled_output",
    "prediction_logits": "masked_lm",
    "seq_relationship_logits": "next_sentence",
    "start_logits": "start",
    "end_logits": "end",
}


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


def load(path) -> tuple[keras.Model, LoadReport]:
    """The model of a checkpoint, with its weights."""
    checkpoint = reading.find(path)
    model = from_checkpoint.build(checkpoint, path)
    return model, checkpoint.fill(model)


def weights(model: keras.Model) -> dict[str, np.ndarray]:
    return {name: variable.numpy() for name, variable in weight_names(model).items()}


def inputs_of(expected) -> dict[str, tf.Tensor]:
    return {name: tf.constant(expected[name], tf.int32) for name in INPUTS}


def assert_equal(found: keras.Model, expected: keras.Model) -> None:
    """Two models have the same weights under the same names."""
    ours, theirs = weights(found), weights(expected)
    assert ours.keys() == theirs.keys()
    for name, value in theirs.items():
        np.testing.assert_array_equal(ours[name], value, err_msg=name)


def difference(model: keras.Model, expected: dict[str, np.ndarray]) -> float:
    """The largest difference of the outputs of a model and its encoder, where the mask is 1.

    Args:
        model: the model.
        expected: inputs, and outputs by our names or those of transformers.
    """
    inputs, mask = inputs_of(expected), expected["input_mask"]
    found = dict(getattr(model, "encoder", model)(inputs))
    named = {_NAMES.get(name, name): value for name, value in expected.items()}
    if hasattr(model, "encoder"):
        if isinstance(model, PreTrainer):
            positions = np.tile(np.arange(mask.shape[1], dtype=np.int32), (len(mask), 1))
            inputs["masked_lm_positions"] = tf.constant(positions)
            if "logits" in named:
                named["masked_lm"] = named.pop("logits")
        if isinstance(model, MultipleChoice):
            inputs = {name: value[tf.newaxis] for name, value in inputs.items()}
        computed = model(inputs)
        computed = computed if isinstance(computed, dict) else {"logits": computed}
        assert computed.keys() <= named.keys()
        found |= computed
    differences = {}
    for name in found.keys() & named.keys():
        value = named[name]
        per_token = mask if value.shape[:2] == mask.shape else np.ones(1)
        per_token = per_token.reshape(per_token.shape + (1,) * (value.ndim - per_token.ndim))
        differences[name] = np.abs((np.reshape(found[name], value.shape) - value) * per_token).max()
    return max(differences.values())


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


def copied(fixture: str, folder: Path) -> Path:
    """Copies a fixture's files into `folder`, where they may be changed; returns the folder."""
    ignored = shutil.ignore_patterns("expected.npz")
    return Path(shutil.copytree(FIXTURES / fixture, folder, ignore=ignored, dirs_exist_ok=True))


def change(path: Path, *removed: str, **fields: Any) -> None:
    """Removes and sets keys of a JSON file."""
    changed = json.loads(path.read_text()) | fields
    path.write_text(json.dumps({n: value for n, value in changed.items() if n not in removed}))


def refused(told: str, read: Callable, *arguments: Any) -> str:
    """A call raises a UserError of one line that matches `told`; returns the line."""
    with pytest.raises(UserError, match=told) as error:
        read(*arguments)
    (line,) = str(error.value).splitlines()
    return line
