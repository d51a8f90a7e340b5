"""TensorFlow Serving's REST interface, OpenAI's embeddings, re-ranking and Python's answers.

Bodies of TensorFlow Serving are those of `tensorflow_serving/g3doc/api_rest.md`, of its repository.
"""

import base64
import json
import random
import re

import numpy as np
import openai
import pytest

import bert_tf
from serving import rest_client
from tests.serve import served

pytestmark = pytest.mark.end_to_end

FAMILIES = [
    *("reviews", "topics", "stars", "prices", "endings", "rank", "zero", "vec", "qa", "tags"),
    *("gaps", "next"),
]
HALF = "/v1/models/half_plus_two"


def close(found, expected):
    """Whether JSON data is the same, with numbers that differ by 1e-5 at most."""
    if isinstance(expected, dict):
        assert found.keys() == expected.keys()
        return all(close(found[name], value) for name, value in expected.items())
    if isinstance(expected, list | tuple | np.ndarray):
        return len(found) == len(expected) and all(map(close, found, expected))
    if isinstance(expected, float | np.floating):
        return found == pytest.approx(expected, abs=1e-5)
    return found == expected


def posted(client, path, body, status=200):
    response = client.post(path, content=json.dumps(body))
    assert response.status_code == status, response.text
    return response.json()


# ---- As TensorFlow Serving's documentation has it ---------------------------------------------


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({"instances": [1.0, 2.0, 5.0]}, {"predictions": [2.5, 3.0, 4.5]}),
        ({"instances": [{"x": 1.0}, {"x": 2}]}, {"predictions": [2.5, 3.0]}),
        ({"inputs": [1.0, 2.0, 5.0]}, {"outputs": [2.5, 3.0, 4.5]}),
        ({"inputs": {"x": [1.0]}}, {"outputs": [2.5]}),
        ({"instances": []}, {"predictions": []}),
        ({"instances": [1e400]}, {"predictions": [float("inf")]}),
        ({"signature_name": "total", "inputs": [1, 2.5]}, {"outputs": 3.5}),
        (
            {"signature_name": "any_rank", "instances": [[[1]], [[2]]]},
            {"predictions": [[[2]], [[4]]]},
        ),
        (
            {
                "signature_name": "many",
                "instances": [
                    {"sensor": [1, 2], "image": {"b64": "aW1hZ2UgYnl0ZXM="}},
                    {"sensor": [3, -1], "image": "seaside"},
                ],
            },
            {
                "predictions": [
                    {"sum": 3, "image_bytes": {"b64": "aW1hZ2UgYnl0ZXM="}, "count_bytes": 1},
                    {"sum": 2, "image_bytes": {"b64": "c2Vhc2lkZQ=="}, "count_bytes": 3},
                ]
            },
        ),
        (
            {"signature_name": "many", "inputs": {"sensor": [[1, 2]], "image": [{"b64": "/w=="}]}},
            {"outputs": {"sum": [3], "image_bytes": [{"b64": "/w=="}], "count_bytes": [1]}},
        ),
    ],
)
def test_numbers_and_bytes_are_answered_in_rows_and_in_columns(client, body, expected):
    response = client.post(f"{HALF}:predict", content=json.dumps(body))
    assert (response.status_code, json.loads(response.text)) == (200, expected)


def test_texts_are_answered_in_rows_and_in_columns(client, exports):
    texts = ["the cat", "a dog ran"]
    path, odd = "/v1/models/reviews:predict", b"cat \xff\0"
    columns = posted(client, path, {"inputs": {"text": texts}})["outputs"]
    rows = posted(client, path, {"instances": texts})["predictions"]
    assert close(rows, [{name: columns[name][i] for name in columns} for i in range(2)])
    answers = bert_tf.load(exports["reviews"]).serve(text=[*texts, odd])
    assert close(columns["probabilities"], answers["probabilities"][:2].numpy())
    encoded = {"b64": base64.b64encode(odd).decode()}
    for row in (encoded, {"text": encoded}):
        (found,) = posted(client, path, {"instances": [row]})["predictions"]
        assert close(found["probabilities"], answers["probabilities"][2].numpy())
    (words,) = posted(
        client, "/v1/models/tags:predict", {"signature_name": "words", "inputs": [["a", "cat"]]}
    )["outputs"]["words"]
    assert words == ["a", "cat"]


