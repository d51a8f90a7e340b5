"""ONNX files: what is refused, and the numbers of every task in ONNX Runtime."""

import importlib.util

import numpy as np
import pytest
import tensorflow as tf

import bert_tf
from bert_tf.cli.parser import main
from bert_tf.encoder.encoder import INPUTS
from bert_tf.errors import UserError
from tests.export.conftest import TASKS

HAS_TF2ONNX = importlib.util.find_spec("tf2onnx") is not None


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            {"inputs": "strings"},
            "takes ids, computes in float32, does not abstain and reads no win",
        ),
        ({"precision": "bfloat16"}, "for anything else export a SavedModel"),
        ({"abstain": 0.5}, "for anything else export a SavedModel"),
        ({"lengths": [8]}, "^lengths is for format 'litert' without input_signature; remove it"),
        (
            {"version": 1},
            "^version is for format 'tf_saved_model' without input_signature; remove it",
        ),
    ],
)
def test_options_that_an_onnx_file_does_not_have(models, tmp_path, options, said):
    with pytest.raises(UserError, match=said):
        models("classification").export(tmp_path / "model.onnx", format="onnx", **options)
    assert not [*tmp_path.iterdir()]


def test_names_windows_and_other_options_of_the_command(models, tokenizer, tmp_path, capsys):
    model = models("classification")
    with pytest.raises(UserError, match=r"name of an ONNX file must end in \.onnx, unlike .*model"):
        model.export(tmp_path / "model", format="onnx")
    windows = bert_tf.TextClassifier(model.encoder, tokenizer, ["a", "b"], long_text="windows")
    with pytest.raises(UserError, match="reads no windows"):
        windows.export(tmp_path / "model.onnx", format="onnx")
    for options, said in (
        (["--kind", "hub"], "--kind hub is for --format tf_saved_model"),
        (["--precision", "bfloat16"], "--precision bfloat16 is for --format tf_saved_model"),
        (["--precision", "int8"], "--precision int8 is for --format tf_saved_model or litert"),
    ):
        command = ["export", "x", "--out", "y.onnx", "--format", "onnx", *options]
        assert main(command) == 2
        assert said in capsys.readouterr().err
    (tmp_path / "model.onnx").write_bytes(b"onnx")
    with pytest.raises(UserError, match="is an ONNX file of answers, and its weights cannot be"):
        bert_tf.load(tmp_path / "model.onnx")


@pytest.mark.skipif(HAS_TF2ONNX, reason="tf2onnx is installed")
def test_the_extra_is_named(models, tmp_path):
    with pytest.raises(UserError, match="^format onnx requires the extra onnx .* install it: pip"):
        models("classification").export(tmp_path / "model.onnx", format="onnx")


@pytest.mark.parametrize("family", TASKS)
def test_onnx_runtime_computes_the_same(models, tmp_path, family):
    pytest.importorskip("tf2onnx")
    runtime = pytest.importorskip("onnxruntime")
    model, path, source = models(family), tmp_path / "model.onnx", np.random.default_rng(0)
    model.export(path, format="onnx")
    session = runtime.InferenceSession(path)
    names = [each.name for each in session.get_outputs()]
    assert {*session.get_modelmeta().custom_metadata_map} == {
        "task.json",
        "vocab.txt",
        "labels.txt",
    }
    for rows, length in ((3, 7), (1, 20), (2, 30)):
        mask = np.ones([rows, length], np.int32)
        mask[0, 5:] = 0
        ids = source.integers(4, 20, mask.shape, np.int32)
        types = np.broadcast_to(np.arange(length) > 2, mask.shape)
        given = dict(zip(INPUTS, (ids * mask, mask, types * mask), strict=True))
        found = dict(zip(names, session.run(None, given), strict=True))
        expected = model.device_form().answer({k: tf.constant(v) for k, v in given.items()})
        assert found.keys() == expected.keys()
        for name, values in expected.items():
            assert (found[name].dtype, found[name].shape) == (values.dtype, values.shape)
            np.testing.assert_allclose(found[name], values, atol=1e-5)
