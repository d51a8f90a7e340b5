"""The weights of a Hugging Face folder: one file, or several with an index.

They are in safetensors files, in the HDF5 files of transformers' TensorFlow classes, or in torch's.
A torch file is a pickle. It is opened only by torch's own reader of nothing but tensors.
"""

import os
from pathlib import Path

from bert_tf.checkpoints import hdf5, plain_json, tensors
from bert_tf.checkpoints.tensorflow_names import in_torch_layout
from bert_tf.checkpoints.tensors import Tensors
from bert_tf.errors import UserError

SAFETENSORS = "model.safetensors"
TENSORFLOW = "tf_model.h5"
TORCH = "pytorch_model.bin"


def open_folder(folder: Path) -> Tensors:
    """The tensors in `folder` under torch's names, from the first of the formats that is there.

    Raises:
        UserError: there are no weights, or a file is missing or damaged.
    """
    formats = {SAFETENSORS: tensors.open_file, TENSORFLOW: hdf5.open_file, TORCH: _open_torch}
    for name, open_file in formats.items():
        index = folder / f"{name}.index.json"
        if (folder / name).is_file():
            found = open_file(folder / name)
        elif index.is_file():
            found = tensors.joined(*(open_file(folder / shard) for shard in _shards(index)))
        else:
            continue
        return in_torch_layout(found)
    raise UserError(
        f"{folder} has no {SAFETENSORS}, {TENSORFLOW} or {TORCH}; copy the weights there too"
    )


def _shards(index: Path) -> list[str]:
    """The names of the files that an index lists, all in its own folder."""
    weight_map = plain_json.read_object(index, "index of the weights").get("weight_map")
    if not isinstance(weight_map, dict) or not weight_map:
        raise UserError(f"index of the weights has no weight_map: {index}; copy it again")
    shards = sorted({str(name) for name in weight_map.values()})
    for shard in shards:
        if shard in (".", "..") or "/" in shard or "\\" in shard or "\0" in shard:
            raise UserError(f"{index} names a file outside its folder: {shard!r}")
        # Path.is_file raises an error for a name that is too long.
        if not os.path.isfile(index.parent / shard):
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
        arrays = {str(name): value.float().numpy() for name, value in found.items()}
    except Exception as error:  # whatever its reader of pickles meets in a damaged or hostile file
        first = " ".join(str(error).split())[:200]
        raise UserError(
            f"{path} is not a file that contains only torch weights ({first}); give the weights "
            f"as {SAFETENSORS}"
        ) from None
    return tensors.of_arrays(arrays)
