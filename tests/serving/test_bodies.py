"""REST bodies: read and answered as TensorFlow Serving does, and as the page shows them."""

import base64
import json
import re
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.asking.saved_model import SavedModel
from bert_tf.errors import UserError
from serving import bodies
from tests.serve.served import HalfPlusTwo

pytestmark = pytest.mark.end_to_end  # every family is exported for them

PAGE = (Path(__file__).parents[2] / "docs" / "how_to" / "serving.md").read_text()
SHOWN = re.findall(
    r"`POST (\S+)`\n\n```json\n(.*?)```\n\nreturns\n\n```json\n(.*?)```", PAGE, re.DOTALL
)


def form(value):
    """The types in JSON data: names stay, and lists have the type of their first entry."""
    if isinstance(value, dict):
        return {name: form(each) for name, each in value.items()}
    if isinstance(value, list):
        return [form(value[0])] if value else []
    return type(value).__name__


def test_the_page_shows_what_exports_answer(models):
    assert [url.rsplit("/")[-1] for url, *_ in SHOWN] == ["reviews:predict", "endings:predict"]
    for url, request, response in SHOWN:
        model = models[url.rsplit("/")[-1].removesuffix(":predict")]
        answered = bodies.answer(model, json.loads(request))
        (found,), (shown,) = answered["predictions"], json.loads(response)["predictions"]
        assert form(found) == form(shown)


def test_rows_and_columns_say_the_same(models, signatures):
    texts = ["the cat sat", "a dog"]
    rows = bodies.answer(models["reviews"], {"instances": [{"text": each} for each in texts]})
    columns = bodies.answer(models["reviews"], {"inputs": {"text": texts}})
    by_column = {
        name: [row[name] for row in rows["predictions"]] for name in rows["predictions"][0]
    }
    assert by_column == columns["outputs"]
    expected = signatures["reviews"]["serving_default"](text=tf.constant(texts))
    assert columns["outputs"]["label"] == [each.decode() for each in expected["label"].numpy()]
    np.testing.assert_allclose(
        columns["outputs"]["probabilities"], expected["probabilities"], atol=1e-6
    )


def test_a_single_input_may_stand_without_its_name(models):
    named = bodies.answer(models["reviews"], {"instances": [{"text": "the cat"}]})
    assert bodies.answer(models["reviews"], {"instances": ["the cat"]}) == named
    columns = bodies.answer(models["reviews"], {"inputs": ["the cat"]})
    assert columns == bodies.answer(models["reviews"], {"inputs": {"text": ["the cat"]}})


def test_a_single_output_stands_without_its_name(tmp_path):
    HalfPlusTwo().save(tmp_path)
    answered = bodies.answer(SavedModel.load(tmp_path), {"instances": [1.5, 2]})
    assert answered == {"predictions": [2.75, 3.0]}


def test_bytes_come_in_base64(models, signatures):
    odd = b"cat \xff\0"
    body = {"instances": [{"text": {"b64": base64.b64encode(odd).decode()}}, {"text": "a dog"}]}
    found = bodies.answer(models["reviews"], body)
    expected = signatures["reviews"]["serving_default"](text=tf.constant([odd, b"a dog"]))
    probabilities = [row["probabilities"] for row in found["predictions"]]
    np.testing.assert_allclose(probabilities, expected["probabilities"], atol=1e-6)
    assert bodies.answer(models["reviews"], {"instances": [body["instances"][0]["text"]]})


def test_lists_are_padded(models):
    rows = [
        {"context": "the cat", "choices": ["sat", "ran"]},
        {"context": "a", "choices": ["dog"]},
    ]
    body = bodies.request_body("serving_default", rows)
    assert body["instances"][1] == {"context": "a", "choices": ["dog", ""]}
    found = bodies.answer(models["endings"], body)["predictions"]
    assert found[1] == {"choice": 0, "probabilities": [1.0, 0.0]}


def test_an_empty_batch_has_no_answers(models):
    assert bodies.answer(models["reviews"], {"instances": []}) == {"predictions": []}


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (
            {"signature_name": "no", "instances": ["a"]},
            '"no" not found in signature def; the signatures are serv',
        ),
        ({"instances": [{"texts": "a"}]}, "every row has text, and nothing else"),
        ({"instances": ["a", {"text": "a"}]}, "every row has text, and nothing else"),
        ({"inputs": {"texts": ["a"]}}, "signature serving_default takes text"),
        ({}, "neither .* serving_default takes text"),
        ({"instances": [["a", "b"]]}, "text has 2 axes, not 1"),
        ({"instances": [1]}, "text takes texts, not 1"),
        ({"instances": "a"}, '"instances" is not a list of rows'),
    ],
)
def test_what_does_not_fit_is_refused(models, body, reason):
    with pytest.raises(UserError, match=reason):
        bodies.answer(models["reviews"], body)


def test_the_command_prints_a_pair_of_bodies_for_each_signature(
    exports, models, signatures, capsys
):
    assert bodies.main([str(exports["endings"]), "--name", "endings"]) == 0
    told = capsys.readouterr().out
    blocks = [json.loads(each) for each in re.findall(r"```json\n(.*?)```", told, re.DOTALL)]
    assert [each["signature_name"] for each in blocks[::2]] == [*signatures["endings"]]
    for request, response in zip(blocks[::2], blocks[1::2], strict=True):
        assert bodies.answer(models["endings"], request) == response


def test_rows_may_be_given(exports, capsys):
    folder = str(exports["reviews"])
    row = '{"text": "the cat"}'
    assert bodies.main([folder, "--signature", "serving_default", "--row", row, "--row", row]) == 0
    assert capsys.readouterr().out.count(row) == 2
    assert bodies.main([folder, "--row", "{"]) == 2
    assert bodies.main([folder + "/no"]) == 2
    assert bodies.main([folder, "--row", "3"]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 3 and "no warm-up requests" in lines[1]
    assert lines[2] == "bodies: a row is a JSON object, not 3"
