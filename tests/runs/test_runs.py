"""Runs: what they write, and that an interrupted one ends as an undisturbed one does."""

import json
import logging
import re
import resource
import shutil
from pathlib import Path
from types import SimpleNamespace

import keras
import numpy as np
import pytest

from bert_tf import runs
from bert_tf.checkpoints import conversion, of_run, reading, tensors
from bert_tf.config.reading import load_config
from bert_tf.encoder.encoder import Encoder
from bert_tf.errors import UserError
from bert_tf.report.curves import read_curves
from tests import tiny, tiny_questions
from tests.runs.killed import Killed, check_equal, kill_after, weights
from tests.runs.lives import last_step


@pytest.mark.end_to_end
def test_an_interrupted_fine_tuning_ends_with_the_same_weights_and_metrics(
    tmp_path, finetuned, caplog
):
    caplog.set_level(logging.INFO, "bert_tf")
    undisturbed, expected = finetuned
    run = shutil.copytree(undisturbed.parent / "killed", tmp_path / "run")

    assert runs.finetune(load_config(undisturbed / "config.yaml"), run) == expected
    check_equal(run, undisturbed)
    assert f"resuming {run} at step 20 of 32" in caplog.text
    said = r"run: metrics\.json written \d+\.\d s after the last update"
    assert len(re.findall(said, caplog.text)) == 1


@pytest.mark.slow
def test_an_interrupted_run_can_be_evaluated_and_stays_unfinished(tmp_path, monkeypatch, capsys):
    settings = ["train.checkpoint_steps=2", "train.epochs=1"]
    config = load_config(tiny.write_finetuning(tmp_path), settings)
    run = tmp_path / "run"
    with monkeypatch.context() as patch, pytest.raises(Killed):
        kill_after(patch, 2)
        runs.finetune(config, run)
    metrics = runs.evaluate(run)

    assert f"{run}, not finished: accuracy {metrics['accuracy']:.4g}" in capsys.readouterr().err
    assert (run / "predictions" / "dev.tsv").exists()
    assert not (run / "metrics.json").exists()


@pytest.mark.slow
@pytest.mark.parametrize("split", ["dev", "test"])
def test_other_data_leave_the_runs_predictions_alone(tmp_path, finetuned, split):
    run, _ = finetuned
    kept = (run / "predictions" / f"{split}.tsv", run / "metrics.json")
    before = [each.read_bytes() for each in kept]
    own = Path(load_config(run / "config.yaml").data.path) / f"{split}.tsv"
    other = tmp_path / f"{split}.tsv"
    other.write_text("\n".join(own.read_text().splitlines()[:4]) + "\n")
    metrics = runs.evaluate(run, other)

    written = run / "predictions" / f"other_{split}"
    assert json.loads(written.with_name(f"{written.name}_metrics.json").read_text()) == metrics
    assert len(written.with_suffix(".tsv").read_text().splitlines()) == 4
    runs.evaluate(run, own)
    assert [each.read_bytes() for each in kept] == before


def test_a_bad_test_file_is_found_before_training(tmp_path, monkeypatch):
    path = tiny.write_finetuning(tmp_path)
    folder = Path(load_config(path).data.path)
    (folder / "test.tsv").write_text("other\tcolumns\na\tb\n")
    monkeypatch.setattr("bert_tf.runs.finetuning.train", lambda *_: pytest.fail("it trains"))
    with pytest.raises(UserError, match="test.tsv"):
        runs.finetune(load_config(path), tmp_path / "run")


@pytest.mark.slow
def test_a_pre_training_goes_on_when_its_text_and_its_vocabulary_are_gone(tmp_path, monkeypatch):
    path = tiny.write_pretraining(tmp_path)
    load = lambda: load_config(path, ["train.checkpoint_steps=3"])  # noqa: E731
    with monkeypatch.context() as patched, pytest.raises(Killed):
        kill_after(patched, step=3)
        runs.pretrain(load(), tmp_path / "run")
    for name in ("corpus.txt", "vocab.txt"):
        (tmp_path / name).unlink()
    runs.pretrain(load(), tmp_path / "run")
    assert last_step(tmp_path / "run") == 6
    with pytest.raises(UserError, match=r"different data.path \(.*corpus.txt there, other.txt now"):
        other = load_config(path, ["train.checkpoint_steps=3", "data.path=other.txt"])
        runs.pretrain(other, tmp_path / "run")


@pytest.mark.slow
def test_a_run_goes_on_where_its_project_has_been_moved_to(tmp_path):
    (tmp_path / "old" / "project").mkdir(parents=True)
    path = tiny.write_finetuning(tmp_path / "old" / "project")
    settings = ["train.epochs=1"]
    runs.finetune(load_config(path, settings), path.parent / "run")
    (tmp_path / "old").rename(tmp_path / "new")
    moved = tmp_path / "new" / "project"
    (moved / "run" / "metrics.json").unlink()
    with pytest.raises(UserError, match="not found: .*old"):
        runs.evaluate(moved / "run")
    runs.finetune(load_config(moved / path.name, settings), moved / "run")
    assert runs.evaluate(moved / "run")["loss"] > 0


