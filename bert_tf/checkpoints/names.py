"""How our weights are called in google-research's checkpoints.

Those names are the common language here: every other format is renamed into them, and this table
leads from them to our weights. Where one weight of ours stacks several of theirs (query, key and
value share one kernel), the rule lists them in the order of the stack, along the last axis.
"""

import dataclasses
import re
from collections.abc import Iterator, Mapping

import keras
import numpy as np

from bert_tf.errors import UserError


@dataclasses.dataclass(frozen=True)
class Rule:
    """One weight of ours and what it is made of.

    Attributes:
        ours: pattern of our name, with one group `(\\d+)` for the layer where there is one.
        theirs: google-research names, stacked along the last axis; `{0}` is the layer.
        transposed: whether theirs is [output, input] where ours is [input, output].
    """

    ours: str
    theirs: tuple[str, ...]
    transposed: bool = False


_LAYER = "bert/encoder/layer_{0}"
_HEADS = ("query", "key", "value")


def _rules() -> Iterator[Rule]:
    for table in ("word", "position", "token_type"):
        name = f"embeddings/{table}_embeddings"
        yield Rule(f"encoder/{name}", (f"bert/{name}",))
    pairs = {
        "encoder/embeddings/layer_norm": ("bert/embeddings/LayerNorm",),
        r"encoder/layer_(\d+)/attention/query_key_value": tuple(
            f"{_LAYER}/attention/self/{head}" for head in _HEADS
        ),
        r"encoder/layer_(\d+)/attention/output": (f"{_LAYER}/attention/output/dense",),
        r"encoder/layer_(\d+)/attention_layer_norm": (f"{_LAYER}/attention/output/LayerNorm",),
        r"encoder/layer_(\d+)/intermediate": (f"{_LAYER}/intermediate/dense",),
        r"encoder/layer_(\d+)/output": (f"{_LAYER}/output/dense",),
        r"encoder/layer_(\d+)/output_layer_norm": (f"{_LAYER}/output/LayerNorm",),
        "encoder/pooler": ("bert/pooler/dense",),
        "masked_lm/transform": ("cls/predictions/transform/dense",),
        "masked_lm/layer_norm": ("cls/predictions/transform/LayerNorm",),
    }
    for ours, theirs in pairs.items():
        for part in ("gamma", "beta") if ours.endswith("layer_norm") else ("kernel", "bias"):
            yield Rule(f"{ours}/{part}", tuple(f"{name}/{part}" for name in theirs))
    yield Rule("masked_lm/output_bias", ("cls/predictions/output_bias",))
    for head, prefix in {"next_sentence": "cls/seq_relationship/", "classifier": ""}.items():
        yield Rule(f"{head}/kernel", (f"{prefix}output_weights",), transposed=True)
        yield Rule(f"{head}/bias", (f"{prefix}output_bias",))


_RULES = tuple(_rules())


def weight_names(model: keras.Model) -> dict[str, keras.Variable]:
    """Our names of a model's weights, for example "encoder/layer_0/output/kernel".

    They are the Keras paths less the names of the models themselves, which users may choose.
    """
    encoder = getattr(model, "encoder", model)
    names = {}
    for weight in model.weights:
        if any(weight is inner for inner in encoder.weights):
            names["encoder/" + weight.path.split(f"{encoder.name}/", 1)[1]] = weight
        else:
            names[weight.path.split(f"{model.name}/", 1)[1]] = weight
    return names


def to_google(name: str) -> tuple[tuple[str, ...], bool]:
    """google-research's names of one of our weights, and whether they are transposed."""
    for rule in _RULES:
        match = re.fullmatch(rule.ours, name)
        if match:
            return tuple(their.format(*match.groups()) for their in rule.theirs), rule.transposed
    raise KeyError(name)


def assemble(model: keras.Model, tensors: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Our weights, as far as `tensors` (google-research names) contain them.

    Raises:
        UserError: a tensor's shape does not fit the model.
    """
    ours = {}
    for name, weight in weight_names(model).items():
        theirs, transposed = to_google(name)
        if not all(their in tensors for their in theirs):
            continue
        parts = [tensors[their] for their in theirs]
        value = np.concatenate(parts, axis=-1) if len(parts) > 1 else parts[0]
        ours[name] = value.T if transposed else value
        if ours[name].shape != tuple(weight.shape):
            raise UserError(
                f"weight {theirs[0]} of the checkpoint has shape {list(ours[name].shape)}, the "
                f"model's {name} {list(weight.shape)}; "
                + likely_cause(name, ours[name].shape, tuple(weight.shape))
            )
    return ours


def likely_cause(name: str, theirs: tuple[int, ...], ours: tuple[int, ...]) -> str:
    """What usually makes the shapes of weight `name` differ."""
    if name.endswith("word_embeddings") and theirs[1:] == ours[1:]:
        return f"the vocabulary has {ours[0]} pieces, the checkpoint's {theirs[0]}"
    if name.endswith("position_embeddings") and theirs[1:] == ours[1:]:
        return f"set max_position_embeddings to {theirs[0]}"
    if name.startswith("classifier/"):
        return "the checkpoint was fine-tuned for another number of labels"
    return "the sizes under `model` are not those of the checkpoint"
