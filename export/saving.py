"""Writing models as SavedModels that take strings."""

import contextlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, get_args

import keras

from bert_tf.atomic import atomic_path
from bert_tf.errors import UserError
from bert_tf.export import hub
from bert_tf.export.embedding import EmbeddingService
from bert_tf.export.masked_lm import MaskedLMService
from bert_tf.export.model_card import Origin
from bert_tf.export.next_sentence import NextSentenceService
from bert_tf.export.precision import in_precision
from bert_tf.export.saved_model import write
from bert_tf.export.served_model import Form, ServedModel
from bert_tf.export.service import ModelService, Service, Signature
from bert_tf.models import Encoder, PreTrainer
from bert_tf.text import Tokenizer

# What an encoder or a pre-trained model is served as; "task" is what a task model was trained for.
Kind = Literal["task", "hub", "mlm", "nsp", "embedding"]
KINDS: tuple[str, ...] = get_args(Kind)


class TaskService(ModelService):
    """What is served of a task model: its own signatures.

    Args:
        model: a task model.
        network: computes its outputs, with weights that are frozen or stored for serving.
    """

    def __init__(self, model: Any, network: ServedModel):
        super().__init__(network, model.tokenizer, model.labels)
        self._signatures = model.signatures(network)

    def signatures(self) -> dict[str, Signature]:
        """See `Service`."""
        return self._signatures


def save_task(
    model: Any,
    out: str | os.PathLike,
    form: Form | None = None,
    version: int | None = None,
) -> Path:
    """Writes a task model as a SavedModel; see `TaskModel.export`.

    Returns:
        The folder that was written: `out`, or in it the one of the version.
    """
    services = {"": TaskService(model, ServedModel(model, form))}
    return save(services, out, version, model.origin)


def save_kind(
    model: keras.Model,
    tokenizer: Tokenizer,
    out: str | os.PathLike,
    kind: Kind,
    form: Form | None = None,
    version: int | None = None,
    origin: Origin | None = None,
    **options: Any,
) -> Path:
    """Writes an encoder, or a pre-trained model, as a SavedModel.

    Args:
        model: an `Encoder`, or any model with one.
        tokenizer: the tokenizer it was trained with.
        out: the folder to write; it must not exist yet.
        kind: "mlm" and "nsp" serve the heads of a `PreTrainer`; "embedding" serves the encoder, and
            "hub" writes it as the folders `preprocessor` and `encoder`, as TF Hub has them.
        form: how it computes; of kind "hub" nothing but the precision can be chosen.
        version: write the folder of this number in `out`, as TensorFlow Serving expects.
        origin: what the model card says of the model's making.
        **options: `max_length`, tokens of a text or of a window of a longer one: by default as many
            as the model has positions. Of kind "embedding" `pooling`: "mean" (the default), "cls"
            or "pooled". Of kind "mlm" `top_k`, pieces to give (5).

    Returns:
        The folder that was written: `out`, or in it the one of the version; of "hub" the folder
        that holds both.

    Raises:
        UserError: a model that cannot be exported so, a tokenizer or a length that do not fit it,
            or a folder that exists or cannot be written.
    """
    services = _services(model, tokenizer, kind, form or Form(), options)
    return save(services, out, version, origin)


def save(
    services: Mapping[str, Service],
    out: str | os.PathLike,
    version: int | None = None,
    origin: Origin | None = None,
) -> Path:
    """Writes what is served into folders of `out`, "" being `out` itself; all of them or none.

    Raises:
        UserError: a version that is no number from 1, or a folder that exists or cannot be written.
    """
    if version is not None and version < 1:
        raise UserError(f"version {version} is not a number from 1")
    folder = Path(out)
    for name in services:
        # Path.exists raises an error for a name that is too long; writing there explains it.
        if os.path.exists(place := _place(folder, name, version)):
            raise UserError(f"{place} exists already; remove it or choose another folder")
        if os.path.exists(whole := _place(folder, name, None) / "saved_model.pb"):
            raise UserError(
                f"{whole.parent} is an export without versions; choose another folder for them"
            )
    # Of the two folders of a pair none appears before both are written.
    with contextlib.ExitStack() as stack:
        for name, service in services.items():
            new = stack.enter_context(atomic_path(_place(folder, name, version)))
            write(service, new, origin or Origin())
    return _place(folder, "", version) if "" in services else folder


def check_kind(model: keras.Model, kind: Kind) -> None:
    """Raises UserError where a model cannot be served as `kind`, which is none of a task."""
    if kind not in KINDS or kind == "task":
        known = ", ".join(each for each in KINDS if each != "task")
        raise UserError(f"unknown kind {kind!r}; choose one of {known}")
    if kind in ("mlm", "nsp") and not isinstance(model, PreTrainer):
        raise UserError(
            f"this {type(model).__name__} has no pre-training head for --kind {kind}; give a "
            "pre-training run, or a checkpoint with its heads"
        )


def _services(
    model: keras.Model,
    tokenizer: Tokenizer,
    kind: Kind,
    form: Form,
    options: dict[str, Any],
) -> dict[str, Service]:
    """Folder in the output -> what it is to serve; "" is the output itself."""
    check_kind(model, kind)
    encoder = getattr(model, "encoder", model)
    if not isinstance(encoder, Encoder):
        raise UserError(f"there is no encoder in a {type(model).__name__}; give a model of bert_tf")
    # Otherwise texts would become ids or rows that the model has no embeddings for.
    encoder.config.check_vocabulary(tokenizer.vocab_size)
    encoder.config.check_length("max_length", options.get("max_length") or 0)
    if kind == "embedding" or kind == "hub" and not isinstance(model, PreTrainer):
        model = encoder
    if kind == "hub":
        if form.freeze:
            raise UserError("--freeze is not for --kind hub, whose encoder is there to be trained")
        return hub.pair(in_precision(model, form.precision), tokenizer, **options)
    services = {"mlm": MaskedLMService, "nsp": NextSentenceService, "embedding": EmbeddingService}
    served = ServedModel(model, form)
    return {"": services[kind](served, tokenizer, **options)}


def _place(out: Path, name: str, version: int | None) -> Path:
    """Where a SavedModel goes. A version is its own last folder, as servers look for it."""
    return out / name / ("" if version is None else str(version))
