"""Who may ask, what a request may cost, and what happens to slow clients and many at a time."""

import asyncio
import http.client
import json
import socket
import threading
import time
from urllib.parse import urlsplit

import httpx
import numpy as np
import pytest
from prometheus_client.parser import text_string_to_metric_families
from starlette.testclient import TestClient

from bert_tf.serve.app import Limits, Server
from bert_tf.serve.models import Source
from tests.serve import served
from tests.serve.test_rest import FAMILIES, HALF, close, posted

pytestmark = pytest.mark.end_to_end

PREDICT = f"{HALF}:predict"


def other(exports, name="half_plus_two", **limits):
    """A server of one model, with limits of its own."""
    return served.loaded({name: exports[name]}, Limits(**limits))


@pytest.fixture(scope="module")
def limited(exports):
    server = other(exports, most_bytes=200, most_rows=3, body_seconds=0.5)
    yield server
    server.close()


@pytest.fixture
def held(exports):
    """A server whose model computes only when `go` is set."""
    server = other(exports, most_waiting=2)
    servable = server.models.find("half_plus_two")
    compute, server.go, server.rows = servable.queue._compute, threading.Event(), []

    def slowly(signature, columns):
        assert server.go.wait(30)
        server.rows += columns["x"].tolist()
        return compute(signature, columns)

    servable.queue._compute = slowly
    yield server
    server.go.set()
    server.close()


def waiting(server, rows):
    """Returns when `rows` rows wait, while `server` computes another one."""
    queue = server.models.find("half_plus_two").queue
    for _ in range(3000):
        if queue.waiting == rows:
            return
        time.sleep(0.01)
    raise AssertionError(f"{queue.waiting} rows wait, not {rows}")


def connected(url):
    return http.client.HTTPConnection(urlsplit(url).netloc, timeout=60)


# ---- Who may ask ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"Host": "localhost:8501"}, 200),
        ({"Host": "LOCALHOST."}, 200),
        ({"Host": "127.0.0.1:8501"}, 200),
        ({"Host": "192.168.1.7"}, 200),
        ({"Host": "[::1]:8501"}, 200),
        ({"Host": "bert.example.org:8501"}, 200),
        ({"Host": socket.gethostname()}, 200),
        ({"Host": "evil.example.org"}, 403),
        ({"Host": "localhost.evil.org"}, 403),
        ({"Host": "127.0.0.1.evil.org"}, 403),
        ({"Host": ""}, 403),
        ({"Host": "["}, 403),
        ({"Origin": "http://localhost"}, 200),
        ({"Host": "localhost:8501", "Origin": "http://localhost:8501"}, 200),
        ({"Host": "bert.example.org", "Origin": "https://bert.example.org"}, 200),
        ({"Origin": "http://localhost:3000"}, 403),
        ({"Origin": "http://evil.example.org"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": ""}, 403),
    ],
)
def test_requests_of_foreign_pages_are_refused(server, headers, status):
    client = TestClient(server.app(["Bert.Example.org:80"]), "http://localhost")
    for response in (
        client.get("/healthz", headers=headers),
        client.post(PREDICT, headers=headers, json={"instances": [1]}),
    ):
        assert response.status_code == status
        if status == 403:
            assert response.json().keys() == {"error"}


def test_every_name_is_taken_where_none_are_given(server):
    client = TestClient(server.app(None), "http://localhost")
    for host in ("evil.example.org", "[", "a b"):
        for path in ("/healthz", HALF):
            assert client.get(path, headers={"Host": host}).status_code == 200


# ---- What a request may cost ------------------------------------------------------------------


def test_bodies_and_rows_are_limited(limited):
    client = TestClient(limited.app([]), "http://localhost")
    assert posted(client, PREDICT, {"instances": [1, 2, 3]})["predictions"] == [2.5, 3, 3.5]
    assert "4 rows" in posted(client, PREDICT, {"instances": [1, 2, 3, 4]}, 413)["error"]
    for path in (PREDICT, "/predict"):
        refused = client.post(path, content=b" " * 201)
        assert refused.status_code == 413
        assert "the body has more than 200 bytes" in refused.json()["error"]
        refused = client.post(path, content=iter([b" " * 100] * 3))
        assert refused.status_code == 413 and "200 bytes" in refused.json()["error"]
    refused = client.post(PREDICT, content=b"", headers={"Content-Length": "9" * 5000})
    assert refused.status_code == 413