def test_status_and_metadata(client):
    available = {
        "version": "123",
        "state": "AVAILABLE",
        "status": {"error_code": "OK", "error_message": ""},
    }
    for path in (HALF, f"{HALF}/versions/123"):
        assert client.get(path).json() == {"model_version_status": [available]}
    found = client.get(f"{HALF}/metadata").json()
    assert found["model_spec"] == {
        "name": "half_plus_two",
        "signature_name": "",
        "version": "123",
    }
    signature = found["metadata"]["signature_def"]["signature_def"]["serving_default"]
    assert signature["method_name"] == "tensorflow/serving/predict"
    assert signature["inputs"]["x"]["dtype"] == "DT_FLOAT"
    assert signature["inputs"]["x"]["tensor_shape"] == {
        "dim": [{"size": "-1", "name": ""}],
        "unknown_rank": False,
    }
    assert client.get(f"{HALF}/versions/123/metadata").json() == found


@pytest.mark.parametrize(
    ("method", "path", "status", "message"),
    [
        ("POST", "/v1/models/half:predict", 404, "Servable not found for request: Latest(half)"),
        ("POST", f"{HALF}/versions/2:predict", 404, "Specific(half_plus_two, 2)"),
        ("POST", f"{HALF}/labels/x:predict", 404, "Unrecognized servable version label: x"),
        ("GET", "/v1/models/half", 404, "Could not find any versions of model half"),
        ("GET", f"{HALF}/versions/2", 404, "Could not find any versions"),
        ("GET", "/v1/models/half/metadata", 404, "Servable not found"),
        ("POST", f"{HALF}:classify", 501, "use :predict"),
        ("POST", f"{HALF}:shout", 404, "Malformed request: POST"),
        ("GET", f"{HALF}:predict", 405, "Malformed request: GET"),
        ("POST", HALF, 405, "Malformed request: POST"),
        ("DELETE", HALF, 405, "Malformed request: DELETE"),
        ("GET", "/predict", 405, "Malformed request"),
        ("GET", "/nothing/%0Ahere", 404, "Malformed request"),
        ("GET", "/v1/models/a%3Fb%23c", 404, "Could not find any versions of model a?b#c"),
    ],
)
def test_addresses_that_nothing_is_at(client, method, path, status, message):
    response = client.request(method, path, json={"instances": [1]} if method == "POST" else None)
    assert response.status_code == status
    assert message in response.json()["error"] and response.json().keys() == {"error"}


