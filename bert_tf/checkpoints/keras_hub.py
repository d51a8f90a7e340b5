"""KerasHub's presets of `BertBackbone` and `DistilBertBackbone`, and their tasks.

A preset is a folder: `config.json` describes the backbone, `task.json` the task with its
preprocessor, and the weights are in HDF5 files. Keras names a layer there by its class, and numbers
layers of the same class. All of this is read as data, without any class of KerasHub. KerasHub 0.32
opens the presets written here.
"""

from pathlib import Path
from typing import Any

import keras
import numpy as np

from bert_tf.checkpoints import correspondence, heads, keys, plain_json, tensors
from bert_tf.checkpoints.checkpoint import Checkpoint
from bert_tf.checkpoints.correspondence import Table, rows_of
from bert_tf.checkpoints.description import Content, Description, encoder_config
from bert_tf.checkpoints.tensors import Tensors
from bert_tf.errors import UserError
from bert_tf.io.files import is_there
from bert_tf.io.vocabulary import TokenizerSettings, file_text, read_vocabulary

READER = "KerasHub"
# The file for settings that KerasHub lacks. KerasHub reads the other files into its own objects.
CONFIG_FILE = "metadata.json"
VOCABULARY_FILE = "assets/tokenizer/vocabulary.txt"

_BACKBONE, _TASK, _TOKENIZER = "config.json", "task.json", "tokenizer.json"
_PREPROCESSOR = "preprocessor.json"
_WEIGHTS = {"model": "model.weights.h5", "task": "task.weights.h5"}
_VERSIONS = {"keras_version": keras.__version__, "keras_hub_version": "0.32.0"}
# Our types of models -> the beginning of the classes' names.
_MODELS = {"bert": "Bert", "distilbert": "DistilBert"}
_SIZES = {
    "vocab_size": "vocabulary_size",
    "hidden_size": "hidden_dim",
    "num_hidden_layers": "num_layers",
    "num_attention_heads": "num_heads",
    "intermediate_size": "intermediate_dim",
    "hidden_dropout_prob": "dropout",
    "max_position_embeddings": "max_sequence_length",
}
_SEVERAL = "multi_label_classification"
# The longest word, in bytes, that KerasHub's tokenizer cuts in a graph.
_LONGEST_WORD = 100

# KerasHub's names of layers -> their places in a file of weights.
_PLACES = {
    "transform": "task/layers/masked_lm_head/_intermediate_dense",
    "transform_layer_norm": "task/layers/masked_lm_head/_intermediate_layer_norm",
    "mlm_head": "task/layers/masked_lm_head",
    "embeddings_layer_norm": "model/layers/layer_normalization",
}
_TABLES = "model/layers/token_and_position_embedding"
_PLACES_OF = {
    "bert": {
        "token_embedding": "model/layers/reversible_embedding",
        "position_embedding": "model/layers/position_embedding",
        "segment_embedding": "model/layers/embedding",
        "pooled_dense": "model/layers/dense",
        "logits": "task/layers/dense",
    },
    "distilbert": {
        "token_embedding": f"{_TABLES}/token_embedding",
        "position_embedding": f"{_TABLES}/position_embedding",
        "pooled_dense": "task/layers/dense",
        "logits": "task/layers/dense_1",
    },
}
# Variables that are not weights.
_NO_WEIGHTS = ("optimizer/", "seed_generator/")

_LAYER = "transformer_{n}/"
_ATTENTION = f"{_LAYER}_self_attention_layer/"
_QUERY_KEY_VALUE = tuple(f"{_ATTENTION}{each}_dense/" for each in ("query", "key", "value"))
_NAMES = {"kernel": "vars/0", "bias": "vars/1", "gamma": "vars/0", "beta": "vars/1"}
TABLE = Table(
    "keras_hub",
    encoder=rows_of(
        {
            "encoder/embeddings/word_embeddings": "token_embedding/vars/0",
            "encoder/embeddings/position_embeddings": "position_embedding/vars/0",
            "encoder/embeddings/token_type_embeddings": "segment_embedding/vars/0",
            "encoder/embeddings/layer_norm": "embeddings_layer_norm/",
            "encoder/layer_{n}/attention/query_key_value": _QUERY_KEY_VALUE,
            "encoder/layer_{n}/attention/output": f"{_ATTENTION}output_dense/",
            "encoder/layer_{n}/attention_layer_norm": f"{_LAYER}_self_attention_layer_norm/",
            "encoder/layer_{n}/intermediate": f"{_LAYER}_feedforward_intermediate_dense/",
            "encoder/layer_{n}/output": f"{_LAYER}_feedforward_output_dense/",
            "encoder/layer_{n}/output_layer_norm": f"{_LAYER}_feedforward_layer_norm/",
            "encoder/pooler": "pooled_dense/",
        },
        names=_NAMES,
        with_heads=True,
    ),
    pretraining=rows_of(
        {
            "masked_lm/transform": "transform/",
            "masked_lm/layer_norm": "transform_layer_norm/",
            "masked_lm/output_bias": "mlm_head/vars/0",
        },
        names=_NAMES,
    ),
    names=_NAMES,
)


