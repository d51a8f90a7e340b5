"""What cannot be exported or used is refused in one sentence."""

import numpy as np
import pytest
import tensorflow as tf

import bert_tf
from bert_tf.cli.parser import main
from bert_tf.errors import UserError
from bert_tf.export.litert.form import DeviceForm, output
from bert_tf.export.run import export_run
from tests.tasks import tiny_objects


@pytest.fixture
def model():
    return tiny_objects.classifier(labels=["bad", "good"], pair=False)


@pytest.fixture
def file(lite_file):
    return lite_file("multi_label")


@pytest.mark.end_to_end
@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (
            {"precision": "bfloat16"},
            "unknown precision 'bfloat16' for a LiteRT file; choose one of",
        ),
        ({"lengths": [4]}, "length is 4; it must be from 5 to the max_length of the model, 32"),
        ({"lengths": [16, 64]}, "length is 64; it must be from 5"),
        ({"calibration": ["cat"]}, "calibration is for precision int8"),
        ({"calibration": [], "precision": "int8"}, "the calibration has no texts"),
        ({"calibration": ["cat", 5], "precision": "int8"}, "text 1 is 5"),
        (
            {"calibration": ["cat"], "precision": "int8", "lengths": [8, 16]},
            "a calibration is for one length; give one of 8, 16",
        ),
        (
            {"calibration": ["cat " * 20], "precision": "int8", "lengths": [8]},
            "no text of the calibration fits into 8 tokens",
        ),
    ],
)
def test_settings_that_do_not_fit(model, tmp_path, settings, said):
    with pytest.raises(UserError, match=said):
        model.export(tmp_path / "model.tflite", format="litert", **settings)
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize(
    ("format", "option"),
    [
        *(("litert", each) for each in ({"version": 1}, {"freeze": True}, {"device": "any"})),
        ("tf_saved_model", {"lengths": [8]}),
        ("openvino", {"inputs": "strings"}),
        ("onnx", {"calibration": ["cat"]}),
        ("onnx", {"freeze": True}),
    ],
)
def test_options_of_another_format_are_named(model, tmp_path, format, option):
    with pytest.raises(
        UserError, match=f"^{[*option][0]} is for format '.*' without input_signature; remove"
    ):
        model.export(tmp_path / "model.tflite", format=format, **option)


@pytest.mark.end_to_end
def test_a_text_longer_than_the_longest_row_is_cut(model, tmp_path, capsys):
    model.export(tmp_path / "short.tflite", format="litert", lengths=[6, 8])
    short = bert_tf.load(tmp_path / "short.tflite")
    assert short.settings == {**model.settings, "max_length": 8}
    whole, cut = ("the cat sat on the mat " * 2, "the cat sat on the mat")
    found = short.predict([whole, cut], verbose=0)
    assert "1 of 2 inputs have more than 8 tokens (max_length)" in capsys.readouterr().err
    assert [*found[0]["probabilities"].values()] == pytest.approx(
        [*model.predict(cut, verbose=0)["probabilities"].values()], abs=1e-5
    )


def test_a_name_that_does_not_end_in_tflite(model, tmp_path):
    with pytest.raises(UserError, match=r"must end in \.tflite"):
        model.export(tmp_path / "model", format="litert")


def test_a_file_that_is_there_is_kept(model, file):
    before = file.read_bytes()
    with pytest.raises(UserError, match="exists already"):
        model.export(file, format="litert")
    assert file.read_bytes() == before


def test_an_operation_that_litert_lacks_is_named_with_the_model(model, tmp_path, monkeypatch):
    def device_form(self):
        def answer(features):
            inverse = tf.linalg.inv(tf.eye(3) * tf.cast(features["input_mask"][0, 0], tf.float32))
            return {"probabilities": inverse[:1]}

        return DeviceForm({"probabilities": output(3)}, answer, lambda outputs, _: outputs)

    monkeypatch.setattr(bert_tf.TextClassifier, "device_form", device_form)
    with pytest.raises(UserError, match="no operation tf.MatrixInverse, which this TextClassifier"):
        model.export(tmp_path / "model.tflite", format="litert")


