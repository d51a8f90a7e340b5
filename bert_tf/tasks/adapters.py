"""The adapters of task models: the argument `lora`, and the files of the library peft."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from bert_tf.checkpoints import conversion, heads, peft
from bert_tf.checkpoints.checkpoint import listed
from bert_tf.checkpoints.description import describe
from bert_tf.checkpoints.names import weight_names
from bert_tf.config.arguments import plain
from bert_tf.config.refusals import mistake
from bert_tf.config.train import FinetuningTrain, LoraConfig
from bert_tf.console import logger
from bert_tf.errors import UserError
from bert_tf.io.atomic import atomic_path
from bert_tf.training.adapter import of_head


def settings_of(lora: Any) -> LoraConfig | None:
    """The argument `lora` of `fit`.

    >>> settings_of(4).rank, settings_of({"targets": ["query"]}).scale
    (4, 2.0)
    >>> settings_of({"rank": 0})
    Traceback (most recent call last):
        ...
    bert_tf.errors.UserError: lora.rank must be at least 1, got 0

    Raises:
        UserError: an unknown key, or a value that does not fit.
    """
    values = {"steps": 1, "lora": plain(lora)}
    try:
        return FinetuningTrain.model_validate(values).adapter
    except ValidationError as error:
        raise UserError(mistake(error, FinetuningTrain, values)[1]) from None


def save(model: Any, folder: str | os.PathLike) -> None:
    """Writes what the last `fit` with `lora` has trained as a new folder of the library peft.

    `adapter_config.json` and `adapter_model.safetensors` hold the updates and the head's weights.
    They belong to the encoder's weights from before that `fit`.

    >>> from bert_tf import Encoder, EncoderConfig, TextClassifier, Tokenizer
    >>> tokenizer = Tokenizer("[PAD] [UNK] [CLS] [SEP] [MASK] cat dog".split())
    >>> config = EncoderConfig(7, hidden_size=4, num_hidden_layers=1, num_attention_heads=1)
    >>> clf = TextClassifier(Encoder(config), tokenizer)
    >>> history = clf.fit(["cat", "dog"], ["a", "b"], lora=2, verbose=0)
    >>> clf.save_adapter("adapter")
    >>> sorted(os.listdir("adapter"))
    ['adapter_config.json', 'adapter_model.safetensors']

    Args:
        folder: it must not exist yet.

    Raises:
        UserError: there is no adapter, transformers has no such encoder, or the folder exists or
            cannot be written.
    """
    # In a callback of `fit`, the adapter is still trained.
    updates = model.updates if model.adapter is None else model.adapter.updates()
    if updates is None:
        raise UserError("the model has no adapter; train one with fit(…, lora=8)")
    conversion.check_new(folder)
    head = {name: weight.numpy() for name, weight in of_head(model).items()}
    words = weight_names(model)["encoder/embeddings/word_embeddings"].numpy()
    with atomic_path(folder) as new:
        new.mkdir()
        peft.write(new, describe(model), updates, head, words)


def load(model: Any, folder: str | os.PathLike) -> None:
    """Adds an adapter of the library peft, or of `save_adapter`, to the model's weights.

    The model must have the encoder's weights that the adapter was trained on. The head in the
    adapter, if there is one, replaces the model's.

    >>> from bert_tf import Encoder, EncoderConfig, TextClassifier, Tokenizer
    >>> tokenizer = Tokenizer("[PAD] [UNK] [CLS] [SEP] [MASK] cat dog".split())
    >>> config = EncoderConfig(7, hidden_size=4, num_hidden_layers=1, num_attention_heads=1)
    >>> clf = TextClassifier(Encoder(config), tokenizer)
    >>> history = clf.fit(["cat", "dog"], ["a", "b"], lora=2, verbose=0)
    >>> clf.save_adapter("to_load")
    >>> other = TextClassifier(Encoder(config), tokenizer)
    >>> other.load_adapter("to_load")
    >>> other.labels
    ('a', 'b')

    Args:
        folder: with `adapter_config.json` and `adapter_model.safetensors`.

    Raises:
        UserError: a file is missing or damaged, or the adapter is for a model of other sizes or
            labels.
    """
    kind = type(model).__name__
    updates, others, labels = peft.read(Path(folder), kind, model.encoder.config)
    _name_classes(model, folder, others, labels)
    variables = weight_names(model)
    for name, array in others.items():
        _check(folder, name, array.shape, getattr(variables.get(name), "shape", None))
    for name, pairs in updates.pairs.items():
        rows, columns = variables[name].shape
        for pair in filter(None, pairs):
            _check(folder, f"A of {name}", pair.down.shape, (rows, updates.rank))
            _check(folder, f"B of {name}", pair.up.shape, (updates.rank, columns // len(pairs)))
    updates.add_to(variables)
    for name, array in others.items():
        variables[name].assign(array)
    model.updates = updates
    of_head = f"{listed(tuple(others))} loaded" if others else "it has no head"
    logger.info(f"{folder}: {len(updates.pairs)} weights of the encoder updated; {of_head}")


def _name_classes(
    model: Any, folder: str | os.PathLike, others: Mapping[str, Any], labels: tuple[str, ...]
) -> None:
    """Gives a model without labels those of an adapter's head."""
    layers = heads.of(type(model).__name__).label_layers if model.has_labels else ()
    outputs = [len(others[f"{each}/bias"]) for each in layers if f"{each}/bias" in others]
    if outputs and not model.labels:
        model.name_classes(labels or range(outputs[0]))
    elif outputs and labels and labels != model.labels:
        raise UserError(
            f"{folder} has the labels {listed(labels)}, but the model has {listed(model.labels)}; "
            "load it into a model of the same labels, or of none"
        )


def _check(
    folder: str | os.PathLike, name: str, found: tuple[int, ...], needed: tuple[int, ...] | None
) -> None:
    """Raises UserError if an array of an adapter does not fit its model."""
    if needed is None or tuple(found) != tuple(needed):
        needs = "has no such weight" if needed is None else f"needs {[*needed]}"
        raise UserError(
            f"{folder}: {name} has shape {[*found]}, but the model {needs}; load the adapter into "
            "the model that it was trained on"
        )