DEEP = "[" * 100_000
BAD = {
    b"": "JSON Parse error",
    b"{": "JSON Parse error",
    b"[]": "is not an object",
    b"\xff{}": "JSON Parse error",
    b'{"text": "\xed\xa0\x80"}': "JSON Parse error",
    f'{{"instances": {DEEP}'.encode(): "JSON Parse error",
    f'{{"instances": {"[" * 500}1{"]" * 500}}}'.encode(): "nested too deeply",
    b'{"instances": [%s]}' % (b"9" * 5000): "JSON Parse error",
    b'{"instances": [NaN]}': "text takes texts, not NaN",
    b'{"instances": [1]}': "text takes texts, not 1",
    b'{"instances": [null]}': "text takes texts, not null",
    b'{"instances": "a"}': '"instances" is not a list of rows',
    b'{"instances": [{"texts": "a"}]}': "every row has text, and nothing else",
    b'{"instances": ["a", {"text": "a"}]}': "every row has text, and nothing else",
    b'{"instances": [{"text": "a", "b": 1}]}': "every row has text, and nothing else",
    b'{"instances": [["a", "b"]]}': "text has 2 axes, not 1",
    b'{"instances": [[]]}': "text has 2 axes, not 1",
    b'{"instances": [["a"], "b"]}': "same shape",
    b'{"inputs": {"texts": ["a"]}}': "signature serving_default takes text",
    b'{"inputs": "a"}': "text has 0 axes, not 1",
    b'{"inputs": ["a"], "instances": ["a"]}': 'both "instances" and "inputs"',
    b"{}": 'neither "instances" nor "inputs"',
    b'{"signature_name": "no", "instances": ["a"]}': "the signatures are serving_default",
    b'{"signature_name": [1], "instances": ["a"]}': "not found in signature def",
    b'{"instances": [{"b64": "a?"}]}': 'the value of "b64" is not base64',
    b'{"instances": [{"b64": 1}]}': "text takes texts",
}
BAD_NUMBERS = {
    b'{"instances": ["a"]}': "x is not a batch of float32",
    b'{"instances": [1, [2]]}': "same shape",
    b'{"instances": [{"y": 1}]}': "every row has x",
    b'{"instances": [%s]}' % (b"9" * 400): "x is not a batch of float32",
    b'{"instances": [[%s]]}' % (b"[" * 300 + b"]" * 300): "x has",
    b'{"signature_name": "many", "inputs": {"sensor": [[1, 2]], "image": ["a", "b"]}}': "different",
    b'{"signature_name": "many", "inputs": {"sensor": [[1]], "image": ["a"]}}': "the shape (1, 1)",
    b'{"signature_name": "many", "inputs": {"sensor": [[1, 4294967297]], "image": ["a"]}}': "int32",
    b'{"signature_name": "many", "inputs": {"sensor": [[1, 2.5]], "image": ["a"]}}': "int32",
    b'{"signature_name": "total", "instances": [1, 2]}': 'send columns, as "inputs"',
    b'{"signature_name": "scalar", "inputs": 1}': "takes no batches",
    b'{"signature_name": "any_rank", "inputs": 1}': "x has 0 axes",
    b'{"signature_name": "any_rank", "inputs": [101]}': "too much",
}


@pytest.mark.parametrize("body", BAD)
def test_bodies_that_are_refused(client, body):
    response = client.post("/v1/models/reviews:predict", content=body)
    assert response.status_code == 400 and response.json().keys() == {"error"}
    assert BAD[body] in response.json()["error"] and "\n" not in response.json()["error"]


@pytest.mark.parametrize("body", BAD_NUMBERS)
def test_numbers_that_are_refused(client, body):
    response = client.post(f"{HALF}:predict", content=body)
    assert response.status_code == 400, response.text
    assert BAD_NUMBERS[body] in response.json()["error"]


def test_half_of_a_surrogate_pair_is_replaced(client):
    asked = {"model": "zero", "inputs": [{"text": "a \ud800 cat", "candidates": ["\udfff", "a"]}]}
    (answer,) = posted(client, "/predict", asked)["answers"]
    assert answer["probabilities"].keys() == {"\ufffd", "a"}
    texts = {"query": "a\ud83d", "texts": ["\ud83d\ude00", "\ude00"], "return_text": True}
    found = posted(client, "/rerank", texts)
    assert {each["text"] for each in found} == {"\U0001f600", "\ufffd"}
    same = [posted(client, "/v1/models/vec:predict", {"instances": [t]}) for t in "\ud800\ufffd"]
    assert same[0] == same[1]


# ---- Other clients ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def ai(url):
    return openai.OpenAI(base_url=f"{url}/v1", api_key="any", max_retries=0)


