"""SQuAD's files: what is read, in bytes, and what is reported about a bad file."""

import json

import pytest

from bert_tf.errors import UserError
from bert_tf.tasks.question_answering.squad import (
    Answer,
    answer_bytes,
    read_squad,
    read_tfds,
    squad_json,
)

CONTEXT = "Zoë 🎉 saw Łódź. She left Łódź."


def paragraph(**changes) -> dict:
    answers = [{"text": "Łódź", "answer_start": CONTEXT.index("Łódź")}]
    row = {"id": "a", "question": "Where?", "answers": answers}
    return {"context": CONTEXT, "qas": [row | changes]}


def write(folder, *paragraphs: dict):
    path = folder / "questions.json"
    path.write_text(json.dumps({"data": [{"paragraphs": [*paragraphs]}]}))
    return path


def test_offsets_are_turned_from_characters_into_bytes(tmp_path):
    rows = read_squad(write(tmp_path, paragraph()))
    start, end = answer_bytes(rows.targets[0], CONTEXT)
    assert CONTEXT.encode()[start:end].decode() == "Łódź"
    assert start == CONTEXT.index("Łódź") + 1 + 3
    assert (rows.ids, rows.values) == (["a"], (["Where?"], [CONTEXT]))
    assert rows.targets == [(Answer("Łódź", 10),)]


def test_ids_and_offsets_may_be_missing(tmp_path):
    bare = paragraph(answers=[{"text": "saw"}, {"text": "Łódź", "answer_start": None}])
    del bare["qas"][0]["id"]
    rows = read_squad(write(tmp_path, bare, paragraph(id=None)))
    assert rows.ids == [f"data[0].paragraphs[{number}].qas[0]" for number in (0, 1)]
    assert rows.targets[0] == (Answer("saw", 6), Answer("Łódź", -1))


def test_the_answer_to_learn_is_the_first_that_stands_where_it_says():
    answers = (Answer("Łódź", 3), Answer(" ", 3), Answer("saw", 6), Answer("She", 16))
    start, end = answer_bytes(answers, CONTEXT)
    assert CONTEXT.encode()[start:end] == b"saw"
    for wrong in (-4, 1000, 9, 11):
        assert answer_bytes([Answer("Łódź", wrong)], CONTEXT) == (-1, -1)
    assert answer_bytes((), CONTEXT) == (-1, -1)


def test_questions_without_an_answer_and_with_an_unknown_one(tmp_path):
    impossible = paragraph(is_impossible=True, plausible_answers=[])
    for possible in (False, None):
        rows = read_squad(write(tmp_path, paragraph(is_impossible=possible)))
        assert len(rows.targets[0]) == 1
    unknown = {"context": "x", "qas": [{"id": "b", "question": "?"}]}
    path = write(tmp_path, impossible, unknown, paragraph(id="c", answers=[]))
    assert read_squad(path).targets == [(), None, ()]


@pytest.mark.parametrize("changes", [{}, {"is_impossible": None}, {"is_impossible": False}])
def test_a_file_of_only_empty_answers_has_no_known_answers(tmp_path, changes):
    empty = {"answers": []} | changes
    path = write(tmp_path, paragraph(**empty), paragraph(id="b", **empty))
    assert read_squad(path).targets is None
    # With other questions, empty answers mean no answer, unless is_impossible is false.
    for other in ({}, {"is_impossible": True}):
        path = write(tmp_path, paragraph(**empty), paragraph(id="b", **other))
        told = read_squad(path).targets[0]
        assert told == (None if changes.get("is_impossible") is False else ())


def test_a_file_of_only_impossible_questions_says_so(tmp_path):
    path = write(tmp_path, paragraph(answers=[], is_impossible=True))
    assert read_squad(path).targets == [()]


def test_half_of_a_pair_becomes_one_character(tmp_path):
    path = write(tmp_path, paragraph() | {"context": "\ud83c!"})
    assert read_squad(path).column("context") == ["\ufffd!"]


