"""Text encoders of TF Hub, read as data: SavedModels that Model Garden or bert_tf exported.

The variables file is an object-based checkpoint. The SavedModel itself is never loaded or run.
Model Garden's exports have no configuration, so the form of GELU is read from the graph. bert_tf's
exports name the objects by our names of weights, and have `bert_tf.json` in the assets.
Source: `official/nlp/tools/export_tfhub_lib.py` in tf-models-official.
"""

from pathlib import Path

from google.protobuf.message import DecodeError

from bert_tf.checkpoints import model_garden, native, tf_files
from bert_tf.checkpoints.checkpoint import Checkpoint
from bert_tf.checkpoints.description import EXTRA_KEY
from bert_tf.checkpoints.tensors import Tensors, damaged
from bert_tf.compat import SavedModel
from bert_tf.errors import UserError
from bert_tf.io.files import GRAPH, is_there, read_bytes
from bert_tf.io.vocabulary import read_beside

SAVED_MODEL_FILE = "saved_model.pb"

_ASSETS = "assets"
_LOWER_CASE = "do_lower_case/.ATTRIBUTES/VARIABLE_VALUE"


def open_checkpoint(folder: Path) -> Checkpoint:
    """The encoder in the SavedModel `folder`."""
    prefix = folder / "variables" / "variables"
    if not is_there(prefix.with_suffix(".index")):
        raise UserError(f"{folder} is a SavedModel without variables; give one that is not frozen")
    file = tf_files.open_prefix(prefix)
    if tf_files.OBJECT_GRAPH not in file.shapes:
        raise UserError(f"{folder} is a SavedModel of TensorFlow 1; give one of TensorFlow 2")
    if is_there(folder / _ASSETS / native.DESCRIPTION_FILE):
        return _ours(folder, prefix, file)
    tensors, notes = model_garden.named_tensors(prefix, file)
    shape = file.shapes.get(_LOWER_CASE)
    if shape not in (None, ()):
        raise damaged(prefix, f"{_LOWER_CASE} has shape {list(shape)}")
    extra = {
        "encoder": {"hidden_act": _activation(folder / SAVED_MODEL_FILE)},
        "lower_case": None if shape is None else bool(file.read(_LOWER_CASE)),
    }
    return model_garden.described(
        folder, tensors, {EXTRA_KEY: extra}, notes, lambda: read_beside(folder / _ASSETS)
    )


def _ours(folder: Path, prefix: Path, file: Tensors) -> Checkpoint:
    """The encoder in an export of `bert-tf export --kind hub`."""
    nodes = tf_files.read_object_graph(prefix, file).nodes
    try:
        names = {
            weight.local_name: nodes[weight.node_id].attributes[0].checkpoint_key
            for child in nodes[0].children
            if child.local_name == "weights"
            for weight in nodes[child.node_id].children
        }
        tensors = file.renamed(names)
    except (IndexError, KeyError):
        raise damaged(prefix, "its object graph cannot be read") from None
    assets = folder / _ASSETS
    description = native.read_description(assets)
    found = Checkpoint(folder, description, tensors, native.TABLE, lambda: read_beside(assets))
    return found.check()


def _activation(path: Path) -> str:
    """The form of GELU: only the exact one is computed with `Erf`."""
    saved = SavedModel()
    try:
        saved.ParseFromString(read_bytes(path, "SavedModel", GRAPH))
    except DecodeError as error:
        raise UserError(f"SavedModel is damaged: {path} ({error}); copy it again") from None
    functions = (f for meta in saved.meta_graphs for f in meta.graph_def.library.function)
    exact = any(node.op in ("Erf", "Erfc") for each in functions for node in each.node_def)
    return "gelu" if exact else "gelu_new"
