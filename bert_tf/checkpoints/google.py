"""google-research's checkpoints: bert_model.ckpt.* and bert_config.json.

The names are those of the variables in `modeling.py`, `run_pretraining.py`, `run_classifier.py` and
`run_squad.py` of google-research/bert. The kernels of its heads are [output, input]. Its code
ignores keys of bert_config.json that it does not know.
"""

import functools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bert_tf.checkpoints import keys, plain_json, tf_files
from bert_tf.checkpoints.checkpoint import Checkpoint
from bert_tf.checkpoints.correspondence import TRANSPOSED, Table, rows_of
from bert_tf.checkpoints.description import Content, Description, encoder_config
from bert_tf.checkpoints.tensors import Tensors
from bert_tf.errors import UserError
from bert_tf.io.files import is_there
from bert_tf.io.vocabulary import read_beside

CONFIG_FILE = "bert_config.json"
PREFIX = "bert_model.ckpt"
READER = "google-research/bert"

_LAYER = "bert/encoder/layer_{n}/"
_QUERY_KEY_VALUE = tuple(f"{_LAYER}attention/self/{each}/" for each in ("query", "key", "value"))
_HEAD_NAMES = {"kernel": "output_weights", "bias": "output_bias"}
TABLE = Table(
    "tf1",
    encoder=rows_of(
        {
            "encoder/embeddings/word_embeddings": "bert/embeddings/word_embeddings",
            "encoder/embeddings/position_embeddings": "bert/embeddings/position_embeddings",
            "encoder/embeddings/token_type_embeddings": "bert/embeddings/token_type_embeddings",
            "encoder/embeddings/layer_norm": "bert/embeddings/LayerNorm/",
            "encoder/layer_{n}/attention/query_key_value": _QUERY_KEY_VALUE,
            "encoder/layer_{n}/attention/output": f"{_LAYER}attention/output/dense/",
            "encoder/layer_{n}/attention_layer_norm": f"{_LAYER}attention/output/LayerNorm/",
            "encoder/layer_{n}/intermediate": f"{_LAYER}intermediate/dense/",
            "encoder/layer_{n}/output": f"{_LAYER}output/dense/",
            "encoder/layer_{n}/output_layer_norm": f"{_LAYER}output/LayerNorm/",
            "encoder/pooler": "bert/pooler/dense/",
        }
    ),
    pretraining=(
        *rows_of(
            {
                "masked_lm/transform": "cls/predictions/transform/dense/",
                "masked_lm/layer_norm": "cls/predictions/transform/LayerNorm/",
                "masked_lm/output_bias": "cls/predictions/output_bias",
            }
        ),
        *rows_of({"next_sentence": "cls/seq_relationship/"}, TRANSPOSED, _HEAD_NAMES),
    ),
    kernel=TRANSPOSED,
    names=_HEAD_NAMES,
)


# The defaults of google-research's `BertConfig`.
_DEFAULTS = {"hidden_act": "gelu", "type_vocab_size": 16}
# The sizes that are keys of the file.
_SIZES = set(
    "vocab_size hidden_size num_hidden_layers num_attention_heads intermediate_size "
    "hidden_dropout_prob attention_probs_dropout_prob max_position_embeddings type_vocab_size "
    "initializer_range".split()
)


def open_checkpoint(prefix: Path, tensors: Tensors) -> Checkpoint:
    """The name-based checkpoint whose files start with `prefix`, opened as `tensors`."""
    path = prefix.parent / CONFIG_FILE
    if not is_there(path):
        raise UserError(
            f"there is no {CONFIG_FILE} next to {prefix}; copy it there from the model that "
            "training started from"
        )
    fields = plain_json.read_object(path, "model configuration")
    slots = [name for name in tensors.shapes if name.endswith(("/adam_m", "/adam_v"))]
    weights = {name: name for name in tensors.shapes if name not in (*slots, "global_step")}
    model, head = TABLE.model_in(tensors)
    encoder = encoder_config(sizes(fields), path)
    notes = [*keys.check(path, fields, CONFIG_FILE).values()]
    notes += [f"{len(slots)} slot variables of the optimizer skipped"] if slots else []
    folder = prefix.parent
    description = Description(model, head, encoder).supplemented(fields, path)
    vocabulary = functools.partial(read_beside, folder)
    named = tensors.renamed(weights)
    return Checkpoint(folder, description, named, TABLE, vocabulary, tuple(notes)).check()


def sizes(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of bert_config.json under our names and with our meanings."""
    found = _DEFAULTS | {name: fields[name] for name in _SIZES | {"hidden_act"} if name in fields}
    if found["hidden_act"] == "gelu":  # google-research's GELU is the tanh form
        found["hidden_act"] = "gelu_new"
    return found


def write_content(folder: Path, content: Content) -> None:
    """Writes the checkpoint into the existing `folder`."""
    tf_files.write_named(folder / PREFIX, TABLE.write(content.weights, content.description))
    write_config(folder, content)


def write_config(folder: Path, content: Content) -> None:
    """Writes the vocabulary, and bert_config.json, whose only name for a GELU is "gelu"."""
    fields = content.description.encoder.to_dict()
    known = {name: value for name, value in fields.items() if name in _SIZES}
    plain_json.write(folder / CONFIG_FILE, known | {"hidden_act": "gelu"})
    content.write_vocabulary(folder)
