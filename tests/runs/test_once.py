"""Runs and searches open, read and encode each thing once."""

import builtins
import collections
import io
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from bert_tf import runs
from bert_tf.checkpoints import conversion, reading, tensors
from bert_tf.checkpoints.of_run import newest
from bert_tf.config.reading import load_config
from bert_tf.encoder.encoder import Encoder
from bert_tf.text import Tokenizer
from bert_tf.training.checkpointing import Checkpoints
from tests import tiny
from tests.runs.killed import weights

RATES = "train.learning_rate=[1e-3,1e-2]"


@pytest.fixture
def opened(monkeypatch):
    """How often each file was opened."""
    counts = collections.Counter()
    system_open = io.open

    def counting_open(file, *args, **kwargs):
        if not isinstance(file, int):
            counts[Path(file)] += 1
        return system_open(file, *args, **kwargs)

    monkeypatch.setattr(io, "open", counting_open)
    monkeypatch.setattr(builtins, "open", counting_open)
    return counts


@pytest.fixture
def tokenized(monkeypatch):
    """How often each text was tokenized outside of the graph that answers."""
    counts = collections.Counter()
    tokenize = Tokenizer.tokenize

    def counting_tokenize(self, texts):
        if tf.executing_eagerly():
            counts.update(text.decode() for text in np.asarray(texts).ravel())
        return tokenize(self, texts)

    monkeypatch.setattr(Tokenizer, "tokenize", counting_tokenize)
    return counts


def texts_of(path):
    return [line.split("\t")[0] for line in path.read_text().splitlines()[1:]]


def load(folder, *settings):
    return load_config(tiny.write_finetuning(folder), ["train.epochs=1", *settings])


@pytest.fixture
def found(monkeypatch):
    """How often each checkpoint was looked up."""
    counts, find = collections.Counter(), reading.find

    def counting_find(path):
        counts[Path(path)] += 1
        return find(path)

    monkeypatch.setattr(reading, "find", counting_find)
    return counts


def load_of_checkpoint(path, start, *settings):
    """A configuration that takes the sizes and the vocabulary from its initial checkpoint."""
    text = path.read_text().replace(tiny.MODEL, "")
    path.write_text(text.replace("tokenizer: {vocab: vocab.txt}\n", ""))
    return load_config(path, [f"init.checkpoint={start}", *settings])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("write", "run", "settings"),
    [
        (tiny.write_pretraining, runs.pretrain, ["train.steps=1"]),
        (tiny.write_finetuning, runs.finetune, ["train.epochs=1", RATES]),
    ],
    ids=["pre-training", "search"],
)
def test_the_initial_checkpoint_is_opened_once(tmp_path, found, write, run, settings):
    start = tmp_path / "start"
    tokenizer = tiny.tokenizer()
    conversion.save(Encoder(tiny.encoder_config(16)), start, "bert_tf", tokenizer)
    run(load_of_checkpoint(write(tmp_path), start, *settings), tmp_path / "run")
    assert found[start] == 1


@pytest.mark.end_to_end
def test_fine_tuning_starts_from_a_checkpoint_and_reads_it_and_a_test_file_once(
    tmp_path, pretrained, opened, found
):
    settings = ["train.epochs=1", "train.learning_rate=1e-9"]
    config = load_of_checkpoint(tiny.write_finetuning(tmp_path), pretrained, *settings)
    opened.clear()
    runs.finetune(config, tmp_path / "run")

    before, after = weights(pretrained), weights(tmp_path / "run")
    name = "encoder/layer_0/intermediate/kernel"
    np.testing.assert_allclose(after[name], before[name], atol=1e-5)
    assert "masked_lm/output_bias" not in after
    assert found[pretrained] == 1
    assert opened[tmp_path / "test.tsv"] == 1
    predictions = (tmp_path / "run" / "predictions" / "test.tsv").read_text()
    assert predictions.count("\n") == 1 + len(texts_of(tmp_path / "test.tsv"))


@pytest.mark.slow
def test_trials_with_the_same_data_settings_share_what_is_read_and_encoded(
    tmp_path, opened, tokenized
):
    config = load(tmp_path, RATES, "train.max_length=[8,24]")
    opened.clear()
    runs.finetune(config, tmp_path / "run")

    # The data that the trials depend on are read once more, for their fingerprints.
    assert [opened[tmp_path / f"{split}.tsv"] for split in ("train", "dev", "test")] == [2, 2, 1]
    trained_on = collections.Counter(texts_of(tmp_path / "train.tsv"))
    assert {text: tokenized[text] for text in trained_on} == {
        text: 2 * count for text, count in trained_on.items()
    }


@pytest.mark.slow
def test_a_search_that_is_killed_ends_as_an_undisturbed_one(tmp_path, monkeypatch):
    """Its first trial is not encoded again, so the second one has examples of its own."""
    config = load(tmp_path, RATES, "train.checkpoint_steps=2")
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    metrics = runs.finetune(config, whole)
    save = Checkpoints.save

    def save_and_die(self, model, step, evaluations):
        save(self, model, step, evaluations)
        if step == 2 and "0.01" in str(self.folder):
            raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(Checkpoints, "save", save_and_die)
        runs.finetune(config, killed)

    assert runs.finetune(config, killed) == metrics
    assert (killed / "search.tsv").read_text() == (whole / "search.tsv").read_text()
    name = "trials/learning_rate=0.01"
    expected, found = (
        tensors.load(newest(run / name) / "model.safetensors") for run in (whole, killed)
    )
    for weight, value in expected.items():
        np.testing.assert_array_equal(found[weight], value, err_msg=weight)