@pytest.mark.slow
def test_the_smallest_part_of_an_epoch_is_one_step(tmp_path, load_pretraining):
    config = load_config(tiny.write_finetuning(tmp_path), ["train.epochs=0.01"])
    runs.finetune(config, tmp_path / "fine")
    runs.pretrain(load_pretraining("train.steps=null", "train.epochs=0.001"), tmp_path / "pre")

    assert [last_step(tmp_path / run) for run in ("fine", "pre")] == [1, 1]


@pytest.mark.end_to_end
def test_a_damaged_newest_checkpoint_is_passed_over(tmp_path, pretrained, load_pretraining, capsys):
    run = tmp_path / "run"
    shutil.copytree(pretrained, run)
    metrics = json.loads((run / "metrics.json").read_text())
    file = of_run.newest(run) / "model.safetensors"
    file.write_bytes(file.read_bytes()[:-1] + b"?")
    assert runs.pretrain(load_pretraining(), run) == metrics
    assert f"warning: checkpoint {file.parent} is damaged" in capsys.readouterr().err
    check_equal(run, pretrained)


@pytest.mark.end_to_end
@pytest.mark.bfloat16
def test_the_best_weights_and_early_stopping_and_slow_layers_from_yaml(tmp_path):
    path = tiny.write_finetuning(tmp_path)
    settings = ["train.epochs=20", "train.keep=best", "train.early_stopping=2"]
    settings += ["train.frozen_layers=1", "train.layer_decay=0.5", "train.eval_steps=4"]
    settings += ["train.accumulation_steps=2", "train.precision=bfloat16", "train.optimizer=lamb"]
    metrics = runs.finetune(load_config(path, settings), tmp_path / "run")

    state = json.loads((of_run.newest(tmp_path / "run") / "state.json").read_text())
    accuracies = [each["accuracy"] for _, each in state["evaluations"]]
    assert state["step"] < 80
    assert metrics["accuracy"] == max(accuracies)
    moments = tensors.load(of_run.newest(tmp_path / "run") / "optimizer.safetensors").values()
    assert (len(tiny.VOCABULARY), 16) not in {each.shape for each in moments}
    assert runs.evaluate(tmp_path / "run") == pytest.approx(metrics, abs=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize(
    "setting",
    "bias_correction=true adam_epsilon=1e-8 decay_after_warmup=true group_by_length=false".split(),
)
def test_what_transformers_does_differently_can_be_set_in_yaml(tmp_path, finetuned, setting):
    path = tiny.write_finetuning(tmp_path)
    same = ["train.learning_rate=0.005", "model.num_hidden_layers=2"]
    runs.finetune(load_config(path, [*same, f"train.{setting}"]), tmp_path / "run")
    expected, found = weights(finetuned[0]), weights(tmp_path / "run")
    assert expected.keys() == found.keys()
    assert any(not np.array_equal(found[name], value) for name, value in expected.items())


@pytest.mark.slow
def test_a_disk_that_is_really_full_is_told_and_the_last_checkpoint_stays(
    tmp_path, nursery, pretraining_yaml
):
    def fill(pid: int) -> None:
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (16384, 16384))

    run = tmp_path / "run"
    command = ["pretrain", pretraining_yaml, "--out", run, "--set"]
    command += ["train.steps=400", "train.checkpoint_steps=4", "train.eval_steps=400"]
    code = nursery.live(*command, until=lambda: last_step(run) >= 8, strike=fill)

    last_line = nursery.log.read_text().splitlines()[-1]
    assert code == 2
    assert "disk is full" in last_line and last_line.startswith("bert-tf: error: ")
    assert not list(run.rglob("*.unfinished"))
    stayed = last_step(run)
    nursery.live(*command, until=lambda: last_step(run) > stayed)
    assert f"resuming {run} at step {stayed} of 400" in nursery.log.read_text()


def test_a_run_folder_holds_what_the_contract_says(finetuned):
    run, metrics = finetuned
    assert metrics.keys() == {"accuracy", "f1", "mcc", "loss"}
    assert json.loads((run / "metrics.json").read_text()) == metrics
    assert load_config(run / "config.yaml").train.epochs == 8
    assert (run / "vocab.txt").read_text().splitlines() == tiny.VOCABULARY
    assert read_curves(run / "logs" / "dev")["accuracy"][0] == list(range(4, 33, 4))
    assert "loss" in read_curves(run / "logs" / "train")
    predictions = (run / "predictions" / "dev.tsv").read_text().splitlines()
    assert predictions[0] == "index\tprediction"
    assert len(predictions) == 1 + 9


