"""Opening checkpoints as task models with their settings, labels and weights."""

import inspect
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import keras

from bert_tf.asking.record import is_saved_model
from bert_tf.checkpoints import native, of_run, reading, tensors
from bert_tf.checkpoints.checkpoint import Checkpoint, LoadReport, listed
from bert_tf.checkpoints.description import ENCODER, describe
from bert_tf.checkpoints.names import weight_names
from bert_tf.config.model import LONG_TEXT
from bert_tf.config.reading import load_config
from bert_tf.config.run import RunConfig
from bert_tf.console import logger
from bert_tf.encoder.ablations import encoder_for
from bert_tf.errors import UserError
from bert_tf.export.model_card import Origin
from bert_tf.io.json_files import read_json
from bert_tf.io.remote import local_path
from bert_tf.models.encoder_model import EncoderModel
from bert_tf.models.pretrainer import PreTrainer
from bert_tf.tasks import keras_files, registry
from bert_tf.tasks.family import TaskFamily
from bert_tf.text import Tokenizer

Model = TypeVar("Model", bound=EncoderModel)

_PRETRAINED = "MaskedLM"  # the class for checkpoints of pre-training
_POOLER = "encoder/pooler/"
# Settings of an embedder that apply to a head on its vectors too.
OF_VECTORS = ("pooling", "normalize")
# Arguments of constructors that are not settings.
_NO_SETTINGS = ("self", "encoder", "tokenizer", "labels", "kwargs")


def find(path: str | os.PathLike) -> Checkpoint:
    """The checkpoint at `path`, which may also be a `.keras` file; see `reading.find`."""
    if Path(path).suffix != keras_files.SUFFIX:
        try:
            checkpoint = reading.find(path)
        except UserError:
            # SavedModels that are not encoders of TF Hub.
            is_onnx = Path(path).suffix == ".onnx"
            if is_saved_model(path) or is_onnx:
                kind = "an ONNX file" if is_onnx else "a SavedModel"
                raise UserError(
                    f"{path} is {kind} of answers, and its weights cannot be read; give the run or "
                    "the checkpoint that it was exported from"
                ) from None
            raise
        _check_known_model(checkpoint, path)
        return checkpoint
    model = keras_files.read(local_path(path))
    # An encoder and a pre-trainer read no strings.
    tokenizer = model.tokenizer if getattr(model, "has_tokenizer", False) else None
    arrays = {name: variable.numpy() for name, variable in weight_names(model).items()}
    return Checkpoint(
        local_path(path),
        describe(model, tokenizer),
        tensors.of_arrays(arrays),
        native.TABLE,
        lambda: None if tokenizer is None else tokenizer.vocabulary,
    )


def family_at(checkpoint: Checkpoint) -> TaskFamily | None:
    """The family whose model the checkpoint becomes; None if it has no head."""
    kind = checkpoint.description.model
    return registry.family_of(_PRETRAINED if kind == PreTrainer.__name__ else kind)


def build(checkpoint: Checkpoint, path: str | os.PathLike, **encoder_options: Any) -> keras.Model:
    """The model that the checkpoint describes, with new weights, of dtype and layout in the
    options. It is an `Encoder`, a `PreTrainer` or a task model without a tokenizer, and takes ids.
    """
    description = checkpoint.description
    if (family := registry.family_of(description.model)) is not None:
        cls = family.model_class()
        return built(cls, checkpoint, path, None, {}, None, **encoder_options)
    if description.model == ENCODER:
        return encoder_for(description.encoder, **encoder_options)
    _check_known_model(checkpoint, path)
    known = _known(PreTrainer, description.head, path)
    return PreTrainer(encoder_for(description.encoder, **encoder_options), **known)


def lacks_pooler(report: LoadReport) -> bool:
    """Whether the model has a pooler, but the checkpoint has no weights for it."""
    return any(name.startswith(_POOLER) for name in report.new)


def check_head(
    report: LoadReport, model: keras.Model, path: str | os.PathLike, uses_pooler: bool | None = None
) -> None:
    """Raises UserError if the checkpoint lacks a weight that answers depend on."""
    others = tuple(name for name in report.new if not name.startswith(_POOLER))
    if others:
        raise UserError(f"{path} lacks the weights {listed(others)}; give a complete checkpoint")
    if lacks_pooler(report) and (model.uses_pooler if uses_pooler is None else uses_pooler):
        raise UserError(
            f"{path} has no pooler, but the head of a {type(model).__name__} reads its output; "
            "give a complete checkpoint"
        )


def length_read(model: Any) -> str:
    """How much of an input a model reads, in words."""
    cuts = model.cuts_texts and model.long_text != "windows"
    return f"{model.max_length} tokens of {'an input' if cuts else 'each window of an input'}"


