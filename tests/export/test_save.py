"""What does not fit a model is refused in one line, and then nothing is written."""

import keras
import pytest

import export
from bert_tf.errors import UserError
from bert_tf.models import Encoder, PreTrainer, SpanClassifier
from bert_tf.text import Tokenizer
from export.hub import HubEncoder
from tests import tiny
from tests.export.conftest import FAMILIES


@pytest.mark.parametrize("family", ["classification", "embedding", "hub"])
def test_rows_are_no_longer_than_the_model_has_positions(models, tokenizer, tmp_path, family):
    options = FAMILIES[family][1] | {"max_length": 33}
    with pytest.raises(UserError, match="max_length 33 is longer .* 32 positions; lower it to 32"):
        export.save(models(family), tokenizer, tmp_path / "x", **options)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("family", ["classification", "mlm", "hub"])
def test_the_model_has_every_piece_of_the_tokenizer(models, tmp_path, family):
    count = len(tiny.VOCABULARY)
    larger = Tokenizer([*tiny.VOCABULARY, "more"])
    with pytest.raises(UserError, match=f"tokenizer has {count + 1} pieces, the model {count}; "):
        export.save(models(family), larger, tmp_path / "x", **FAMILIES[family][1])
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "family", ["regression", "multiple_choice", "question_answering", "nsp", "embedding", "hub"]
)
def test_labels_are_for_classes(models, tokenizer, tmp_path, family):
    with pytest.raises(UserError, match="labels are given for an export without classes, kind "):
        export.save(models(family), tokenizer, tmp_path / "x", ["a"], **FAMILIES[family][1])
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("labels", "reason"),
    [
        ([0, 1, 2], "the label 0 is not one line of text; give such a name to each class"),
        ([b"a", b"b", b"c"], "the label b'a' is not one line of text"),
        (["a", "", "c"], "the label '' is not one line of text"),
        (["a", "b\nb", "c"], r"the label 'b\\nb' is not one line of text"),
        (["a", "b", "c\r"], r"the label 'c\\r' is not one line of text"),
        (["a", "b", "a"], "the label 'a' is there 2 times; give each class its own"),
    ],
)
@pytest.mark.parametrize("family", ["classification", "token_classification"])
def test_labels_are_different_lines_of_text(models, tokenizer, tmp_path, family, labels, reason):
    with pytest.raises(UserError, match=reason):
        export.save(models(family), tokenizer, tmp_path / "x", labels)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("kind", ["task", "mlm", "embedding", "hub"])
def test_a_model_is_one_of_bert_tf(tokenizer, tmp_path, kind):
    other = keras.Sequential([keras.Input([2]), keras.layers.Dense(1)])
    with pytest.raises(UserError, match="there is no encoder in a Sequential; give a model of"):
        export.save(other, tokenizer, tmp_path / "x", kind=kind)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("make", "kinds"),
    [
        (lambda encoder: encoder, "hub or embedding"),
        (PreTrainer, "mlm, nsp, hub or embedding"),
        (lambda encoder: PreTrainer(encoder, next_sentence=False), "mlm, hub or embedding"),
    ],
)
def test_without_a_task_those_kinds_are_named_that_there_are(tokenizer, tmp_path, make, kinds):
    model = make(Encoder(tiny.encoder_config(16)))
    told = f"^this {type(model).__name__} was not fine-tuned for a task; choose --kind {kinds}$"
    with pytest.raises(UserError, match=told):
        export.save(model, tokenizer, tmp_path / "x")
    assert not list(tmp_path.iterdir())


def test_an_encoder_has_no_pre_training_head(models, tokenizer, tmp_path):
    with pytest.raises(UserError, match="this Encoder has no pre-training head for --kind mlm; "):
        export.save(models("mlm").encoder, tokenizer, tmp_path / "x", kind="mlm")


def test_a_place_that_no_folder_can_have_is_told(models, tokenizer, tmp_path):
    with pytest.raises(UserError, match="cannot write .* .File name too long.; choose another"):
        export.save(models("classification"), tokenizer, tmp_path / ("x" * 300))


def test_a_pooler_that_is_not_there_is_not_served(tokenizer, tmp_path):
    model = SpanClassifier(Encoder(tiny.encoder_config(), with_pooler=False))
    with pytest.raises(UserError, match="the encoder has no pooler; choose the pooling mean or"):
        export.save(model, tokenizer, tmp_path / "x", kind="embedding", pooling="pooled")
    with pytest.raises(UserError, match="the encoder has no pooler, whose output TF Hub's"):
        export.save(model, tokenizer, tmp_path / "x", kind="hub")
    assert not list(tmp_path.iterdir())


def test_of_a_pair_that_is_stopped_half_way_nothing_is_left(
    models, tokenizer, tmp_path, monkeypatch
):
    written = []

    def stop(self):
        written.extend(tmp_path.rglob("saved_model.pb"))
        raise KeyboardInterrupt

    monkeypatch.setattr(HubEncoder, "signatures", stop)
    with pytest.raises(KeyboardInterrupt):
        export.save(models("hub"), tokenizer, tmp_path / "x", kind="hub")
    assert [path.parent.name for path in written] == ["preprocessor"]
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]
