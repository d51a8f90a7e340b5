"""Reading `.keras` files of task models as data of unknown origin.

Keras creates any object that the configuration in such a file names, of any size. So this module
first checks that the archive is sound, the configuration describes one model of a known family and
nothing else, and its sizes match the weights in the file.
"""

import io
import json
import math
import re
import stat
import tempfile
import typing
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import h5py
import keras

from bert_tf.checkpoints.checkpoint import listed
from bert_tf.checkpoints.description import encoder_config
from bert_tf.checkpoints.embedder import dense_shapes
from bert_tf.checkpoints.names import check_finite, encoder_shapes, weight_names
from bert_tf.checkpoints.plain_json import shown
from bert_tf.checkpoints.tensors import datasets
from bert_tf.console import logger
from bert_tf.encoder.config import EncoderConfig
from bert_tf.encoder.encoder import FACTORIES, Encoder
from bert_tf.errors import UserError
from bert_tf.io.files import check_there
from bert_tf.io.refusals import refusal
from bert_tf.models.encoder_model import EncoderModel
from bert_tf.tasks import registry

SUFFIX = ".keras"
FORMAT = 1  # the version of the configuration that `get_config` of a task model returns
_CONFIG, _WEIGHTS, _METADATA = "config.json", "model.weights.h5", "metadata.json"
_ASSET = re.compile(r"assets/[\w-]+(\.[\w-]+)*")
_PACKAGE = "bert_tf>"
_NOT_OURS = "does not hold a bert_tf model; load it with keras.saving.load_model"
_LONGEST = 2**24  # the maximum number of bytes of everything but the weights
# The largest factor by which an entry may grow when it is unpacked; Keras does not compress.
_MOST_EXPANSION = 20
_MOST_DEPTH = 100
_COUNTS = re.compile(r"^/optimizer/|/seed_generator[^/]*/")
_WEIGHTS_OF_LAYER = 12  # the least number of weights of an encoder's layer
_POLICIES = ("float32", "float16", "bfloat16", "float64", "mixed_float16", "mixed_bfloat16")
# A model may be compiled with the classes and functions of these modules, with those that other
# packages have registered, and with our own classes of these kinds.
_COMPILED = ("keras.optimizers", "keras.optimizers.schedules", "keras.losses", "keras.metrics")
_KINDS = (
    keras.optimizers.Optimizer,
    keras.optimizers.schedules.LearningRateSchedule,
    keras.losses.Loss,
    keras.metrics.Metric,
)
# The maximum size of all metrics together: some have a matrix with a row for each class.
_MOST_OF_METRICS = 2**24
_MOST_PARTS = 1000
# Regular expressions that take very long have a repeated group or many repeats.
_REPEAT, _REPEATED_GROUP, _MOST_REPEATS = re.compile(r"[*+{]"), re.compile(r"\)[*+{]"), 4
# The encoder, and nested arguments that their class checks itself.
_CHECKED_LATER = ("encoder", "prompts", "dense", "tokenizer_settings", "ranges")
_PLAIN = {bool, int, float, str, type(None)}


class _Damage(Exception):
    """A mistake in a file; the caller adds the path."""


def read(path: Path) -> keras.Model:
    """The model in a `.keras` file."""
    check_there(path)
    try:
        config, held = _checked(path)
        model = keras.saving.load_model(path, compile="compile_config" in config)
    except _Damage as error:
        raise UserError(f"{path} is damaged ({error}); save or copy it again") from None
    except UserError as error:
        raise UserError(str(error) if str(path) in str(error) else f"{path}: {error}") from None
    # The errors of zipfile, Keras, h5py and NumPy in a damaged file have no common class.
    except Exception as error:
        if (told := refusal(error)) is not None:  # Keras unpacks the assets into a temporary folder
            raise told from None
        # Keras begins with the number of parts that could not be loaded.
        why = re.sub(r"^A total of \d+ .*?\n\n", "", str(error), flags=re.DOTALL)
        first = " ".join((why or type(error).__name__).split())[:200]
        raise UserError(f"{path} is damaged ({first}); save or copy it again") from None
    if not getattr(model, "has_tokenizer", True):
        raise UserError(f"{path} is damaged (it holds no vocabulary); save or copy it again")
    for name, variable in weight_names(model).items():
        check_finite(variable.numpy(), name, path)
    if len(held) != len(model.weights):
        # Keras ignores weights that belong to no part of the model.
        with tempfile.TemporaryDirectory() as folder:
            model.save_weights(own := Path(folder) / "own.weights.h5")
            ignored = held - _names(own.read_bytes())
        if ignored:
            logger.warning(f"{path}: ignored: {listed(tuple(sorted(ignored)))}")
    return model