def say(report: LoadReport, path: str | os.PathLike) -> None:
    """Prints a report, unless it only says that everything was loaded."""
    if report.ignored or report.notes:
        logger.info(f"{path}: {report}")


def _check_known_model(checkpoint: Checkpoint, path: str | os.PathLike) -> None:
    model = checkpoint.description.model
    if model not in (ENCODER, PreTrainer.__name__) and registry.family_of(model) is None:
        raise UserError(
            f"{path} names an unknown model {model!r}, perhaps of another version of bert_tf, or "
            "of a package that is not installed; Encoder.from_checkpoint loads the encoder alone"
        )


def built(
    cls: type[Model],
    checkpoint: Checkpoint,
    path: str | os.PathLike,
    labels: Sequence[str | int] | None,
    settings: Mapping[str, Any],
    tokenizer: Tokenizer | None,
    **encoder_options: Any,
) -> Model:
    """A model of class `cls`, with the settings of the checkpoint if it is of the same task."""
    description = checkpoint.description
    family = registry.family_of(description.model)
    if family is not None and issubclass(family.model_class(), cls):
        cls = family.model_class()
    cls = registry.class_for(cls, settings)
    arguments = _arguments(cls)
    for name in settings:
        if name not in arguments:
            raise UserError(
                f"a {cls.__name__} has no setting {name!r}; the settings are {', '.join(arguments)}"
            )
    known: dict[str, Any] = {}
    # A multi-label classifier may be opened from a classifier.
    if family is not None and issubclass(cls, family.model_class()):
        known = _known(cls, description.head | description.settings, path)
        classes = known.pop("num_classes", None)
        if labels is None and classes:
            known = cls.named_outputs(description.labels, classes) | known
        if "long_text" in settings:  # overrides the settings of long texts in the checkpoint
            known = {name: v for name, v in known.items() if name not in LONG_TEXT}
        if cls.cuts_texts:
            # A trained head reads as much as its encoder can, unless the files say otherwise.
            known = {"max_length": description.encoder.max_position_embeddings} | known
    named: dict[str, Any] = {} if labels is None else {"labels": labels}
    if labels is not None and not cls.has_labels:
        raise UserError(f"labels are for classes, but a {cls.__name__} has none; remove them")
    encoder = encoder_for(description.encoder, **encoder_options)
    # The constructors of subclasses have other arguments than that of `TaskModel`.
    make: Callable[..., Model] = cls
    try:
        model = make(encoder, tokenizer, **named, **known | dict(settings))
        if not known and hasattr(model, "of_embedder"):
            stored = description.settings
            model.of_embedder = {name: stored[name] for name in OF_VECTORS if name in stored}
        return model
    except UserError:
        raise
    except (TypeError, ValueError) as error:
        raise UserError(
            f"{path}: a {cls.__name__} cannot be created from {known}: {error}"
        ) from None


def _known(cls: type[object], fields: Mapping[str, Any], path: str | os.PathLike) -> dict[str, Any]:
    known = {*_arguments(cls), "num_classes"}
    for name in fields:
        if name not in known:
            raise UserError(f"{path}: {cls.__name__} has no argument {name!r}")
    if wrong := keras_files.wrong_argument(cls, fields, num_classes=int | None):
        raise UserError(f"{path} is damaged ({wrong}); copy it again")
    return dict(fields)


def _arguments(cls: type[object]) -> list[str]:
    """The settings of a constructor, and those that it passes on to that of another task."""
    classes = (each for each in cls.__mro__ if each is cls or registry.family_of(each.__name__))
    makers = (each.__init__ for each in classes)  # type: ignore[misc]
    names = [name for each in makers for name in inspect.signature(each).parameters]
    return [name for name in dict.fromkeys(names) if name not in _NO_SETTINGS]


def origin_of(checkpoint: Checkpoint, path: str | os.PathLike) -> Origin:
    """The origin of the model; for a run also its configuration and its metrics."""
    run = of_run.run_of(checkpoint.folder)
    if run is None:
        return Origin(source=str(path))
    config = trained_with(run)
    file = run / of_run.METRICS_FILE  # the metrics are of the checkpoint that the run ends with
    is_last = file.is_file() and checkpoint.folder.samefile(of_run.kept(run))
    metrics = read_json(file) if is_last else None
    return Origin(str(path), config.task, config.model_dump(mode="json"), metrics)


def trained_with(run: Path) -> RunConfig:
    """The configuration that a run's final weights were trained with; of a search the best one."""
    best = run / of_run.BEST_FILE
    return load_config(best if best.exists() else run / of_run.RUN_FILE)
