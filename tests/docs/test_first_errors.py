"""The messages on docs/how_to/first_errors.md are those that are printed."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import bert_tf
from bert_tf.cli.parser import main
from bert_tf.dependencies import check_backend
from tests.checkpoints import tiny_models

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "docs/how_to/first_errors.md").read_text()
MESSAGES = [block.strip() for block in re.findall(r"^```text\n(.*?)^```$", TEXT, re.M | re.S)]
HEADS = tiny_models.FIXTURES / "huggingface_tf"
OLD = HEADS / "BertForSequenceClassification"
CONFIG = """\
task: classification
data: {path: ., format: tsv, train: train.tsv, dev: dev.tsv, text_columns: [text], label_column: label}
tokenizer: {vocab: vocab.txt}
model: {hidden_size: 8, num_hidden_layers: 1, num_attention_heads: 2, intermediate_size: 8}
"""  # noqa: E501


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for split in ("train", "dev"):
        (tmp_path / f"{split}.tsv").write_text("text\tlabel\na b\tgood\na c\tbad\n")
    shutil.copy(OLD / "vocab.txt", tmp_path)
    return tmp_path


def is_on_the_page(message, start=None):
    """Asserts that one of the page's messages is in `message`, whatever is around it."""
    found = [each for each in MESSAGES if each in message]
    assert found, message
    if start:
        assert any(each.startswith(start) for each in found), found


def finetune(folder, capsys, train, out="run"):
    """What `bert-tf finetune` prints about a mistake, in the form that the page shows."""
    (folder / "run.yaml").write_text(CONFIG + train)
    assert main(["finetune", "run.yaml", "--out", out]) == 2
    return capsys.readouterr().err.replace(f"{folder}/", "").replace(f"{folder.resolve()}/", "")


def test_a_misspelt_key(folder, capsys):
    is_on_the_page(finetune(folder, capsys, "train: {learning_rat: 1}\n"))


def test_a_label_of_the_dev_data_that_is_not_in_the_training_data(folder, capsys):
    (folder / "dev.tsv").write_text("text\tlabel\na b\tgood\na c\tugly\n")
    is_on_the_page(finetune(folder, capsys, "train: {epochs: 1}\n"))


def test_a_batch_that_is_larger_than_the_data(folder, capsys):
    is_on_the_page(finetune(folder, capsys, "train: {epochs: 1}\n"))


def test_a_loss_that_is_nan(folder, capsys):
    train = "train: {epochs: 9, batch_size: 2, learning_rate: 1.0e+30}\n"
    is_on_the_page(finetune(folder, capsys, train))


def copied(folder, source, *left_out):
    shutil.copytree(source, folder / "old")
    for name in left_out:
        (folder / "old" / name).unlink()
    return "old"


def refusal(call):
    with pytest.raises(bert_tf.UserError) as error:
        call()
    return str(error.value)


def test_files_that_are_missing(folder):
    name = copied(folder, OLD, "vocab.txt")
    is_on_the_page(refusal(lambda: bert_tf.load(name).predict("a b")))
    (folder / "old" / "tf_model.h5").unlink()
    is_on_the_page(refusal(lambda: bert_tf.load(name)))


def test_no_head(folder):
    name = copied(folder, HEADS / "BertModel")
    is_on_the_page(refusal(lambda: bert_tf.load(name)))


def test_texts_that_are_none():
    model = bert_tf.load(OLD)
    is_on_the_page(refusal(lambda: model.predict([("a", "b")])))
    is_on_the_page(refusal(lambda: model.predict([[1, 2, 3]])))


def test_no_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    is_on_the_page(refusal(lambda: bert_tf.load("google-bert/bert-base-uncased")))


def printed(code, **environment):
    """What a fresh Python prints."""
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"PYTHONPATH": str(ROOT)} | environment,
        capture_output=True,
        text=True,
    )
    return done.stdout + done.stderr


def test_a_name_that_is_not_there(monkeypatch):
    constants = pytest.importorskip("huggingface_hub.constants")
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    is_on_the_page(refusal(lambda: bert_tf.load("no-such/model")), "there is no file")


def test_another_backend(monkeypatch):
    monkeypatch.setattr("keras.backend.backend", lambda: "jax")
    is_on_the_page(refusal(check_backend))


def test_keras_2_and_lines_of_the_log():
    pytest.importorskip("tf_keras")
    code = f"""
import tensorflow as tf, bert_tf
bert_tf.load({str(OLD)!r}).compile(tf.keras.optimizers.Adam(1e-3))
"""
    logged = {"TF_CPP_MIN_LOG_LEVEL": "0", "TF_ENABLE_ONEDNN_OPTS": "1"}
    told = printed(code, TF_USE_LEGACY_KERAS="1", **logged)
    is_on_the_page(told, "Could not interpret")
    is_on_the_page(told, "oneDNN")


@pytest.mark.slow
def test_an_export_without_tensorflow_text(folder):
    bert_tf.load(OLD).export("exported", version=1)
    is_on_the_page(printed("import tensorflow as tf; tf.saved_model.load('exported/1')"))


def test_versions_of_python():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    # pip sorts the parts.
    parts = ",".join(sorted(project["requires-python"].replace(" ", "").split(",")))
    assert f"not in '{parts}'" in TEXT
    assert any(each.startswith("tensorflow-text>=2.20") for each in project["dependencies"])
