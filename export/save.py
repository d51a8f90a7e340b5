"""Choosing how a model is served, and writing it."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import keras

from bert_tf.errors import UserError
from bert_tf.models import SequenceClassifier
from bert_tf.text import Tokenizer
from export.classification import ClassificationService
from export.saved_model import write
from export.service import Service

_SERVICES: dict[type[keras.Model], type[Service]] = {SequenceClassifier: ClassificationService}


def save(
    model: keras.Model,
    tokenizer: Tokenizer,
    out: str | os.PathLike,
    labels: Sequence[str] = (),
    **options: Any,
) -> Path:
    """Writes `model` as a SavedModel that takes strings; see the package for its use.

    Args:
        model: a fitted task model.
        tokenizer: the tokenizer it was fitted with.
        out: the folder to write; it must not exist yet.
        labels: names of the classes in the order of the logits; by default their numbers.
        **options: what else the model's service takes, such as `max_length` and `pair` (see
            `ClassificationService`).

    Returns:
        The folder.

    Raises:
        UserError: a model that cannot be exported, labels that do not fit it, or a folder that
            cannot be written.
    """
    service = service_of(type(model))
    return write(service(model, tokenizer, tuple(labels), **options), Path(out))


def service_of(model: type[keras.Model]) -> type[Service]:
    """The service of a class of model. Raises UserError where there is none."""
    if model not in _SERVICES:
        raise UserError(f"there is no export for a {model.__name__}; give a fine-tuned model")
    return _SERVICES[model]
