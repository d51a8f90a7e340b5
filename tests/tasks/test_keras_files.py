"""`.keras` files of task models: whole, opened by later versions, refused where they are bad."""

import json
import os
from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf

import bert_tf
from bert_tf.checkpoints.names import weight_names
from bert_tf.cli.parser import main
from bert_tf.text import Preprocessor
from tests.fixtures.make_keras_files import ask
from tests.tasks import tiny_objects as tiny

# Made by tests/fixtures/make_keras_files.py.
GOLDEN = Path(__file__).parents[1] / "fixtures" / "keras_files"
QUICK = ("classifier", "tagger")


def close(found, expected):
    """Whether two answers are the same, numbers to 1e-5."""
    if isinstance(expected, dict):
        same = found.keys() == expected.keys()
        return same and all(close(found[name], expected[name]) for name in expected)
    if isinstance(expected, list):
        return len(found) == len(expected) and all(map(close, found, expected))
    if isinstance(expected, float):
        return abs(found - expected) <= 1e-5
    return found == expected


def check_equal(one, other):
    """Two models have the same settings and labels, and the same logits for a text."""
    assert (one.settings, one.labels) == (other.settings, other.labels)
    logits = [each(each.preprocessor()(tf.constant(["The cat."]))) for each in (one, other)]
    np.testing.assert_allclose(*logits, atol=1e-5)


@pytest.mark.end_to_end
@pytest.mark.parametrize(
    "file",
    [
        pytest.param(file, marks=() if file.stem in QUICK else pytest.mark.slow)
        for file in sorted(GOLDEN.glob("*/*.keras"))
    ],
    ids=lambda file: f"{file.parent.name}-{file.stem}",
)
def test_files_of_every_format_so_far_open(file):
    answers = json.loads((file.parent / "answers.json").read_text(encoding="utf-8"))
    expected = answers[file.stem]
    model = bert_tf.load(file)
    assert type(model).__name__ == expected["class"]
    assert close(ask(model, expected["asked"]), expected["answers"])


@pytest.mark.parametrize("changes", [{"attention": "side_by_side"}, {"bilstm": True}])
def test_encoders_of_the_ablations_come_back(changes, tmp_path):
    model = bert_tf.TextClassifier(tiny.encoder(**changes), tiny.tokenizer(), labels=["a", "b"])
    model.save(tmp_path / "model.keras")
    again = bert_tf.load(tmp_path / "model.keras")
    assert type(again.encoder) is type(model.encoder)
    check_equal(again, model)


def test_kerass_own_loading_gives_the_same():
    path = GOLDEN / "1" / "classifier.keras"
    check_equal(keras.saving.load_model(path), bert_tf.load(path))


@pytest.mark.parametrize("to", ["huggingface", pytest.param("bert_tf", marks=pytest.mark.slow)])
def test_a_file_is_converted_to_a_checkpoint(to, tmp_path):
    file, folder = GOLDEN / "1" / "classifier.keras", tmp_path / "out"
    assert main(["convert", str(file), str(folder), "--to", to]) == 0
    check_equal(bert_tf.load(folder), bert_tf.load(file))


def test_an_encoder_alone_is_not_read_from_a_file():
    file = GOLDEN / "1" / "classifier.keras"
    with pytest.raises(bert_tf.UserError, match="classifier.keras is a .keras file; open it with"):
        bert_tf.Encoder.from_checkpoint(file)


@pytest.mark.parametrize("written", ["1", None, 1.0])
def test_a_format_that_is_no_number_is_refused(written):
    config = tiny.classifier().get_config() | {"format": written}
    with pytest.raises(bert_tf.UserError, match="the format of this TextClassifier is"):
        bert_tf.TextClassifier.from_config(config)


def test_all_of_a_model_is_in_its_file(tmp_path):
    model = tiny.answerer(unanswerable=True, n_best=3, null_threshold=1.5)
    model.encoder.blocks[0].trainable = False
    model.save(tmp_path / "model.keras")
    same = bert_tf.load(tmp_path / "model.keras")

    assert same.settings == model.settings
    assert same.tokenizer.vocabulary == model.tokenizer.vocabulary
    assert same.tokenizer.settings == model.tokenizer.settings
    assert not same.encoder.blocks[0].trainable
    ours, theirs = weight_names(model), weight_names(same)
    assert all(np.array_equal(ours[name], theirs[name]) for name in ours)