def test_the_texts_of_lists_count_as_rows(client):
    many = ["a"] * 600
    row = {"context": "a", "choices": many}
    for path, body in (
        ("/v1/models/endings:predict", {"instances": [row, row]}),
        ("/predict", {"model": "endings", "inputs": [row, row]}),
    ):
        assert "1,200 rows" in posted(client, path, body, 413)["error"]
    words = {"signature_name": "words", "inputs": [many, many]}
    assert len(posted(client, "/v1/models/tags:predict", words)["outputs"]["words"]) == 2


def test_a_client_that_sends_slowly_is_dismissed_and_holds_nobody_up(limited):
    with served.running(limited) as url:
        slow = connected(url)
        slow.putrequest("POST", PREDICT)
        slow.putheader("Content-Length", "100")
        slow.endheaders(b'{"instances": [')
        answers = [httpx.post(url + PREDICT, json={"instances": [i]}).json() for i in range(5)]
        assert answers == [{"predictions": [i / 2 + 2]} for i in range(5)]
        for _ in range(3):
            slow.send(b"1, ")
            time.sleep(0.1)
        response = slow.getresponse()
        assert response.status == 408
        assert json.loads(response.read()) == {"error": "the body did not arrive in time"}


def test_too_many_requests_are_refused_with_a_time_to_retry(held):
    with served.running(held) as url:

        def ask(results):
            results.append(httpx.post(url + PREDICT, json={"instances": [1, 2]}, timeout=60))

        results, threads = [], []
        for rows in (0, 2):
            threads.append(threading.Thread(target=ask, args=(results,)))
            threads[-1].start()
            time.sleep(0.3)  # the first one is computed, the second one waits
            waiting(held, rows)
        refused = httpx.post(url + PREDICT, json={"instances": [3]})
        assert (refused.status_code, refused.headers["Retry-After"]) == (429, "1")
        assert refused.json().keys() == {"error"}
        held.go.set()
        for thread in threads:
            thread.join()
        assert [each.json() for each in results] == [{"predictions": [2.5, 3.0]}] * 2


def test_rows_of_a_client_that_goes_away_are_not_computed(held):
    with served.running(held) as url:
        first, second = connected(url), connected(url)
        first.request("POST", PREDICT, '{"instances": [1]}')
        time.sleep(0.3)
        second.request("POST", PREDICT, '{"instances": [2]}')
        waiting(held, 1)
        second.close()
        for _ in range(3000):
            queue = held.models.find("half_plus_two").queue
            if all(row.request.future.cancelled() for row in list(queue._rows)):
                break
            time.sleep(0.01)
        held.go.set()
        assert json.loads(first.getresponse().read()) == {"predictions": [2.5]}
        assert httpx.post(url + PREDICT, json={"instances": [3]}).json() == {"predictions": [3.5]}
        assert held.rows == [1, 3]
        broken = connected(url)  # closed before the end of its body
        broken.putrequest("POST", PREDICT)
        broken.putheader("Content-Length", "100")
        broken.endheaders(b"{")
        broken.close()
        time.sleep(0.3)
        shown = httpx.get(f"{url}/metrics").text
        assert 'path="/v1/models/NAME:predict",status="499"} 2.0' in shown
        assert 'status="500"' not in shown


def test_rows_of_python_answers_are_given_up_too(exports):
    server = other(exports, "reviews")
    queue = server.models.find("reviews").queue
    compute, go, batches = queue._compute, threading.Event(), []

    def slowly(signature, columns):
        assert go.wait(30)
        batches.append(columns["text"].tolist())
        return compute(signature, columns)

    queue._compute = slowly
    with served.running(server) as url:
        first = connected(url)
        first.request("POST", "/predict", '{"inputs": [{"text": "cat"}]}')
        time.sleep(0.5)
        second = connected(url)
        second.request("POST", "/predict", '{"inputs": [{"text": "dog"}]}')
        for _ in range(3000):
            if queue.waiting == 1:
                break
            time.sleep(0.01)
        (row,) = queue._rows
        second.close()
        for _ in range(3000):
            if row.request.future.cancelled():
                break
            time.sleep(0.01)
        go.set()
        assert len(json.loads(first.getresponse().read())["answers"]) == 1
        assert batches == [[b"cat"]]
    server.close()


# ---- Many at a time ---------------------------------------------------------------------------


