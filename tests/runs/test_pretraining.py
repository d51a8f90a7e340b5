"""Pre-training does what its configuration says."""

import itertools
import json
import shutil

import numpy as np
import pytest

from bert_tf import LAMB, AdamW, runs
from bert_tf.checkpoints import of_run, tensors
from bert_tf.config.reading import load_config
from bert_tf.data.corpora import pretraining_data
from bert_tf.data.corpora.token_shards import TokenShards
from bert_tf.data.records.writing import write_records
from bert_tf.errors import UserError
from bert_tf.runs import pretraining
from bert_tf.text import Tokenizer
from tests import tiny


@pytest.fixture
def prepared(load_pretraining, tmp_path, monkeypatch):
    """What `pretrain` hands to `train`, for a configuration with settings."""

    numbers = itertools.count()

    def prepare(*settings):
        given = {}

        def train(folder, settings, model, checkpoints, phases, evaluations, cluster, callbacks):
            given.update(model=model, phases=phases, evaluations=evaluations)
            evaluations.add(phases[-1].end, {"loss": 1.0})

        monkeypatch.setattr(pretraining, "train", train)
        runs.pretrain(load_pretraining(*settings), tmp_path / f"run{next(numbers)}")
        return given

    return prepare


def shapes(phase):
    """Of ids, predictions and next sentence labels in a phase's batches."""
    inputs, targets = phase.batches_from(0, 0, 1).element_spec
    labels = targets.get("next_sentence_labels")
    return (
        tuple(inputs["input_word_ids"].shape),
        tuple(targets["masked_lm_ids"].shape),
        None if labels is None else tuple(labels.shape),
    )


@pytest.mark.end_to_end
@pytest.mark.parametrize(
    ("settings", "ends", "of_short", "of_long"),
    [
        (
            ["train.steps=100", "train.long_batch_size=2"],
            *((90, 100), ((4, 24), (4, 4), (4,)), ((2, 32), (2, 5), (2,))),
        ),
        (  # the number of predictions grows with the length
            ["train.long_fraction=0.5", "data.max_predictions_per_seq=6"],
            *((3, 6), ((4, 24), (4, 6), (4,)), ((4, 32), (4, 8), (4,))),
        ),
    ],
)
def test_short_sequences_then_long_ones(prepared, settings, ends, of_short, of_long):
    phases = prepared("train.long_length=32", *settings)["phases"]

    assert tuple(phase.end for phase in phases) == ends
    assert [shapes(phase) for phase in phases] == [of_short, of_long]


@pytest.mark.slow
def test_epochs_are_shared_by_the_phases(prepared):
    whole = ["train.steps=null", "train.epochs=8"]
    (only_short,) = prepared(*whole)["phases"]
    (only_long,) = prepared(*whole, "train.max_length=32")["phases"]
    short, long = prepared(*whole, "train.long_length=32", "train.long_fraction=0.5")["phases"]

    # Half of the steps with each: one of eight epochs with either length is so many steps.
    assert only_long.end < long.end < only_short.end
    assert short.end == round(long.end / 2)
    passes = short.end / only_short.end + (long.end - short.end) / only_long.end
    assert passes == pytest.approx(1, abs=0.02)


def test_optimizer_accumulation_and_precision_are_as_configured(prepared):
    model = prepared()["model"]
    assert type(model.optimizer) is AdamW
    assert (model.accumulation_steps, model.dtype_policy.name) == (1, "float32")
    assert not model.rematerialize

    settings = ["train.optimizer=lamb", "train.accumulation_steps=2", "train.precision=bfloat16"]
    settings += ["train.rematerialize=true", "train.weight_decay=0.5", "train.gradient_clip=null"]
    model = prepared(*settings)["model"]
    assert model.rematerialize and model.encoder.rematerialize
    assert type(model.optimizer) is LAMB
    assert (model.optimizer.decay_rate, model.optimizer.clip_norm) == (0.5, None)
    assert (model.accumulation_steps, model.dtype_policy.name) == (2, "mixed_bfloat16")
    assert {weight.dtype for weight in model.weights} == {"float32"}


def test_without_next_sentences(prepared):
    given = prepared("data.next_sentence=false")

    assert given["model"].next_sentence is None
    assert shapes(given["phases"][0])[2] is None


def test_a_left_to_right_model_predicts_every_token(prepared):
    given = prepared("model.attention=left_to_right", "data.next_sentence=false")

    inputs, targets = next(iter(given["phases"][0].batches_from(0, 0, 1)))
    assert targets["masked_lm_ids"].shape == (4, 23)
    real = targets["masked_lm_weights"].numpy() == 1
    np.testing.assert_array_equal(
        targets["masked_lm_ids"].numpy()[real], inputs["input_word_ids"].numpy()[:, 1:][real]
    )
    with pytest.raises(UserError, match="set data.next_sentence to false"):
        prepared("model.attention=left_to_right")


def test_tfrecords_are_trained_on_as_they_are(prepared, load_pretraining, tmp_path):
    config = load_pretraining("data.dupe_factor=1")
    write_records(config, Tokenizer(config.tokenizer.vocab), tmp_path / "records")
    settings = ["data.format=tfrecord", f"data.path={tmp_path / 'records'}"]

    (phase,) = prepared(*settings)["phases"]
    assert shapes(phase) == ((4, 24), (4, 4), (4,))
    assert 4 * 12 < phase.tokens <= 4 * 24
    with pytest.raises(UserError, match="TFRecords have .* one length; set train.long_length to n"):
        prepared(*settings, "train.long_length=32")


