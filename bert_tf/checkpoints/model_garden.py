"""Model Garden's object-based checkpoints of `BertEncoder` and `BertEncoderV2`, and their heads.

Such a checkpoint is a graph of objects. The place of a variable in the graph depends on the model
around the encoder, but its name does not. So variables are found by their names, which are those of
`official/nlp/modeling` in tf-models-official. Attention kernels have an axis for the heads.

When a model of Model Garden restores a checkpoint, TensorFlow matches the model's objects with the
checkpoint's by the names of their attributes. A checkpoint of bert_tf therefore fits every model
whose attributes it has: `BertEncoder`, `BertEncoderV2`, `BertPretrainerV2` and the task models.
"""

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
import yaml

from bert_tf.checkpoints import google, heads, keys, plain_json, tf_files
from bert_tf.checkpoints.checkpoint import Checkpoint
from bert_tf.checkpoints.correspondence import UNMAPPED, Table, rows_of
from bert_tf.checkpoints.description import Content, Description, encoder_config
from bert_tf.checkpoints.tensors import Tensors
from bert_tf.errors import UserError
from bert_tf.io.files import is_there, read_text
from bert_tf.io.vocabulary import read_beside

CONFIG_FILE = google.CONFIG_FILE
PREFIX = google.PREFIX
PARAMS_FILE = "params.yaml"
READER = "Model Garden"

_LAYER = "transformer/layer_{n}/"
_ATTENTION = f"{_LAYER}self_attention/"
_QUERY_KEY_VALUE = tuple(f"{_ATTENTION}{each}/" for each in ("query", "key", "value"))

TABLE = Table(
    "model_garden",
    encoder=rows_of(
        {
            "encoder/embeddings/word_embeddings": "word_embeddings/embeddings",
            "encoder/embeddings/position_embeddings": "position_embedding/embeddings",
            "encoder/embeddings/token_type_embeddings": "type_embeddings/embeddings",
            "encoder/embeddings/layer_norm": "embeddings/layer_norm/",
            "encoder/layer_{n}/attention/query_key_value": _QUERY_KEY_VALUE,
            "encoder/layer_{n}/attention/output": f"{_ATTENTION}attention_output/",
            "encoder/layer_{n}/attention_layer_norm": f"{_LAYER}self_attention_layer_norm/",
            "encoder/layer_{n}/intermediate": f"{_LAYER}intermediate/",
            "encoder/layer_{n}/output": f"{_LAYER}output/",
            "encoder/layer_{n}/output_layer_norm": f"{_LAYER}output_layer_norm/",
            "encoder/pooler": "pooler_transform/",
        },
        with_heads=True,
    ),
    pretraining=rows_of(
        {
            "masked_lm/transform": "cls/predictions/transform/dense/",
            "masked_lm/layer_norm": "cls/predictions/transform/LayerNorm/",
            "masked_lm/output_bias": "cls/predictions/output_bias/bias",
            "next_sentence": "next_sentence/logits/",
        }
    ),
)

# The keys of an encoder in params.yaml that have other names in bert_config.json.
_OF_PARAMS = {
    "num_layers": "num_hidden_layers",
    "hidden_activation": "hidden_act",
    "dropout_rate": "hidden_dropout_prob",
    "attention_dropout_rate": "attention_probs_dropout_prob",
}

# The end of a variable's full name, which begins with the names of the objects that hold it.
_NAME = re.compile(
    rf"(?:.*/)?({UNMAPPED}.*|(?:word_embeddings|position_embedding|type_embeddings|pooler_transform"
    r"|embeddings/layer_norm|transformer/layer_\d+|cls/predictions)/.*"
    r"|[^/]+/(?:pooler_dense|logits)/(?:kernel|bias))"
)
# The dense layers of three heads have the same name. The objects around a layer show its head.
_UNNAMED_HEAD = "transform/logits/"
_POOLER = re.compile(r"[^/]+/pooler_dense/(kernel|bias)")
_ENCODER_POOLER = "pooler_transform/"
# Variables that are not weights: a counter, and the tokenizer's setting in a TF Hub encoder.
_NO_WEIGHTS = re.compile(r"(save_counter|do_lower_case)/")
_OPTIMIZER = re.compile(r"(^|/)(\.OPTIMIZER_SLOT|_?optimizer)/")