def test_forty_clients_of_all_models_get_the_answers_that_each_gets_alone(server, families):
    random = np.random.default_rng(3)
    asked = []
    for name in FAMILIES:
        for _ in range(40):
            rows = [
                families[name].rows[i]
                for i in random.integers(len(families[name].rows), size=random.integers(1, 4))
            ]
            if random.random() < 0.5:
                asked.append(("/predict", {"model": name, "inputs": rows}))
                continue
            # In a batch of TensorFlow Serving lists are equally long.
            rows = [
                row
                for row in rows
                if list(map(len, _lists(row))) == list(map(len, _lists(rows[0])))
            ]
            asked.append((f"/v1/models/{name}:predict", {"instances": rows}))
    order = random.permutation(len(asked))

    async def ask(together):
        transport = httpx.ASGITransport(server.app([]))
        limit = asyncio.Semaphore(40 if together else 1)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:

            async def one(i):
                path, body = asked[i]
                async with limit:
                    return i, await client.post(path, json=body, timeout=60)

            return dict(await asyncio.gather(*(one(i) for i in order)))

    alone, together = asyncio.run(ask(False)), asyncio.run(ask(True))
    for i, (path, body) in enumerate(asked):
        assert alone[i].status_code == 200, (path, body, alone[i].text)
        assert close(together[i].json(), alone[i].json()), (path, body)


def _lists(row):
    return [value for value in row.values() if isinstance(value, list)]


# ---- What the server says of itself -----------------------------------------------------------


def test_requests_while_the_server_loads_get_a_time_to_retry(exports):
    server = Server([Source("half_plus_two", str(exports["half_plus_two"]))])
    client = TestClient(server.app([]), "http://localhost")
    for path, body in (
        (PREDICT, {"instances": [1]}),
        ("/predict", {"inputs": []}),
        ("/v1/embeddings", {"model": "half_plus_two", "input": "a"}),
        ("/rerank", {"query": "a", "texts": ["b"]}),
    ):
        response = client.post(path, json=body)
        assert (response.status_code, response.headers["Retry-After"]) == (503, "1")
        assert "is being loaded" in response.text
    assert client.get("/healthz").status_code == 503
    assert client.get("/healthz").json() == {"status": "loading", "models": ["half_plus_two"]}
    assert client.get(HALF).json()["model_version_status"][0]["state"] == "START"
    assert "is being loaded" in client.get("/models").json()["models"][0]["error"]
    server.models.load()
    assert client.get("/healthz").json() == {"status": "ok"}
    assert posted(client, PREDICT, {"instances": [1]}) == {"predictions": [2.5]}
    server.close()
    response = client.post(PREDICT, json={"instances": [1]})
    assert (response.status_code, response.json()) == (503, {"error": "the server ends"})


def test_models_are_described(client):
    found = {each["name"]: each for each in client.get("/models").json()["models"]}
    assert found.keys() == {*FAMILIES, "half_plus_two"}
    assert found["endings"]["task"] == "MultipleChoice"
    assert found["endings"]["inputs"] == [
        {"name": "choices", "dtype": "string", "is_list": True},
        {"name": "context", "dtype": "string", "is_list": False},
    ]
    assert found["half_plus_two"]["task"] is None and found["half_plus_two"]["version"] == 123
    for name in FAMILIES:
        examples = found[name]["examples"]
        assert examples
        posted(client, "/predict", {"model": name, "inputs": examples})


def test_statistics_and_log_lines(exports, caplog):
    server = other(exports)
    client = TestClient(server.app([]), "http://localhost")
    posted(client, PREDICT, {"instances": [1, 2, 3]})
    posted(client, PREDICT, {"instances": ["a"]}, 400)
    for i in range(5):
        client.post(f"{HALF}:{'abcde'[i]}", json={})
        client.get(f"/no/{i}")
    client.get("/v1/models")
    client.get("/healthz", headers={"Host": "evil.org"})
    with caplog.at_level("INFO", "bert_tf"):
        client.get("/no/%0Ah%1B[2J")
    assert "testclient GET /no/" in caplog.text and " 404 " in caplog.text
    families = {
        each.name: each for each in text_string_to_metric_families(client.get("/metrics").text)
    }
    requests = {
        (each.labels["path"], each.labels["status"]): each.value
        for each in families["bert_tf_requests"].samples
        if each.name.endswith("_total")
    }
    assert requests == {
        ("/v1/models/NAME:predict", "200"): 1,
        ("/v1/models/NAME:predict", "400"): 1,
        ("other", "404"): 11,
        ("/v1/models", "200"): 1,
        ("/healthz", "403"): 1,
    }
    rows = {each.name: each.value for each in families["bert_tf_batch_rows"].samples}
    assert (rows["bert_tf_batch_rows_count"], rows["bert_tf_batch_rows_sum"]) == (1, 3)
    (waiting,) = families["bert_tf_waiting_rows"].samples
    assert (waiting.labels, waiting.value) == ({"model": "half_plus_two"}, 0)
    assert families["bert_tf_request_seconds"].type == "histogram"
    server.close()
