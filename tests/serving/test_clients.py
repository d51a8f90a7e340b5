"""Both clients get a server's answers, and report its refusals in one line."""

import contextlib
import io
import json
import socketserver
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from serving import grpc_client, rest_client

TEXTS = ["the cat sat", "", "\N{SNOWMAN} a dog"]


@pytest.fixture
def expected(signatures):
    return signatures["reviews"]["serving_default"](text=tf.constant(TEXTS))


@contextlib.contextmanager
def replying(reply: bytes) -> Iterator[str]:
    """The address of a server that sends the same reply to every request."""

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            size = 0
            while (line := self.rfile.readline()).strip():
                name, _, value = line.partition(b":")
                size = int(value) if name.lower() == b"content-length" else size
            self.rfile.read(size)
            self.wfile.write(reply)

    with socketserver.TCPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


@pytest.mark.parametrize("version", [None, "1", "stable"])
def test_rows_are_answered_over_rest(rest_url, expected, version):
    rows = [{"text": text} for text in TEXTS]
    found = rest_client.predict(rest_url, "reviews", rows, version=version)
    assert [row["label"].encode() for row in found] == expected["label"].numpy().tolist()
    probabilities = [row["probabilities"] for row in found]
    np.testing.assert_allclose(probabilities, expected["probabilities"], atol=1e-6)


@pytest.mark.parametrize("version", [None, "1", "stable"])
def test_a_batch_is_answered_over_grpc(grpc_address, expected, version):
    inputs = {"text": TEXTS}
    found = grpc_client.predict(grpc_address, "reviews", inputs, version=version)
    assert found.keys() == expected.keys()
    assert found["label"].tolist() == expected["label"].numpy().tolist()
    np.testing.assert_array_equal(found["probabilities"], expected["probabilities"])


def test_texts_over_grpc_need_not_be_utf8_and_may_be_long(grpc_address, signatures):
    texts = [b"cat \xff" * 1_000_000, b"\0"]
    found = grpc_client.predict(grpc_address, "reviews", {"text": texts})
    answers = signatures["reviews"]["serving_default"](text=tf.constant(texts))
    np.testing.assert_allclose(found["probabilities"], answers["probabilities"], atol=1e-6)


def test_lists_go_over_both(rest_url, grpc_address):
    rows = [
        {"context": "the cat", "choices": ["sat", "ran"]},
        {"context": "a", "choices": ["dog"]},
    ]
    found = rest_client.predict(rest_url, "endings", rows)
    columns = {
        name: [row[name] for row in rest_client.padded(rows)] for name in ("context", "choices")
    }
    same = grpc_client.predict(grpc_address, "endings", columns)
    assert [row["choice"] for row in found] == grpc_client.as_json(same["choice"])
    assert found[1] == {"choice": 0, "probabilities": [1.0, 0.0]}


def test_refusals_are_told(rest_url, grpc_address):
    with pytest.raises(
        ConnectionError, match=r"404: Servable not found for request: Latest\(other\)"
    ):
        rest_client.predict(rest_url, "other", [{"text": ""}])
    with pytest.raises(ConnectionError, match="404: Unrecognized servable version label: canary"):
        rest_client.predict(rest_url, "reviews", [{"text": ""}], version="canary")
    with pytest.raises(ConnectionError, match="400: every row has text"):
        rest_client.predict(rest_url, "reviews", [{"texts": ""}])
    with pytest.raises(ConnectionError, match="no server at http://127.0.0.1:1"):
        rest_client.predict("http://127.0.0.1:1", "reviews", [{"text": ""}])
    with pytest.raises(ConnectionError, match="NOT_FOUND: no servable other"):
        grpc_client.predict(grpc_address, "other", {"text": [""]})
    with pytest.raises(ConnectionError, match="INVALID_ARGUMENT"):
        grpc_client.predict(grpc_address, "reviews", {"text": [""]}, "no")
    with pytest.raises(ConnectionError, match="UNAVAILABLE"):
        grpc_client.predict("127.0.0.1:1", "reviews", {"text": [""]}, timeout=5)


def test_a_single_output_is_an_answer_by_itself():
    with replying(b'HTTP/1.0 200 OK\r\n\r\n{"predictions": [2.5, 3]}') as url:
        assert rest_client.predict(url, "scores", [{"text": "a"}, {"text": "b"}]) == [2.5, 3]


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (b"200 OK\r\n\r\n<html>", "does not answer as TensorFlow Serving does: '<html>'"),
        (b"200 OK\r\n\r\n{}", "does not answer as TensorFlow Serving does: '{}'"),
        (b"200 OK\r\n\r\n[1]", "does not answer as TensorFlow Serving does"),
        (b'200 OK\r\n\r\n{"predictions": 1}', "does not answer as TensorFlow Serving does"),
        (b"200 OK\r\n\r\n\xff", "does not answer as TensorFlow Serving does"),
        (b"200 OK\r\nContent-Length: 9\r\n\r\n{", r"is broken off or damaged: Incomplete"),
        (b"what?", "is broken off or damaged: BadStatusLine"),
        (b"500 No\r\nContent-Length: 9\r\n\r\n{", "^500: No$"),
    ],
)
def test_a_reply_that_is_no_answer_of_a_server_is_reported_in_one_line(reply, reason):
    with (
        replying(b"HTTP/1.0 " + reply) as url,
        pytest.raises(ConnectionError, match=reason) as told,
    ):
        rest_client.predict(url, "reviews", [{"text": ""}])
    assert "\n" not in str(told.value)


def test_the_rest_client_is_a_script_of_python_alone(rest_url, expected):
    script = Path(rest_client.__file__)
    done = subprocess.run(
        [sys.executable, "-I", "-S", script, "reviews", "--url", rest_url],
        input="".join(json.dumps({"text": text}) + "\n" for text in TEXTS),
        capture_output=True,
        text=True,
        check=True,
    )
    labels = [json.loads(line)["label"].encode() for line in done.stdout.splitlines()]
    assert labels == expected["label"].numpy().tolist()


def test_commands_end_with_one_line_and_an_exit_code(rest_url, grpc_address, capsys, monkeypatch):
    assert rest_client.main(["reviews", '{"text": "a cat"}', "--url", rest_url]) == 0
    asked = ["reviews", "--inputs", '{"text": ["a cat"]}', "--address", grpc_address]
    assert grpc_client.main(asked) == 0
    row, columns = map(json.loads, capsys.readouterr().out.splitlines())
    assert columns["label"] == [row["label"]]
    np.testing.assert_allclose(columns["probabilities"], [row["probabilities"]], atol=1e-6)
    monkeypatch.setattr(sys, "stdin", io.StringIO("no JSON\n"))
    assert rest_client.main(["reviews", "--url", rest_url]) == 1
    assert rest_client.main(["other", '{"text": ""}', "--url", rest_url]) == 1
    assert grpc_client.main(["other", "--inputs", "{}", "--address", grpc_address]) == 1
    assert grpc_client.main(["reviews", "--inputs", "{", "--address", grpc_address]) == 1
    assert rest_client.main(["reviews", "3", "--url", rest_url]) == 1
    assert grpc_client.main(["reviews", "--inputs", "[1]", "--address", grpc_address]) == 1
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 6
    assert lines[4:] == [
        "rest_client: a row is a JSON object, not 3",
        "grpc_client: --inputs is a JSON object, not [1]",
    ]
