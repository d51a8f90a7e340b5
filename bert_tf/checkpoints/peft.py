"""Low-rank adapters in the files of the library peft: `adapter_config.json` and
`adapter_model.safetensors`.

A tensor has the name that transformers gives to a weight, with "base_model.model." before it. For
each updated weight there are `lora_A`, [rank, input], and `lora_B`, [output, rank]. The weights of
the head, which are trained too, are stored as they are. peft has no place for names of labels, so
bert_tf writes them into the metadata of the tensors, which peft ignores.
"""

import dataclasses
import json
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import keras
import numpy as np

from bert_tf.checkpoints import conversion, heads, huggingface, keys, plain_json, tensors
from bert_tf.checkpoints.checkpoint import listed
from bert_tf.checkpoints.correspondence import UNMAPPED
from bert_tf.checkpoints.description import describe
from bert_tf.checkpoints.huggingface_models import MODELS
from bert_tf.checkpoints.names import check_finite, weight_names
from bert_tf.console import logger
from bert_tf.errors import UserError
from bert_tf.io.atomic import atomic_path
from bert_tf.io.remote import fetched

CONFIG_FILE, WEIGHTS_FILE = "adapter_config.json", "adapter_model.safetensors"
_BIAS, _DECODER = "cls.predictions.bias", "cls.predictions.decoder"
_DOWN, _UP = "lora_A.weight", "lora_B.weight"
_PREFIX, _LABELS = "base_model.model.", "bert_tf.labels"


class Pair(NamedTuple):
    """The factors of an update of some columns of a kernel."""

    down: Any  # A, [input, rank]
    up: Any  # B, [rank, columns]


@dataclasses.dataclass(frozen=True)
class Updates:
    """Low-rank updates of an encoder's kernels; each is alpha / rank * A @ B."""

    rank: int
    alpha: float
    dropout: float
    # For each equal part of a kernel's columns, such as the query's, its update or None.
    pairs: Mapping[str, tuple[Pair | None, ...]]

    def add_to(self, variables: Mapping[str, keras.Variable]) -> None:
        for name, pairs in self.pairs.items():
            columns = np.split(variables[name].numpy(), len(pairs), axis=-1)
            for number, pair in enumerate(pairs):
                if pair is not None:
                    columns[number] += self.alpha / self.rank * (pair.down @ pair.up)
            variables[name].assign(np.concatenate(columns, axis=-1))


def of_head(model: Any) -> dict[str, keras.Variable]:
    """The weights that are trained besides an adapter, by our names."""
    # Outside of BERT, a pooler that the model reads is a part of the head, as in transformers.
    with_pooler = model.uses_pooler and model.encoder.config.model_type != "bert"
    pooler = "encoder/pooler/" if with_pooler else ()
    return {
        name: weight
        for name, weight in weight_names(model).items()
        if not name.startswith(("encoder/", "adapter/")) or name.startswith(pooler)
    }