# The attributes of an encoder's objects -> the prefixes of their variables' names.
_OBJECTS = {
    "_embedding_layer": "word_embeddings/",
    "_position_embedding_layer": "position_embedding/",
    "_type_embedding_layer": "type_embeddings/",
    "_embedding_norm_layer": "embeddings/layer_norm/",
    "_transformer_layers/{n}/_attention_layer/_query_dense": f"{_ATTENTION}query/",
    "_transformer_layers/{n}/_attention_layer/_key_dense": f"{_ATTENTION}key/",
    "_transformer_layers/{n}/_attention_layer/_value_dense": f"{_ATTENTION}value/",
    "_transformer_layers/{n}/_attention_layer/_output_dense": f"{_ATTENTION}attention_output/",
    "_transformer_layers/{n}/_attention_layer_norm": f"{_LAYER}self_attention_layer_norm/",
    "_transformer_layers/{n}/_intermediate_dense": f"{_LAYER}intermediate/",
    "_transformer_layers/{n}/_output_dense": f"{_LAYER}output/",
    "_transformer_layers/{n}/_output_layer_norm": f"{_LAYER}output_layer_norm/",
    "_pooler_layer": _ENCODER_POOLER,
}


def open_checkpoint(prefix: Path, tensors: Tensors) -> Checkpoint:
    """The object-based checkpoint whose files start with `prefix`, opened as `tensors`."""
    # The tensors give the sizes, and a file the other settings; without a file, BERT's are used.
    path = prefix.parent / CONFIG_FILE
    if is_there(path):
        fields = plain_json.read_object(path, "model configuration")
        of_keys = keys.check(path, fields, CONFIG_FILE)
    else:
        fields, of_keys = _of_params(prefix.parent / PARAMS_FILE)
    tensors, notes = named_tensors(prefix, tensors)
    notes = (*of_keys.values(), *notes)
    return described(prefix.parent, tensors, fields, notes, lambda: read_beside(prefix.parent))


def _of_params(path: Path) -> tuple[dict[str, Any], dict[str, str]]:
    """The encoder's fields in an experiment's file by the names of bert_config.json, and notes."""
    try:
        text = read_text(path, "experiment") if is_there(path) else ""
        encoder = yaml.safe_load(text)["task"]["model"]["encoder"]
        kind = encoder["type"]
        fields = {**encoder[kind]}
    except yaml.YAMLError as error:
        first = str(error).splitlines()[0]
        raise UserError(f"{path} is not YAML ({first}); copy it again, or remove it") from None
    except (KeyError, TypeError):  # the file describes no encoder
        return {}, {}
    notes = keys.check(f"{path}: encoder", encoder, f"{PARAMS_FILE}: encoder")
    notes |= keys.check(f"{path}: bert", fields, f"{PARAMS_FILE}: bert")
    return {_OF_PARAMS.get(name, name): value for name, value in fields.items()}, notes


def named_tensors(prefix: Path, tensors: Tensors) -> tuple[Tensors, tuple[str, ...]]:
    """The variables of an object-based checkpoint by their names in the table, and notes."""
    graph = tf_files.read_object_graph(prefix, tensors)
    children = {child.local_name for node in graph.nodes for child in node.children}
    names: dict[str, str] = {}
    slots = 0
    for variable in (attribute for node in graph.nodes for attribute in node.attributes):
        key = variable.checkpoint_key
        if key not in tensors.shapes or _NO_WEIGHTS.match(key):
            continue
        if _OPTIMIZER.search(key):
            slots += 1
            continue
        name = _name(variable.full_name, children)
        if names.setdefault(name, key) != key:
            raise UserError(
                f"{prefix} contains {name} twice, as {names[name]} and {key}; give a checkpoint "
                "with a single encoder"
            )
    notes = [f"{slots} variables of the optimizer skipped"] if slots else []
    # A head on the sequence output has its own pooler, which was trained with the head. It replaces
    # the encoder's pooler, which was not trained.
    own = {f"{_ENCODER_POOLER}{match[1]}": n for n in names if (match := _POOLER.fullmatch(n))}
    found = tensors.renamed(names)
    if not all(
        encoders in names and np.array_equal(found.read(encoders), found.read(heads))
        for encoders, heads in own.items()
    ):
        notes.append("the pooler of the head replaces that of the encoder")
    names |= {encoders: names.pop(heads) for encoders, heads in own.items()}
    return tensors.renamed(names), tuple(notes)


def described(
    folder: Path,
    tensors: Tensors,
    fields: Mapping[str, Any],
    notes: tuple[str, ...],
    read_vocabulary: Callable[[], tuple[str, ...] | None],
) -> Checkpoint:
    """The checkpoint in `folder`, where `fields` are those of a bert_config.json."""
    path = folder / CONFIG_FILE
    model, head = TABLE.model_in(tensors)
    sizes = _sizes(folder, tensors)
    encoder = encoder_config(google.sizes(fields) | sizes, path)
    for name, value in sizes.items():
        if fields.get(name, value) != value:
            raise UserError(
                f"{path}: {name} is {fields[name]}, but the checkpoint next to it has {value}; "
                "copy both again"
            )
    description = Description(model, head, encoder).supplemented(fields, path)
    return Checkpoint(folder, description, tensors, TABLE, read_vocabulary, notes).check()


