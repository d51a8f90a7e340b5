"""The command: how it begins, what it refuses, and how it ends."""

import http.client
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from urllib.parse import urlsplit

import httpx
import pytest

from bert_tf.cli.parser import main


def started(*arguments, **environment):
    command = [sys.executable, "-m", "bert_tf", "serve", *map(str, arguments), "--port", "0"]
    return subprocess.Popen(
        command, stderr=subprocess.PIPE, text=True, env=os.environ | environment
    )


def lines_until(process, text):
    """The lines that a process prints, until one has this text."""
    lines = []
    for line in process.stderr:
        lines.append(line)
        if text in line:
            return lines
    raise AssertionError("".join(lines))


@pytest.mark.end_to_end
def test_sigterm_lets_requests_end_and_the_process_ends_with_143(exports):
    process = started(exports["reviews"], f"half={exports['half_plus_two']}")
    try:
        lines = lines_until(process, "ready: ")
        url = re.search(
            r"listening at (http://127\.0\.0\.1:\d+)/, loading reviews, half", lines[0]
        )[1]
        assert f"ready: reviews, half; {url}/" in lines[-1]
        assert any("reviews: version 1 is loaded from" in line for line in lines)
        asked = httpx.post(f"{url}/predict", json={"model": "reviews", "inputs": [{"text": "a"}]})
        assert asked.json()["answers"][0]["label"] in ("bad", "good")
        body = b'{"instances": [1.0]}'
        late = http.client.HTTPConnection(urlsplit(url).netloc, timeout=60)
        late.putrequest("POST", "/v1/models/half:predict")
        late.putheader("Content-Length", str(len(body)))
        late.endheaders(body[:5])
        httpx.get(f"{url}/healthz").raise_for_status()
        process.send_signal(signal.SIGTERM)
        late.send(body[5:])
        assert json.loads(late.getresponse().read()) == {"predictions": [2.5]}
        rest = process.stderr.read()
        assert process.wait(60) == 143
        assert re.search(r"127\.0\.0\.1 POST /v1/models/half:predict 200 \d+ ms", rest)
        assert "Traceback" not in rest
    finally:
        process.kill()


@pytest.mark.end_to_end
def test_a_damaged_model_ends_the_process_with_one_sentence(exports, tmp_path):
    shutil.copytree(exports["half_plus_two"], tmp_path / "half")
    graph = tmp_path / "half" / "123" / "saved_model.pb"
    graph.write_bytes(graph.read_bytes()[:500])
    process = started(tmp_path / "half")
    told = process.communicate(timeout=300)[1].splitlines()
    assert process.returncode == 2
    assert re.match(r"bert-tf: error: SavedModel is damaged: .*export it again$", told[-1])
    assert sum("error" in line for line in told) <= 2 and "Traceback" not in "".join(told)


@pytest.mark.end_to_end
def test_arguments_and_addresses_that_are_refused(exports, tmp_path, capsys):
    half = str(exports["half_plus_two"])
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        for arguments, message in (
            ([half, half], "would both be called half_plus_two"),
            (["model.tflite"], "model.tflite is a LiteRT file"),
            ([half, "--port", port], f"cannot listen at 127.0.0.1, port {port}: .*in use"),
            ([half, "--port", "99999"], "cannot listen at 127.0.0.1, port 99999"),
            ([half, "--host", "no host"], "cannot listen at no host"),
        ):
            assert main(["serve", *arguments]) == 2
            (line,) = capsys.readouterr().err.splitlines()
            assert re.match(f"bert-tf: error: .*{message}", line)


@pytest.mark.slow
def test_a_path_that_is_missing_is_refused_in_a_sentence(tmp_path):
    process = started(f"a={tmp_path}/no")
    told = process.communicate(timeout=300)[1].splitlines()
    assert process.returncode == 2 and re.match(r"bert-tf: error: .*/no", told[-1])
    assert "Traceback" not in "".join(told)


@pytest.mark.slow
@pytest.mark.parametrize("when", ["exporting", "ready: "])
def test_nothing_is_left_of_what_was_exported(families, tmp_path, when):
    families["reviews"].model.save(tmp_path / "film.keras")
    (temporary := tmp_path / "temporary").mkdir()
    process = started(tmp_path / "film.keras", TMPDIR=str(temporary))
    try:
        lines_until(process, when)
        assert [*temporary.glob("bert-tf-serve-*")] or when == "exporting"
        process.send_signal(signal.SIGTERM)
        process.stderr.read()
        assert process.wait(60) == 143
        assert not [*temporary.glob("bert-tf-serve-*")]
    finally:
        process.kill()
