"""What this version writes opens in later ones, and forms of other versions say what to do.

`tests/tasks/test_keras_files.py` has the same for `.keras` files.
"""

import json
import lzma
import shutil
import tarfile
from pathlib import Path

import pytest

import bert_tf
from bert_tf import runs
from bert_tf.config.reading import load_config
from bert_tf.data.corpora.token_shards import TokenShards
from bert_tf.data.records.data import _check_tokenizer
from bert_tf.errors import UserError
from tests import tiny
from tests.fixtures.make_formats import DATA
from tests.tasks.test_keras_files import close

# Made by tests/fixtures/make_formats.py.
FORMATS = sorted((Path(__file__).parents[1] / "fixtures" / "formats").iterdir())


@pytest.fixture(params=FORMATS, ids=lambda folder: folder.name)
def golden(request, tmp_path):
    """A copy of the files of one form, unpacked; the configuration of its run has their path."""
    folder = tmp_path / "golden"
    shutil.copytree(request.param, folder)
    with tarfile.open(folder / "saved_model.tar.xz") as archive:
        archive.extractall(folder, filter="data")
    content = lzma.decompress((folder / "model.tflite.xz").read_bytes())
    (folder / "model.tflite").write_bytes(content)
    config = folder / "run" / "config.yaml"
    config.write_text(config.read_text().replace(DATA, str(folder / "data")))
    return folder


def changed(path, name, value):
    """Sets a field of a JSON file."""
    path.write_text(json.dumps(json.loads(path.read_text()) | {name: value}))


@pytest.mark.parametrize("name", ["run", "checkpoint", "saved_model", "model.tflite"])
def test_models_of_every_form_so_far_answer_the_same(golden, name):
    expected = json.loads((golden / "answers.json").read_text())
    model = bert_tf.load(golden / name)
    assert close(model.predict(expected["texts"]), expected["answers"])


@pytest.mark.end_to_end
def test_runs_of_every_form_so_far_resume(golden):
    run = golden / "run"
    expected = json.loads((run / "metrics.json").read_text())
    (run / "metrics.json").unlink()

    assert runs.finetune(load_config(run / "config.yaml"), run) == pytest.approx(expected, abs=1e-4)
    assert len([*(run / "checkpoints").iterdir()]) == 1


def test_token_shards_of_every_form_so_far_open(golden):
    shards = TokenShards(golden / "shards")
    assert list(shards.vocabulary) == tiny.VOCABULARY
    tokens, documents = shards.load(shards.parts["train"][0])
    assert len(tokens) == documents.sentences[-1] == 14


def test_a_run_of_before_0_3_has_no_number_and_opens(golden):
    config = golden / "run" / "config.yaml"
    config.write_text(config.read_text().replace("format: 1\n", "", 1))
    assert bert_tf.load(golden / "run").predict("the cat")


@pytest.mark.parametrize(
    ("name", "file", "value", "told"),
    [
        ("checkpoint", "bert_tf.json", 99, "written by a later version of bert_tf; update bert_tf"),
        ("saved_model", "assets/task.json", 99, r"a later bert_tf \(format 99\); update bert_tf"),
        ("shards", "manifest.json", "bert_tf token shards 9", "write it again with `bert-tf pret"),
    ],
)
def test_a_later_form_is_refused_with_what_to_do(golden, name, file, value, told):
    changed(golden / name / file, "format", value)
    with pytest.raises(UserError, match=told):
        TokenShards(golden / name) if name == "shards" else bert_tf.load(golden / name)


@pytest.mark.parametrize("act", [bert_tf.load, lambda run: runs.evaluate(run), "finetune"])
def test_a_run_of_a_later_form_is_refused_before_its_keys(golden, act):
    run = golden / "run"
    config = run / "config.yaml"
    text = config.read_text()
    config.write_text(text.replace("format: 1", "format: 2", 1) + "unknown_key: 1\n")
    with pytest.raises(UserError, match="config.yaml:1: the configuration has the format 2, not 1"):
        if act == "finetune":
            (golden / "own.yaml").write_text(text)
            runs.finetune(load_config(golden / "own.yaml"), run)
        else:
            act(run)
    assert (run / "metrics.json").exists()


def test_tfrecords_of_another_form_are_refused(tmp_path):
    manifest = {"format": "bert_tf examples 2"}
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(UserError, match="has the format 'bert_tf examples 2', not .*write the TFR"):
        _check_tokenizer(tmp_path, tiny.tokenizer())
    changed(tmp_path / "manifest.json", "format", "of another program")
    _check_tokenizer(tmp_path, tiny.tokenizer())