def test_a_byte_order_mark_is_no_mistake(tmp_path):
    path = write(tmp_path, paragraph())
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert len(read_squad(path)) == 1


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"data": [\n  {,', "line 2, column 4: not JSON"),
        ("[" * 100_000, "the JSON cannot be read"),
        ("[]", "the file must be an object with the key 'data'"),
        ("{}", "the file has no key 'data'"),
        ('{"data": {}}', "data must be a list"),
        ('{"data": []}', "has no questions"),
        ('{"data": [{"paragraphs": []}]}', "has no questions"),
        ('{"data": [{}]}', r"data\[0\] has no key 'paragraphs'"),
        ('{"data": [{"paragraphs": [{"qas": []}]}]}', r"paragraphs\[0\] has no key 'context'"),
    ],
)
def test_a_file_of_another_form_is_told_with_the_place(tmp_path, content, message):
    path = tmp_path / "bad.json"
    path.write_text(content)
    with pytest.raises(UserError, match=message) as told:
        read_squad(path)
    assert str(path) in str(told.value) and "\n" not in str(told.value)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"id": 3}, r"data\[0\].paragraphs\[1\].qas\[0\].id must be a text"),
        ({"question": None}, r"qas\[0\].question must be a text"),
        ({"answers": "Łódź"}, r"qas\[0\].answers must be a list"),
        ({"answers": ["Łódź"]}, r"answers\[0\] must be an object with the key 'text'"),
        ({"answers": [{"text": "x", "answer_start": "1"}]}, "answer_start must be a whole number"),
        ({"is_impossible": "false"}, r"qas\[0\].is_impossible must be true or false"),
        ({"id": "a"}, r"data\[0\].paragraphs\[0\].qas\[0\] and .*\[1\].qas\[0\] have the same id"),
    ],
)
def test_a_bad_question_is_told_with_its_place(tmp_path, changes, message):
    with pytest.raises(UserError, match=message):
        read_squad(write(tmp_path, paragraph(), paragraph(**{"id": "b"} | changes)))


def test_what_is_written_is_read_again(tmp_path):
    rows = read_squad(write(tmp_path, paragraph(), paragraph(id="b", answers=[])))
    path = tmp_path / "again.json"
    path.write_text(squad_json([("one", rows.take([0])), ("two", rows.take([1]))]))
    again = read_squad(path)
    assert (again.ids, again.values, again.targets) == (rows.ids, rows.values, rows.targets)


def test_tfds_has_the_same_questions(monkeypatch):
    text = {"id": b"a", "question": b"Where?", "context": CONTEXT.encode()}
    answers = {"text": ["Łódź".encode()], "answer_start": [10]}
    rows = [text | {"answers": answers}, text | {"answers": answers, "is_impossible": True}]
    monkeypatch.setattr(
        "bert_tf.tasks.question_answering.squad.load_split", lambda name, split: (rows, rows[0])
    )
    found = read_tfds("squad/v2.0", "train")
    assert found.ids == ["a"] * 2 and found.values == (["Where?"] * 2, [CONTEXT] * 2)
    assert found.targets == [(Answer("Łódź", 10),), ()]


def test_tfds_of_other_features_is_refused(monkeypatch):
    features = {"text": None, "label": None}
    monkeypatch.setattr(
        "bert_tf.tasks.question_answering.squad.load_split", lambda name, split: ([], features)
    )
    with pytest.raises(
        UserError, match="TFDS imdb, split x: no feature 'id'; the features are text, lab"
    ):
        read_tfds("imdb", "x")


def test_mock_data_of_tfds_are_read():
    tfds = pytest.importorskip("tensorflow_datasets")
    with tfds.testing.mock_data(num_examples=3):
        questions = read_tfds("squad/v1.1", "validation")
    assert len(questions) == 3
    assert all(isinstance(each, str) for each in questions.column("context"))
