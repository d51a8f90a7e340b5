"""`bert-tf pretrain-data`: text in; token files or TFRecords out."""

import json
import sys

import pytest

from bert_tf.cli.parser import main
from bert_tf.data.corpora.token_shards import DEV, TRAIN, TokenShards
from tests import tiny


@pytest.fixture
def config(tmp_path):
    return str(tiny.write_pretraining(tmp_path))


def test_text_becomes_token_shards(config, tmp_path, capsys):
    assert main(["pretrain-data", config, "--out", str(tmp_path / "out")]) == 0
    shards = TokenShards(tmp_path / "out")
    assert shards.vocabulary == tuple(tiny.VOCABULARY) and shards.tokenizer.lower_case
    assert sum(s.documents for part in (TRAIN, DEV) for s in shards.parts[part]) == 12
    assert f"{tmp_path / 'out'}: train 8 documents" in capsys.readouterr().err


def test_text_becomes_tfrecords_and_settings_lie_over_the_file(config, tmp_path):
    out = tmp_path / "out"
    arguments = ["--out", str(out), "--tfrecords", "--naming", "model_garden"]
    settings = ["--set", "train.max_length=16", "--set", "data.dupe_factor=3"]
    assert main(["pretrain-data", config, *arguments, *settings]) == 0
    manifest = json.loads((out / "manifest.json").read_text())
    assert manifest["naming"] == "model_garden" and manifest["train"] > 30
    assert manifest["max_length"] == 16
    assert not (out / "tokens").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--tfrecords", "--beam"], "--tfrecords and --beam cannot be combined"),
        (["--tfrecords", "--naming", "torch"], "invalid choice: 'torch'"),
        (
            ["--naming", "model_garden"],
            "--naming requires --tfrecords; add --tfrecords or remove --naming",
        ),
        (["--runner=FlinkRunner"], "unrecognized arguments: --runner=FlinkRunner"),
    ],
)
def test_mistakes_are_told_in_one_line(config, tmp_path, capsys, arguments, message):
    assert main(["pretrain-data", config, "--out", str(tmp_path / "out"), *arguments]) == 2
    told = capsys.readouterr().err.strip()
    assert message in told and "\n" not in told


def test_flags_after_beam_are_beams_own(config, tmp_path, monkeypatch):
    from bert_tf.data.corpora import beam_shards

    calls = []
    monkeypatch.setattr(beam_shards, "build", lambda *arguments: calls.append(arguments[2:]))
    out = str(tmp_path / "out")
    assert main(["pretrain-data", config, "--out", out, "--beam"]) == 0
    assert main(["pretrain-data", config, "--out", out, "--beam", "--runner=X", "-y"]) == 0
    assert calls == [(out, []), (out, ["--runner=X", "-y"])]


def test_without_beam_the_extra_is_named(config, tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "apache_beam.options.pipeline_options", None)
    assert main(["pretrain-data", config, "--out", str(tmp_path / "out"), "--beam"]) == 2
    assert "install it: pip install 'apache-beam<" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_tokens_are_not_tokenized_again(config, tmp_path, capsys):
    text = (tmp_path / "pretraining.yaml").read_text()
    (tmp_path / "pretraining.yaml").write_text(text.replace("sentence_per_line", "token_shards"))
    assert main(["pretrain-data", config, "--out", str(tmp_path / "out")]) == 2
    assert "data.format is token_shards, which holds no text to tokenize" in capsys.readouterr().err
