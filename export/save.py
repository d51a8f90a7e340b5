"""Choosing how a model is served, and writing it."""

import os
from collections.abc import Sequence
from pathlib import Path

import keras

from bert_tf.errors import UserError
from bert_tf.models import SequenceClassifier
from bert_tf.text import Tokenizer
from export.classification import ClassificationService
from export.saved_model import write


def save(
    model: keras.Model,
    tokenizer: Tokenizer,
    out: str | os.PathLike,
    labels: Sequence[str] = (),
    max_length: int | None = None,
    pair: bool = False,
) -> Path:
    """Writes `model` as a SavedModel that takes strings; see the package for its use.

    Args:
        model: a fitted `SequenceClassifier`.
        tokenizer: the tokenizer it was fitted with.
        out: the folder to write; it must not exist yet.
        labels: names of the classes in the order of the logits; by default their numbers.
        max_length: most tokens of an input, longer texts are cut; by default as many as the
            model has positions.
        pair: whether an input is a pair of texts (`text_a`, `text_b`) rather than one (`text`).

    Returns:
        The folder.

    Raises:
        UserError: a model that cannot be exported, labels that do not fit it, or a folder that
            cannot be written.
    """
    if not isinstance(model, SequenceClassifier):
        raise UserError(f"there is no export for a {type(model).__name__}; give a fine-tuned model")
    labels = tuple(labels) or tuple(str(i) for i in range(model.num_classes))
    if len(labels) != model.num_classes:
        raise UserError(f"{len(labels)} labels for a model of {model.num_classes} classes")
    longest = model.encoder.config.max_position_embeddings
    service = ClassificationService(model, tokenizer, labels, max_length or longest, pair)
    return write(service, Path(out))
