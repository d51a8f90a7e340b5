"""Choosing how a model is served, and writing it."""

import contextlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, get_args

import keras

from bert_tf.atomic import atomic_path
from bert_tf.errors import UserError
from bert_tf.models import (
    Encoder,
    EncoderConfig,
    FeatureTagger,
    MultipleChoice,
    PreTrainer,
    SequenceClassifier,
    SpanClassifier,
    TokenClassifier,
)
from bert_tf.text import Tokenizer
from export import hub
from export.classification import ClassificationService
from export.embedding import EmbeddingService
from export.masked_lm import MaskedLMService
from export.model_card import Origin
from export.multiple_choice import MultipleChoiceService
from export.next_sentence import NextSentenceService
from export.precision import in_precision
from export.question_answering import QuestionAnsweringService
from export.regression import RegressionService
from export.saved_model import write
from export.served_model import ServedModel
from export.service import Service
from export.token_classification import TokenClassificationService

Kind = Literal["task", "hub", "mlm", "nsp", "embedding"]
KINDS: tuple[str, ...] = get_args(Kind)

# How a model is served for what it was fine-tuned to do.
_SERVICES: dict[type[keras.Model], type[Service]] = {
    SequenceClassifier: ClassificationService,
    MultipleChoice: MultipleChoiceService,
    SpanClassifier: QuestionAnsweringService,
    TokenClassifier: TokenClassificationService,
    FeatureTagger: TokenClassificationService,
}


def save(
    model: keras.Model,
    tokenizer: Tokenizer,
    out: str | os.PathLike,
    labels: Sequence[str] = (),
    *,
    kind: Kind = "task",
    precision: str | None = None,
    freeze: bool = False,
    version: int | None = None,
    origin: Origin | None = None,
    **options: Any,
) -> Path:
    """Writes `model` as a SavedModel that takes strings; see the package for its use.

    Args:
        model: a fitted model of bert_tf.
        tokenizer: the tokenizer it was fitted with.
        out: the folder to write; it must not exist yet.
        labels: names of the classes, where the model has classes, in the order of the logits; by
            default their numbers.
        kind: "task" serves what a task model was fine-tuned for; "mlm" and "nsp" serve a
            `PreTrainer`'s heads; "embedding" serves the encoder of any model, and "hub" writes it
            as the folders `preprocessor` and `encoder`, as TF Hub has them.
        precision: "float32" or "bfloat16"; by default the one that the model computes in.
        freeze: make the weights constants, in that precision.
        version: write the folder of this number in `out`, as TensorFlow Serving wants it.
        origin: what the model card is to tell of the model's making.
        **options: `max_length`, tokens of a text or of a window of a longer one: by default as many
            as the model has positions, for questions at most 384. `pair`, of classification and
            regression: whether they take two texts (False). `stride`, of questions (128) and tags:
            pieces from one window to the next. Of questions also `max_question_length` (64 pieces),
            `max_answer_length` (30 pieces), `n_best` (20), `unanswerable` (False) and
            `null_threshold` (0.0). Of kind "embedding" `pooling`: "mean" (the default), "cls" or
            "pooled". Of kind "mlm" `top_k`, pieces to tell (5).

    Returns:
        The folder that was written: `out`, or in it the one of the version; of "hub" the folder
        that holds both.

    Raises:
        UserError: a model that cannot be exported so, labels, a tokenizer or a length that do not
            fit it, or a folder that exists or cannot be written.
    """
    if version is not None and version < 1:
        raise UserError(f"version {version} is not a number from 1")
    services = _services(model, tokenizer, tuple(labels), kind, precision, freeze, options)
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
    return folder if kind == "hub" else _place(folder, "", version)


def service_of(model: keras.Model, kind: Kind = "task") -> type[Service]:
    """What serves a model; `kind` is any but "hub". Raises UserError where there is nothing."""
    cls = type(model)
    if kind in ("mlm", "nsp"):
        if not issubclass(cls, PreTrainer):
            raise UserError(
                f"this {cls.__name__} has no pre-training head for --kind {kind}; give a "
                "pre-training run, or a checkpoint with its heads"
            )
        return MaskedLMService if kind == "mlm" else NextSentenceService
    if kind == "embedding":
        return EmbeddingService
    if issubclass(cls, SequenceClassifier) and model.num_classes == 1:
        return RegressionService
    service = next((_SERVICES[each] for each in cls.__mro__ if each in _SERVICES), None)
    if service is None:
        others = "hub or embedding"
        if issubclass(cls, PreTrainer):
            others = ("mlm, " if model.next_sentence is None else "mlm, nsp, ") + others
        raise UserError(
            f"this {cls.__name__} was not fine-tuned for a task; choose --kind {others}"
        )
    return service


def _services(
    model: keras.Model,
    tokenizer: Tokenizer,
    labels: tuple[str, ...],
    kind: Kind,
    precision: str | None,
    freeze: bool,
    options: dict[str, Any],
) -> dict[str, Service]:
    """Folder in the output -> what it is to serve; "" is the output itself."""
    if kind not in KINDS:
        raise UserError(f"unknown kind {kind!r}; choose one of {', '.join(KINDS)}")
    encoder = _encoder_of(model)
    service = Service if kind == "hub" else service_of(model, kind)
    if labels and not service.has_labels:
        raise UserError(
            f"labels are given for an export without classes, kind {kind} of this "
            f"{type(model).__name__}; leave them out"
        )
    _check_fit(encoder.config, tokenizer, options.get("max_length"))
    if kind == "embedding" or kind == "hub" and not isinstance(model, PreTrainer):
        model = encoder
    if kind == "hub":
        if freeze:
            raise UserError("--freeze is not for --kind hub, whose encoder is there to be trained")
        return hub.pair(in_precision(model, precision), tokenizer, **options)
    served = ServedModel(in_precision(model, precision), freeze)
    named = {"labels": labels} if service.has_labels else {}
    return {"": service(served, tokenizer, **named, **options)}


def _encoder_of(model: keras.Model) -> Encoder:
    """The encoder of a model, or the model itself if it is one."""
    encoder = getattr(model, "encoder", model)
    if not isinstance(encoder, Encoder):
        raise UserError(f"there is no encoder in a {type(model).__name__}; give a model of bert_tf")
    return encoder


def _check_fit(config: EncoderConfig, tokenizer: Tokenizer, max_length: int | None) -> None:
    """Raises UserError where texts become ids or rows that the model has no embeddings for."""
    if tokenizer.vocab_size > config.vocab_size:
        raise UserError(
            f"the tokenizer has {tokenizer.vocab_size} pieces, the model {config.vocab_size}; give "
            "the tokenizer that it was trained with"
        )
    longest = config.max_position_embeddings
    if max_length is not None and max_length > longest:
        raise UserError(
            f"max_length {max_length} is longer than the model's {longest} positions; lower it to "
            f"{longest}"
        )


def _place(out: Path, name: str, version: int | None) -> Path:
    """Where a SavedModel goes. A version is its own last folder, as servers look for it."""
    return out / name / ("" if version is None else str(version))