def is_one(folder: Path) -> bool:
    """Whether `folder` holds a preset. KerasHub recognises its own config.json by this key."""
    path = folder / _BACKBONE
    return "registered_name" in plain_json.read_if_there(path, "configuration")


def open_checkpoint(folder: Path) -> Checkpoint:
    """The checkpoint in `folder`."""
    path = folder / _BACKBONE
    notes: list[str] = []
    (kind, fields), (task, of_task) = _object(path, notes), _object(folder / _TASK, notes)
    model_type = next((m for m, name in _MODELS.items() if kind == f"{name}Backbone"), None)
    if model_type is None:
        raise UserError(
            f"{path}: the class is {plain_json.shown(kind)}; of KerasHub's presets bert_tf reads "
            "only BertBackbone and DistilBertBackbone"
        )
    is_bert, is_masked_lm = model_type == "bert", task.endswith("MaskedLM")
    sizes = {ours: fields[theirs] for ours, theirs in _SIZES.items() if theirs in fields}
    sizes |= {
        "attention_probs_dropout_prob": fields.get("dropout", 0.1),
        "hidden_act": "gelu_new" if is_bert else "gelu",
        "type_vocab_size": fields.get("num_segments", 2) if is_bert else 0,
        "model_type": model_type,
        "masked_lm_head": "keras_hub" if is_masked_lm else "bert",
    }
    encoder = encoder_config(sizes, path)
    weights = _weights(folder, model_type, encoder.num_hidden_layers)
    found = TABLE.heads_in(weights) if task.endswith("Classifier") else {}
    rate, activation = of_task.get("dropout"), of_task.get("activation") or "linear"
    known = ("linear",) if 1 in found.values() else ("linear", "softmax", "sigmoid")
    if activation not in known:
        raise UserError(
            f"{folder / _TASK}: activation is {plain_json.shown(activation)}; bert_tf reads only "
            "classifiers with linear, and those of several classes with softmax or sigmoid"
        )
    model, head = heads.chosen(
        found,
        problem=_SEVERAL if activation == "sigmoid" else "",
        dropout=float(rate) if isinstance(rate, int | float) else None,
    )
    if is_masked_lm:
        model, head = heads.PRETRAINER, {"next_sentence": False}
    length, settings = _object(folder / _PREPROCESSOR, notes)[1].get("sequence_length"), {}
    if heads.of(model).pools and type(length) is int and length > 0:
        settings = {"max_length": min(length, encoder.max_position_embeddings)}
    description = Description(
        model, head, encoder, settings=settings, **_tokenizer(folder / _TOKENIZER, notes)
    )
    path, vocabulary = folder / CONFIG_FILE, folder / VOCABULARY_FILE
    metadata = plain_json.read_if_there(path, "preset")
    notes += keys.check(path, metadata, CONFIG_FILE).values()
    description = description.supplemented(metadata, path)

    def pieces() -> tuple[str, ...] | None:
        return read_vocabulary(vocabulary) if is_there(vocabulary) else None

    return Checkpoint(folder, description, weights, TABLE, pieces, tuple(notes)).check()


