"""Windows to train on hold the text around each answer, and where it is."""

import json

import keras
import numpy as np
import pytest

from bert_tf import QuestionAnswerer
from bert_tf.data.batching import TrainingRows, training_batches
from bert_tf.data.columns import Columns
from bert_tf.encoder.encoder import Encoder
from bert_tf.tasks.question_answering.squad import read_squad
from tests import tiny, tiny_questions


@pytest.fixture(scope="module")
def questions(tmp_path_factory) -> Columns:
    rows = tiny_questions.rows(300, 3, unanswerable=True)
    return read_squad(tiny_questions.write_squad(tmp_path_factory.mktemp("data") / "a", rows))


@pytest.fixture(scope="module")
def rows(questions) -> TrainingRows:
    return _cut(questions)


def _cut(questions: Columns) -> TrainingRows:
    sizes = {"max_length": 20, "stride": 6, "max_question_length": 4}
    encoder = Encoder(tiny.encoder_config())
    return QuestionAnswerer(encoder, tiny.tokenizer(), True, **sizes).examples(questions)


def test_every_window_is_there_with_its_answer(rows, questions):
    expected = []
    for context in questions.column("context"):
        words = context.split()
        room, starts = 20 - 3 - 1, [0]
        while starts[-1] + room < len(words):
            starts.append(starts[-1] + 6)
        for start in starts:
            window = words[start : start + room]
            place = [i for i, word in enumerate(window) if word in tiny_questions.PLACES]
            expected.append((" ".join(window), 3 + place[0] if place else 0))
    vocabulary = np.array(tiny.VOCABULARY)
    for row, (window, place) in enumerate(expected):
        inputs, targets = rows.take(np.array([row]))
        tokens = vocabulary[inputs["input_word_ids"][0]]
        assert " ".join(tokens[3:-1]) == window
        assert targets == {"start": [place], "end": [place]}
    assert len(rows.lengths) == len(expected) > len(questions)


@pytest.mark.slow
def test_batches_of_them_train_a_model(rows):
    ((inputs, targets),) = training_batches(rows, 4, seed=0, start=0).take(1)
    assert inputs["input_mask"].shape[0] == 4
    assert targets["start"].dtype == targets["end"].dtype == np.int32
    keras.utils.set_random_seed(0)
    model = QuestionAnswerer(Encoder(tiny.encoder_config()), None, max_question_length=2)
    model.compile(optimizer="adam", jit_compile=False)
    batches = training_batches(rows, 4, seed=0, start=0, length=20)
    fitted = model.fit(batches, steps_per_epoch=20, epochs=2, shuffle=False, verbose=0)
    first, last = fitted.history["loss"]
    assert 0 < last < first


def test_questions_of_all_chunks_are_kept_apart(questions, tmp_path):
    """The answer of each row is its own, though rows of a chunk are cut together."""
    path = tmp_path / "same.json"
    content = {"context": "cat sat . dog", "qas": []}
    for i in range(600):
        word = ("cat", "dog")[i % 2]
        answer = {"text": word, "answer_start": content["context"].index(word)}
        content["qas"].append({"id": str(i), "question": "on", "answers": [answer]})
    path.write_text(json.dumps({"data": [{"paragraphs": [content]}]}))
    rows = _cut(read_squad(path))
    for values in rows.targets.values():
        assert values.tolist() == [3, 6] * 300
