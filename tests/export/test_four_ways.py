"""Any text gets the same answer from an object, from its export, from `load` and from a command."""

import json
import random
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import bert_tf
from bert_tf.cli.parser import main
from tests.export import odd_texts
from tests.export.conftest import tasks

Row = Mapping[str, Any]

COUNT = 40


def texts_of(specs: Mapping[str, tf.TensorSpec]) -> dict[str, list]:
    """Unicode for each input, hard and random; JSON has no other bytes. No text in a list is blank.

    Texts of one row are of different kinds.
    """
    source = random.Random(3)
    hard = [text.decode() for text in odd_texts.HARD if is_unicode(text)]

    def entry() -> str:
        text = odd_texts.random_characters(source, source.randint(1, 40))
        return text if text.strip() else entry()

    columns: dict[str, list] = {}
    for place, (name, spec) in enumerate(sorted(specs.items())):
        if spec.shape.rank == 2:
            columns[name] = [[entry() for _ in range(source.randint(2, 4))] for _ in range(COUNT)]
            continue
        texts = hard[place:] + hard[:place]
        sizes = [source.randint(0, 40) for _ in range(COUNT - len(texts))]
        columns[name] = texts + [odd_texts.random_characters(source, size) for size in sizes]
    return columns


def is_unicode(text: bytes) -> bool:
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


def tensors_of(columns: Mapping[str, list]) -> dict[str, tf.Tensor]:
    """Columns as string tensors; lists are padded with ""."""
    return {
        name: tf.ragged.constant(values).to_tensor("")
        if isinstance(values[0], list)
        else tf.constant(values)
        for name, values in columns.items()
    }


def assert_alike(found: Any, expected: Any) -> None:
    """Numbers may differ by as much as kernels do for batches of other sizes."""
    if isinstance(expected, dict):
        assert found.keys() == expected.keys()
        for name, value in expected.items():
            if name == "nbest":
                assert_same_answers(found[name], value)
            else:
                assert_alike(found[name], value)
    elif isinstance(expected, list):
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            assert_alike(one, other)
    elif isinstance(expected, float | np.ndarray):
        assert found == pytest.approx(expected, abs=1e-5)
    else:
        assert found == expected


def assert_same_answers(found: list[dict], expected: list[dict]) -> None:
    """The n best answers are the same; those that are as likely as others may change places."""
    assert_alike([each["score"] for each in found], [each["score"] for each in expected])
    one, other = ({each["answer"]: each["score"] for each in nbest} for nbest in (found, expected))
    for text in one.keys() | other.keys():
        assert one.get(text, 0.0) == pytest.approx(other.get(text, 0.0), abs=1e-5), text


def assert_same_tensors(found: Mapping[str, Any], expected: Mapping[str, Any]) -> None:
    """Tensors of the same batch are equal, but for the order of the n best answers."""
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        one, other = np.asarray(found[name]), np.asarray(value)
        assert (one.dtype, one.shape) == (other.dtype, other.shape), name
        if one.dtype.kind == "f":
            np.testing.assert_allclose(one, other, atol=1e-5, err_msg=name)
        elif name != "nbest_answers":
            np.testing.assert_array_equal(one, other, err_msg=name)


class ByteOffsets:
    """`serve` and SavedModels: texts are bytes, lists are padded, offsets count bytes."""

    @staticmethod
    def text(value: bytes) -> str:
        return value.decode()

    @staticmethod
    def cut(text: str, start: int, end: int) -> str:
        return text.encode()[start:end].decode()


class CharacterOffsets:
    """`bert-tf predict`: JSON, without padding, offsets count characters."""

    @staticmethod
    def text(value: str) -> str:
        return value

    @staticmethod
    def cut(text: str, start: int, end: int) -> str:
        return text[start:end]


Offsets = type[ByteOffsets] | type[CharacterOffsets]


def check_classification(row: Row, found: Row, answer: dict, offsets: Offsets) -> None:
    classes = [offsets.text(each) for each in found["classes"]]
    probabilities = dict(zip(classes, map(float, found["probabilities"]), strict=True))
    label = offsets.text(found["label"])
    assert_alike({"label": label, "probabilities": probabilities}, _without(answer, "probability"))
    assert answer["probability"] == max(answer["probabilities"].values())


def check_labels(row: Row, found: Row, answer: dict, offsets: Offsets) -> None:
    classes = [offsets.text(each) for each in found["classes"]]
    probabilities = dict(zip(classes, map(float, found["probabilities"]), strict=True))
    labels = [offsets.text(each) for each in found["labels"] if each]
    assert_alike({"labels": labels, "probabilities": probabilities}, answer)