def _names(weights: bytes) -> set[str]:
    """The names of the weights in HDF5, without an optimizer's."""
    with h5py.File(io.BytesIO(weights), "r") as file:
        names = {each.name for each in datasets(file, len(weights))}
    return {name for name in names if not _COUNTS.search(name)}


def wrong_argument(cls: type[object], fields: Mapping[str, Any], **hints: Any) -> str | None:
    """Describes the first field whose value does not have the plain type of its hint, or None."""
    known = typing.get_type_hints(cls.__init__) | hints
    for name, value in fields.items():
        kinds = typing.get_args(known.get(name)) or (known.get(name),)
        is_one = type(value) in kinds or type(value) is int and float in kinds
        if {*kinds} <= _PLAIN and not is_one:
            return f"{name} has the unexpected value {shown(value)}"
    return None


def _checked(path: Path) -> tuple[dict[str, Any], set[str]]:
    """The configuration of the model and the names of its weights, if the file may be opened."""
    with zipfile.ZipFile(path) as archive:
        _check_entries(path, archive)
        # Reading a whole entry verifies its checksum, which Keras does not.
        contents = {each.filename: archive.read(each) for each in archive.infolist()}
    config = json.loads(contents[_CONFIG])
    if not isinstance(config, dict) or not isinstance(config.get("config"), dict):
        raise _Damage("its configuration does not describe a model")
    name, fields = config.get("registered_name"), config["config"]
    is_ours = isinstance(name, str) and name.startswith(_PACKAGE)
    if not is_ours and _class_of(config) is None:
        raise UserError(f"{path} {_NOT_OURS}")
    written = fields.get("format", FORMAT)
    if type(written) is int and written > FORMAT:
        # This check comes first, since the other fields may be unknown here.
        raise UserError(
            f"{path} was saved by a later bert_tf (format {written}); update bert_tf to load it"
        )
    list(_nodes(config))
    encoder = fields
    if not issubclass(_check_model(path, config, (EncoderModel, Encoder)), Encoder):
        _check_model(path, fields.get("encoder"), (Encoder,))
        encoder = fields["encoder"]["config"]
    _check_compiled(path, config.get("compile_config"))
    sizes = encoder_config(encoder["config"], path)
    # The sizes of another architecture's layers are unknown here.
    if all(str(encoder.get(part, _PACKAGE)).startswith(_PACKAGE) for part in FACTORIES):
        _check_sizes(sizes, fields, contents[_WEIGHTS])
    return config, _names(contents[_WEIGHTS])


def _check_entries(path: Path, archive: zipfile.ZipFile) -> None:
    entries = archive.infolist()
    names = [entry.filename for entry in entries]
    missing = [name for name in (_CONFIG, _WEIGHTS) if name not in names]
    if missing:
        raise UserError(
            f"{path} is not the .keras file of a model: it has no {missing[0]}; give a file that "
            "model.save wrote"
        )
    for name in names:
        if name.startswith("assets/layers/"):  # such as those of a HubLayer
            raise UserError(f"{path} {_NOT_OURS}")
        if name not in (_CONFIG, _WEIGHTS, _METADATA) and not _ASSET.fullmatch(name):
            raise _Damage(f"{shown(name)} does not belong to a model")
    if len({*names}) < len(names):
        raise _Damage("it contains a file twice")
    if sum(entry.file_size for entry in entries if entry.filename != _WEIGHTS) > _LONGEST:
        raise _Damage("its configuration or its vocabulary is too long")
    if sum(entry.compress_size for entry in entries) > path.stat().st_size:
        raise _Damage("its list of files gives them more bytes than it has")
    for entry in entries:
        if stat.S_ISLNK(entry.external_attr >> 16):
            raise _Damage(f"{entry.filename} is a link")
        if entry.file_size > max(entry.compress_size, 1) * _MOST_EXPANSION:
            raise _Damage(f"{entry.filename} is too large when unpacked")