def test_the_client_of_openai_gets_embeddings(ai, exports):
    texts = ["the cat sat", "", "a dog ran on the log"]
    expected = bert_tf.load(exports["vec"]).predict(texts)
    for form in ({}, {"encoding_format": "float"}, {"encoding_format": "base64"}):
        found = ai.embeddings.create(model="vec", input=texts, user="me", **form)
        assert [each.index for each in found.data] == [0, 1, 2]
        vectors = [each.embedding for each in found.data]
        if form.get("encoding_format") == "base64":  # named explicitly, it is not decoded
            vectors = [np.frombuffer(base64.b64decode(each), "<f4") for each in vectors]
        np.testing.assert_allclose(vectors, expected, atol=1e-5)
        assert found.usage.prompt_tokens == found.usage.total_tokens == 9
    (short,) = ai.embeddings.create(model="vec", input=texts[0], dimensions=4).data
    np.testing.assert_allclose(short.embedding, expected[0, :4], atol=1e-5)
    assert {each.id for each in ai.models.list()} == {*FAMILIES, "half_plus_two"}


@pytest.mark.parametrize(
    ("asked", "kind", "message"),
    [
        ({"model": "no", "input": "a"}, openai.NotFoundError, "there are reviews"),
        ({"model": "qa", "input": "a"}, openai.BadRequestError, "which returns no embeddings"),
        ({"model": "half_plus_two", "input": "a"}, openai.BadRequestError, "no embeddings"),
        ({"model": "vec", "input": []}, openai.BadRequestError, '"input" is empty'),
        ({"model": "vec", "input": [[1, 2]]}, openai.BadRequestError, "a text or a list of texts"),
        ({"model": "vec", "input": "a", "dimensions": 17}, openai.BadRequestError, "16 numbers"),
        ({"model": "vec", "input": "a", "dimensions": 0}, openai.BadRequestError, "16 numbers"),
        ({"model": "vec", "input": "a", "encoding_format": "x"}, openai.BadRequestError, "base64"),
        ({"model": "vec", "input": "a", "extra_body": {"e": 1}}, openai.BadRequestError, "unknown"),
    ],
)
def test_errors_are_those_of_the_client_of_openai(ai, asked, kind, message):
    with pytest.raises(kind, match=message) as told:
        ai.embeddings.create(**asked)
    assert told.value.type == "invalid_request_error"


def test_passages_are_ranked_as_text_embeddings_inference_does(client, exports):
    """Source: huggingface/text-embeddings-inference, `docs/openapi.json`."""
    query, texts = "the cat", ["a dog", "the cat sat", "cat", "a [MASK] ran"]
    expected = bert_tf.load(exports["rank"]).predict(query, texts)
    asked = {"query": query, "texts": texts, "truncate": True}
    found = posted(client, "/rerank", asked)
    assert [each["index"] for each in found] == [*expected["order"]]
    assert close([each["score"] for each in found], sorted(expected["scores"], reverse=True))
    shown = posted(client, "/rerank", asked | {"return_text": True, "model": "rank"})
    assert shown == [each | {"text": texts[each["index"]]} for each in found]


@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        ({"query": "a"}, 400, "'texts' is missing"),
        ({"query": "a", "texts": []}, 400, "one text or more"),
        ({"query": "a", "texts": ["a", 1]}, 400, "one text or more"),
        ({"query": 1, "texts": ["a"]}, 400, "'query' must be a text"),
        ({"query": "a", "texts": ["a"], "raw_scores": 1}, 400, "true or false"),
        ({"query": "a", "texts": ["a"], "raw_scores": True}, 400, "activation: identity"),
        ({"query": "a", "texts": ["a"], "truncation_direction": "Left"}, 400, "must be right"),
        ({"query": "a", "texts": ["a " * 50], "truncate": False}, 413, "54 tokens"),
        ({"query": "a", "texts": ["a"], "top_n": 1}, 400, "'top_n' is unknown"),
        ({"query": "a", "texts": ["a"], "model": "no"}, 404, "Servable not found"),
        ({"query": "a", "texts": ["a"], "model": "qa"}, 400, "ranks no passages"),
        ({"query": "a", "texts": ["a"] * 1025}, 413, "1,025 rows"),
    ],
)
def test_requests_for_a_ranking_that_are_refused(client, body, status, message):
    found = posted(client, "/rerank", body, status)
    assert message in found["error"] and found["error_type"] == "Validation"