@pytest.fixture
def begin(tmp_path, monkeypatch):
    """Begins a run on text that is stopped before it has saved anything.

    It returns how often the text has been tokenized so far.
    """
    path = tiny.write_pretraining(tmp_path)
    built, build = [], pretraining_data.build

    def build_and_count(*arguments):
        built.append(arguments)
        return build(*arguments)

    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(pretraining_data, "build", build_and_count)
    monkeypatch.setattr(pretraining, "train", stop)

    def begin(*settings):
        with pytest.raises(KeyboardInterrupt):
            runs.pretrain(load_config(path, settings), tmp_path / "run")
        return len(built)

    return begin


def add_a_document(folder):
    with open(folder / "corpus.txt", "a") as file:
        file.write("\nthe cat sat .\n")


@pytest.mark.slow
def test_text_is_tokenized_again_only_where_the_tokens_would_be_others(begin, tmp_path):
    assert begin() == 1
    assert begin("train.learning_rate=0.1") == begin() == 1
    add_a_document(tmp_path)
    assert begin() == begin() == 2
    assert begin("data.dev_fraction=0.5") == 3
    (tmp_path / "vocab.txt").write_text("\n".join([*tiny.VOCABULARY, "more"]) + "\n")
    assert begin("data.dev_fraction=0.5") == 4
    assert TokenShards(tmp_path / "run" / "tokens").vocabulary[-1] == "more"


def test_what_was_saved_keeps_its_tokens_whatever_becomes_of_the_text(begin, tmp_path):
    begin()
    of_run.step_folder(tmp_path / "run" / "checkpoints", 3).mkdir(parents=True)
    add_a_document(tmp_path)
    assert begin() == 1


def test_a_folder_tokens_of_somebody_else_is_not_removed(begin, tmp_path):
    (tmp_path / "run" / "tokens").mkdir(parents=True)
    (tmp_path / "run" / "tokens" / "mine.txt").touch()
    with pytest.raises(UserError, match="tokens exists and does not contain token shards"):
        begin()


@pytest.mark.slow
def test_token_shards_that_have_changed_do_not_resume(tmp_path):
    path = tiny.write_pretraining(tmp_path)
    text = load_config(path)
    pretraining_data.build(text, tiny.tokenizer(), tmp_path / "tokens")
    settings = [f"data.path={tmp_path / 'tokens'}", "data.format=token_shards", "train.steps=1"]
    shards = load_config(path, settings)
    metrics = runs.pretrain(shards, tmp_path / "run")
    assert runs.pretrain(shards, tmp_path / "run") == metrics

    add_a_document(tmp_path)
    pretraining_data.build(text, tiny.tokenizer(), tmp_path / "tokens")
    with pytest.raises(UserError, match="training data differ from those at step 1; restore them"):
        runs.pretrain(shards, tmp_path / "run")


@pytest.mark.slow
def test_tfrecords_that_have_changed_do_not_resume(load_pretraining, tmp_path):
    config = load_pretraining("data.dupe_factor=1")
    records = tmp_path / "records"
    write_records(config, Tokenizer(config.tokenizer.vocab), records)
    settings = ["data.format=tfrecord", f"data.path={records}", "train.steps=1"]
    runs.pretrain(load_pretraining(*settings), tmp_path / "run")

    (records / "notes.txt").write_text("no records")
    runs.pretrain(load_pretraining(*settings), tmp_path / "run")
    (file,) = records.glob("train-*")
    shutil.copy(file, records / "train-more.tfrecord")
    with pytest.raises(UserError, match="training data differ from those at step 1; restore them"):
        runs.pretrain(load_pretraining(*settings), tmp_path / "run")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (["train.long_length=600"], "long_length 600 is longer than the model's 32 positions"),
        (["train.max_length=40"], "max_length 40 is longer than the model's 32 positions"),
        (["train.long_length=24"], "long_length 24 is not longer than train.max_length 24"),
        (["train.seed=[1,2]"], "train.seed is a list; pre-training requires one value"),
        (
            ["train.accumulation_steps=2", "train.long_length=32", "train.long_batch_size=3"],
            "long_batch_size 3 is not a multiple of",
        ),
    ],
)
def test_settings_that_make_no_sense_are_told(prepared, settings, message):
    with pytest.raises(UserError, match=message):
        prepared(*settings)


@pytest.mark.slow
@pytest.mark.bfloat16
def test_all_options_together_train(load_pretraining, tmp_path):
    settings = ["train.optimizer=lamb", "train.accumulation_steps=2", "train.precision=bfloat16"]
    settings += ["train.long_length=32", "train.long_fraction=0.5", "data.next_sentence=false"]
    settings += ["model.attention=left_to_right", "train.eval_steps=3", "train.steps=8"]
    metrics = runs.pretrain(load_pretraining(*settings), tmp_path / "run")

    checkpoint = of_run.newest(tmp_path / "run")
    state = json.loads((checkpoint / "state.json").read_text())
    (first, before), *_, (last, after) = state["evaluations"]
    assert (first, last) == (3, 8)
    assert after == metrics
    assert metrics.keys() == {"loss", "masked_lm_loss", "masked_lm_accuracy", "perplexity"}
    assert metrics["perplexity"] == pytest.approx(np.exp(metrics["masked_lm_loss"]))
    assert after["loss"] < before["loss"]
    variables = tensors.load(checkpoint / "optimizer.safetensors")
    assert variables["optimizer/iteration"] == 8  # the optimizer's count of updates


@pytest.mark.slow
def test_without_held_out_text_the_next_batches_are_evaluated(tmp_path, capsys):
    path = tiny.write_pretraining(tmp_path)
    config = load_config(path, ["data.dev_fraction=0", "train.steps=2"])
    metrics = runs.pretrain(config, tmp_path / "run")

    assert "no text is held out" in capsys.readouterr().err
    assert metrics["loss"] > 0
    assert runs.pretrain(config, tmp_path / "run") == metrics
