"""The settings of an embedder as plain data: pooling, dense layers, prompts.

They may come from a file of unknown origin, so each function checks what it is given.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_args

from bert_tf.checkpoints.plain_json import shown
from bert_tf.errors import UserError

# In the order in which sentence-transformers concatenates them, then the pooler's output.
Pooling = Literal["cls", "max", "mean", "mean_sqrt_len", "weighted_mean", "last_token", "pooled"]
POOLINGS: tuple[str, ...] = get_args(Pooling)
# The types that the numbers of a vector can be converted to.
VECTORS = ("float32", "int8", "binary")
SIMILARITIES = ("cosine", "dot", "euclidean", "manhattan")
# The names of classes in torch.
ACTIVATIONS = tuple(
    "Identity Tanh ReLU GELU Sigmoid SiLU Mish ELU SELU LeakyReLU Softplus Softsign".split()
)
# No known model has more dense layers, and many take long to build.
MOST_DENSE = 16
DEFAULT_SIGNATURE, SIMILARITY_SIGNATURE = "serving_default", "similarity"

_DENSE = {"units": int, "activation": str, "bias": bool}
# The defaults of a dense layer, which are those of sentence-transformers.
_DEFAULTS = {"activation": "Tanh", "bias": True}


def poolings(given: Any) -> tuple[str, ...]:
    """The names of the poolings, from one name or a sequence of names."""
    names = (given,) if isinstance(given, str) else given
    if not isinstance(names, Sequence) or not names:
        raise UserError(f"pooling is {shown(given)}; give one or more of {', '.join(POOLINGS)}")
    for name in names:
        if name not in POOLINGS:
            raise UserError(f"unknown pooling {shown(name)}; choose one of {', '.join(POOLINGS)}")
    if len(names) > len(POOLINGS):
        raise UserError(f"pooling has {len(names)} names; give each name only once")
    return tuple(names)


def dense_layers(given: Any) -> list[dict[str, Any]]:
    """The dense layers with all their fields: `units`, `activation` and `bias`."""
    if not isinstance(given, Sequence) or isinstance(given, str) or len(given) > MOST_DENSE:
        raise UserError(f"dense is {shown(given)}; give a list of at most {MOST_DENSE} layers")
    such_as = 'give a layer such as {"units": 128, "activation": "Tanh", "bias": True}'
    layers = []
    for number, each in enumerate(given):
        if not isinstance(each, Mapping) or not each.keys() <= _DENSE.keys():
            raise UserError(f"dense layer {number} is {shown(each)}; {such_as}")
        layer: dict[str, Any] = {name: each.get(name, _DEFAULTS.get(name)) for name in _DENSE}
        for name, kind in _DENSE.items():
            if type(layer[name]) is not kind or kind is int and layer[name] < 1:
                wrong = f"{name} of dense layer {number} is {shown(layer[name])}"
                raise UserError(f"{wrong}; {such_as}")
        if layer["activation"] not in ACTIVATIONS:
            raise UserError(
                f"unknown activation {shown(layer['activation'])} of dense layer {number}; choose "
                f"one of {', '.join(ACTIVATIONS)}"
            )
        layers.append(layer)
    return layers


def prompts(given: Any, default: str | None) -> dict[str, str]:
    """The prompts by name; `default` must be one of them, if it is not None."""
    given = {} if given is None else given
    if not isinstance(given, Mapping):
        raise UserError(
            f'prompts is {shown(given)}; give a dict of names and texts, such as {{"query": '
            '"query: "}'
        )
    for name, text in given.items():
        if not isinstance(name, str) or not name or not isinstance(text, str):
            raise UserError(
                f"the prompt {shown(name)} is {shown(text)}; its name and its text must be "
                "strings, and its name must not be empty"
            )
        if name in (DEFAULT_SIGNATURE, SIMILARITY_SIGNATURE):
            raise UserError(
                f"the name {name!r} is reserved for a signature; give the prompt another name"
            )
    if default is not None and default not in given:
        raise UserError(f"the default prompt {shown(default)} does not exist; " + known(given))
    return dict(given)


def known(names: Sequence[str] | Mapping[str, str]) -> str:
    """The names of the prompts as the end of a message."""
    return f"the prompts are {', '.join(names)}" if names else "the model has no prompts"


def torch_activation(name: str) -> str:
    """The full name of an activation in torch."""
    return f"torch.nn.modules.{'linear' if name == 'Identity' else 'activation'}.{name}"


def similarity_function(given: Any) -> str:
    """The name of a similarity function. Raises UserError if it is unknown."""
    if given not in SIMILARITIES:
        raise UserError(
            f"unknown similarity function {shown(given)}; choose one of {', '.join(SIMILARITIES)}"
        )
    return given


def dense_shapes(width: int, pooling: Any, dense: Any) -> dict[str, tuple[int, ...]]:
    """Our names and the shapes of the dense layers' weights; `width` is the encoder's."""
    shapes: dict[str, tuple[int, ...]] = {}
    width *= len(poolings(pooling))
    for number, layer in enumerate(dense_layers(dense)):
        shapes[f"dense_{number}/kernel"] = (width, layer["units"])
        width = layer["units"]
        if layer["bias"]:
            shapes[f"dense_{number}/bias"] = (width,)
    return shapes
