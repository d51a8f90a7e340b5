"""HDF5 files of weights, some of them malicious."""

import re

import h5py
import numpy as np
import pytest

from bert_tf.checkpoints import huggingface_weights, tensors
from tests.checkpoints import hostile_hdf5
from tests.checkpoints import tiny_models as tiny

KERNEL = "classifier/tf_bert_for_sequence_classification/classifier/kernel:0"


def test_arrays_are_read_by_their_paths(tmp_path):
    kernel = np.arange(6, dtype=np.float32).reshape(2, 3)
    with h5py.File(tmp_path / "weights.h5", "w") as file:
        file["dense/kernel:0"] = kernel
        file["step"] = np.int64(3)

    found = tensors.open_hdf5(tmp_path / "weights.h5")

    assert found.shapes == {"dense/kernel:0": (2, 3), "step": ()}
    np.testing.assert_array_equal(found.read("dense/kernel:0"), kernel)
    assert found.read("step") == 3


def test_a_file_that_is_missing_or_something_else_is_named(tmp_path):
    tiny.refused("checkpoint not found: .*weights.h5", tensors.open_hdf5, tmp_path / "weights.h5")
    (tmp_path / "weights.h5").write_bytes(b"version https://git-lfs.github.com/spec/v1\n")
    told = "checkpoint is damaged: .*weights.h5 .*; copy it again"
    tiny.refused(told, tensors.open_hdf5, tmp_path / "weights.h5")


@pytest.mark.parametrize("change", hostile_hdf5.CHANGES, ids=lambda change: change.__name__)
def test_weights_are_not_trusted(tmp_path, change):
    folder = tiny.copied("huggingface_tf/BertForSequenceClassification", tmp_path / "copy")
    with h5py.File(folder / "tf_model.h5", "r+") as file:
        del file[KERNEL]
        change(file, KERNEL)

    line = tiny.refused(hostile_hdf5.CHANGES[change], tiny.load, folder)
    assert re.search("tf_model.h5|of the checkpoint|copy", line)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (
            "bert/tf_bert_model_1/bert/embeddings/word_embeddings/weight:0",
            "bert.embeddings.word_embeddings.weight",
        ),
        (
            "bert/tf_bert_model/bert/embeddings/position_embeddings/embeddings:0",
            "bert.embeddings.position_embeddings.weight",
        ),
        (
            "model/a_name/bert/encoder/layer_._11/output/LayerNorm/gamma:0",
            "bert.encoder.layer.11.output.LayerNorm.weight",
        ),
        ("bert/pooler/dense/bias:0", "bert.pooler.dense.bias"),
        ("nsp___cls/x/nsp___cls/seq_relationship/kernel:0", "cls.seq_relationship.weight"),
        ("qa_outputs/x/qa_outputs/kernel:0", "qa_outputs.weight"),
        ("bert.pooler.dense.bias", None),
        ("dense_3/kernel:0", None),
    ],
)
def test_names_of_tensorflow_classes(name, expected):
    assert huggingface_weights.torch_name(name) == expected


def test_of_a_weight_that_is_in_a_file_twice_the_first_counts():
    names = [f"{layer}/m/bert/pooler/dense/kernel:0" for layer in ("bert", "mlm___cls")]
    found = huggingface_weights.in_torch_layout(
        tensors.of_arrays({name: np.full([2, 3], i) for i, name in enumerate(names)})
    )

    assert found.shapes == {"bert.pooler.dense.weight": (3, 2)}
    np.testing.assert_array_equal(found.read("bert.pooler.dense.weight"), np.zeros([3, 2]))
