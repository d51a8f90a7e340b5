"""`bert-tf serve` under load: many clients, compared with direct calls and with another server.

    python -m benchmarks.served_load saved_models/reviews --minutes 10
    python -m benchmarks.served_load saved_models/vectors --peer FOLDER --peer-python PYTHON

All clients are in one asynchronous process. Each has a connection of its own and sends one text
after the other, of mixed lengths. Answers are compared with those of the SavedModel itself. The
direct calls have the same texts in batches of 32 of similar length, in a process with the same
settings; they are timed before and after the server. `--peer` names an embedder of
sentence-transformers, which PYTHON serves with FastAPI and uvicorn, one `encode` for each request.
"""

import argparse
import asyncio
import json
import os
import random
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.memory import resident_bytes
from bert_tf.cli import command
from bert_tf.errors import UserError

WORDS = (
    "the film was a lovely two hours of nothing but rain and old songs in Paris where she met him "
    "before winter came over sea and nobody knew why it had to end in such a way"
).split()
_BATCH = 32
_SAMPLES = 20  # of memory
_PEER = """
import sys, uvicorn
from fastapi import FastAPI
from pydantic import BaseModel
from sentence_transformers import SentenceTransformer
model = SentenceTransformer(sys.argv[1], device="cpu")
app = FastAPI()
class Texts(BaseModel):
    inputs: list[str]
@app.post("/embed")
def embed(texts: Texts):
    return model.encode(texts.inputs, show_progress_bar=False).tolist()
@app.get("/healthz")
def health():
    return "ok"
uvicorn.run(app, port=int(sys.argv[2]), log_level="warning")
"""


