"""Finding out what is at a path, and opening it as the right object."""

import os
from collections.abc import Mapping, Sequence
from typing import Any

import keras

from bert_tf.asking.frozen import FrozenTask, frozen_kind
from bert_tf.checkpoints import native
from bert_tf.console import logger
from bert_tf.errors import UserError
from bert_tf.export.model_card import Origin
from bert_tf.io.remote import fetched
from bert_tf.io.vocabulary import fitted
from bert_tf.tasks import from_checkpoint, keras_files
from bert_tf.tasks.task_model import TaskModel
from bert_tf.text import Tokenizer

_PAIR = ("preprocessor", "encoder")  # the folders of an export of kind hub


def load(
    path: str | os.PathLike,
    *,
    labels: Sequence[str | int] | None = None,
    dtype: str | keras.DTypePolicy | None = None,
    layout: str = "unpadded",
    **settings: Any,
) -> TaskModel | FrozenTask:
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
        A task model; for a SavedModel or a LiteRT file a `bert_tf.asking.frozen.FrozenTask`, which
        answers and cannot be trained.

    Raises:
        UserError: there is nothing at `path`, it is damaged, or it has no head of a task.
    """
    if kind := frozen_kind(path):
        if settings or labels is not None or dtype is not None:
            raise UserError(f"{path} is a {kind}, whose settings are fixed; give the path alone")
        return FrozenTask.load(path)
    return load_model(path, labels, settings, dtype=dtype, layout=layout)


def load_model(
    path: str | os.PathLike,
    labels: Sequence[str | int] | None = None,
    settings: Mapping[str, Any] | None = None,
    *,
    dtype: str | keras.DTypePolicy | None = None,
    layout: str = "unpadded",
) -> TaskModel:
    """Like `load`, but without SavedModels and LiteRT files."""
    place = fetched(path, without=native.CHECKPOINTS)
    if all(os.path.isdir(place / name) for name in _PAIR):
        raise UserError(
            f"{path} holds a preprocessor and an encoder for TF Hub, which cannot predict; load "
            "each with hub.load, or export another kind"
        )
    is_whole = labels is None and dtype is None and layout == "unpadded" and not settings
    if place.suffix == keras_files.SUFFIX and is_whole:
        model = keras_files.read(place)
        if getattr(model, "has_tokenizer", False):
            # As it was saved, the compiled optimizer and frozen layers included.
            fitted(model.tokenizer.vocabulary, model.encoder.config.vocab_size, path)
            model.origin = Origin(source=str(path))
            return model
    checkpoint = from_checkpoint.find(path)
    family = from_checkpoint.family_at(checkpoint)
    if family is None:
        kind = checkpoint.description.model
        article = "an" if kind[0] in "AEIOU" else "a"
        what = "; ".join(checkpoint.notes) or f"it is a checkpoint of {article} {kind}"
        raise UserError(
            f"{path} has no task head ({what}); start training from it, for example with "
            "TextClassifier.from_checkpoint"
        )
    classes = checkpoint.description.head.get("num_classes")
    if labels is not None and classes is not None and len(labels) != classes:
        raise UserError(
            f"{path} has {classes} classes, but {len(labels)} labels were given; give one for "
            "each class, in the order of the logits, or none"
        )
    cls, tokenizer = family.model_class(), Tokenizer.from_checkpoint(checkpoint)
    options = {"dtype": dtype, "layout": layout}
    model = from_checkpoint.built(
        cls, checkpoint, path, labels, settings or {}, tokenizer, **options
    )
    report = checkpoint.fill(model, model.labels)
    from_checkpoint.check_head(report, model, path)
    from_checkpoint.say(report, path)
    if checkpoint.table.format != native.TABLE.format:
        logger.info(f"{path}: reads {from_checkpoint.length_read(model)}, special ones included")
    model.pair = bool(model.pair)  # None, an open choice in a checkpoint, means single texts
    model.origin = from_checkpoint.origin_of(checkpoint, path)
    if model.origin.metrics:
        model.remember({**model.origin.metrics, **(settings or {})})
    return model
