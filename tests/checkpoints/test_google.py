"""google-research's checkpoints; the fixtures are of `tests/fixtures/make_google_tiny.py`."""

import json
import shutil

import numpy as np
import pytest

from bert_tf.checkpoints import conversion, google, reading, tf_files
from bert_tf.text import Tokenizer
from tests.checkpoints import tiny_models as tiny


def folder_of(name):
    return tiny.FIXTURES / f"google_tiny_{name}"


@pytest.mark.parametrize(
    ("name", "step"),
    [
        ("", 100),
        ("model.ckpt-20", 20),
        ("model.ckpt-20.index", 20),
        ("model.ckpt-20.meta", 20),
        ("model.ckpt-20.data-00000-of-00001", 20),
    ],
)
def test_a_prefix_any_of_its_files_and_the_last_step_of_a_folder_are_found(tmp_path, name, step):
    published = tf_files.open_prefix(folder_of("classifier") / "bert_model.ckpt")
    arrays = {weight: published.read(weight) for weight in published.shapes}
    bias = "bert/pooler/dense/bias"
    for number in (5, 20, 100):
        arrays[bias] = np.full_like(arrays[bias], number)
        tf_files.write_named(tmp_path / f"model.ckpt-{number}", arrays)
        (tmp_path / f"model.ckpt-{number}.meta").write_bytes(b"a graph")
    shutil.copy(folder_of("classifier") / "bert_config.json", tmp_path)

    found = reading.find(tmp_path / name)
    assert found.folder == tmp_path
    assert found.description.model == "TextClassifier"
    assert set(found.tensors.read(bias)) == {step}


def test_a_checkpoint_without_its_configuration_tells_which_to_copy(tmp_path):
    for file in folder_of("classifier").glob("bert_model.ckpt*"):
        shutil.copy(file, tmp_path)

    told = r"there is no bert_config.json next to .*; copy it there from"
    tiny.refused(told, reading.find, tmp_path)


def test_the_vocabulary_tells_the_casing(tmp_path):
    assert Tokenizer.from_checkpoint(folder_of("squad")).lower_case

    vocabulary = tiny.copied("google_tiny_squad", tmp_path) / "vocab.txt"
    vocabulary.write_text(vocabulary.read_text().replace("##d", "##D"))
    assert not Tokenizer.from_checkpoint(tmp_path).lower_case


@pytest.mark.parametrize("kind", ["encoder", "pretrainer", "classifier", "span"])
def test_what_is_written_has_the_variables_that_google_research_writes(tmp_path, kind):
    names = {"encoder": "classifier", "pretrainer": "pretraining", "span": "squad"}
    conversion.save(tiny.make(kind, hidden_act="gelu_new"), tmp_path / "out", "tf1")

    ours = tf_files.open_prefix(tmp_path / "out" / "bert_model.ckpt").shapes
    theirs = tf_files.open_prefix(folder_of(names.get(kind, kind)) / "bert_model.ckpt").shapes
    trained = {
        name: shape
        for name, shape in theirs.items()
        if not name.endswith(("adam_m", "adam_v", "global_step"))
        and not (kind == "encoder" and name.startswith("output_"))
    }
    assert ours == trained


def test_the_configuration_says_gelu_to_google_research_and_the_exact_form_to_us(tmp_path, capsys):
    conversion.save(tiny.make("encoder", hidden_act="gelu"), tmp_path / "out", "tf1")

    fields = json.loads((tmp_path / "out" / google.CONFIG_FILE).read_text())
    assert fields["hidden_act"] == "gelu"
    assert fields["bert_tf"] == {"encoder": {"hidden_act": "gelu"}}
    assert capsys.readouterr().err == (
        "warning: google-research/bert will use hidden_act gelu_new, but the model has "
        "gelu; only bert_tf restores that value\n"
    )
    assert reading.find(tmp_path / "out").encoder.hidden_act == "gelu"
