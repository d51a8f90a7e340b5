"""The exported classifier answers strings as the model does, anywhere, with nothing of ours."""

import json

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.asking import predict
from bert_tf.errors import UserError
from bert_tf.text import Preprocessor
from tests import tiny

TEXTS = ["the cat sat on the mat .", "", "dogs ran\N{SNOWMAN}", "a fish " * 40]


@pytest.fixture
def saved(exported):
    return exported("classification")


@pytest.fixture
def answer(loaded):
    return loaded("classification").signatures["serving_default"]


def test_answers_are_those_of_the_model(answer, models, tokenizer):
    answers = answer(text=tf.constant(TEXTS))
    logits = models("classification")(Preprocessor(tokenizer, max_length=32)(TEXTS))
    np.testing.assert_allclose(answers["probabilities"], tf.nn.softmax(logits), atol=1e-6)
    best = [[b"no", b"yes", b"maybe"][i] for i in np.argmax(logits, axis=1)]
    assert answers["label"].numpy().tolist() == best
    assert answers["classes"].numpy().tolist() == [[b"no", b"yes", b"maybe"]] * len(TEXTS)


def test_serve_takes_a_tensor_or_a_dict(loaded):
    serve, texts = loaded("classification").serve, tf.constant(TEXTS)
    one, other = serve(texts), serve({"text": texts})
    np.testing.assert_array_equal(one["probabilities"], other["probabilities"])


def test_an_empty_batch_gives_an_empty_answer(answer):
    answers = answer(text=tf.constant([], tf.string))
    assert answers["probabilities"].shape == (0, 3)
    assert answers["label"].shape == (0,)


def test_a_batch_of_any_size_and_any_bytes_is_answered_as_its_rows_are(answer):
    odd = [b"\xff\xfe\x00", "\N{PILE OF POO}", "\u05e9\u05dc\u05d5\u05dd", "cat " * 250_000, ""]
    # Enough tokens for several chunks, and enough bytes for several groups.
    many = answer(text=tf.constant(odd * 20))["probabilities"]
    few = answer(text=tf.constant(odd))["probabilities"]
    np.testing.assert_allclose(many, np.tile(few, [20, 1]), atol=1e-5)


def test_the_folder_holds_vocabulary_and_labels(saved):
    assert (saved / "assets" / "vocab.txt").read_text().splitlines() == tiny.VOCABULARY
    assert (saved / "assets" / "labels.txt").read_text().splitlines() == ["no", "yes", "maybe"]


def test_predict_writes_json_lines_in_the_order_of_the_input(saved, answer, loads_once, tmp_path):
    source, target = tmp_path / "texts.txt", tmp_path / "answers.jsonl"
    source.write_text("\n".join(TEXTS) + "\n")
    predict.run(str(saved), [], str(source), str(target))
    rows = [json.loads(line) for line in target.read_text().splitlines()]
    answers = answer(text=tf.constant(TEXTS))
    assert [row["label"].encode() for row in rows] == answers["label"].numpy().tolist()
    np.testing.assert_allclose(
        [row["probabilities"] for row in rows], answers["probabilities"], atol=1e-6
    )


def test_mistakes_are_named(saved, models, loads_once, tmp_path):
    with pytest.raises(UserError, match="exists already"):
        models("classification").export(saved)
    with pytest.raises(UserError, match="no checkpoint in .*: expected a run folder"):
        predict.run(str(tmp_path), ["text"], None, None)
    with pytest.raises(UserError, match="checkpoint not found: .*/nothing; give a folder"):
        predict.run(str(tmp_path / "nothing"), ["text"], None, None)
    bad = tmp_path / "bad.jsonl"
    bad.write_text('{"text": "cat"}\n{"txt": "dog"}\n')
    with pytest.raises(UserError, match="bad.jsonl, line 2: no text under 'text'"):
        predict.run(str(saved), [], str(bad), None)