def write_content(folder: Path, content: Content) -> None:
    """Writes the checkpoint into the existing `folder`."""
    weights, description, vocabulary = content
    encoder, head = description.encoder, heads.of(description.model)
    name = _MODELS[encoder.model_type]
    is_masked_lm = heads.MASKED_LM in head.pretraining
    is_classifier = TABLE.format in head.places
    kind = "MaskedLM" if is_masked_lm else "TextClassifier" if is_classifier else ""
    rows = TABLE.rows(description.model, encoder.num_hidden_layers)
    places = _places(encoder.model_type, encoder.num_hidden_layers)
    arrays: dict[str, dict[str, np.ndarray]] = {file: {} for file in _WEIGHTS}
    own = {}
    for ours, array in weights.items():
        layer = rows[ours].theirs[0].partition("/")[0] if ours in rows else ""
        file = places.get(layer, "").partition("/")[0]
        # DistilBERT's pooler is a part of its classifiers only.
        if not file or file == "task" and layer == "pooled_dense" and not is_classifier:
            own[ours] = array
            continue
        for full, part in rows[ours].write(array, encoder.num_attention_heads).items():
            place = places[layer].removeprefix(f"{file}/")
            arrays[file][place + full.removeprefix(layer)] = part
    for file, of_file in arrays.items():
        if of_file:
            tensors.save_hdf5(folder / _WEIGHTS[file], of_file)
    correspondence.save_own(folder, own)
    sizes = {theirs: getattr(encoder, ours) for ours, theirs in _SIZES.items()}
    if encoder.type_vocab_size:
        sizes["num_segments"] = encoder.type_vocab_size

    def described(kind: str, config: dict[str, Any]) -> dict[str, Any]:
        names = {"class_name": name + kind, "registered_name": f"keras_hub>{name}{kind}"}
        return names | {"config": config}

    files = {_BACKBONE: described("Backbone", sizes)}
    if vocabulary is not None:
        settings = description.tokenizer_settings(vocabulary)
        (folder / VOCABULARY_FILE).parent.mkdir(parents=True)
        (folder / VOCABULARY_FILE).write_text(file_text(vocabulary), encoding="utf-8", newline="\n")
        reading = {
            "vocabulary": None,
            "lowercase": settings.lower_case,
            "strip_accents": settings.strips_accents,
            "special_tokens_in_strings": settings.special_tokens == "whole",
        }
        files[_TOKENIZER] = described("Tokenizer", reading)
    if kind and vocabulary is not None:
        length = description.settings.get("max_length") or encoder.max_position_embeddings
        packing = {"tokenizer": files[_TOKENIZER], "sequence_length": length}
        files[_PREPROCESSOR] = described(f"{kind}Preprocessor", packing)
    if kind:
        rate = description.head.get("dropout")
        of_classifier = {
            "num_classes": head.outputs or description.head.get("num_classes"),
            "activation": "sigmoid" if head.problem == _SEVERAL else "linear",
            "dropout": encoder.hidden_dropout_prob if rate is None else rate,
        }
        parts = {"backbone": files[_BACKBONE], "preprocessor": files.get(_PREPROCESSOR)}
        files[_TASK] = described(kind, parts | of_classifier if is_classifier else parts)
    count = sum(int(array.size) for array in arrays["model"].values())
    files[CONFIG_FILE] = _VERSIONS | {"parameter_count": count}
    for path, fields in files.items():
        plain_json.write(folder / path, fields)


def _object(path: Path, notes: list[str]) -> tuple[str, dict[str, Any]]:
    """The class and arguments of an object that Keras described; "" and {} if there is no file."""
    fields = plain_json.read_if_there(path, "preset")
    if not fields:
        return "", {}
    # "keras_hub>BertBackbone", or "keras_nlp>BertBackbone" in old presets.
    name = plain_json.checked(path, "registered_name", fields.get("registered_name"), str)
    config = plain_json.checked(path, "config", fields.get("config"), dict)
    name_of_table = f"{path.name} of keras_hub"
    table = name_of_table if name_of_table in keys.TABLE else path.name
    notes += keys.check(path, config, table).values()
    return name.rpartition(">")[2], config


def _tokenizer(path: Path, notes: list[str]) -> dict[str, Any]:
    """The tokenizer's settings as fields of a `Description`; {} if there is no tokenizer."""
    kind, fields = _object(path, notes)
    lower_case, strips = (fields.get(name, False) for name in ("lowercase", "strip_accents"))
    own = {
        "strip_accents": None if strips == lower_case else strips,
        "special_tokens": "whole" if fields.get("special_tokens_in_strings") else "text",
        "longest_word": _LONGEST_WORD,
    }
    settings = TokenizerSettings.from_parts(lower_case, own, str(path))
    return {"lower_case": lower_case, "tokenizer": settings.besides_casing} if kind else {}


def _places(model_type: str, layers: int) -> dict[str, str]:
    """The layers of `TABLE` -> the file and the place of their weights."""
    blocks = {f"transformer_{n}": f"model/layers/transformer_encoder_{n}" for n in range(layers)}
    first = {"transformer_0": "model/layers/transformer_encoder"}
    return _PLACES | _PLACES_OF[model_type] | blocks | first


def _weights(folder: Path, model_type: str, layers: int) -> Tensors:
    """The tensors of both files under the names of `TABLE`, and our own."""
    parts = []
    for file, name in _WEIGHTS.items():
        path = folder / name
        if is_there(path) or file == "model":
            found = tensors.open_hdf5(path)
            # The first versions of Keras 3 called `layers` something else.
            names = {n.replace("_layer_checkpoint_dependencies", "layers"): n for n in found.shapes}
            parts.append(found.renamed({f"{file}/{new}": old for new, old in names.items()}))
    found = tensors.joined(*parts)
    places, names = _places(model_type, min(layers, len(found.shapes))), {}
    for full in found.shapes:
        if any(each in full for each in _NO_WEIGHTS):
            continue
        # The innermost layer, since some layers contain others.
        above = [layer for layer, place in places.items() if full.startswith(f"{place}/")]
        layer = max(above, key=lambda each: len(places[each]), default="")
        names[layer + full.removeprefix(places[layer]) if layer else full] = full
    return correspondence.with_own(folder, found.renamed(names))
