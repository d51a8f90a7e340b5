"""An encoder's sizes as given in a file, and the shapes that its weights must then have.

A checkpoint's configuration and its tensors come from elsewhere and need not agree. They are
checked before anything is built, so that a configuration that claims more than the files hold
cannot fill the memory.
"""

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bert_tf.encoder.config import EncoderConfig
from bert_tf.errors import UserError
from bert_tf.io.json_files import KINDS

_SHOWN = 60


def encoder_config(fields: Mapping[str, Any], path: Path) -> EncoderConfig:
    """The encoder's sizes among `fields`, what is missing at our default.

    Raises:
        UserError: a size is of the wrong type, or they do not fit together.
    """
    values = {}
    for field in dataclasses.fields(EncoderConfig):
        if field.name not in fields:
            continue
        value = fields[field.name]
        if field.type is float and type(value) is int:
            value = float(value)
        if type(value) is not field.type:
            raise UserError(
                f"{path}: {field.name} must be {KINDS[field.type]}, not {repr(value)[:_SHOWN]}"
            )
        values[field.name] = value
    try:
        return EncoderConfig(**values)
    except UserError as error:
        raise UserError(f"{path}: {error}") from None


def encoder_shapes(config: EncoderConfig, layers: int) -> dict[str, tuple[int, ...]]:
    """Our names and shapes of the encoder's weights, of its first `layers` layers."""
    hidden, inner = config.hidden_size, config.intermediate_size

    def linear(name: str, rows: int, columns: int) -> dict[str, tuple[int, ...]]:
        return {f"{name}/kernel": (rows, columns), f"{name}/bias": (columns,)}

    def layer_norm(name: str) -> dict[str, tuple[int, ...]]:
        return {f"{name}/gamma": (hidden,), f"{name}/beta": (hidden,)}

    shapes = {
        "embeddings/word_embeddings": (config.vocab_size, hidden),
        "embeddings/position_embeddings": (config.max_position_embeddings, hidden),
        "embeddings/token_type_embeddings": (config.type_vocab_size, hidden),
        **layer_norm("embeddings/layer_norm"),
        **linear("pooler", config.output_size, config.output_size),
    }
    for n in range(layers):
        shapes |= linear(f"layer_{n}/attention/query_key_value", hidden, 3 * hidden)
        shapes |= linear(f"layer_{n}/attention/output", hidden, hidden)
        shapes |= layer_norm(f"layer_{n}/attention_layer_norm")
        shapes |= linear(f"layer_{n}/intermediate", hidden, inner)
        shapes |= linear(f"layer_{n}/output", inner, hidden)
        shapes |= layer_norm(f"layer_{n}/output_layer_norm")
    return {f"encoder/{name}": shape for name, shape in shapes.items()}