def check_fillings(row: Row, found: Row, answer: list, offsets: Offsets) -> None:
    gaps = zip(found["tokens"], found["probabilities"], strict=True)
    fillings = [
        [{"token": offsets.text(t), "probability": float(p)} for t, p in zip(*gap, strict=True)]
        for gap in gaps
        if len(gap[0]) and gap[0][0]
    ]
    assert_alike(fillings, answer)


def check_next(row: Row, found: Row, answer: float, offsets: Offsets) -> None:
    assert_alike(float(found["is_next"]), answer)


def check_vector(row: Row, found: Row, answer: np.ndarray, offsets: Offsets) -> None:
    np.testing.assert_allclose(found["embedding"], answer, atol=1e-5)


def check_regression(row: Row, found: Row, answer: float, offsets: Offsets) -> None:
    assert_alike(float(found["score"]), answer)


def check_numbers(row: Row, found: Row, answer: dict, offsets: Offsets) -> None:
    assert list(map(offsets.text, found["targets"])) == list(answer)
    assert_alike([float(each) for each in found["scores"]], [*answer.values()])


def check_choice(row: Row, found: Row, answer: dict, offsets: Offsets) -> None:
    assert int(found["choice"]) == answer["choice"]
    count = len(row["choices"])
    probabilities = [float(each) for each in found["probabilities"]]
    assert_alike(probabilities[:count], answer["probabilities"])
    assert not any(probabilities[count:])


def check_ranking(row: Row, found: Row, answer: dict, offsets: Offsets) -> None:
    count = len(row["passages"])
    order, scores = [*map(int, found["order"])], [*map(float, found["scores"])]
    assert_alike(scores[:count], answer["scores"])
    assert order[:count] == answer["order"]
    assert not any(scores[count:]) and {*order[count:]} <= {-1}


def check_zero_shot(row: Row, found: Row, answer: dict, offsets: Offsets) -> None:
    count, probabilities = len(row["candidates"]), [*map(float, found["probabilities"])]
    assert offsets.text(found["label"]) == answer["label"]
    assert [*answer["probabilities"]] == row["candidates"]
    assert_alike(probabilities[:count], [*answer["probabilities"].values()])
    assert not any(probabilities[count:])


def check_question(row: Row, found: Row, answer: dict, offsets: Offsets) -> None:
    text, start, end = offsets.text(found["answer"]), int(found["start"]), int(found["end"])
    assert text == answer["answer"]
    if start < 0:
        assert (text, start, end, answer["start"], answer["end"]) == ("", -1, -1, -1, -1)
    else:
        assert offsets.cut(row["context"], start, end) == text
        assert row["context"][answer["start"] : answer["end"]] == text
    for name in ("score", "null_score"):
        assert_alike(float(found[name]), answer[name])
    pairs = zip(found["nbest_answers"], found["nbest_scores"], strict=True)
    nbest = [{"answer": offsets.text(text), "score": float(score)} for text, score in pairs]
    real = [each for each in nbest if each["answer"] or each["score"]]
    assert_same_answers(real, answer["nbest"])


def check_words(row: Row, found: Row, answer: list[dict], offsets: Offsets) -> None:
    """The words of a text, in which its entities begin and end."""
    names = ("words", "labels", "starts", "ends")
    begin, finish = {}, set()
    for word, label, start, end in zip(*(found[name] for name in names), strict=True):
        if start < 0:
            continue
        assert offsets.cut(row["text"], start, end) == offsets.text(word)
        begin[int(start)] = offsets.text(label)
        finish.add(int(end))
    for entity in answer:
        start, end = _offsets_of(row["text"], entity, offsets)
        assert begin[start].partition("-")[2] == entity["type"] and end in finish
    # No beginning of an entity is left out.
    begun = [start for start, label in begin.items() if label.startswith("B-")]
    assert {*begun} <= {_offsets_of(row["text"], entity, offsets)[0] for entity in answer}


def check_entities(row: Row, found: Row, answer: list[dict], offsets: Offsets) -> None:
    names = ("entities", "types", "starts", "ends", "scores")
    entities = [each for each in zip(*(found[name] for name in names), strict=True) if each[2] >= 0]
    assert len(entities) == len(answer)
    for (text, kind, start, end, score), expected in zip(entities, answer, strict=True):
        assert (offsets.text(text), offsets.text(kind)) == (expected["text"], expected["type"])
        assert offsets.cut(row["text"], start, end) == expected["text"]
        assert row["text"][expected["start"] : expected["end"]] == expected["text"]
        assert (start, end) == _offsets_of(row["text"], expected, offsets)
        assert_alike(float(score), expected["score"])


def _offsets_of(text: str, answer: Mapping[str, int], offsets: Offsets) -> tuple[int, ...]:
    """Where an answer with offsets in characters stands."""
    places = answer["start"], answer["end"]
    if offsets is CharacterOffsets:
        return places
    return tuple(len(text[:place].encode()) for place in places)


