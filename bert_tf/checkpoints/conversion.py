"""Writing a model in any format, and converting checkpoints from one format to another."""

import dataclasses
import os
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import keras

from bert_tf.checkpoints import heads, native, plain_json, reading
from bert_tf.checkpoints.checkpoint import Checkpoint, listed
from bert_tf.checkpoints.description import EXTRA_KEY, Content, describe, vocabulary_hash
from bert_tf.checkpoints.names import weight_names
from bert_tf.checkpoints.reading import FORMATS
from bert_tf.console import logger
from bert_tf.errors import UserError
from bert_tf.io.atomic import atomic_path
from bert_tf.io.remote import exists, local_path
from bert_tf.text import Tokenizer

# The formats that cannot store all models of the family -> the models that they can store.
_MODELS = {"tf1": ("bert",), "model_garden": ("bert",), "keras_hub": ("bert", "distilbert")}
# The encoder's fields that change what it computes.
_ARITHMETIC = ("hidden_act", "attention", "layer_norm_eps")


def convert(
    source: str | os.PathLike,
    destination: str | os.PathLike,
    to: str,
    find: Callable[[str | os.PathLike], Checkpoint] = reading.find,
) -> None:
    """Writes the checkpoint that `find` opens at `source` as the new folder `destination`.

    Logs what was read, and what the format's own reader ignores or computes differently.
    """
    checkpoint = find(source)
    weights, report = checkpoint.weights()
    parts = [f"{source}: {len(weights)} weights read"]
    parts += [f"it has no {listed(report.new)}"] if report.new else []
    parts += [f"ignored: {listed(report.ignored)}"] if report.ignored else []
    logger.info("; ".join((*parts, *report.notes)))
    vocabulary, description = checkpoint.read_vocabulary(), checkpoint.description
    if vocabulary is None:
        logger.warning(f"{source} has no vocabulary, so {destination} has none either")
    elif description.lower_case is None:
        # Readers of other formats would assume that it lower-cases.
        settings = description.tokenizer_settings(vocabulary)
        description = dataclasses.replace(description, lower_case=settings.lower_case)
    _write(local_path(destination), to, Content(weights, description, vocabulary))


def save(
    model: keras.Model,
    folder: str | os.PathLike,
    to: str = "bert_tf",
    tokenizer: Tokenizer | None = None,
) -> None:
    """Writes `model` as the new `folder` of format `to`.

    Args:
        model: an `Encoder`, a `PreTrainer` or a task model.
        folder: the folder; it must not exist yet.
        to: "bert_tf", "huggingface", "sentence_transformers", "tf1", "model_garden" or
            "keras_hub".
        tokenizer: the tokenizer to write; None writes that of a task model.

    Raises:
        UserError: the format is unknown or has no place for such a model, `model` is not of
            bert_tf, or the folder exists or cannot be written.
    """
    if tokenizer is None and getattr(model, "has_tokenizer", False):
        tokenizer = model.tokenizer
    description = describe(model, tokenizer)
    weights = {name: variable.numpy() for name, variable in weight_names(model).items()}
    vocabulary = None if tokenizer is None else tokenizer.vocabulary
    _write(local_path(folder), to, Content(weights, description, vocabulary))


def check_new(folder: str | os.PathLike) -> None:
    """Raises UserError if there is something at `folder`, where a checkpoint is to be written."""
    # Path.exists raises an error for a name that is too long; writing there explains it.
    if exists(folder):
        raise UserError(f"{folder} exists already; choose another place for the output")


def _write(folder: Path, to: str, content: Content) -> None:
    if to not in FORMATS:
        raise UserError(f"unknown format {to!r}; choose one of {', '.join(FORMATS)}")
    form, description, vocabulary = FORMATS[to], content.description, content.vocabulary
    model_type = description.encoder.model_type
    if model_type not in _MODELS.get(to, (model_type,)):
        raise UserError(
            f"the format {to} has no {model_type}, only {' and '.join(_MODELS[to])}; choose "
            "huggingface or bert_tf"
        )
    check_new(folder)
    if vocabulary is not None:
        description.encoder.check_vocabulary(len(vocabulary))
        description = dataclasses.replace(description, vocabulary=vocabulary_hash(vocabulary))
    content = content._replace(description=description)
    with atomic_path(folder, is_new=True) as new:
        new.mkdir()
        form.write_content(new, content)
        if form is not native:
            _supplement(new, form, content)


def _supplement(folder: Path, form: ModuleType, content: Content) -> None:
    """Stores settings that the format lacks under an extra key, and warns of the consequences."""
    description, kept = content.description, reading.find(folder).description
    differing = description.differing(kept)
    if differing:
        path = folder / form.CONFIG_FILE
        fields = plain_json.read_object(path, "model configuration")
        plain_json.write(path, fields | {EXTRA_KEY: differing})
    encoder = differing.get("encoder", {})
    settings, head = description.settings, heads.of(description.model)
    warnings = []
    for name in (*_ARITHMETIC, *["masked_lm_head"] * (heads.MASKED_LM in head.pretraining)):
        if name in encoder:
            warnings.append(
                f"will use {name} {getattr(kept.encoder, name)}, but the model has "
                f"{encoder[name]}; only bert_tf restores that value"
            )
    if encoder.get("pools_first") is False:
        warnings.append(
            "will pool the first token, but a left-to-right model pools the last; only bert_tf "
            "computes the same outputs from this checkpoint"
        )
    if head.pools and "pooling" in settings:
        warnings.append(
            "will read the pooler's output, but the head was trained with pooling "
            f"{settings['pooling']}; only bert_tf computes the same outputs"
        )
    if long_text := settings.get("long_text"):
        warnings.append(f"does not know long_text {long_text}; only bert_tf does")
    rows = form.TABLE.rows(description.model, description.encoder.num_hidden_layers)
    layers = (name.removeprefix("encoder/") for name in content.weights if name not in rows)
    if own := sorted({name.split("/")[0] for name in layers}):
        warnings.append(f"does not read {', '.join(own)}; only bert_tf does")
    for each in warnings:
        logger.warning(f"{form.READER} {each}")
