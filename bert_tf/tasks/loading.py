"""Finding out what is at a path, and opening it as the right object."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import keras

from bert_tf.asking.saved_model import is_saved_model
from bert_tf.checkpoints import native, tensors
from bert_tf.checkpoints.checkpoint import Checkpoint
from bert_tf.errors import UserError
from bert_tf.export.litert.lite_file import LiteFile
from bert_tf.export.model_card import Origin
from bert_tf.tasks import keras_files
from bert_tf.tasks.from_checkpoint import (
    built,
    check_head,
    family_at,
    find,
    is_keras_file,
    origin_of,
)
from bert_tf.tasks.lite import LiteTask, is_lite_file
from bert_tf.tasks.lite_network import LiteNetwork, LiteStrings
from bert_tf.tasks.served import ServedTask, check_no_pair
from bert_tf.tasks.task_model import TaskModel
from bert_tf.text import Tokenizer


def load(
    path: str | os.PathLike,
    *,
    labels: Sequence[str | int] | None = None,
    dtype: str | keras.DTypePolicy | None = None,
    layout: str = "unpadded",
    **settings: Any,
) -> TaskModel | ServedTask | LiteTask:
    """Opens a trained model as the object of its task.

    >>> from bert_tf import Encoder, EncoderConfig, NextSentence
    >>> tokenizer = Tokenizer("[PAD] [UNK] [CLS] [SEP] [MASK] cat".split())
    >>> config = EncoderConfig(6, hidden_size=4, num_hidden_layers=1, num_attention_heads=1)
    >>> NextSentence(Encoder(config), tokenizer).save("model.keras")
    >>> type(load("model.keras")).__name__
    'NextSentence'
    >>> load("missing.keras")
    Traceback (most recent call last):
        ...
    bert_tf.errors.UserError: ...missing.keras...

    Args:
        path: a `.keras` file, a run folder, a checkpoint of any format with its head, a name on the
            Hugging Face Hub, a SavedModel, or a LiteRT file. A path that exists wins over a name.
        labels: names of the classes, if the checkpoint has none.
        dtype: Keras's dtype policy, such as "mixed_bfloat16".
        layout: as for `Encoder`.
        **settings: arguments of the constructor that a bare checkpoint lacks: `pair`,
            `unanswerable`, `max_length`.

    Returns:
        A task model. Of a SavedModel or a LiteRT file, an object that answers and cannot be
        trained.

    Raises:
        UserError: there is nothing at `path`, it is damaged, or it has no head of a task.
    """
    if is_saved_model(path) or is_lite_file(path):
        kind = "LiteRT file" if is_lite_file(path) else "SavedModel"
        if settings or labels is not None or dtype is not None:
            raise UserError(f"{path} is a {kind}, whose settings are fixed; give the path alone")
        return lite_task(path) if is_lite_file(path) else ServedTask.load(path)
    return load_model(path, labels, settings, dtype=dtype, layout=layout)


def lite_task(path: str | os.PathLike) -> LiteTask:
    """The object of the LiteRT file at `path`; see `load`."""
    file = LiteFile.read(path)
    tokenizer = Tokenizer(file.vocabulary, bool(file.description.lower_case))
    checkpoint = Checkpoint(
        Path(path), file.description, tensors.of_arrays({}), native.TABLE, lambda: file.vocabulary
    )
    family = family_at(checkpoint)
    if family is None:
        raise UserError(f"{path} holds an unknown model {file.description.model!r}; update bert_tf")
    # A model without weights makes inputs of strings, and answers of what the file computes.
    with keras.StatelessScope(initialize_variables=False):
        model = built(family.model_class(), checkpoint, path, None, {}, tokenizer)
    name, computing = os.fspath(path), cast(Any, model)
    if file.inputs == "strings":
        asked = LiteStrings(name, file.model, file.lengths[0], model.strings_form())
        computing.ask = asked.ask
        return LiteTask(name, model, asked)
    network = LiteNetwork(name, file.model, file.lengths, model.device_form())
    return LiteTask(name, model.with_network(network), network)


def load_model(
    path: str | os.PathLike,
    labels: Sequence[str | int] | None = None,
    settings: Mapping[str, Any] | None = None,
    *,
    dtype: str | keras.DTypePolicy | None = None,
    layout: str = "unpadded",
) -> TaskModel:
    """Like `load`, but without SavedModels."""
    check_no_pair(path)
    is_whole = labels is None and dtype is None and layout == "unpadded" and not settings
    if is_keras_file(path) and is_whole:
        model = keras_files.read(Path(path))
        if getattr(model, "has_tokenizer", False):
            # As it was saved, the compiled optimizer and frozen layers included.
            model.origin = Origin(source=str(path))
            return model
    checkpoint = find(path)
    family = family_at(checkpoint)
    if family is None:
        kind = checkpoint.description.model
        article = "an" if kind[0] in "AEIOU" else "a"
        raise UserError(
            f"{path} has no task head (it is a checkpoint of {article} {kind}); start training "
            "from it, for example with TextClassifier.from_checkpoint"
        )
    classes = checkpoint.description.head.get("num_classes")
    if labels is not None and classes is not None and len(labels) != classes:
        raise UserError(
            f"{path} has {classes} classes, but {len(labels)} labels were given; give one for "
            "each class, in the order of the logits, or none"
        )
    cls, tokenizer = family.model_class(), Tokenizer.from_checkpoint(checkpoint)
    options = {"dtype": dtype, "layout": layout}
    model = built(cls, checkpoint, path, labels, settings or {}, tokenizer, **options)
    check_head(checkpoint.fill(model, model.labels), model, path)
    model.settle()
    model.origin = origin_of(checkpoint, path)
    if model.origin.metrics:
        model.remember(model.origin.metrics)
    return model