def _nodes(value: Any, depth: int = 0) -> Iterator[dict[str, Any]]:
    if depth > _MOST_DEPTH:
        raise _Damage("its configuration is nested too deeply")
    if isinstance(value, dict):
        yield value
    inside = value.values() if isinstance(value, dict) else value
    for each in inside if isinstance(value, dict | list) else ():
        yield from _nodes(each, depth + 1)


def _check_model(path: Path, node: Any, kinds: tuple[type, ...]) -> type:
    """The class of a node, which must be a model of a known family or an encoder."""
    if not isinstance(node, dict) or not isinstance(node.get("config"), dict):
        raise _Damage("its configuration does not describe a model")
    cls = _class_of(node)
    # Keras gives some class names a meaning of their own, whatever the registered name is.
    if cls is None or not issubclass(cls, kinds) or node.get("class_name") != cls.__name__:
        raise _refusal(path, node)
    for key, value in node["config"].items():
        if key in _CHECKED_LATER or issubclass(cls, Encoder) and key == "config":
            continue
        if key == "dtype":
            _check_policy(path, value)
        elif key in ("labels", "frozen"):
            if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
                raise _Damage(f"{key} is not a list of texts")
        elif (
            isinstance(value, dict)
            or isinstance(value, list)
            and not all(isinstance(each, str | int | float) for each in value)
        ):
            raise _Damage(f"{shown(key)} has an unexpected value")
    if issubclass(cls, Encoder) and not isinstance(node["config"].get("config"), dict):
        raise _Damage("it has no encoder sizes")
    own: dict[str, Any] = {"trainable": bool, "name": str}
    if registry.family_of(cls.__name__) is not None:
        own |= {
            "vocabulary": str | None,
            "lower_case": bool,
            "tokenizer_settings": dict,
            "format": int,
        }
    if wrong := wrong_argument(cls, node["config"], **own):
        raise _Damage(wrong)
    return cls


def _class_of(node: Mapping[str, Any]) -> type | None:
    name, class_name = node.get("registered_name"), node.get("class_name")
    if not isinstance(name, str) or not isinstance(class_name, str):
        return None
    if (family := registry.family_of(class_name)) is not None:
        family.model_class()  # the import registers the class with Keras
    cls = keras.saving.get_custom_objects().get(name)
    return cls if isinstance(cls, type) and issubclass(cls, (EncoderModel, Encoder)) else None


def _check_policy(path: Path, value: Any) -> None:
    name = value
    if isinstance(value, dict):
        if (value.get("module"), value.get("class_name")) != ("keras", "DTypePolicy"):
            raise _refusal(path, value)
        _check_plain(value)
        inner = value.get("config")
        name = inner.get("name") if isinstance(inner, dict) and len(inner) == 1 else None
    if name not in _POLICIES:
        raise _Damage(f"{shown(name)} is not a dtype")