def test_a_fine_tuned_classifier_learns_and_evaluates_to_the_same_again(finetuned):
    run, metrics = finetuned
    # A model that has learned nothing is right about half of the texts.
    assert metrics["accuracy"] > 0.7
    again = runs.evaluate(run)
    assert again == pytest.approx(metrics, abs=1e-6)
    assert runs.evaluate(run, run.parent / "test.tsv")["accuracy"] > 0.7


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("train.batch_size=64", "64 is larger than the data: .*train.tsv has 32 training rows"),
        ("model.num_attention_heads=3", "sizes under `model` are wrong: hidden_size 16 is not a m"),
        ("train.max_length=33", "max_length 33 is longer than the model's 32 positions"),
        ("data.path=nowhere", "not found: .*nowhere"),
        ("init.checkpoint=runs/no/where", "checkpoint not found: runs/no/where; give a folder"),
        ("data.label_column=labels", "no column 'labels'; the columns are 'text', 'label'"),
    ],
)
def test_mistakes_in_a_fine_tuning_are_named(tmp_path, setting, message):
    config = load_config(tiny.write_finetuning(tmp_path), [setting])
    with pytest.raises(UserError, match=message):
        runs.finetune(config, tmp_path / "run")


@pytest.mark.slow
def test_a_checkpoint_may_have_more_embeddings_than_pieces(tmp_path):
    """As transformers pads its table: `resize_token_embeddings(pad_to_multiple_of=...)`."""
    sizes = tiny.encoder_config(32, vocab_size=len(tiny.VOCABULARY) + 6)
    tokenizer = tiny.tokenizer()
    conversion.save(Encoder(sizes), tmp_path / "padded", "huggingface", tokenizer)
    path = tiny.write_finetuning(tmp_path)
    path.write_text(
        path.read_text().replace(tiny.MODEL, "").replace("tokenizer: {vocab: vocab.txt}\n", "")
    )
    settings = [f"init.checkpoint={tmp_path / 'padded'}", "train.epochs=1"]
    runs.finetune(load_config(path, settings), tmp_path / "run")
    assert weights(tmp_path / "run")["encoder/embeddings/word_embeddings"].shape[0] == 32
    assert runs.evaluate(tmp_path / "run")["loss"] > 0
    (tmp_path / "padded" / "vocab.txt").write_text("\n".join(tiny.VOCABULARY[:-1]) + "\n")
    (tmp_path / "vocab.txt").write_text("\n".join(tiny.VOCABULARY) + "\n")
    with pytest.raises(
        UserError, match="26 pieces, but the checkpoint .* has 32; set tokenizer.vocab"
    ):
        runs.finetune(
            load_config(path, [*settings, f"tokenizer.vocab={tmp_path / 'vocab.txt'}"]),
            tmp_path / "other",
        )


@pytest.mark.slow
def test_trials_of_other_initial_weights_are_not_compared(tmp_path, pretrained):
    start = tmp_path / "start"
    shutil.copytree(reading.find(pretrained).folder, start)
    path = tiny.write_finetuning(tmp_path)
    path.write_text(path.read_text().replace(tiny.MODEL, ""))
    settings = [f"init.checkpoint={start}", "train.epochs=1", "train.seed=[1,2]"]
    config = load_config(path, settings)
    run = tmp_path / "run"
    runs.finetune(config, run)
    (run / "metrics.json").unlink()
    runs.finetune(config, run)
    (run / "metrics.json").unlink()
    keras.utils.set_random_seed(5)
    shutil.rmtree(start)
    tokenizer = tiny.tokenizer()
    conversion.save(Encoder(tiny.encoder_config(32)), start, "bert_tf", tokenizer)
    with pytest.raises(UserError, match="the init.checkpoint changed since the first trials of"):
        runs.finetune(config, run)


def test_a_vocabulary_of_another_checkpoint_is_refused(tmp_path, pretrained):
    path = tiny.write_finetuning(tmp_path)
    settings = [f"init.checkpoint={pretrained}"]
    vocabulary = tmp_path / "vocab.txt"
    vocabulary.write_text("\n".join([*tiny.VOCABULARY, "more"]))
    without_model = path.read_text().replace(tiny.MODEL, "")
    path.write_text(without_model)
    with pytest.raises(UserError, match="27 pieces, but the checkpoint .* has 26"):
        runs.finetune(load_config(path, settings), tmp_path / "one")
    vocabulary.write_text("\n".join([*tiny.VOCABULARY[:-1], "other"]))
    with pytest.raises(UserError, match="set tokenizer.vocab to the checkpoint's own vocabulary"):
        runs.finetune(load_config(path, settings), tmp_path / "two")


