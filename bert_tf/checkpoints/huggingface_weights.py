"""The weights of a Hugging Face folder: one file, or several with an index.

They are in safetensors files, in HDF5 files of transformers 4's TensorFlow classes, or in torch
files. A torch file is a pickle. It is opened only by torch's own reader of tensors, which runs no
code. TensorFlow classes have their own names and layout of weights (`modeling_tf_bert.py` of
transformers 4), in `tf_model.h5` and in the `model.safetensors` that they write.
"""

import os
import re
from pathlib import Path

from bert_tf.checkpoints import plain_json, tensors
from bert_tf.checkpoints.tensors import Tensors
from bert_tf.errors import UserError
from bert_tf.io.files import is_there

SAFETENSORS = "model.safetensors"
TENSORFLOW = "tf_model.h5"
TORCH = "pytorch_model.bin"

# A weight's name in a TensorFlow class. The names of the model and of its layers come first.
_NAME = re.compile(
    r"(?:.*/)?((?:(?:bert|distilbert|electra)/(?:embeddings(?:_project)?|encoder|transformer|pooler)"
    r"|mlm___cls|nsp___cls|classifier|qa_outputs|pre_classifier|vocab_\w+|sequence_summary"
    r"|generator_\w+|discriminator_predictions)/.+):0"
)
# The name of an encoder's word embeddings. It may begin with a training tool's prefix, and then, in
# a class with a head, with the model's name.
_WORDS = re.compile(r"(.*?)(?:\w*bert\.|electra\.)?embeddings\.word_embeddings\.weight")
_PARTS = {"kernel": "weight", "gamma": "weight", "beta": "bias", "embeddings": "weight"}


def open_folder(folder: Path) -> Tensors:
    """The tensors in `folder` under torch's names, in the first format that is there."""
    formats = {SAFETENSORS: tensors.open_file, TENSORFLOW: tensors.open_hdf5, TORCH: _open_torch}
    for name, open_file in formats.items():
        index = folder / f"{name}.index.json"
        if is_there(folder / name, "weights"):
            found = open_file(folder / name)
        elif is_there(index):
            found = tensors.joined(*(open_file(folder / shard) for shard in _shards(index)))
        else:
            continue
        found = in_torch_layout(found)
        # Removes the prefix that training tools put before all names, such as "module.".
        wrappers = {match[1] for name in found.shapes if (match := _WORDS.fullmatch(name))}
        wrapper = wrappers.pop() if len(wrappers) == 1 else ""  # several encoders keep theirs
        names = {name: name.removeprefix(wrapper) for name in found.shapes}
        return found.renamed({n if new in names else new: n for n, new in names.items()})
    raise UserError(
        f"{folder} has no {SAFETENSORS}, {TENSORFLOW} or {TORCH}; copy the weights there too"
    )


def in_torch_layout(found: Tensors) -> Tensors:
    """Tensors with torch's names and kernels; of a weight that layers share, the first counts."""
    names: dict[str, str] = {}
    for name in found.shapes:
        names.setdefault(torch_name(name) or name, name)
    kernels = {new for new, old in names.items() if new != old and old.endswith("/kernel:0")}
    renamed = found.renamed(names)
    shapes = {
        name: shape[::-1] if name in kernels else shape for name, shape in renamed.shapes.items()
    }
    return Tensors(
        shapes, lambda name: renamed.read(name).T if name in kernels else renamed.read(name)
    )


def torch_name(name: str) -> str | None:
    """Torch's name of a TensorFlow class's weight; None if no such class has the weight.

    >>> torch_name("bert/tf_bert_model/bert/encoder/layer_._0/attention/self/key/kernel:0")
    'bert.encoder.layer.0.attention.self.key.weight'
    >>> torch_name("mlm___cls/tf_bert_for_masked_lm/mlm___cls/predictions/bias:0")
    'cls.predictions.bias'
    """
    match = _NAME.fullmatch(name)
    if not match:
        return None
    *owners, part = match[1].split("/")
    # "___" stands between the parts of one name, "_._" between a list and a number.
    owners = [re.sub(r"^.*___", "", owner).replace("_._", ".") for owner in owners]
    return ".".join([*owners, _PARTS.get(part, part)])


def _shards(index: Path) -> list[str]:
    """The names of the files that an index lists, all in its own folder."""
    weight_map = plain_json.read_object(index, "index of the weights").get("weight_map")
    if not isinstance(weight_map, dict) or not weight_map:
        raise UserError(f"index of the weights has no weight_map: {index}; copy it again")
    shards = sorted({str(name) for name in weight_map.values()})
    for shard in shards:
        if plain_json.is_outside(shard):
            raise UserError(f"{index} names a file outside its folder: {shard!r}")
        if not os.path.lexists(index.parent / shard):  # False if the name is too long
            raise UserError(f"{index} names {shard}, which is not there; copy it too")
    return shards


def _open_torch(path: Path) -> Tensors:
    try:
        import torch
    except ImportError:
        raise UserError(
            f"{path} is a torch file, and torch is not installed; install torch, or convert the "
            f"weights to {SAFETENSORS}"
        ) from None
    try:
        found = torch.load(path, map_location="cpu", weights_only=True)
        # Integers stay integers, so that they are refused as weights.
        floats = {n: v.float() if v.is_floating_point() else v for n, v in found.items()}
        arrays = {str(name): value.numpy() for name, value in floats.items()}
    except Exception as error:  # the errors of a damaged or hostile pickle have no common class
        first = " ".join(str(error).split())[:200]
        raise UserError(
            f"{path} is not a file that contains only torch weights ({first}); give the weights "
            f"as {SAFETENSORS}"
        ) from None
    return tensors.of_arrays(arrays)