def _without(answer: dict, name: str) -> dict:
    return {key: value for key, value in answer.items() if key != name}


# What the signatures of a family say, compared with what `predict` says.
Check = Callable[[Row, Row, Any, Offsets], None]
CHECKS: dict[str, dict[str, Check]] = {
    "classification": {"serving_default": check_classification},
    "pair": {"serving_default": check_classification},
    "multi_label": {"serving_default": check_labels},
    "regression": {"serving_default": check_regression},
    "multi_target_regression": {"serving_default": check_numbers},
    "multiple_choice": {"serving_default": check_choice},
    "reranking": {"serving_default": check_ranking},
    "zero_shot": {"serving_default": check_zero_shot},
    "question_answering": {"serving_default": check_question},
    "token_classification": {"serving_default": check_words, "entities": check_entities},
    "mlm": {"serving_default": check_fillings},
    "nsp": {"serving_default": check_next},
    "embedding": {"serving_default": check_vector},
}


def check_all(
    check: Check, rows: list[dict], found: list[Row], answers: list, offsets: Offsets
) -> None:
    for row, each, answer in zip(rows, found, answers, strict=True):
        check(row, each, answer, offsets)


def by_row(tensors: Mapping[str, Any]) -> list[Row]:
    arrays = {name: np.asarray(value) for name, value in tensors.items()}
    return [dict(zip(arrays, row, strict=True)) for row in zip(*arrays.values(), strict=True)]


def printed(capsys: pytest.CaptureFixture, *arguments: object) -> list[dict]:
    """What a command prints."""
    assert main([*map(str, arguments)]) == 0
    # Other characters than "\n" end lines too, for `splitlines`.
    return [json.loads(line) for line in capsys.readouterr().out.split("\n")[:-1]]


@pytest.mark.parametrize("family", tasks("classification"))
def test_four_ways_give_one_answer(models, exported, loaded, loads_once, tmp_path, capsys, family):
    model, folder = models(family), exported(family)
    signatures, served = loaded(family).signatures, bert_tf.load(folder)
    columns = texts_of(signatures["serving_default"].structured_input_signature[1])
    if family == "mlm":
        columns["text"] = [f"{text} [MASK]" for text in columns["text"]]
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    is_tagger = family == "token_classification"
    given = tuple(columns[name] for name in (("text",) if is_tagger else model.input_names))
    x = given if len(given) > 1 else given[0]

    answers = model.predict(x, verbose=0)
    assert len(answers) == COUNT
    assert_alike(served.predict(x, verbose=0), answers)

    tensors = tensors_of(columns)
    asked = model.serve(tensors)
    for way in (loaded(family).serve, served.serve):
        assert_same_tensors(way(tensors), asked)
    assert_same_tensors(signatures["serving_default"](**tensors), asked)
    check_all(CHECKS[family]["serving_default"], rows, by_row(asked), answers, ByteOffsets)

    source, file = tmp_path / "rows.jsonl", tmp_path / "model.keras"
    source.write_text("".join(json.dumps(row) + "\n" for row in rows))
    model.save(file)
    for signature, check in CHECKS[family].items():
        found = by_row(signatures[signature](**tensors))
        check_all(check, rows, found, answers, ByteOffsets)
        for path in (folder, file):
            options = ("--input", source, "--signature", signature)
            found = printed(capsys, "predict", path, *options)
            check_all(check, rows, found, answers, CharacterOffsets)


@pytest.mark.slow
def test_four_ways_give_words_one_tag(models, exported, loaded, tmp_path, capsys):
    family = "token_classification"
    model, folder, answer = models(family), exported(family), loaded(family).signatures["words"]
    columns = texts_of(answer.structured_input_signature[1])
    (words,) = columns.values()

    tags = model.predict(words=words, verbose=0)
    assert [len(each) for each in tags] == [len(each) for each in words]
    assert bert_tf.load(folder).predict(words=words, verbose=0) == tags

    found = by_row(answer(**tensors_of(columns)))
    source = tmp_path / "rows.jsonl"
    source.write_text("".join(json.dumps({"words": each}) + "\n" for each in words))
    command = printed(capsys, "predict", folder, "--input", source, "--signature", "words")
    for text, expected, tensors, line in zip(words, tags, found, command, strict=True):
        count = len(text)
        assert [each.decode() for each in tensors["words"][:count]] == line["words"] == text
        assert [each.decode() for each in tensors["labels"][:count]] == line["labels"] == expected
        assert not any(tensors["labels"][count:])
        joined = " ".join(text)
        for way, places in ((ByteOffsets, tensors), (CharacterOffsets, line)):
            spans = zip(places["starts"], places["ends"], strict=True)
            assert [way.cut(joined, i, j) for i, j in spans if i >= 0] == text
        assert_alike(line["scores"], [float(each) for each in tensors["scores"][:count]])