def save(model: Any, folder: str | os.PathLike) -> None:
    """Writes the weights trained by the last `fit` with `lora`, as a new folder of peft.

    `adapter_config.json` and `adapter_model.safetensors` hold the updates and the head's weights.
    They are valid only with the encoder's weights from before that `fit`.

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
    description, weights = describe(model), weight_names(model)
    hub, table = MODELS[description.encoder.model_type], huggingface.TABLE
    architecture = huggingface.architecture_of(description, hub)
    rows = table.rows(description.model, description.encoder.num_hidden_layers)
    arrays: dict[str, np.ndarray] = {}
    for name, pairs in updates.pairs.items():
        if name not in rows:
            raise UserError(
                f"peft cannot store the adapter of {name}, since no model of transformers has that "
                "weight; save the whole model instead"
            )
        for theirs, pair in zip(rows[name].theirs, pairs, strict=True):
            if pair is not None:
                module = hub.own_weight(theirs, architecture).removesuffix("weight")
                arrays |= {module + _DOWN: pair.down.T, module + _UP: pair.up.T}
    modules = [name.removesuffix(f".{_DOWN}") for name in arrays if name.endswith(_DOWN)]
    named = table.write({n: w.numpy() for n, w in of_head(model).items()}, description)
    if _BIAS in named:  # peft stores the word embeddings again with a head that shares them
        words = weights["encoder/embeddings/word_embeddings"].numpy()
        named |= {f"{_DECODER}.weight": words, f"{_DECODER}.bias": named[_BIAS]}
    named = {hub.own_weight(name, architecture): array for name, array in named.items()}
    if own := tuple(name.removeprefix(UNMAPPED) for name in named if name.startswith(UNMAPPED)):
        logger.warning(f"peft does not read {listed(own)}; only bert_tf does")
    saved = dict.fromkeys(n.split(".")[0] for n in named if not n.startswith(UNMAPPED))
    fields = {
        "peft_type": "LORA",
        "r": updates.rank,
        "lora_alpha": updates.alpha,
        "lora_dropout": updates.dropout,
        "bias": "none",
        "inference_mode": True,
        "target_modules": modules,
        "modules_to_save": [*saved] or None,
    }
    metadata = {"format": "pt", _LABELS: json.dumps(description.labels)}
    with atomic_path(folder) as new:
        new.mkdir()
        plain_json.write(new / CONFIG_FILE, fields)
        arrays = {_PREFIX + name: array for name, array in (arrays | named).items()}
        tensors.save(new / WEIGHTS_FILE, arrays, metadata)


def load(model: Any, folder: str | os.PathLike) -> None:
    """Adds an adapter of the library peft, or of `save_adapter`, to the model's weights.

    The model must have the encoder's weights that the adapter was trained on. The head in the
    adapter, if there is one, replaces the model's. The names of ignored weights are printed.

    Args:
        folder: with `adapter_config.json` and `adapter_model.safetensors`.

    Raises:
        UserError: a file is missing or damaged, the adapter is of another kind, or it is for a
            model of other sizes or labels.
    """
    folder = fetched(folder)
    try:
        updates, others = _read(folder, model)
        _check_shapes(folder, _shapes_of_updates(updates, weight_names(model)))
        _name_classes(model, folder, others)
    except UserError:
        raise
    except (ValueError, TypeError, RecursionError) as error:
        raise UserError(f"{folder} is damaged ({error}); copy it again") from None
    variables = weight_names(model)
    shapes = {n: (a.shape, getattr(variables.get(n), "shape", ())) for n, a in others.items()}
    _check_shapes(folder, shapes)
    updates.add_to(variables)
    for name, array in others.items():
        variables[name].assign(array)
    model.updates = updates
    of_model = f"{listed(tuple(others))} loaded" if others else "it has no head"
    logger.info(f"{folder}: {len(updates.pairs)} weights of the encoder updated; {of_model}")


def _shapes_of_updates(updates: Updates, variables: Mapping[str, Any]) -> dict[str, tuple]:
    """The shapes that the factors of updates have, and those that the model needs."""
    shapes = {}
    for name, pairs in updates.pairs.items():
        rows, columns = variables[name].shape
        for pair in filter(None, pairs):
            shapes[f"A of {name}"] = pair.down.shape, (rows, updates.rank)
            shapes[f"B of {name}"] = pair.up.shape, (updates.rank, columns // len(pairs))
    return shapes


def _check_shapes(folder: Path, shapes: Mapping[str, tuple]) -> None:
    """Raises UserError if the two shapes of a pair, the found and the needed one, differ."""
    for name, (found, needed) in shapes.items():
        if found != needed:
            raise UserError(
                f"{folder}: {name} has shape {[*found]}, but the model needs {[*needed]}; load the "
                "adapter into the model that it was trained on"
            )


def _name_classes(model: Any, folder: Path, others: Mapping[str, np.ndarray]) -> None:
    """Gives a model without labels the labels of an adapter's head, by name or by number."""
    layers = heads.of(type(model).__name__).label_layers if model.has_labels else ()
    outputs = [len(others[f"{each}/bias"]) for each in layers if f"{each}/bias" in others]
    labels = tuple(json.loads(tensors.metadata(folder / WEIGHTS_FILE).get(_LABELS, "[]")))
    if outputs and not model.labels:
        model.name_classes(labels or range(outputs[0]))
    elif outputs and labels and labels != model.labels:
        raise UserError(
            f"{folder} has the labels {listed(labels)}, but the model has {listed(model.labels)}; "
            "load it into a model of the same labels, or of none"
        )


def _read(folder: Path, model: Any) -> tuple[Updates, dict[str, np.ndarray]]:
    """The updates of an adapter, and its other weights by our names."""
    path = folder / CONFIG_FILE
    fields = plain_json.read_object(path, "adapter configuration")
    notes = keys.check(path, fields, CONFIG_FILE)
    rank, alpha = fields.get("r"), fields.get("lora_alpha")
    if not (type(rank) is int and rank > 0 and isinstance(alpha, int | float) and 0 < alpha < 1e9):
        raise UserError(
            f"{path}: r is {rank!r} and lora_alpha {alpha!r}; they must be a rank of at least 1 "
            "and a positive number"
        )
    config = model.encoder.config
    hub, found = MODELS[config.model_type], tensors.open_file(folder / WEIGHTS_FILE)
    named = found.renamed({hub.bert_weight(n.removeprefix(_PREFIX)): n for n in found.shapes})
    pairs: dict[str, tuple[Pair | None, ...]] = {}
    others: dict[str, np.ndarray] = {}
    used: set[str] = set()

    def array(name: str) -> np.ndarray:
        used.add(name)
        value = np.asarray(named.read(name), np.float32)
        check_finite(value, name, folder)
        return value

    def pair(weight: str) -> Pair | None:
        both = [weight.removesuffix("weight") + factor for factor in (_DOWN, _UP)]
        return Pair(*(array(name).T for name in both)) if {*both} <= {*named.shapes} else None

    rows = huggingface.TABLE.rows(type(model).__name__, config.num_hidden_layers)
    own = (n.removeprefix(UNMAPPED) for n in named.shapes if n.startswith(UNMAPPED))
    for name, row in (rows | {n: huggingface.TABLE.without_row(n) for n in own}).items():
        if any(of_row := [pair(weight) for weight in row.theirs]):
            pairs[name] = tuple(of_row)
        if {*row.theirs} <= {*named.shapes}:
            others[name] = row.read(array)
    left = tuple(name for name in named.shapes if name not in used)
    if lost := [name for name in left if ".lora_" in name]:
        raise UserError(f"{folder / WEIGHTS_FILE}: the model has no place for {lost[0]}")
    if left or notes:
        ignored = [f"ignored: {listed(left)}"] if left else []
        logger.info(f"{folder}: " + "; ".join((*notes.values(), *ignored)))
    alpha *= math.sqrt(rank) if fields.get("use_rslora") else 1
    return Updates(rank, alpha, float(fields.get("lora_dropout") or 0), pairs), others
