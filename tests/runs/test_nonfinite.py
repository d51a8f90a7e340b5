"""A NaN loss or gradient ends the run and saves the batch; on request the update is skipped."""

import re

import keras
import numpy as np
import pytest

from bert_tf import AdamW, runs
from bert_tf.config.reading import load_config
from bert_tf.data.batching import EncodedRows
from bert_tf.models.encoder_model import EncoderModel
from bert_tf.training.nonfinite import Diverged
from tests import tiny
from tests.runs.killed import weights

SETTINGS = ["train.epochs=2", "train.checkpoint_steps=2", "model.num_hidden_layers=1"]


@pytest.fixture
def load(tmp_path):
    """Loads a fine-tuning of eight steps, with settings."""
    path = tiny.write_finetuning(tmp_path)
    return lambda *settings: load_config(path, [*SETTINGS, *settings])


@pytest.fixture
def spoil(monkeypatch):
    """Makes the loss NaN for batches that contain the word number `word`."""

    def spoil(word):
        part_loss = EncoderModel.part_loss

        def spoilt(self, x, *others):
            has = keras.ops.any(x["input_word_ids"] == word)
            return part_loss(self, x, *others) * keras.ops.where(has, np.nan, 1.0)

        monkeypatch.setattr(EncoderModel, "part_loss", spoilt)

    return spoil


@pytest.fixture
def spoil_a_row(monkeypatch, spoil):
    """Makes the loss NaN for batches with one row: the sixth of the training data."""
    take = EncodedRows.take
    marker = len(tiny.VOCABULARY) - 1

    def mark(self, rows):
        inputs = take(self, rows)
        ids = inputs["input_word_ids"]
        ids[ids == marker] = 1
        if len(self.lengths) == 32:
            ids[rows == 5, 1] = marker
        return inputs

    monkeypatch.setattr(EncodedRows, "take", mark)
    spoil(marker)
    return marker


@pytest.mark.end_to_end
@pytest.mark.parametrize("weights", ["null", "balanced"])
def test_the_step_is_named_and_its_batch_written(load, spoil_a_row, tmp_path, weights):
    run = tmp_path / "run"
    with pytest.raises(Diverged) as told:
        runs.finetune(load(f"data.class_weights={weights}"), run)

    (written,) = run.glob("nonfinite-step-*.npz")
    step = int(written.stem.removeprefix("nonfinite-step-"))
    assert 1 <= step <= 4
    assert f"the loss is nan at step {step} (its batch is in {written}); lower" in str(told.value)
    assert "set train.skip_nonfinite to true" in str(told.value)
    batch = np.load(written)
    assert batch["input_word_ids"].shape[0] == batch["targets"].shape[0] == 8
    assert (batch["input_word_ids"] == spoil_a_row).sum() == 1
    assert ("weights" in batch) == (weights == "balanced")


@pytest.mark.slow
def test_a_skipped_update_changes_nothing_and_the_run_goes_on(load, spoil_a_row, tmp_path, capsys):
    run = tmp_path / "run"
    with pytest.raises(Diverged):
        runs.finetune(load(), run)
    metrics = runs.finetune(load("train.skip_nonfinite=true"), run)

    told = capsys.readouterr().err
    left_out = re.findall("^warning: .*; its update is skipped$", told, re.MULTILINE)
    assert len(left_out) == 2  # once in each epoch
    assert np.isfinite(metrics["loss"])
    found = weights(run)
    assert found["optimizer/iteration"] == 8
    assert all(np.isfinite(value).all() for value in found.values())


@pytest.mark.end_to_end
def test_a_gradient_that_is_no_number_ends_the_run_though_the_loss_is_one(
    load, monkeypatch, tmp_path
):
    part_loss = EncoderModel.part_loss

    def steep(self, *arguments):
        loss = part_loss(self, *arguments)
        return loss + keras.ops.sqrt(0.0 * loss)

    monkeypatch.setattr(EncoderModel, "part_loss", steep)
    with pytest.raises(Diverged, match="the gradient is not finite at step 1 .its batch is in"):
        runs.finetune(load(), tmp_path / "run")


@pytest.mark.end_to_end
@pytest.mark.parametrize(
    ("rate", "told"), [("3e38", "weights are not finite"), ("1e19", "loss on the dev data is")]
)
def test_damage_by_the_last_update_is_noticed_though_no_step_follows(load, tmp_path, rate, told):
    one_step = ["train.epochs=1", "train.batch_size=32", "train.warmup_fraction=0.0"]
    with pytest.raises(Diverged, match=told):
        runs.finetune(load(*one_step, f"train.learning_rate={rate}"), tmp_path / "run")
    assert not (tmp_path / "run" / "metrics.json").exists()


@pytest.mark.slow
def test_a_run_ends_if_every_update_would_be_skipped(load, spoil, tmp_path):
    spoil(2)  # [CLS]
    with pytest.raises(Diverged, match=r"nan at step 10, .* \(10 updates in a row were not fin"):
        runs.finetune(load("train.skip_nonfinite=true", "train.epochs=4"), tmp_path / "run")


@pytest.mark.parametrize("clip_norm", [None, 1.0])
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_an_update_is_left_out_as_a_whole(clip_norm, bad):
    optimizer = AdamW(0.1, clip_norm=clip_norm, skip_nonfinite=True)
    variables = [keras.Variable(np.ones(2, "float32")) for _ in range(2)]
    optimizer.apply([np.ones(2, "float32")] * 2, variables)
    before = [each.numpy() for each in [*variables, *optimizer.variables[2:]]]
    optimizer.apply([np.array([bad, 1], "float32"), np.ones(2, "float32")], variables)

    for each, value in zip([*variables, *optimizer.variables[2:]], before, strict=True):
        np.testing.assert_array_equal(each.numpy(), value)
    assert (int(optimizer.iterations), int(optimizer.nonfinite)) == (2, 1)
    optimizer.apply([np.ones(2, "float32")] * 2, variables)
    assert (variables[0].numpy() < before[0]).all()