@pytest.mark.slow
def test_raw_scores_are_those_before_the_sigmoid(tmp_path):
    from starlette.testclient import TestClient

    from tests.tasks import tiny_objects as tiny

    model = tiny.reranker(activation="identity")
    model.export(tmp_path / "rank", version=1)
    server = served.loaded({"rank": tmp_path / "rank"})
    client, asked = TestClient(server.app(None)), {"query": "cat", "texts": ["a dog", "the cat"]}
    raw = posted(client, "/rerank", asked | {"raw_scores": True})
    logits = model.predict(asked["query"], asked["texts"])["scores"]
    assert close([each["score"] for each in raw], sorted(logits, reverse=True))
    sure = posted(client, "/rerank", asked)
    expected = 1 / (1 + np.exp(-np.sort(logits)[::-1]))
    np.testing.assert_allclose([each["score"] for each in sure], expected, atol=1e-5)
    server.close()


@pytest.mark.parametrize("name", FAMILIES)
def test_answers_are_those_of_python(client, exports, families, name):
    model, rows = bert_tf.load(exports[name]), families[name].rows
    for options in families[name].options:
        columns = {key: [row[key] for row in rows] for key in rows[0]}
        if name == "rank":
            expected = [model.predict(row["query"], row["passages"]) for row in rows]
        elif name == "zero":
            expected = [model.predict(row["text"], labels=row["candidates"]) for row in rows]
        else:
            expected = model.predict(columns if len(columns) > 1 else columns["text"], **options)
        asked = {"model": name, "inputs": rows, "options": options, "tokens": True}
        found = posted(client, "/predict", asked)
        assert (found["model"], found["version"]) == (name, 1)
        plain = json.loads(json.dumps(expected, default=lambda value: value.tolist()))
        assert close(found["answers"], plain)
        assert [each["pieces"].keys() for each in found["tokens"]] == [row.keys() for row in rows]
        assert posted(client, "/predict", {"model": name, "inputs": []})["answers"] == []


def test_tokens_are_those_that_the_model_reads(client):
    asked = {"inputs": [{"text": "the cats"}, {"text": "a " * 40}], "tokens": True}
    first, second = posted(client, "/predict", asked | {"model": "reviews"})["tokens"]
    assert first == {
        "pieces": {"text": [["the", "cat", "##s"]]},
        "count": 5,
        "cut": 0,
        "max_length": 32,
    }
    assert (second["count"], second["cut"]) == (42, 10)
    assert posted(client, "/predict", asked | {"model": "tags"})["tokens"][1]["cut"] == 0
    masked = {"model": "gaps", "inputs": [{"text": "a [MASK]"}], "tokens": True}
    assert posted(client, "/predict", masked)["tokens"][0]["pieces"]["text"] == [["a", "[MASK]"]]


@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        ({"inputs": [{"text": "a"}]}, 404, '"model" is missing; the models are reviews'),
        ({"model": "reviews", "inputs": "a"}, 400, "'inputs' must be a list"),
        ({"model": "reviews", "inputs": ["a"]}, 400, "row 1 must be an object with text"),
        ({"model": "reviews", "inputs": [{"text": 1}]}, 400, "row 1: text must be a text"),
        ({"model": "endings", "inputs": [{"context": "a", "choices": "b"}]}, 400, "list of texts"),
        ({"model": "endings", "inputs": [{"context": "a", "choices": []}]}, 400, "choices"),
        ({"model": "reviews", "inputs": [{"text": "a"}], "x": 1}, 400, "'x' is unknown"),
        ({"model": "reviews", "inputs": [], "options": {"top_k": 1}}, 400, "no option 'top_k'"),
        ({"model": "gaps", "inputs": [{"text": "[MASK]"}], "options": {"top_k": []}}, 400, "top_k"),
        ({"model": "half_plus_two", "inputs": [{"x": 1}]}, 400, "half_plus_two"),
    ],
)
def test_requests_for_answers_of_python_that_are_refused(client, body, status, message):
    assert message in posted(client, "/predict", body, status)["error"]


