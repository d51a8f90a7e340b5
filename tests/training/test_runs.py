"""Runs: what they write, and that an interrupted one ends as an undisturbed one does."""

import json

import numpy as np
import pytest

from bert_tf import config as configuration
from bert_tf import training
from bert_tf.checkpoints import reading, tensors
from bert_tf.errors import UserError
from bert_tf.training.checkpointing import Checkpoints
from tests import tiny


class Killed(BaseException):
    """Stands for the end of the process."""


def weights(run) -> dict[str, np.ndarray]:
    folder = reading.newest(run)
    return tensors.load(folder / "model.safetensors") | tensors.load(
        folder / "optimizer.safetensors"
    )


def kill_after(monkeypatch, step: int) -> None:
    """Ends the process, as it were, just after the checkpoint of `step` was written."""
    save = Checkpoints.save

    def save_and_die(self, model, now):
        save(self, model, now)
        if now == step:
            raise Killed

    monkeypatch.setattr(Checkpoints, "save", save_and_die)


@pytest.mark.parametrize("kind", ["pretraining", "finetuning"])
def test_an_interrupted_run_ends_with_the_same_weights_and_metrics(tmp_path, monkeypatch, kind):
    write, train, step = {
        "pretraining": (tiny.write_pretraining, training.pretrain, 3),
        "finetuning": (tiny.write_finetuning, training.finetune, 20),
    }[kind]
    config = configuration.load(write(tmp_path))
    undisturbed = train(config, tmp_path / "undisturbed")
    with monkeypatch.context() as patch, pytest.raises(Killed):
        kill_after(patch, step)
        train(config, tmp_path / "killed")
    resumed = train(config, tmp_path / "killed")
    assert resumed == undisturbed
    expected, found = weights(tmp_path / "undisturbed"), weights(tmp_path / "killed")
    assert expected.keys() == found.keys()
    for name, value in expected.items():
        np.testing.assert_array_equal(found[name], value, err_msg=name)


def test_a_damaged_newest_checkpoint_is_passed_over(tmp_path):
    config = configuration.load(tiny.write_pretraining(tmp_path))
    run = tmp_path / "run"
    metrics = training.pretrain(config, run)
    expected = weights(run)
    file = reading.newest(run) / "model.safetensors"
    file.write_bytes(file.read_bytes()[:-1] + b"?")
    with pytest.warns(UserWarning, match="damaged"):
        assert training.pretrain(config, run) == metrics
    for name, value in expected.items():
        np.testing.assert_array_equal(weights(run)[name], value, err_msg=name)


def test_a_full_disk_leaves_the_last_checkpoint_whole(tmp_path, monkeypatch):
    config = configuration.load(tiny.write_pretraining(tmp_path))
    run = tmp_path / "run"
    save = tensors.save

    def save_until_full(path, arrays):
        if "step-00000006" in str(path) and path.name == "optimizer.safetensors":
            raise OSError(28, "No space left on device")
        save(path, arrays)

    with monkeypatch.context() as patch:
        patch.setattr(tensors, "save", save_until_full)
        with pytest.raises(UserError, match="disk is full"):
            training.pretrain(config, run)
    assert [path.name for path in (run / "checkpoints").iterdir()] == ["step-00000003"]
    training.pretrain(config, run)
    assert reading.newest(run).name == "step-00000006"


def test_a_run_folder_holds_what_the_contract_says(tmp_path):
    run = tmp_path / "run"
    metrics = training.finetune(configuration.load(tiny.write_finetuning(tmp_path)), run)
    assert metrics.keys() == {"accuracy", "f1", "mcc", "loss"}
    assert json.loads((run / "metrics.json").read_text()) == metrics
    assert configuration.load(run / "config.yaml").train.epochs == 8
    assert (run / "vocab.txt").read_text().splitlines() == tiny.VOCABULARY
    assert list((run / "logs" / "train").iterdir())
    predictions = (run / "predictions" / "dev.tsv").read_text().splitlines()
    assert predictions[0] == "index\tprediction"
    assert len(predictions) == 1 + 9


def test_a_fine_tuned_classifier_learns_and_evaluates_to_the_same_again(tmp_path):
    run = tmp_path / "run"
    metrics = training.finetune(configuration.load(tiny.write_finetuning(tmp_path)), run)
    assert metrics["accuracy"] == 1.0
    again = training.evaluate(run)
    assert again == pytest.approx(metrics, abs=1e-6)
    assert training.evaluate(run, tmp_path / "test.tsv")["accuracy"] == 1.0