def write_content(folder: Path, content: Content) -> None:
    """Writes the checkpoint into the existing `folder`."""
    named = TABLE.write(content.weights, content.description)
    root = _objects(named, content.description)
    # `tf.train.Checkpoint(encoder=…)` reads an encoder, `(**checkpoint_items)` a pre-trainer, and
    # `(model=…)` an encoder or one of Model Garden's task models.
    tf.train.Checkpoint(root=root).write(str(folder / PREFIX))
    google.write_config(folder, content)


def _name(full_name: str, children: set[str]) -> str:
    """A variable's name in the table."""
    match = _NAME.fullmatch(full_name)
    name = match[1] if match else full_name
    if name.startswith(_UNNAMED_HEAD):
        head = "next_sentence" if "embedding_table" in children else "token_classifier"
        head = "span_labeling" if "span_labeling" in children else head
        return f"{head}/{name.removeprefix('transform/')}"
    if re.fullmatch(r"(?!next_sentence|span_labeling|token_classifier)[^/]+/logits/\w+", name):
        return f"sentence_prediction/logits/{name.rpartition('/')[2]}"
    return name


def _sizes(folder: Path, tensors: Tensors) -> dict[str, int]:
    shapes = tensors.shapes
    layers = [re.match(r"transformer/layer_(\d+)/", name) for name in shapes]
    try:
        vocab_size, hidden_size = shapes["word_embeddings/embeddings"]
        return {
            "vocab_size": vocab_size,
            "hidden_size": hidden_size,
            "num_hidden_layers": 1 + max(int(match[1]) for match in layers if match),
            "num_attention_heads": shapes["transformer/layer_0/self_attention/query/bias"][0],
            "intermediate_size": shapes["transformer/layer_0/intermediate/bias"][0],
            "max_position_embeddings": shapes["position_embedding/embeddings"][0],
            "type_vocab_size": shapes["type_embeddings/embeddings"][0],
        }
    except (KeyError, ValueError, IndexError):
        raise UserError(
            f"{folder} contains no BERT encoder with the names of Model Garden; give a checkpoint "
            "that has one"
        ) from None


def _objects(named: Mapping[str, np.ndarray], description: Description) -> tf.Module:
    """The root of the objects for `tf.train.Checkpoint(root=…)`, from arrays by their names."""
    variables = {name: tf.Variable(array, name=name) for name, array in named.items()}
    root = tf.Module()
    # The counter of `tf.train.Checkpoint.save`, which `restore` expects to find.
    root.save_counter = tf.Variable(1, dtype=tf.int64, name="save_counter")

    def put(path: str, prefix: str) -> None:
        """Gives the object at a path the variables directly below a prefix of names."""
        for name in variables:
            attribute = name.removeprefix(prefix)
            if attribute != name and "/" not in attribute:
                setattr(_object_at(root, path), attribute, variables[name])

    for path, prefix in _OBJECTS.items():
        for n in range(description.encoder.num_hidden_layers if "{n}" in path else 1):
            put(f"encoder/{path}".replace("{n}", str(n)), prefix.replace("{n}", str(n)))
    head = heads.of(description.model)
    if heads.MASKED_LM in head.pretraining:
        put("masked_lm/dense", "cls/predictions/transform/dense/")
        put("masked_lm/layer_norm", "cls/predictions/transform/LayerNorm/")
        root.masked_lm.embedding_table = variables["word_embeddings/embeddings"]
        bias = variables["cls/predictions/output_bias/bias"]
        setattr(root.masked_lm, "output_bias/bias", bias)  # a single attribute, with a slash
        model = _object_at(root, "model")
        model.encoder_network, model.masked_lm = root.encoder, root.masked_lm
        if "next_sentence/logits/kernel" in variables:
            # Model Garden's next-sentence head has its own pooler.
            for name in [name for name in variables if name.startswith(_ENCODER_POOLER)]:
                copied = name.replace(_ENCODER_POOLER, "next_sentence/pooler_dense/")
                variables[copied] = tf.Variable(named[name], name=copied)
            put("next_sentence.pooler_dense", "next_sentence/pooler_dense/")
            put("model/classification_heads/0/out_proj", "next_sentence/logits/")
            pooler = getattr(root, "next_sentence.pooler_dense")
            _object_at(model, "classification_heads/0").dense = pooler
    elif "model_garden" in head.places:
        place = head.places["model_garden"]
        put(f"model/{place.attributes}", place.prefix)
        _object_at(root, "model")._network = root.encoder
    else:
        root.model = root.encoder
    for name in variables:
        if name.startswith(UNMAPPED):
            setattr(_object_at(root, "bert_tf"), name.removeprefix(UNMAPPED), variables[name])
    return root


def _object_at(holder: tf.Module, path: str) -> tf.Module:
    """The object at a path of attributes, which is made if it is not there yet."""
    for name in path.split("/"):
        if not hasattr(holder, name):
            setattr(holder, name, tf.Module())
        holder = getattr(holder, name)
    return holder
