"""The settings of a tokenizer travel with the model: `.keras`, checkpoints, SavedModel, LiteRT."""

import numpy as np
import pytest

import bert_tf
from tests.tasks import tiny_objects

TEXTS = [
    "Że the cat",
    "ze the cat",
    "<e1>cat</e1> sat",
    "a cat<E1> [MASK] sat [SEP] ran",
    "the 汉字 and 汉",
    "swamswamswamswam",
]
PIECES = ["że", "ze", "<e1>", "</e1>", "汉字", "汉", "字"]


@pytest.fixture(scope="module")
def model():
    known = tiny_objects.tokenizer().vocabulary
    tokenizer = bert_tf.Tokenizer(
        [*known, *PIECES],
        strip_accents=False,
        split_chinese=False,
        special_tokens="whole",
        added_tokens=["<e1>", "</e1>"],
        longest_word=8,
    )
    sizes = {"vocab_size": tokenizer.vocab_size}
    encoder = tiny_objects.encoder(**sizes)
    return bert_tf.TextClassifier(encoder, tokenizer, labels=["good", "bad"], max_length=16)


def scores(model):
    return [each["probability"] for each in model.predict(TEXTS)]


@pytest.mark.end_to_end
def test_they_change_the_answers(model):
    plain = bert_tf.TextClassifier(
        model.encoder, bert_tf.Tokenizer(model.tokenizer.vocabulary), labels=["good", "bad"]
    )
    plain.set_weights(model.get_weights())
    assert not np.allclose(scores(plain), scores(model), rtol=1e-6)
    ids = model.tokenizer.tokenize(TEXTS)
    vocabulary = np.array(model.tokenizer.vocabulary)
    assert vocabulary[ids[0].numpy()].tolist() == ["że", "the", "cat"]
    assert vocabulary[ids[2].numpy()].tolist() == ["<e1>", "cat", "</e1>", "sat"]
    assert vocabulary[ids[4].numpy()].tolist()[1:3] == ["汉字", "[UNK]"]
    assert vocabulary[ids[5].numpy()].tolist() == ["[UNK]"]


@pytest.mark.end_to_end
@pytest.mark.parametrize("kind", ["keras", "bert_tf", "huggingface", "saved_model", "litert"])
def test_every_copy_answers_as_the_model(model, tmp_path, kind):
    path = tmp_path / ("model.keras" if kind == "keras" else "copy")
    if kind == "keras":
        model.save(path)
    elif kind in ("bert_tf", "huggingface"):
        model.save_checkpoint(path, kind)
    elif kind == "saved_model":
        model.export(path)
    else:
        path = tmp_path / "model.tflite"
        model.export(path, "litert")
    np.testing.assert_allclose(scores(bert_tf.load(path)), scores(model), atol=1e-5)