def test_fine_tuning_starts_from_the_pre_trained_encoder(tmp_path):
    training.pretrain(configuration.load(tiny.write_pretraining(tmp_path)), tmp_path / "pre")
    path = tiny.write_finetuning(tmp_path)
    settings = [f"init.checkpoint={tmp_path / 'pre'}", "train.learning_rate=1e-9"]
    config = configuration.load(path, settings)
    training.finetune(config, tmp_path / "fine")
    before, after = weights(tmp_path / "pre"), weights(tmp_path / "fine")
    name = "encoder/layer_1/intermediate/kernel"
    np.testing.assert_allclose(after[name], before[name], atol=1e-5)
    assert "masked_lm/output_bias" not in after


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("train.batch_size=64", "batch_size 64 is larger than the data.*has 32 rows"),
        ("train.max_length=33", "max_length 33 is longer than the model's 32 positions"),
        ("data.path=nowhere", "not found: .*nowhere"),
        ("init.checkpoint=nowhere", "checkpoint not found: nowhere"),
        ("data.label_column=labels", "no column 'labels'; there are text, label"),
    ],
)
def test_mistakes_in_a_fine_tuning_are_named(tmp_path, setting, message):
    config = configuration.load(tiny.write_finetuning(tmp_path), [setting])
    with pytest.raises(UserError, match=message):
        training.finetune(config, tmp_path / "run")


def test_a_vocabulary_of_another_checkpoint_is_refused(tmp_path):
    training.pretrain(configuration.load(tiny.write_pretraining(tmp_path)), tmp_path / "pre")
    path = tiny.write_finetuning(tmp_path)
    settings = [f"init.checkpoint={tmp_path / 'pre'}"]
    vocabulary = tmp_path / "vocab.txt"
    vocabulary.write_text("\n".join([*tiny.VOCABULARY, "more"]))
    without_model = path.read_text().replace(tiny.MODEL, "")
    path.write_text(without_model)
    with pytest.raises(UserError, match="27 pieces, the checkpoint .* 26"):
        training.finetune(configuration.load(path, settings), tmp_path / "one")
    vocabulary.write_text("\n".join([*tiny.VOCABULARY[:-1], "other"]))
    with pytest.raises(UserError, match="not the one .* was trained with"):
        training.finetune(configuration.load(path, settings), tmp_path / "two")


def test_another_configuration_does_not_resume_and_names_the_key(tmp_path):
    path = tiny.write_pretraining(tmp_path)
    training.pretrain(configuration.load(path), tmp_path / "run")
    changed = configuration.load(path, ["train.seed=1"])
    with pytest.raises(UserError, match="another train.seed"):
        training.pretrain(changed, tmp_path / "run")


def test_a_label_that_is_not_in_the_training_data_is_named_with_its_row(tmp_path):
    path = tiny.write_finetuning(tmp_path)
    with open(tmp_path / "dev.tsv", "a") as file:
        file.write("cat sat\tunheard\n")
    with pytest.raises(UserError, match="dev.tsv, row 10: label 'unheard'"):
        training.finetune(configuration.load(path), tmp_path / "run")


def test_a_search_keeps_the_best_run_and_goes_on_where_it_stopped(tmp_path, monkeypatch):
    path = tiny.write_finetuning(tmp_path)
    config = configuration.load(path, ["train.learning_rate=[1e-9,3e-3]", "train.epochs=5"])
    run = tmp_path / "run"
    with monkeypatch.context() as patch, pytest.raises(Killed):
        kill_after(patch, 20)
        training.finetune(config, run)
    first = run / "trials" / "learning_rate=1e-09"
    assert [trial.name for trial in (run / "trials").iterdir()] == [first.name]
    metrics = training.finetune(config, run)
    best = run / "trials" / "learning_rate=0.003"
    assert json.loads((best / "metrics.json").read_text()) == metrics
    assert json.loads((run / "metrics.json").read_text()) == metrics
    assert metrics["loss"] < json.loads((first / "metrics.json").read_text())["loss"]
    np.testing.assert_array_equal(
        weights(run)["classifier/kernel"], weights(best)["classifier/kernel"]
    )
    assert training.evaluate(run) == pytest.approx(metrics, abs=1e-6)


def test_a_preset_of_other_sizes_than_the_checkpoint_is_refused(tmp_path):
    training.pretrain(configuration.load(tiny.write_pretraining(tmp_path)), tmp_path / "pre")
    path = tiny.write_finetuning(tmp_path)
    settings = [f"init.checkpoint={tmp_path / 'pre'}", "model.preset=bert-tiny-uncased"]
    with pytest.raises(UserError, match="has hidden_size 128, the checkpoint .* 16"):
        training.finetune(configuration.load(path, settings), tmp_path / "run")
