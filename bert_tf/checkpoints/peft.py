"""Low-rank adapters in the files of the library peft: `adapter_config.json` and
`adapter_model.safetensors`.

A tensor has the name that transformers gives to a weight, with "base_model.model." before it. For
each updated weight there are `lora_A`, [rank, input], and `lora_B`, [output, rank]; the weights of
the head, which are trained too, are there as they are. peft has no place for names of labels. They
are in the metadata of the tensors, which it ignores.
"""

import dataclasses
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import keras
import numpy as np

from bert_tf.checkpoints import huggingface, keys, plain_json, tensors
from bert_tf.checkpoints.checkpoint import listed
from bert_tf.checkpoints.correspondence import UNMAPPED
from bert_tf.checkpoints.description import Description
from bert_tf.checkpoints.huggingface_models import MODELS
from bert_tf.checkpoints.names import check_finite
from bert_tf.console import logger
from bert_tf.encoder.config import EncoderConfig
from bert_tf.errors import UserError

CONFIG_FILE, WEIGHTS_FILE = "adapter_config.json", "adapter_model.safetensors"
_BIAS, _DECODER = "cls.predictions.bias", "cls.predictions.decoder"
_PREFIX, _LABELS = "base_model.model.", "bert_tf.labels"


class Pair(NamedTuple):
    """The factors of an update of some columns of a kernel.

    Attributes:
        down: A, [input, rank].
        up: B, [rank, columns].
    """

    down: Any
    up: Any


@dataclasses.dataclass(frozen=True)
class Updates:
    """Low-rank updates of an encoder's kernels.

    Attributes:
        rank: of each update.
        alpha: each update is alpha / rank * A @ B.
        dropout: with which they were trained.
        pairs: our name of a kernel -> a pair of arrays for each equal part of its columns, such as
            those of query, key and value; None for a part without an update.
    """

    rank: int
    alpha: float
    dropout: float
    pairs: Mapping[str, tuple[Pair | None, ...]]

    def add_to(self, variables: Mapping[str, keras.Variable]) -> None:
        """Adds the updates to variables by our names."""
        for name, pairs in self.pairs.items():
            columns = np.split(variables[name].numpy(), len(pairs), axis=-1)
            for number, pair in enumerate(pairs):
                if pair is not None:
                    columns[number] += self.alpha / self.rank * (pair.down @ pair.up)
            variables[name].assign(np.concatenate(columns, axis=-1))


def write(
    folder: Path,
    description: Description,
    updates: Updates,
    others: Mapping[str, np.ndarray],
    words: np.ndarray,
) -> None:
    """Writes an adapter into an existing folder.

    Args:
        folder: the folder.
        description: of the model.
        updates: of its encoder.
        others: the weights that were trained as they are, by our names.
        words: the word embeddings, which peft stores again with a head that shares them.

    Raises:
        UserError: transformers has no model with these weights.
    """
    hub = MODELS[description.encoder.model_type]
    architecture = huggingface.architecture_of(description, hub)
    rows = huggingface.TABLE.rows(description.model, description.encoder.num_hidden_layers)
    arrays: dict[str, np.ndarray] = {}
    updated: list[str] = []
    for name, pairs in updates.pairs.items():
        if name not in rows:
            raise UserError(
                f"peft has no place for an adapter of {name}, which no model of transformers has; "
                "save the model instead"
            )
        for theirs, pair in zip(rows[name].theirs, pairs, strict=True):
            if pair is not None:
                module = hub.own_weight(theirs, architecture).removesuffix(".weight")
                updated.append(module)
                arrays |= {f"{module}.lora_A.weight": pair.down.T}
                arrays |= {f"{module}.lora_B.weight": pair.up.T}
    named = huggingface.TABLE.write(others, description)
    if _BIAS in named:
        named |= {f"{_DECODER}.weight": words, f"{_DECODER}.bias": named[_BIAS]}
    named = {hub.own_weight(name, architecture): array for name, array in named.items()}
    own = tuple(name.removeprefix(UNMAPPED) for name in named if name.startswith(UNMAPPED))
    if own:
        logger.warning(f"peft does not read {listed(own)}; only bert_tf does")
    metadata = {"format": "pt", _LABELS: json.dumps(description.labels)}
    arrays = {_PREFIX + name: array for name, array in (arrays | named).items()}
    tensors.save(folder / WEIGHTS_FILE, arrays, metadata)
    saved = dict.fromkeys(n.split(".")[0] for n in named if not n.startswith(UNMAPPED))
    fields = {
        "peft_type": "LORA",
        "task_type": None,
        "base_model_name_or_path": None,
        "r": updates.rank,
        "lora_alpha": updates.alpha,
        "lora_dropout": updates.dropout,
        "bias": "none",
        "fan_in_fan_out": False,
        "inference_mode": True,
        "target_modules": updated,
        "modules_to_save": [*saved] or None,
    }
    plain_json.write(folder / CONFIG_FILE, fields)


def read(
    folder: Path, model: str, encoder: EncoderConfig
) -> tuple[Updates, dict[str, np.ndarray], tuple[str, ...]]:
    """An adapter for a model of class `model`; what the model has no place for is printed.

    Returns:
        The updates, other weights by our names, and the names of the labels, () if there are none.

    Raises:
        UserError: a file is missing or damaged, the adapter is of another kind, or it updates
            weights that the model lacks.
    """
    path = folder / CONFIG_FILE
    fields = plain_json.read_object(path, "adapter configuration")
    notes = keys.check(path, fields, CONFIG_FILE)
    rank, alpha = fields.get("r"), fields.get("lora_alpha")
    if not (type(rank) is int and rank > 0 and isinstance(alpha, int | float) and alpha > 0):
        raise UserError(
            f"{path}: r is {rank!r} and lora_alpha {alpha!r}; they must be a rank of at least 1 "
            "and a positive number"
        )
    hub, found = MODELS[encoder.model_type], tensors.open_file(folder / WEIGHTS_FILE)
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
        both = [f"{weight.removesuffix('weight')}lora_{each}.weight" for each in "AB"]
        if not {*both} & {*named.shapes}:
            return None
        return Pair(*(array(name).T if name in named.shapes else np.zeros([0, 0]) for name in both))

    rows = huggingface.TABLE.rows(model, encoder.num_hidden_layers)
    own = (n.removeprefix(UNMAPPED) for n in named.shapes if n.startswith(UNMAPPED))
    rows |= {name: huggingface.TABLE.without_row(name) for name in own}
    for name, row in rows.items():
        if any(of_row := [pair(weight) for weight in row.theirs]):
            pairs[name] = tuple(of_row)
        if {*row.theirs} <= {*named.shapes}:
            others[name] = row.read(array)
    left = tuple(name for name in named.shapes if name not in used)
    if lost := [name for name in left if ".lora_" in name]:
        raise UserError(f"{folder / WEIGHTS_FILE}: the model has no weight for {lost[0]}")
    if left or notes:
        ignored = [f"ignored: {listed(left)}"] if left else []
        logger.info(f"{folder}: " + "; ".join((*notes.values(), *ignored)))
    alpha *= math.sqrt(rank) if fields.get("use_rslora") else 1
    dropout = float(fields.get("lora_dropout") or 0)
    labels = json.loads(tensors.metadata(folder / WEIGHTS_FILE).get(_LABELS, "[]"))
    return Updates(rank, alpha, dropout, pairs), others, tuple(map(str, labels))