def test_a_reader_of_one_direction_fills_no_masks_on_a_device(tmp_path):
    encoder = tiny_objects.encoder(attention="left_to_right")
    model = bert_tf.MaskedLM(encoder, tiny_objects.tokenizer())
    with pytest.raises(UserError, match="reads in one direction cannot be exported to LiteRT"):
        model.export(tmp_path / "model.tflite", format="litert")


def test_prompts_that_do_not_count_have_no_input(tmp_path):
    prompts = {"prompts": {"query": "the "}, "include_prompt": False}
    with pytest.raises(
        UserError, match="excludes its prompts from pooling cannot be exported with ids"
    ):
        tiny_objects.embedder(**prompts).export(tmp_path / "model.tflite", format="litert")


@pytest.mark.end_to_end
def test_more_masks_than_a_file_fills(lite):
    file = lite("mlm")
    assert len(file.predict("the [MASK] " * 15, verbose=0)) == 15
    with pytest.raises(UserError, match="more than 20 masks, the most that the file fills"):
        file.predict("[MASK] " * 25, verbose=0)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"freeze": True}, "--freeze is for --format tf_saved_model"),
        ({"version": 1}, "--version is for --format tf_saved_model"),
        ({"precision": "bfloat16"}, "--precision bfloat16 is for --format tf_saved_model"),
        ({"kind": "hub"}, "--kind hub is for --format tf_saved_model"),
        ({"device": "any"}, "--device any is for --format tf_saved_model"),
        ({"format": "tf_saved_model", "lengths": [8]}, "--lengths is for --format litert"),
        (
            {"format": "tf_saved_model", "precision": "float16"},
            "--precision float16 is for --format",
        ),
        (
            {"kind": "hub", "format": "tf_saved_model", "inputs": "ids"},
            "--kind hub .* remove --inpu",
        ),
    ],
)
def test_options_of_the_other_format(tmp_path, options, said):
    with pytest.raises(UserError, match=said):
        export_run("missing", tmp_path / "out", **{"format": "litert"} | options)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "input is empty"),
        ('{"text": 5}\n', "line 1"),
        ("\n\n", "the calibration has no texts"),
        (None, "input not found"),
    ],
)
def test_a_calibration_file_without_texts(model, tmp_path, content, said):
    model.save(tmp_path / "model.keras")
    if content is not None:
        (tmp_path / "texts.jsonl").write_text(content)
    with pytest.raises(UserError, match=said):
        export_run(
            tmp_path / "model.keras",
            tmp_path / "model.tflite",
            format="litert",
            precision="int8",
            calibration=str(tmp_path / "texts.jsonl"),
        )


@pytest.mark.end_to_end
def test_the_command_writes_a_file_and_asks_it(model, tmp_path, capsys):
    model.save(tmp_path / "model.keras")
    (tmp_path / "texts.txt").write_text("the cat sat\na dog ran\n")
    options = ["--format", "litert", "--precision", "int8", "--calibration"]
    paths = [str(tmp_path / name) for name in ("model.keras", "model.tflite", "texts.txt")]
    assert main(["export", paths[0], "--out", paths[1], *options, paths[2]]) == 0
    assert main(["predict", paths[1], "the cat", "dog"]) == 0
    assert capsys.readouterr().out.count('"label"') == 2


@pytest.mark.end_to_end
def test_vectors_of_a_file_of_texts(models, lite_file, tmp_path):
    (tmp_path / "texts.txt").write_text("the cat sat\na dog\nfish on the mat under the tree .\n")
    paths = [lite_file("embedding"), *(tmp_path / name for name in ("texts.txt", "vectors.npy"))]
    command = ["embed", *map(str, paths[:2]), "--out", str(paths[2])]
    assert main(command) == 0
    texts = paths[1].read_text().splitlines()
    expected = models("embedding").predict(texts, verbose=0)
    np.testing.assert_allclose(np.load(paths[2]), expected, atol=1e-5)
    assert main([*command, "--max-length", "8"]) == 2
