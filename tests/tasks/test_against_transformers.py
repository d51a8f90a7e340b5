"""Checkpoints with heads that transformers wrote answer as transformers does (pinned, 1e-5)."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

import bert_tf

# Made by tests/fixtures/make_huggingface_answers.py.
FOLDER = Path(__file__).parents[1] / "fixtures" / "huggingface_answers"
TOLERANCE = 1e-5


def load(name, **settings):
    answers = json.loads((FOLDER / name / "answers.json").read_text(encoding="utf-8"))
    return bert_tf.load(FOLDER / name, **settings), answers


def check_probabilities(found, expected):
    for one, answer in zip(found, expected, strict=True):
        assert one["probabilities"] == pytest.approx(answer["probabilities"], abs=TOLERANCE)
        assert one["label"] == max(answer["probabilities"], key=answer["probabilities"].get)
        assert one["probability"] == pytest.approx(max(answer["probabilities"].values()), abs=1e-5)


def test_texts_have_its_labels_and_probabilities():
    model, expected = load("classification")
    assert type(model) is bert_tf.TextClassifier
    check_probabilities(model.predict([each["text"] for each in expected]), expected)


def test_pairs_have_its_labels_and_probabilities():
    model, expected = load("pairs", pair=True)
    pairs = tuple([each[name] for each in expected] for name in ("text_a", "text_b"))
    check_probabilities(model.predict(pairs), expected)


def test_texts_have_its_probabilities_of_several_labels():
    model, expected = load("labels")
    assert isinstance(model, bert_tf.TextClassifier)
    found = model.predict([each["text"] for each in expected])
    for one, answer in zip(found, expected, strict=True):
        assert one["probabilities"] == pytest.approx(answer["probabilities"], abs=TOLERANCE)
        given = {name for name, value in answer["probabilities"].items() if value >= 0.5}
        assert set(one["labels"]) == given


def test_a_model_of_pre_training_fills_gaps_as_it_does():
    model, expected = load("pretrained")
    assert type(model) is bert_tf.MaskedLM
    found = model.predict([each["gap"] for each in expected], top_k=3)
    for one, answer in zip(found, expected, strict=True):
        assert len(one) == len(answer["fillings"])
        for gap, other in zip(one, answer["fillings"], strict=True):
            assert [each["token"] for each in gap] == [each["token"] for each in other]
            probabilities = [each["probability"] for each in other]
            assert [each["probability"] for each in gap] == pytest.approx(probabilities, abs=1e-5)


def test_pairs_follow_each_other_as_it_says():
    model = bert_tf.NextSentence.from_checkpoint(FOLDER / "pretrained")
    _, expected = load("pretrained")
    pairs = tuple([each[name] for each in expected] for name in ("text_a", "text_b"))
    is_next = [each["is_next"] for each in expected]
    assert model.predict(pairs) == pytest.approx(is_next, abs=TOLERANCE)


@pytest.mark.parametrize("pooling", ["mean", "cls", "pooled"])
def test_texts_have_its_vectors(pooling):
    model = bert_tf.TextEmbedder.from_checkpoint(FOLDER / "pretrained", pooling=pooling)
    _, expected = load("pretrained")
    found = model.predict([each["text_a"] for each in expected])
    np.testing.assert_allclose(found, [each[pooling] for each in expected], atol=TOLERANCE)


def test_words_have_its_tags():
    model, expected = load("tags")
    assert type(model) is bert_tf.TokenClassifier
    words = [each["words"] for each in expected]
    assert model.predict(words=words) == [each["tags"] for each in expected]

    width = max(map(len, words))
    scores = model.ask("words", [{"words": each} for each in words])["scores"]
    for row, each in enumerate(expected):
        padded = np.pad(each["scores"], (0, width - len(each["scores"])))
        assert scores[row] == pytest.approx(padded, abs=TOLERANCE)


ENTITIES = json.loads((FOLDER / "tags" / "entities.json").read_text(encoding="utf-8"))


@pytest.mark.end_to_end
@pytest.mark.parametrize(
    "expected", ENTITIES, ids=lambda each: f"{each['labels'][1]}, {each['aggregation']}"
)
def test_texts_have_its_entities(expected, tmp_path):
    folder = shutil.copytree(FOLDER / "tags", tmp_path / "tags")
    config = json.loads((folder / "config.json").read_text())
    config["id2label"] = dict(enumerate(expected["labels"]))
    config["label2id"] = {name: number for number, name in enumerate(expected["labels"])}
    (folder / "config.json").write_text(json.dumps(config))
    model = bert_tf.load(folder)
    found = model.predict(expected["texts"], aggregation=expected["aggregation"])
    for answers, of_text in zip(found, expected["entities"], strict=True):
        names = ("type", "start", "end")
        assert [[each[name] for name in names] for each in answers] == [e[:3] for e in of_text]
        scores = [each["score"] for each in answers]
        assert scores == pytest.approx([e[3] for e in of_text], abs=TOLERANCE)


def test_questions_have_its_answers():
    model, expected = load("questions", unanswerable=True, max_length=64, max_question_length=20)
    assert type(model) is bert_tf.QuestionAnswerer
    rows = [{name: each[name] for name in ("question", "context")} for each in expected]
    found = model.ask("answers", rows)
    answers = [text.decode() for text in found["best_answer"]]
    assert answers == [each["answer"] for each in expected]
    null = np.array([each["null_score"] for each in expected])
    assert found["null_score"] == pytest.approx(null, abs=TOLERANCE)
    best = np.array([each["logits"] for each in expected])
    assert found["null_odds"] == pytest.approx(null - best, abs=TOLERANCE)


@pytest.mark.end_to_end
def test_offsets_of_answers_are_its_characters():
    model, expected = load("questions", max_length=64, max_question_length=20)
    for each in expected:
        found = model.predict(question=each["question"], context=each["context"])
        assert (found["answer"], found["start"], found["end"]) == (
            each["answer"],
            each["start"],
            each["end"],
        )
        assert each["context"][found["start"] : found["end"]] == found["answer"]
