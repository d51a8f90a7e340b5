"""SavedModels and LiteRT files as objects; the record by which they are known."""

import json
import os
import shutil

import keras
import pytest
import tensorflow as tf

import bert_tf
from bert_tf.asking.record import RECORD_FILE, Record, is_float32
from bert_tf.cli.parser import main
from bert_tf.errors import UserError
from bert_tf.export.litert.saving import read
from tests.tasks import tiny_objects


def test_nothing_gives_weights_to_the_model_of_an_export(lite_file):
    made = []
    bert_tf.load(lite_file("classification")).predict("a film")

    def noting(make, **options):
        made.append(options)
        return make(**options)

    with tf.variable_creator_scope(noting), keras.StatelessScope():
        pass
    assert made == []


@pytest.fixture
def folder(exported, tmp_path):
    """A copy of an export, whose record may be changed."""
    return shutil.copytree(exported("classification"), tmp_path / "model")


def changed(folder, **fields):
    """Writes other fields into the record of an export."""
    path = folder / "assets" / RECORD_FILE
    path.write_text(json.dumps(json.loads(path.read_text()) | fields))
    return path


def test_the_precision_of_the_newest_version_is_known(folder, tmp_path):
    shutil.copytree(folder, tmp_path / "versions" / "9")
    changed(folder, precision="bfloat16")
    shutil.copytree(folder, tmp_path / "versions" / "10")
    known = [is_float32(str(tmp_path / "versions" / each)) for each in ("9", "10", "")]
    assert known == [True, False, False]
    assert not is_float32(str(tmp_path / "nothing"))


def test_both_formats_have_the_same_record(models, exported, lite_file):
    saved = Record.of_saved_model(exported("classification"))
    _, lite, *_ = read(lite_file("classification"))
    assert saved is not None and (saved.class_name, saved.inputs) == ("TextClassifier", "strings")
    assert (saved.model, saved.lengths) == (lite.model, lite.lengths)
    assert saved.model["settings"] == models("classification").settings
    card = exported("classification") / "assets.extra" / "model_card.json"
    said = json.loads(card.read_text())
    assert said["labels"] == saved.model["labels"]
    assert said["model"].items() >= saved.model["settings"].items()


@pytest.mark.parametrize("name", ["variables.index", "variables.data-00000-of-00001"])
def test_damaged_variables_are_reported_in_one_line(folder, capsys, name):
    path = folder / "variables" / name
    whole = path.read_bytes()
    for content in (b"", whole[: len(whole) // 2], whole[:20] + bytes(40) + whole[60:], None):
        path.unlink()
        if content is not None:
            path.write_bytes(content)
        assert main(["predict", str(folder), "the cat"]) == 2
        assert capsys.readouterr().err.startswith("bert-tf: error: SavedModel is damaged: ")
        path.write_bytes(whole)


@pytest.mark.parametrize("name", ["fingerprint.pb", "assets/vocab.txt", "variables/checkpoint"])
def test_a_pipe_or_a_device_is_not_opened(folder, name):
    (folder / name).unlink(missing_ok=True)
    os.mkfifo(folder / name)
    with pytest.raises(UserError, match=f"is a pipe, a device or a socket, not a file: .*{name}"):
        bert_tf.load(folder)
    (folder.parent / "zero.tflite").symlink_to("/dev/zero")
    with pytest.raises(UserError, match="is a pipe, a device or a socket.*zero.tflite"):
        bert_tf.load(folder.parent / "zero.tflite")


@pytest.mark.end_to_end
def test_weights_that_are_no_numbers_give_no_answers(models, tokenizer, tmp_path):
    model = bert_tf.TextClassifier(models("classification").encoder, tokenizer, ["no", "yes"])
    model.classifier.bias.assign([float("nan"), 0.0])
    model.export(tmp_path / "saved_model")
    model.export(tmp_path / "ids", inputs="ids")
    model.export(tmp_path / "model.tflite", format="litert")
    for name in ("saved_model", "ids", "model.tflite"):
        with pytest.raises(UserError, match=f"{name}:? answers NaN for probabilities; copy or"):
            bert_tf.load(tmp_path / name).predict("the cat")


def test_an_export_without_a_record_is_known_by_its_outputs(folder, models):
    (folder / "assets" / RECORD_FILE).unlink()
    served = bert_tf.load(folder)
    assert served.task_class() is bert_tf.TextClassifier
    expected = models("classification").predict("the cat", verbose=0)["label"]
    assert served.predict("the cat", verbose=0)["label"] == expected


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "task.json is damaged"),
        (b"[1]", "its settings are not a JSON object"),
        (b"[" * 100_000, "task.json is damaged"),
        (b"\xff{}", "task.json is damaged"),
        (b" " * (2**24 + 1), "its settings are too long"),
        (b"{}", "it has no format version"),
        (b'{"format": true}', "it has no format version"),
        (b'{"format": 2}', r"by a later bert_tf \(format 2\); update bert_tf to load it"),
        (b'{"format": 1}', r"is damaged \(model is not as expected\); export it again"),
    ],
)
def test_a_damaged_record_and_one_of_a_later_version(folder, capsys, content, said):
    (folder / "assets" / RECORD_FILE).write_bytes(content)
    with pytest.raises(UserError, match=said):
        bert_tf.load(folder)
    assert main(["predict", str(folder), "the cat"]) == 2
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("model", "TextClassifier"),
        ("model", {"model": ["TextClassifier"]}),
        ("model", {"model": "TextClassifier", "settings": 1}),
        ("lengths", []),
        ("lengths", [True]),
        ("lengths", [0]),
        ("inputs", None),
        ("precision", 16),
        ("cuts", "no"),
        ("other", "x"),
    ],
)
def test_fields_of_a_wrong_kind(folder, name, value):
    changed(folder, **{name: value})
    with pytest.raises(UserError, match=rf"is damaged \({name} is not as expected\)"):
        bert_tf.load(folder)


