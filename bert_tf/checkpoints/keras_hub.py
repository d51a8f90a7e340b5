"""KerasHub's presets of `BertBackbone` and `DistilBertBackbone`, and their tasks.

A preset is a folder: `config.json` describes the backbone, `task.json` the task with its
preprocessor, and the weights are in HDF5 files. Keras names a layer there by its class, and numbers
those of the same class. All of this is read as data, by no class of KerasHub. Version 0.32 opens
what is written.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import keras
import numpy as np

from bert_tf.checkpoints import heads, plain_json, tensors
from bert_tf.checkpoints.checkpoint import Checkpoint
from bert_tf.checkpoints.correspondence import (
    HEADS_FIRST,
    HEADS_LAST,
    Row,
    Table,
    rows_of,
    save_own,
    with_own,
)
from bert_tf.checkpoints.description import Description, encoder_config
from bert_tf.checkpoints.tensors import Tensors
from bert_tf.errors import UserError
from bert_tf.io.vocabulary import TokenizerSettings, file_text, read_vocabulary

READER = "KerasHub"
# The file that a supplement goes to: KerasHub reads the others into its own objects.
CONFIG_FILE = "metadata.json"
VOCABULARY_FILE = "assets/tokenizer/vocabulary.txt"

_BACKBONE, _TASK, _TOKENIZER = "config.json", "task.json", "tokenizer.json"
_PREPROCESSOR = "preprocessor.json"
_WEIGHTS = {"model": "model.weights.h5", "task": "task.weights.h5"}
_VERSIONS = {"keras_version": keras.__version__, "keras_hub_version": "0.32.0"}
# Our types of models -> the beginning of the classes' names, and of the modules' names.
_MODELS = {"bert": ("Bert", "bert"), "distilbert": ("DistilBert", "distil_bert")}
_SIZES = {
    "vocab_size": "vocabulary_size",
    "hidden_size": "hidden_dim",
    "num_hidden_layers": "num_layers",
    "num_attention_heads": "num_heads",
    "intermediate_size": "intermediate_dim",
    "hidden_dropout_prob": "dropout",
    "max_position_embeddings": "max_sequence_length",
    "type_vocab_size": "num_segments",
}
_SEVERAL = "multi_label_classification"
# What its tokenizers do unless their configuration says otherwise, and bert_tf's always.
_USUAL = {"split": True, "suffix_indicator": "##", "oov_token": "[UNK]", "special_tokens": None}
# In the graph its tokenizer cuts no word of more bytes.
_LONGEST_WORD = 100

# Its names of layers -> their places in a file of weights.
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
_QUERY_KEY_VALUE = tuple(f"{_ATTENTION}{each}_dense/vars/" for each in ("query", "key", "value"))
_NAMES = {"kernel": "vars/0", "bias": "vars/1", "gamma": "vars/0", "beta": "vars/1"}
TABLE = Table(
    "keras_hub",
    encoder=(
        Row("encoder/embeddings/word_embeddings", ("token_embedding/vars/0",)),
        Row("encoder/embeddings/position_embeddings", ("position_embedding/vars/0",)),
        Row("encoder/embeddings/token_type_embeddings", ("segment_embedding/vars/0",)),
        *(
            Row(
                f"encoder/layer_{{n}}/attention/query_key_value/{part}",
                tuple(f"{each}{number}" for each in _QUERY_KEY_VALUE),
                HEADS_LAST,
            )
            for number, part in enumerate(("kernel", "bias"))
        ),
        *rows_of(
            {"encoder/layer_{n}/attention/output": f"{_ATTENTION}output_dense/"},
            HEADS_FIRST,
            _NAMES,
        ),
        *rows_of(
            {
                "encoder/embeddings/layer_norm": "embeddings_layer_norm/",
                "encoder/layer_{n}/attention_layer_norm": f"{_LAYER}_self_attention_layer_norm/",
                "encoder/layer_{n}/intermediate": f"{_LAYER}_feedforward_intermediate_dense/",
                "encoder/layer_{n}/output": f"{_LAYER}_feedforward_output_dense/",
                "encoder/layer_{n}/output_layer_norm": f"{_LAYER}_feedforward_layer_norm/",
                "encoder/pooler": "pooled_dense/",
            },
            names=_NAMES,
        ),
    ),
    pretraining=(
        *rows_of(
            {"masked_lm/transform": "transform/", "masked_lm/layer_norm": "transform_layer_norm/"},
            names=_NAMES,
        ),
        Row("masked_lm/output_bias", ("mlm_head/vars/0",)),
    ),
    names=_NAMES,
)


def is_one(folder: Path) -> bool:
    """Whether `folder` holds a preset: KerasHub knows its own config.json by this key.

    Raises:
        UserError: config.json is not a JSON object.
    """
    path = folder / _BACKBONE
    return path.is_file() and "registered_name" in plain_json.read_object(path, "configuration")


def open_checkpoint(folder: Path) -> Checkpoint:
    """The checkpoint in `folder`.

    Raises:
        UserError: a file is missing or damaged, it is of another architecture, or it computes
            something that bert_tf does not.
    """
    kind, fields = _object(folder / _BACKBONE)
    model_type = next((m for m, (name, _) in _MODELS.items() if kind == f"{name}Backbone"), None)
    if model_type is None:
        known = " and ".join(f"{name}Backbone" for name, _ in _MODELS.values())
        raise UserError(
            f"{folder / _BACKBONE}: the class is {plain_json.shown(kind)}; of KerasHub's presets "
            f"bert_tf reads only {known}"
        )
    task, of_task = _object(folder / _TASK)
    sizes = {ours: fields[theirs] for ours, theirs in _SIZES.items() if theirs in fields}
    sizes |= {"attention_probs_dropout_prob": fields.get("dropout", 0.1), "model_type": model_type}
    is_bert = model_type == "bert"
    sizes["hidden_act"] = "gelu_new" if is_bert else "gelu"
    sizes["type_vocab_size"] = fields.get("num_segments", 2) if is_bert else 0
    if task.endswith("MaskedLM"):
        sizes["masked_lm_head"] = "keras_hub"
    encoder = encoder_config(sizes, folder / _BACKBONE)
    weights = _weights(folder, model_type, encoder.num_hidden_layers)
    model, head = heads.ENCODER, {}
    if task.endswith("MaskedLM"):
        model, head = heads.PRETRAINER, {"next_sentence": False}
    elif task.endswith("Classifier"):
        found = TABLE.heads_in(weights)
        problem = _problem(of_task.get("activation"), {*found.values()}, folder / _TASK)
        rate = of_task.get("dropout")
        dropout = float(rate) if isinstance(rate, int | float) else None
        model, head = heads.chosen(found, problem=problem, dropout=dropout)
    _, preprocessor = _object(folder / _PREPROCESSOR)
    length, settings = preprocessor.get("sequence_length"), {}
    if heads.of(model).pools and type(length) is int and length > 0:
        settings = {"max_length": min(length, encoder.max_position_embeddings)}
    tokenizer = _tokenizer(folder / _TOKENIZER)
    description = Description(
        model,
        head,
        encoder,
        lower_case=tokenizer.lower_case if tokenizer else None,
        settings=settings,
        tokenizer=tokenizer.besides_casing if tokenizer else {},
    )
    path, vocabulary = folder / CONFIG_FILE, folder / VOCABULARY_FILE
    return Checkpoint(
        folder,
        description.supplemented(_fields(path), path),
        weights,
        TABLE,
        lambda: read_vocabulary(vocabulary) if vocabulary.is_file() else None,
    ).check()


def write_weights(
    folder: Path,
    weights: Mapping[str, np.ndarray],
    description: Description,
    vocabulary: tuple[str, ...] | None,
) -> None:
    """Writes the checkpoint into the existing `folder`."""
    encoder, head = description.encoder, heads.of(description.model)
    name, module = _MODELS[encoder.model_type]
    kind = "TextClassifier" if TABLE.format in head.places else ""
    if heads.MASKED_LM in head.pretraining:
        kind = "MaskedLM"
    rows = TABLE.rows(description.model, encoder.num_hidden_layers)
    places = _places(encoder.model_type, encoder.num_hidden_layers)
    arrays: dict[str, dict[str, np.ndarray]] = {file: {} for file in _WEIGHTS}
    own = {}
    for ours, array in weights.items():
        layer = rows[ours].theirs[0].partition("/")[0] if ours in rows else ""
        file = places.get(layer, "").partition("/")[0]
        # DistilBERT's pooler is a part of its classifiers only.
        if not file or file == "task" and layer == "pooled_dense" and kind != "TextClassifier":
            own[ours] = array
            continue
        for full, part in rows[ours].write(array, encoder.num_attention_heads).items():
            place = places[layer].removeprefix(f"{file}/")
            arrays[file][place + full.removeprefix(layer)] = part
    for file, of_file in arrays.items():
        if of_file:
            tensors.save_hdf5(folder / _WEIGHTS[file], of_file)
    save_own(folder, own)
    sizes = {theirs: getattr(encoder, ours) for ours, theirs in _SIZES.items()}
    if not encoder.type_vocab_size:
        del sizes["num_segments"]

    def described(class_name: str, config: dict[str, Any]) -> dict[str, Any]:
        """An object as Keras describes it."""
        words = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", class_name).lower()
        return {
            "module": f"keras_hub.src.models.{module}.{module}_{words}",
            "class_name": f"{name}{class_name}",
            "config": config,
            "registered_name": f"keras_hub>{name}{class_name}",
        }

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
        config = {"backbone": files[_BACKBONE], "preprocessor": files.get(_PREPROCESSOR)}
        if kind == "TextClassifier":
            rate = description.head.get("dropout")
            config |= {
                "num_classes": head.outputs or description.head["num_classes"],
                "activation": "sigmoid" if head.problem == _SEVERAL else "linear",
                "dropout": encoder.hidden_dropout_prob if rate is None else rate,
            }
        files[_TASK] = described(kind, config)
    count = sum(int(array.size) for array in arrays["model"].values())
    files[CONFIG_FILE] = _VERSIONS | {"parameter_count": count}
    for path, fields in files.items():
        plain_json.write(folder / path, fields)


def _problem(activation: Any, outputs: set[int], path: Path) -> str:
    """The problem type of a classifier, as transformers calls it; "" for one label of several.

    Raises:
        UserError: bert_tf has no such head.
    """
    if activation in (None, "linear") or activation == "softmax" and 1 not in outputs:
        return ""
    if activation == "sigmoid" and 1 not in outputs:
        return _SEVERAL
    raise UserError(
        f"{path}: activation is {plain_json.shown(activation)} with {max(outputs, default=0)} "
        "outputs; bert_tf reads classifiers with linear, and with several outputs softmax or "
        "sigmoid"
    )


def _fields(path: Path) -> dict[str, Any]:
    """The JSON object in a file; {} without the file."""
    return plain_json.read_object(path, "preset") if path.is_file() else {}


def _object(path: Path) -> tuple[str, dict[str, Any]]:
    """The class of an object that Keras described in a file, and its arguments.

    Without the file they are "" and {}.
    """
    fields = _fields(path)
    if not fields:
        return "", {}
    # "keras_hub>BertBackbone", in old presets "keras_nlp>BertBackbone".
    name = plain_json.checked(path, "registered_name", fields.get("registered_name"), str)
    config = plain_json.checked(path, "config", fields.get("config"), dict)
    return name.rpartition(">")[2], config


def _tokenizer(path: Path) -> TokenizerSettings | None:
    """How its tokenizer reads texts; None without a tokenizer.

    Raises:
        UserError: it cuts words in another way than BERT's.
    """
    kind, fields = _object(path)
    if not kind:
        return None
    for name, usual in _USUAL.items():
        if fields.get(name, usual) != usual:
            raise UserError(
                f"{path}: {name} is {plain_json.shown(fields[name])}; bert_tf reads only "
                f"tokenizers with {plain_json.shown(usual)}"
            )
    lower_case, strip_accents = (fields.get(key, False) for key in ("lowercase", "strip_accents"))
    return TokenizerSettings.from_dict(
        {
            "lower_case": lower_case,
            "strip_accents": None if strip_accents == lower_case else strip_accents,
            "special_tokens": "whole" if fields.get("special_tokens_in_strings") else "text",
            "longest_word": _LONGEST_WORD,
        },
        str(path),
    )


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
        if path.is_file() or file == "model":
            found = tensors.open_hdf5(path)
            # The first versions of Keras 3 had another name.
            names = {n.replace("_layer_checkpoint_dependencies", "layers"): n for n in found.shapes}
            parts.append(found.renamed({f"{file}/{new}": old for new, old in names.items()}))
    found = tensors.joined(*parts)
    places, names = _places(model_type, min(layers, len(found.shapes))), {}
    for full in found.shapes:
        if any(each in full for each in _NO_WEIGHTS):
            continue
        # The nearest layer above: some have layers inside.
        above = [layer for layer, place in places.items() if full.startswith(f"{place}/")]
        layer = max(above, key=lambda each: len(places[each]), default="")
        names[layer + full.removeprefix(places[layer]) if layer else full] = full
    return with_own(folder, found.renamed(names))
