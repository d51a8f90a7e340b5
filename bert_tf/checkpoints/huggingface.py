"""Checkpoints in Hugging Face's folder form: config.json and model.safetensors.

Names: `transformers/models/bert/modeling_bert.py`. A torch `Linear` keeps its weight as
[output, input]; everything else has the same layout as google-research's.
"""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from bert_tf.checkpoints import tensors
from bert_tf.errors import UserError
from bert_tf.files import read_text
from bert_tf.models.config import EncoderConfig

CONFIG_FILE = "config.json"
WEIGHTS_FILE = "model.safetensors"

# Hugging Face's name -> google-research's, applied in order.
_RENAMES = (
    (r"^(embeddings|encoder|pooler)\.", r"bert.\1."),
    (r"encoder\.layer\.(\d+)\.", r"encoder.layer_\1."),
    (r"(word|position|token_type)_embeddings\.weight$", r"\1_embeddings"),
    (r"LayerNorm\.weight$", "LayerNorm.gamma"),
    (r"LayerNorm\.bias$", "LayerNorm.beta"),
    (r"^cls\.predictions\.bias$", "cls.predictions.output_bias"),
    (r"^cls\.seq_relationship\.weight$", "cls.seq_relationship.output_weights"),
    (r"^cls\.seq_relationship\.bias$", "cls.seq_relationship.output_bias"),
    (r"^classifier\.weight$", "output_weights"),
    (r"^classifier\.bias$", "output_bias"),
    (r"\.weight$", ".kernel"),
    (r"\.", "/"),
)


def read_config(folder: Path) -> EncoderConfig:
    """The encoder's sizes from `config.json`.

    Raises:
        UserError: the file is missing, is not JSON, or is not of a BERT model.
    """
    path = folder / CONFIG_FILE
    try:
        fields: dict[str, Any] = json.loads(read_text(path, "model configuration"))
    except json.JSONDecodeError as error:
        raise UserError(f"model configuration is not JSON: {path}, line {error.lineno}") from None
    if fields.get("model_type", "bert") != "bert":
        raise UserError(f"{path} describes a {fields['model_type']} model, not a BERT one")
    known = EncoderConfig.__dataclass_fields__.keys() - {"attention"}
    return EncoderConfig(**{"hidden_act": "gelu"} | {k: fields[k] for k in known & fields.keys()})


def read_tensors(folder: Path) -> dict[str, np.ndarray]:
    """All weights under google-research's names and layout.

    Raises:
        UserError: the file is missing or is not a whole safetensors file.
    """
    return google_names(tensors.load(folder / WEIGHTS_FILE))


def google_names(arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Tensors under Hugging Face's names -> the same under google-research's, kernels turned."""
    renamed = {}
    for name, array in arrays.items():
        for pattern, replacement in _RENAMES:
            name = re.sub(pattern, replacement, name)
        renamed[name] = array.T if name.endswith("/kernel") else array
    return renamed