def test_a_model_that_was_compiled_stays_so(tmp_path):
    model = tiny.classifier(labels=["bad", "good"])
    options = {"accumulation_steps": 2, "rematerialize": True, "run_eagerly": True}
    model.compile(keras.optimizers.Adam(0.01), **options)
    model.fit(tiny.TEXTS[:8], tiny.LABELS[:8], verbose=0)
    model.save(tmp_path / "model.keras")
    same = bert_tf.load(tmp_path / "model.keras")
    assert isinstance(same.optimizer, keras.optimizers.Adam)
    assert int(same.optimizer.iterations) == 1
    assert (same.accumulation_steps, same.rematerialize) == (2, True)
    assert same.encoder.rematerialize


@pytest.mark.filterwarnings("error:.*loading:UserWarning")
def test_a_model_that_was_compiled_and_not_trained_is_loaded_without_a_warning(tmp_path):
    model = tiny.classifier(labels=["bad", "good"])
    model.compile(keras.optimizers.Adam(0.01))
    model.save(tmp_path / "model.keras")
    same = bert_tf.load(tmp_path / "model.keras")
    assert isinstance(same.optimizer, keras.optimizers.Adam)
    assert int(same.optimizer.iterations) == 0


@pytest.mark.slow
def test_the_moments_of_a_recipe_that_each_fit_begins_anew_are_not_in_it(tmp_path):
    model = tiny.classifier()
    model.fit(tiny.TEXTS, tiny.LABELS, batch_size=8, verbose=0)
    model.save(tmp_path / "fitted.keras")
    model.compile("adam")
    model.fit(tiny.TEXTS, tiny.LABELS, batch_size=8, verbose=0)
    model.save(tmp_path / "compiled.keras")

    assert not bert_tf.load(tmp_path / "fitted.keras").compiled
    sizes = [os.path.getsize(tmp_path / f"{name}.keras") for name in ("fitted", "compiled")]
    assert sizes[0] < sizes[1]
    # The model itself still has its optimizer.
    assert model.optimizer is not None


def test_it_starts_another_task(tmp_path):
    model = tiny.classifier(labels=["bad", "good"])
    model.save(tmp_path / "model.keras")
    tagger = bert_tf.TokenClassifier.from_checkpoint(tmp_path / "model.keras", max_length=16)
    ours, theirs = weight_names(model.encoder), weight_names(tagger.encoder)
    assert all(np.array_equal(ours[name], theirs[name]) for name in ours)
    assert tagger.labels == ()


def test_other_labels_get_a_new_head(tmp_path):
    tiny.classifier(labels=["bad", "good"]).save(tmp_path / "model.keras")
    same = bert_tf.TextClassifier.from_checkpoint(tmp_path / "model.keras")
    assert same.labels == ("bad", "good")
    other = bert_tf.TextClassifier.from_checkpoint(tmp_path / "model.keras", labels=["a", "b", "c"])
    assert other.labels == ("a", "b", "c")
    assert other(other.preprocessor()(tf.constant(["cat"]))).shape == (1, 3)


def test_a_file_that_is_there_is_replaced_as_a_whole(tmp_path):
    path = tmp_path / "model.keras"
    tiny.classifier(labels=["a", "b"]).save(path)
    with pytest.raises(bert_tf.UserError, match="exists already; choose another file"):
        tiny.classifier(labels=["c", "d"]).save(path, overwrite=False)
    assert bert_tf.load(path).labels == ("a", "b")
    tiny.classifier(labels=["c", "d"]).save(path)
    assert bert_tf.load(path).labels == ("c", "d")
    assert list(tmp_path.iterdir()) == [path]


def test_a_copy_from_the_configuration_has_no_vocabulary():
    model = tiny.classifier(labels=["bad", "good"])
    copy = keras.models.clone_model(model)
    with pytest.raises(bert_tf.UserError, match="which holds no vocabulary; load the whole .keras"):
        copy.predict("cat")
    ids = Preprocessor(model.tokenizer, 16)(["cat"])
    assert copy.predict(ids, verbose=0).shape == (1, 2)