def _check_compiled(path: Path, config: Any) -> None:
    """Raises an error if a model was compiled with anything but optimizers, losses and metrics."""
    registered = keras.saving.get_custom_objects()
    parts = list(_nodes(config))
    metrics = [each for each in parts if each.get("module") == "keras.metrics"]
    numbers = sum(_largest(each.get("config")) ** 2 for each in metrics)
    if len(parts) > _MOST_PARTS or numbers > _MOST_OF_METRICS:
        raise _Damage("it has too many compile settings")
    for node in parts:
        _check_patterns(node)
        if "class_name" not in node and "registered_name" not in node:
            continue
        _check_plain(node)
        module, class_name = node.get("module"), node.get("class_name")
        name = node.get("registered_name")
        is_function = class_name == "function" and isinstance(node.get("config"), str)
        if isinstance(name, str) and name in registered:
            found = registered[name]
            # Objects that the program has registered itself are trusted.
            is_known = not name.startswith(_PACKAGE) or (
                isinstance(found, type) and issubclass(found, _KINDS)
            )
            if not is_known or name.rpartition(">")[2] != class_name and not is_function:
                raise _refusal(path, node)
        elif is_function and module in ("builtins", *_COMPILED):
            pass
        elif class_name == "DTypePolicy":
            _check_policy(path, node)
        elif (
            module not in _COMPILED
            or not isinstance(node.get("config"), dict)
            or not isinstance(class_name, str)
            or not class_name.isidentifier()
            or "__" in class_name
        ):
            raise _refusal(path, node)


def _check_plain(node: Mapping[str, Any]) -> None:
    """Raises an error if Keras would build or compile a part while creating that part."""
    if node.get("build_config") or node.get("compile_config"):
        raise _Damage(f"{shown(node.get('class_name'))} is an unexpected class")


def _check_patterns(node: Mapping[str, Any]) -> None:
    """Raises an error if an optimizer has regular expressions that may take very long."""
    for key in ("exclude_from_weight_decay", "rate_factors"):
        for pattern in map(str, node.get(key) or ()):
            if len(_REPEAT.findall(pattern)) > _MOST_REPEATS or _REPEATED_GROUP.search(pattern):
                raise _Damage(
                    f"{key} has the pattern {shown(pattern)}, which may take very long to match"
                )


def _largest(value: Any) -> int:
    if isinstance(value, dict):
        value = [*value.values()]
    if isinstance(value, list):
        return max(map(_largest, value), default=0)
    return abs(value) if type(value) is int else 0


def _refusal(path: Path, node: Mapping[str, Any]) -> UserError:
    name = shown(node.get("class_name"))
    if node.get("class_name") in ("__lambda__", "Lambda"):
        return UserError(f"{path} contains code ({name}), which bert_tf never runs; do not load it")
    return UserError(
        f"{path} names {name} of {shown(node.get('module'))}, which is not part of a "
        "bert_tf model; do not load the file, unless it is your own and you register the class "
        "with keras.saving.register_keras_serializable"
    )


def _check_sizes(config: EncoderConfig, fields: Mapping[str, Any], weights: bytes) -> None:
    """Raises an error if a model needs more weights than the file holds."""
    with h5py.File(io.BytesIO(weights), "r") as file:
        found = datasets(file, len(weights))
        sizes = [each.size for each in found]
        for each in found:
            # An optimizer counts its steps, and a generator of random numbers its draws.
            if each.dtype.kind not in "fV" and not _COUNTS.search(each.name):
                raise _Damage(f"the weight {each.name} is of type {each.dtype}")
    layers, held = config.num_hidden_layers, sum(sizes)
    # The pooler may be missing.
    width, labels = config.output_size, len(fields.get("labels", ()))
    around, with_one = (
        sum(map(math.prod, encoder_shapes(config, layers).values())) for layers in (0, 1)
    )
    least = around + layers * (with_one - around) - (width**2 + width)
    if fields.get("features") is None:
        least += labels * width
    else:
        units = fields.get("lstm_units", 0)
        if type(units) is not int or units < 1:
            raise _Damage(f"lstm_units has the unexpected value {shown(units)}")
        least += 8 * units * (width + units) + 8 * units * 3 * units + labels * 2 * units
    dense = dense_shapes(width, fields.get("pooling", "mean"), fields.get("dense", ()))
    least += sum(map(math.prod, dense.values()))
    if least > held or layers * _WEIGHTS_OF_LAYER > len(sizes):
        raise _Damage(f"its sizes require more than the {held} weights in it")
