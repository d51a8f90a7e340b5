"""What an export takes from a run folder: how the weights that it keeps were trained."""

import json

import pytest

from bert_tf import Encoder, PreTrainer, SequenceClassifier, SpanClassifier
from bert_tf import config as configuration
from bert_tf.checkpoints import native
from bert_tf.checkpoints.description import describe
from bert_tf.training.run_folder import BEST_FILE, RunFolder
from export import run as exporting
from export.run import export_run
from tests import tiny, tiny_questions


def start(path, model, *settings) -> RunFolder:
    """A run with a checkpoint."""
    run = RunFolder.start(path.parent / "run", configuration.load(path, settings))
    step = run.checkpoints / "step-00000001"
    step.mkdir(parents=True)
    native.write(step, model, describe(model))
    return run


def options(run, monkeypatch, **settings) -> dict:
    """What is served, as `export.save` is told."""
    told = {}

    def save(*arguments, **options):
        told.update(options)
        return run.path

    monkeypatch.setattr(exporting, "save", save)
    export_run(run.path, run.path / "saved", **settings)
    return told


@pytest.fixture(scope="module")
def encoder():
    return Encoder(tiny.encoder_config(16))


def test_a_search_is_served_and_described_as_its_best_trial(tmp_path, encoder):
    path = tiny.write_finetuning(tmp_path)
    run = start(path, SequenceClassifier(encoder, 2), "train.max_length=[8,16]")
    (run.path / BEST_FILE).write_text(run.config.trials()[1].to_yaml())
    saved = export_run(run.path, tmp_path / "saved", kind="hub")

    card = json.loads((saved / "preprocessor/assets.extra/model_card.json").read_text())
    assert card["model"]["max_length"] == 16
    assert card["configuration"]["train"]["max_length"] == 16


@pytest.mark.parametrize("kind", ["mlm", "embedding", "hub"])
@pytest.mark.parametrize(("settings", "length"), [((), 24), (("train.long_length=32",), 32)])
def test_a_pre_training_is_served_with_its_longest_texts(
    tmp_path, encoder, monkeypatch, kind, settings, length
):
    run = start(tiny.write_pretraining(tmp_path), PreTrainer(encoder), *settings)

    assert options(run, monkeypatch, kind=kind)["max_length"] == length


@pytest.mark.parametrize(
    ("settings", "metrics", "threshold"),
    [
        ((), {}, 0.0),
        ((), {"null_threshold": -1.5}, -1.5),
        (("data.null_threshold=2.5",), {}, 2.5),
        (("data.null_threshold=2.5",), {"null_threshold": 2.5}, 2.5),
    ],
)
def test_answers_are_served_with_the_configured_threshold_or_the_one_that_was_found(
    tmp_path, encoder, monkeypatch, settings, metrics, threshold
):
    path = tiny_questions.write_finetuning(tmp_path, unanswerable=True)
    run = start(path, SpanClassifier(encoder), *settings)
    run.write_metrics(metrics)

    assert options(run, monkeypatch)["null_threshold"] == threshold