@pytest.mark.slow
def test_what_changes_no_number_may_change_when_a_run_goes_on(
    tmp_path, monkeypatch, pretrained, load_pretraining
):
    with monkeypatch.context() as patch, pytest.raises(Killed):
        kill_after(patch, 3)
        runs.pretrain(load_pretraining(), tmp_path)
    settings = ["train.checkpoints_kept=1", "train.log_steps=1", "train.checkpoint_minutes=9"]
    runs.pretrain(load_pretraining(*settings), tmp_path)

    check_equal(tmp_path, pretrained)
    assert [path.name for path in (tmp_path / "checkpoints").iterdir()] == ["step-00000006"]


@pytest.mark.slow
def test_a_run_whose_data_have_changed_does_not_resume(tmp_path):
    path = tiny.write_finetuning(tmp_path)
    config = load_config(path, ["train.epochs=1", "model.num_hidden_layers=1"])
    metrics = runs.finetune(config, tmp_path / "run")
    assert runs.finetune(config, tmp_path / "run") == metrics
    longer = load_config(path, ["train.epochs=2", "model.num_hidden_layers=1"])
    with pytest.raises(UserError, match="a different train.epochs .1.0 there, 2.0 now.; choose"):
        runs.finetune(longer, tmp_path / "run")

    text = (tmp_path / "train.tsv").read_text()
    (tmp_path / "train.tsv").write_text(text.replace("cat", "fish", 1))
    with pytest.raises(UserError, match="training data differ from those at step 4; restore them"):
        runs.finetune(config, tmp_path / "run")
    (tmp_path / "train.tsv").write_text(text)
    with open(tmp_path / "dev.tsv", "a") as file:
        file.write("cat sat\tgood\n")
    with pytest.raises(UserError, match="the dev data differ from those at step 4; restore them"):
        runs.finetune(config, tmp_path / "run")


def test_another_vocabulary_than_the_one_trained_with_is_not_evaluated(tmp_path, finetuned):
    run = shutil.copytree(finetuned[0], tmp_path / "run")
    pieces = (run / "vocab.txt").read_text().splitlines()
    (run / "vocab.txt").write_text("\n".join([*pieces[:-2], pieces[-1], pieces[-2]]) + "\n")
    with pytest.raises(
        UserError, match="is not the one that the model was trained with; restore the original"
    ):
        runs.evaluate(run)


def test_an_impossible_path_is_reported_in_one_line(tmp_path):
    with pytest.raises(UserError, match="run folder cannot be read: .* .File name too long.$"):
        runs.evaluate(tmp_path / ("x" * 300))


def test_no_trial_begins_if_one_of_them_has_a_batch_that_the_devices_cannot_share(
    tmp_path, monkeypatch
):
    config = load_config(tiny.write_finetuning(tmp_path), ["train.batch_size=[8,7]"])
    devices = SimpleNamespace(num_replicas_in_sync=2)
    cluster = SimpleNamespace(alone=True, strategy=devices)
    monkeypatch.setattr("bert_tf.runs.finetuning.assemble", lambda settings: cluster)

    with pytest.raises(UserError, match="train.batch_size 7 cannot be divided among 2 devices"):
        runs.finetune(config, tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("write", "setting", "message"),
    [
        (tiny.write_finetuning, "max_length=[24,600]", "600 is longer than the model's 32 posit"),
        (tiny.write_finetuning, "frozen_layers=[1,6]", "6 is more than the model's 1 layers"),
        (tiny.write_finetuning, "batch_size=[8,5000]", "batch_size 5000 is larger than the data"),
        (tiny_questions.write_finetuning, "max_length=[24,7]", "7, too short for questions of 4"),
    ],
)
def test_no_trial_is_trained_if_a_later_one_cannot_be(
    tmp_path, monkeypatch, write, setting, message
):
    config = load_config(write(tmp_path), [f"train.{setting}"])
    monkeypatch.setattr("bert_tf.runs.finetuning.train", lambda *_: pytest.fail("it trains"))
    with pytest.raises(UserError, match=message):
        runs.finetune(config, tmp_path / "run")


def test_a_label_that_is_not_in_the_training_data_is_named_with_its_row(tmp_path):
    path = tiny.write_finetuning(tmp_path)
    with open(tmp_path / "dev.tsv", "a") as file:
        file.write("cat sat\tunheard\n")
    with pytest.raises(UserError, match="dev.tsv, line 11: label 'unheard'"):
        runs.finetune(load_config(path), tmp_path / "run")


def test_a_preset_of_other_sizes_than_the_checkpoint_is_refused(tmp_path, pretrained):
    path = tiny.write_finetuning(tmp_path)
    settings = [f"init.checkpoint={pretrained}", "model.preset=bert-tiny-uncased"]
    with pytest.raises(UserError, match="has hidden_size 128, but the checkpoint .* has 16"):
        runs.finetune(load_config(path, settings), tmp_path / "run")