@pytest.mark.parametrize(
    ("class_name", "said"),
    [
        ("Unheard", "holds an unknown model 'Unheard'; update bert_tf"),
        ("TextEmbedder", "does not answer as its description says; export it again"),
    ],
)
def test_a_model_that_is_not_what_its_record_says(folder, class_name, said):
    changed(folder, model={"model": class_name})
    served = bert_tf.load(folder)
    with pytest.raises(UserError, match=said):
        served.predict("the cat")
    assert "label" in served.serve(text=tf.constant(["the cat"]))


def test_outputs_of_no_task_are_served_alone(tmp_path):
    answer = tf.function(
        lambda text, times: {"length": times * tf.strings.length(text)},
        [tf.TensorSpec([None], tf.string, "text"), tf.TensorSpec([], tf.int32, "times")],
    )
    tf.saved_model.save(tf.Module(), tmp_path, signatures={"serving_default": answer})
    served = bert_tf.load(tmp_path)
    with pytest.raises(UserError, match="returns length, which are not the outputs of a task"):
        served.predict("the cat")
    assert served.serve(text=["cat"], times=2)["length"].numpy().tolist() == [6]


@pytest.fixture(params=["SavedModel", "LiteRT file"])
def frozen(request, exported, lite_file, loads_once):
    """A frozen task of each kind, and what it is called."""
    of = exported if request.param == "SavedModel" else lite_file
    return bert_tf.load(of("classification")), request.param


@pytest.mark.parametrize("method", ["fit", "compile", "save", "save_checkpoint", "export"])
def test_it_only_answers(frozen, method):
    task, kind = frozen
    with pytest.raises(UserError, match=f"is a {kind}, which can only predict; load the run"):
        getattr(task, method)("x")


def test_it_compares_no_texts_and_takes_no_settings(frozen):
    task, kind = frozen
    with pytest.raises(UserError, match="returns no vectors"):
        task.similarity("cat", "dog")
    with pytest.raises(UserError, match="no input 'text'; the model takes text"):
        task.serve({"texts": ["cat"]})
    with pytest.raises(UserError, match=f"is a {kind}, whose settings are fixed"):
        bert_tf.load(task.path, max_length=8)


def test_a_saved_model_gives_no_logits_to_evaluate(exported, loads_once):
    with pytest.raises(UserError, match="is a SavedModel, which can only predict"):
        bert_tf.load(exported("classification")).evaluate(["the cat"], ["no"])


def test_texts_that_are_cut_are_counted(frozen, models, capsys):
    task, _ = frozen
    length = models("classification").max_length
    whole, cut = " ".join(["cat"] * (length - 2)), " ".join(["cat"] * length)
    capsys.readouterr()
    task.predict(["cat", whole], verbose=0)
    assert "max_length" not in capsys.readouterr().err
    task.predict([cut, whole, cut], verbose=0)
    assert f"2 of 3 inputs have more than {length} tokens (max_length)" in capsys.readouterr().err


@pytest.mark.end_to_end
def test_words_that_a_model_adds_count_too(tmp_path, capsys):
    model = tiny_objects.zero_shot(
        hypothesis_template="the cat sat on the mat and {}", max_length=9
    )
    model.export(tmp_path / "model")
    said = "1 of 1 inputs have more than 9 tokens (max_length)"
    for each in (model, bert_tf.load(tmp_path / "model")):
        capsys.readouterr()
        each.predict(["cat"], labels=["dog"], verbose=0)
        assert said in capsys.readouterr().err