def texts_of(count: int, words: int, seed: int = 0) -> list[str]:
    """Random texts of 1 to `words` words; half of them have at most a quarter of that.

    >>> [len(text.split()) for text in texts_of(4, 40)]
    [7, 27, 1, 17]
    """
    source = random.Random(seed)
    sizes = [source.randint(1, max(1, words if i % 2 else words // 4)) for i in range(count)]
    return [" ".join(source.choices(WORDS, k=size)) for size in sizes]


def check_saved_model(path: str) -> None:
    """Raises UserError if there is no SavedModel at `path`."""
    if not (Path(path) / "saved_model.pb").is_file():
        raise UserError(f"{path} is not a SavedModel; name a folder of an export")


def main() -> int:
    """Prints what was found; returns the exit code, 1 if an answer differed."""
    parser = command.module_parser("benchmarks.served_load", __doc__)
    parser.add_argument("saved_model", help="an export with the input text")
    parser.add_argument("--minutes", type=float, default=10.0, help="(%(default)s)")
    parser.add_argument("--clients", type=int, default=64, help="(%(default)s)")
    parser.add_argument("--words", type=int, default=200, help="at most so many in a text")
    parser.add_argument("--texts", type=int, default=512, help="different ones (%(default)s)")
    parser.add_argument(
        "--reloads", type=int, default=0, help="new versions that appear meanwhile (%(default)s)"
    )
    parser.add_argument("--peer", help="a folder of sentence-transformers")
    parser.add_argument("--peer-python", default=sys.executable, help="has sentence-transformers")
    parser.add_argument("--direct", help=argparse.SUPPRESS)
    return command.run("served_load", parser, None, _work, "stopped")


def _work(arguments: argparse.Namespace) -> None:
    check_saved_model(arguments.saved_model)
    texts = texts_of(arguments.texts, arguments.words)
    if arguments.direct:
        _direct(arguments.saved_model, texts, arguments.minutes * 60, Path(arguments.direct))
        return
    before, expected = _direct_apart(arguments)
    port = _free_port()
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(arguments.saved_model, Path(folder, "1"))
        _compared(arguments, texts, before, expected, port, Path(folder))


def _compared(
    arguments: argparse.Namespace,
    texts: Sequence[str],
    before: float,
    expected: Any,
    port: int,
    folder: Path,
) -> None:
    """Asks the servers, and prints what was found."""
    serve = [sys.executable, "-m", "bert_tf", "-q", "serve", f"model={folder}"]
    reloads = threading.Thread(target=_reload, args=(folder, arguments.reloads, port), daemon=True)
    ours = _loaded(
        [*serve, "--port", str(port)],
        port,
        "/v1/models/model:predict",
        "instances",
        texts,
        arguments,
        expected,
        reloads,
    )
    after, _ = _direct_apart(arguments)
    direct = (before + after) / 2
    print(f"direct, in batches: {before:.1f} and {after:.1f} texts/s")
    if arguments.reloads:
        versions = sorted(int(each.name) for each in folder.iterdir())
        print(f"versions that were loaded under load: {versions[-1] - 1}")
    print(f"bert-tf serve: {ours['report']}; {ours['rate'] / direct:.2f} of the direct calls")
    if arguments.peer:
        port = _free_port()
        peer = [arguments.peer_python, "-c", _PEER, arguments.peer, str(port)]
        theirs = _loaded(peer, port, "/embed", "inputs", texts, arguments, None, None)
        ratio = ours["rate"] / theirs["rate"]
        print(f"sentence-transformers with FastAPI: {theirs['report']}; serve has {ratio:.2f}")
    if ours["wrong"]:
        sys.exit(1)


def _direct_apart(arguments: argparse.Namespace) -> tuple[float, list[dict[str, Any]]]:
    """Texts a second in a process of its own, and its answer to each text."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "answers.json")
        options = ["--texts", str(arguments.texts), "--words", str(arguments.words)]
        options += ["--minutes", str(min(arguments.minutes, 1)), "--direct", str(out)]
        module = [sys.executable, "-m", "benchmarks.served_load", arguments.saved_model, *options]
        subprocess.run(module, check=True)
        found = json.loads(out.read_text())
    return found["rate"], found["answers"]


def _direct(saved_model: str, texts: Sequence[str], seconds: float, out: Path) -> None:
    from bert_tf.dependencies import prepare_to_serve

    prepare_to_serve()
    from bert_tf.asking.saved_model import SavedModel
    from bert_tf.io.json_files import as_json

    model = SavedModel.load(saved_model)
    order = sorted(range(len(texts)), key=lambda i: len(texts[i]))
    batches = [order[start : start + _BATCH] for start in range(0, len(order), _BATCH)]
    answers: list[Any] = [None] * len(texts)
    for batch in batches:
        outputs = model.ask("serving_default", [{"text": texts[i]} for i in batch])
        for place, i in enumerate(batch):
            answers[i] = {name: as_json(values[place]) for name, values in outputs.items()}
    start, rows = time.perf_counter(), 0
    while time.perf_counter() - start < seconds:
        for batch in batches:
            model.ask("serving_default", [{"text": texts[i]} for i in batch])
            rows += len(batch)
    rate = rows / (time.perf_counter() - start)
    out.write_text(json.dumps({"rate": rate, "answers": answers}))


def _loaded(
    program: Sequence[str],
    port: int,
    path: str,
    key: str,
    texts: Sequence[str],
    arguments: argparse.Namespace,
    expected: Any,
    meanwhile: threading.Thread | None,
) -> dict[str, Any]:
    """Starts a server, and measures it under load."""
    server = subprocess.Popen(program)
    try:
        _wait(server, port)
        if meanwhile is not None:
            meanwhile.start()
        bodies = [_request(path, json.dumps({key: [text]})) for text in texts]
        return asyncio.run(_asked(port, bodies, expected, arguments, server.pid))
    finally:
        server.terminate()
        server.wait()


def _reload(folder: Path, times: int, port: int) -> None:
    """Puts new versions into a folder, and waits for each until it is served alone."""
    for number in range(2, times + 2):
        new = folder.with_name(f"{folder.name}-{number}")
        shutil.copytree(folder / str(number - 1), new)
        new.rename(folder / str(number))
        address = f"http://127.0.0.1:{port}/v1/models/model"
        states = {}
        while states.get(str(number)) != "AVAILABLE" or states.get(str(number - 1)) != "END":
            time.sleep(0.2)
            try:
                with urllib.request.urlopen(address) as reply:
                    found = json.load(reply)["model_version_status"]
            except OSError:  # the time is over, and the server has ended
                return
            states = {each["version"]: each["state"] for each in found}
        shutil.rmtree(folder / str(number - 1))


def _wait(server: subprocess.Popen, port: int) -> None:
    for _ in range(600):
        if server.poll() is not None:
            raise UserError("the server ended; see above")
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz").read()
            return
        except OSError:
            time.sleep(0.5)
    raise UserError("the server is not ready after five minutes")


def _request(path: str, body: str) -> bytes:
    head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(body.encode())}\r\n\r\n{body}".encode()


async def _asked(
    port: int,
    bodies: Sequence[bytes],
    expected: Any,
    arguments: argparse.Namespace,
    server: int,
) -> dict[str, Any]:
    seconds: list[float] = []
    wrong, memory = [0], []
    own, theirs = time.process_time(), _processor_seconds(server)
    start = time.perf_counter()
    end = start + arguments.minutes * 60

    async def client(number: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        source = random.Random(number)
        while time.perf_counter() < end:
            i = source.randrange(len(bodies))
            began = time.perf_counter()
            writer.write(bodies[i])
            head = await reader.readuntil(b"\r\n\r\n")
            size = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
            body = await reader.readexactly(size)
            seconds.append(time.perf_counter() - began)
            if b" 200 " not in head.split(b"\r\n")[0] + b" ":
                raise UserError(f"the server refuses: {head.decode()}{body.decode()}")
            # Checking every answer would take the processor from the server.
            if expected is not None and len(seconds) % 20 == 0:
                (found,) = json.loads(body)["predictions"]
                wrong[0] += not same(found, expected[i])
        writer.close()

    async def watch() -> None:
        while time.perf_counter() < end:
            memory.append(resident_bytes(server) / 2**20)
            await asyncio.sleep(arguments.minutes * 60 / _SAMPLES)

    await asyncio.gather(watch(), *map(client, range(arguments.clients)))
    total = time.perf_counter() - start
    p50, p99 = np.percentile(seconds, [50, 99])
    quarter = max(1, len(memory) // 4)
    report = (
        f"{len(seconds) / total:.1f} texts/s, p50 {p50 * 1e3:.0f} ms, p99 {p99 * 1e3:.0f} ms, "
        f"memory {np.mean(memory[quarter : 2 * quarter]):.0f} MiB in the second quarter and "
        f"{np.mean(memory[-quarter:]):.0f} in the last, processor time of the clients "
        f"{time.process_time() - own:.0f} s and of the server "
        f"{_processor_seconds(server) - theirs:.0f} s in {total:.0f} s"
    )
    if expected is not None:
        report += f", {wrong[0]} of {len(seconds) // 20:,} answers differ by more than 1e-5"
    return {"rate": len(seconds) / total, "report": report, "wrong": wrong[0]}


def same(found: Any, expected: dict[str, Any]) -> bool:
    """Whether a text has the answer that is expected, numbers to 1e-5."""
    found = found if isinstance(found, dict) else {next(iter(expected)): found}
    return found.keys() == expected.keys() and all(
        np.allclose(value, expected[name], rtol=0, atol=1e-5)
        if np.asarray(value).dtype.kind == "f"
        else np.array_equal(value, expected[name])
        for name, value in found.items()
    )


def _processor_seconds(process: int) -> float:
    """Processor time of a process, its own and the kernel's for it."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(") ")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


if __name__ == "__main__":
    sys.exit(main())
