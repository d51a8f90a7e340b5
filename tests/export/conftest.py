"""Small models of every family, and their exports, each written once for all test files."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import pytest
import tensorflow as tf

import export
from bert_tf.models import (
    Encoder,
    MultipleChoice,
    PreTrainer,
    SequenceClassifier,
    SpanClassifier,
    TokenClassifier,
)
from bert_tf.text import Tokenizer
from tests import tiny

# A name -> how its model is made of an encoder, and what `export.save` is told besides.
FAMILIES = {
    "classification": (lambda e: SequenceClassifier(e, 3), {"labels": ["no", "yes", "maybe"]}),
    "pair": (lambda e: SequenceClassifier(e, 2), {"pair": True}),
    "regression": (lambda e: SequenceClassifier(e, 1), {}),
    "multiple_choice": (MultipleChoice, {}),
    "question_answering": (SpanClassifier, {"max_question_length": 8}),
    "token_classification": (lambda e: TokenClassifier(e, 3), {"labels": ["O", "B-X", "I-X"]}),
    "mlm": (PreTrainer, {"kind": "mlm"}),
    "nsp": (PreTrainer, {"kind": "nsp"}),
    "embedding": (PreTrainer, {"kind": "embedding"}),
    "hub": (PreTrainer, {"kind": "hub"}),
}

Exported = Callable[..., Path]


@pytest.fixture(scope="session")
def tokenizer() -> Tokenizer:
    return Tokenizer(tiny.VOCABULARY, lower_case=True)


@pytest.fixture(scope="session")
def models(tokenizer) -> Callable[[str], keras.Model]:
    """Gives the model of a family; families of one class share it."""
    made: dict[object, keras.Model] = {}

    def model(family: str) -> keras.Model:
        make, _ = FAMILIES[family]
        if make not in made:
            keras.utils.set_random_seed(7)
            config = tiny.encoder_config(16)
            made[make] = make(Encoder(config))
        return made[make]

    return model


@pytest.fixture(scope="session")
def exported(models, tokenizer, tmp_path_factory) -> Exported:
    """Gives the folder of a family's export; `settings` go to `export.save` too."""
    written: dict[tuple, Path] = {}

    def folder(family: str, **settings) -> Path:
        key = (family, *sorted(settings.items()))
        if key not in written:
            out = tmp_path_factory.mktemp("exported") / family
            _, own = FAMILIES[family]
            written[key] = export.save(models(family), tokenizer, out, **own, **settings)
        return written[key]

    return folder


@pytest.fixture(scope="session")
def loaded(exported) -> Callable[..., Any]:
    """Gives a family's export as TensorFlow loads it, once for all tests."""
    known: dict[Path, Any] = {}

    def load(family: str, **settings) -> Any:
        folder = exported(family, **settings)
        if folder not in known:
            known[folder] = tf.saved_model.load(folder)
        return known[folder]

    return load
