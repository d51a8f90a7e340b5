"""What does not fit a model is refused in one line, and then nothing is written."""

import keras
import pytest

from bert_tf import (
    QuestionAnswerer,
    TextEmbedder,
)
from bert_tf.checkpoints import conversion
from bert_tf.encoder.encoder import Encoder
from bert_tf.errors import UserError
from bert_tf.export.hub import HubEncoder
from bert_tf.export.run import export_run
from bert_tf.export.saving import save_hub
from bert_tf.models.pretrainer import PreTrainer
from bert_tf.text import Tokenizer
from tests import tiny
from tests.export.conftest import FAMILIES, save


def test_rows_are_no_longer_than_the_model_has_positions(models, tokenizer, tmp_path):
    with pytest.raises(UserError, match="max_length 33 is longer .* 32 positions; lower it to 32"):
        save_hub(models("hub"), tokenizer, tmp_path / "x", max_length=33)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("family", ["classification", "mlm", "hub"])
def test_the_model_has_every_piece_of_the_tokenizer(models, tmp_path, family):
    count = len(tiny.VOCABULARY)
    larger = Tokenizer([*tiny.VOCABULARY, "more"])
    with pytest.raises(
        UserError, match=f"tokenizer has {count + 1} pieces, but the model has only {count}; "
    ):
        encoder = Encoder(tiny.encoder_config(16))
        save(family, FAMILIES[family](encoder, larger), larger, tmp_path / "x")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("labels", "reason"),
    [
        (["a", "", "c"], "the label '' is not one line of text"),
        (["a", "b\nb", "c"], r"the label 'b\\nb' is not one line of text"),
        (["a", "b", "c\r"], r"the label 'c\\r' is not one line of text"),
        (["a", "b", "a"], "the label 'a' occurs 2 times; give each class its own label"),
    ],
)
@pytest.mark.parametrize("family", ["classification", "token_classification"])
def test_labels_are_different_lines_of_text(models, tokenizer, family, labels, reason):
    with pytest.raises(UserError, match=reason):
        type(models(family))(Encoder(tiny.encoder_config(16)), tokenizer, labels)


def test_a_model_is_one_of_bert_tf(tokenizer, tmp_path):
    other = keras.Sequential([keras.Input([2]), keras.layers.Dense(1)])
    said = "a Sequential has no encoder; give a bert_tf model"
    with pytest.raises(UserError, match=said):
        save_hub(other, tokenizer, tmp_path / "x")
    assert not list(tmp_path.iterdir())


def without_next_sentence(encoder):
    return PreTrainer(encoder, next_sentence=False)


@pytest.mark.parametrize(
    ("make", "kind", "said"),
    [
        (lambda encoder: encoder, "task", "; choose --kind hub or embedding$"),
        (PreTrainer, "task", "; choose --kind mlm, nsp, hub or embedding$"),
        (without_next_sentence, "task", "; choose --kind mlm, hub or embedding$"),
        (lambda encoder: encoder, "mlm", " has no pre-training head for --kind mlm; give a pre-"),
        (without_next_sentence, "nsp", " has no pre-training head for --kind nsp; give a pre-"),
    ],
)
def test_a_head_that_is_not_there_is_not_served(tokenizer, tmp_path, make, kind, said):
    model = make(Encoder(tiny.encoder_config(16)))
    conversion.save(model, tmp_path / "checkpoint", "bert_tf", tokenizer)
    with pytest.raises(UserError, match=f".{type(model).__name__}.{said}"):
        export_run(tmp_path / "checkpoint", tmp_path / "x", kind=kind)
    assert not (tmp_path / "x").exists()


def test_an_unknown_kind_is_named(tmp_path):
    said = "unknown kind 'vectors'; choose one of task, hub, mlm, nsp, embedding"
    with pytest.raises(UserError, match=said):
        export_run(tmp_path, tmp_path / "x", kind="vectors")


def test_a_place_that_no_folder_can_have_is_named(models, tmp_path):
    with pytest.raises(UserError, match="cannot write .* .File name too long.; choose another"):
        models("classification").export(tmp_path / ("x" * 300))


def test_a_pooler_that_is_not_there_is_not_served(tokenizer, tmp_path):
    encoder = Encoder(tiny.encoder_config(), with_pooler=False)
    model = QuestionAnswerer(encoder, tokenizer, max_question_length=8)
    with pytest.raises(UserError, match="the encoder has no pooler; choose the pooling mean or"):
        TextEmbedder(encoder, tokenizer, pooling="pooled")
    with pytest.raises(UserError, match="TF Hub encoders return the output of a pooler, but"):
        save_hub(model, tokenizer, tmp_path / "x")
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_of_a_pair_that_is_stopped_half_way_nothing_is_left(
    models, tokenizer, tmp_path, monkeypatch
):
    written = []

    def stop(self):
        written.extend(tmp_path.rglob("saved_model.pb"))
        raise KeyboardInterrupt

    monkeypatch.setattr(HubEncoder, "signatures", stop)
    with pytest.raises(KeyboardInterrupt):
        save_hub(models("hub"), tokenizer, tmp_path / "x")
    assert [path.parent.name for path in written] == ["preprocessor"]
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]