def test_the_client_of_the_repository_asks_for_versions(url):
    for version in (None, "1"):
        (found,) = rest_client.predict(url, "reviews", [{"text": "a cat"}], version=version)
        assert found["label"] in ("bad", "good")
    with pytest.raises(ConnectionError, match="404: Servable not found for request: Specific"):
        rest_client.predict(url, "reviews", [{"text": ""}], version="7")


# ---- Garbage ----------------------------------------------------------------------------------

VALUES = [None, True, 0, -1, 2**40, 10**25, 1e300, float("nan"), "", "a", "\ud800", [], {}]
VALUES += [[[]], ["a"], [["a"], []], {"text": "a"}, {"b64": "YQ=="}, [{"text": "a"}], ["a", 1]]


def garbage(source, valid):
    """A body: random bytes, JSON of random types, or a valid body that is changed somewhere."""
    kind = source.randrange(4)
    if kind == 0:
        return source.randbytes(source.randrange(40))
    if kind == 1:
        text = bytearray(json.dumps(valid).encode())
        for _ in range(source.randint(1, 4)):
            at = source.randrange(len(text))
            text[at : at + source.randrange(3)] = source.randbytes(source.randrange(3))
        return bytes(text)
    if kind == 2:
        return json.dumps({name: anything(source, 3) for name in valid}).encode()
    changed = json.loads(json.dumps(valid))
    holder, place = changed, source.choice([*valid])
    while source.random() < 0.6 and isinstance(holder[place], dict | list) and holder[place]:
        holder = holder[place]
        place = source.choice([*(holder if isinstance(holder, dict) else range(len(holder)))])
    holder[place] = anything(source, 2)
    return json.dumps(changed).encode()


def anything(source, depth):
    kind = source.randrange(4) if depth else 0
    if kind == 1:
        return [anything(source, depth - 1) for _ in range(source.randrange(4))]
    if kind == 2:
        names = ("text", "b64", "context", "choices", "top_k", "x")
        return {source.choice(names): anything(source, depth - 1) for _ in range(2)}
    return source.choice(VALUES)


@pytest.mark.parametrize("count", [500, pytest.param(10_000, marks=pytest.mark.slow)])
def test_no_body_makes_the_server_fail(client, families, count):
    options = {"top_k": 2, "abstain": 0.5, "min_score": 0.4, "truncate_dim": 2, "vectors": "int8"}
    valid = [
        ("/v1/embeddings", {"model": "vec", "input": ["a"], "dimensions": 4, "user": "a"}),
        ("/rerank", {"query": "a", "texts": ["a", "b"], "return_text": True, "truncate": False}),
        (f"{HALF}:predict", {"signature_name": "any_rank", "instances": [[1, 2], [3, 4]]}),
        (
            f"{HALF}:predict",
            {"signature_name": "many", "inputs": {"sensor": [[1, 2]], "image": [""]}},
        ),
    ]
    for name, each in families.items():
        rows = each.rows[:2]
        valid.append((f"/v1/models/{name}:predict", {"instances": rows[:1]}))
        valid.append((f"/v1/models/{name}:predict", {"inputs": {n: [rows[0][n]] for n in rows[0]}}))
        asked = {"model": name, "inputs": rows, "options": each.options[-1], "tokens": True}
        valid.append(("/predict", asked))
        own = {key: options[key] for key in each.model.answer_options if key in options}
        valid.append(("/predict", asked | {"options": own}))
    source = random.Random(7)
    statuses = set()
    for _ in range(count):
        path, body = source.choice(valid)
        content = garbage(source, body)
        response = client.post(path, content=content)
        statuses.add(response.status_code)
        assert response.status_code == 200 or 400 <= response.status_code < 500, content
        assert re.match(r"[\[{]", response.text), content
        json.loads(response.text)
    assert statuses >= {200, 400}
    assert posted(client, f"{HALF}:predict", {"instances": [4]}) == {"predictions": [4.0]}
