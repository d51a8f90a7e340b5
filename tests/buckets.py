"""Buckets for tests: moto's S3 and Google's emulator, behind a proxy with faults."""

import contextlib
import http.client
import logging
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from bert_tf.io import remote, stores

_SLOW_DOWN = (
    503,
    b"<Error><Code>SlowDown</Code><Message>reduce your request rate</Message></Error>",
)
_EXPIRED = (
    400,
    b"<Error><Code>ExpiredToken</Code><Message>The token has expired.</Message></Error>",
)
_INTERNAL = (500, b"<Error><Code>InternalError</Code><Message>try again</Message></Error>")
BROKEN = {"slow_down": _SLOW_DOWN, "expired": _EXPIRED, "internal": _INTERNAL}


class Proxy:
    """Passes requests on to a store, except for those that a fault is meant for.

    Attributes:
        page, latency: names in a page of a listing, and seconds before a request is passed on.
        seen: method and path of every request that was passed on.
        faults: pairs of a condition on method and path, and what happens to the next requests that
            fulfil it: a key of `BROKEN`, "drop" (half of the answer, then the end), "lose" (passed
            on, and no answer), "refuse" (no answer at all), "slow" (a kilobyte at a time), or
            "stale" (a listing as it was when it was asked for before).
    """

    def __init__(self, host: str, port: int):
        self.seen: list[tuple[str, str]] = []
        self.faults: list[tuple[Callable[[str, str], bool], str]] = []
        self.page, self.latency = 0, 0.0
        self._listings: dict[str, bytes] = {}
        self._lock = threading.Lock()
        proxy = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def handle_one_request(self) -> None:
                with contextlib.suppress(ConnectionError, BrokenPipeError):
                    super().handle_one_request()

            def log_message(self, *_: Any) -> None:
                pass

            def _pass_on(self) -> None:
                proxy._answer(self, host, port)

            do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = do_PATCH = _pass_on

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def fault(self, what: str, method: str = "", part: str = "", times: int = 1) -> None:
        """Does something to the next requests of a method whose path contains `part`."""
        self.faults += [(lambda m, p: m.startswith(method) and part in p, what)] * times

    def count(self, method: str, part: str = "") -> int:
        """How many such requests were passed on."""
        return sum(m == method and part in p for m, p in self.seen)

    def _answer(self, handler: BaseHTTPRequestHandler, host: str, port: int) -> None:
        time.sleep(self.latency)
        method, path = handler.command, handler.path
        body = self._body(handler)
        with self._lock:
            found = next((f for f in self.faults if f[0](method, path)), None)
            if found is not None:
                self.faults.remove(found)
            what = None if found is None else found[1]
            if what not in BROKEN and what != "refuse":
                self.seen.append((method, path))
        if what in BROKEN:
            self._send(handler, *BROKEN[what], {})
        elif what == "refuse":
            handler.close_connection = True
        else:
            if self.page and "list-type=2" in path:
                path += f"&max-keys={self.page}"
            upstream = http.client.HTTPConnection(host, port, timeout=30)
            skipped = ("connection", "transfer-encoding", "content-length")
            headers = {k: v for k, v in handler.headers.items() if k.lower() not in skipped}
            upstream.request(method, path, body, headers)
            response = upstream.getresponse()
            data, sent = response.read(), dict(response.getheaders())
            upstream.close()
            if "list-type=2" in path:
                now, then = data, self._listings.get(path)
                data = then if what == "stale" and then is not None else now
                self._listings[path] = now
            if what == "lose":
                handler.close_connection = True
            else:
                self._send(handler, response.status, data, sent, what)

    @staticmethod
    def _body(handler: BaseHTTPRequestHandler) -> bytes:
        if "chunked" in handler.headers.get("Transfer-Encoding", ""):
            parts = []
            while size := int(handler.rfile.readline().split(b";")[0], 16):
                parts.append(handler.rfile.read(size))
                handler.rfile.readline()
            handler.rfile.readline()
            return b"".join(parts)
        return handler.rfile.read(int(handler.headers.get("Content-Length") or 0))

    @staticmethod
    def _send(
        handler: BaseHTTPRequestHandler,
        status: int,
        data: bytes,
        headers: dict[str, str],
        what: str | None = None,
    ) -> None:
        handler.send_response(status)
        length = headers.pop("Content-Length", None) or headers.pop("content-length", None)
        for name, value in headers.items():
            if name.lower() not in ("connection", "transfer-encoding", "server", "date"):
                handler.send_header(name, value)
        is_head = handler.command == "HEAD"
        handler.send_header("Content-Length", (length or "0") if is_head else str(len(data)))
        handler.end_headers()
        if is_head:
            return
        if what == "drop":
            handler.wfile.write(data[: len(data) // 2])
            handler.close_connection = True
            return
        size = 1024 if what == "slow" else max(len(data), 1)
        for start in range(0, len(data), size):
            handler.wfile.write(data[start : start + size])
            handler.wfile.flush()
            time.sleep(0.01 if what == "slow" else 0.0)


@contextlib.contextmanager
def served_moto() -> Iterator[Proxy]:
    """moto's S3 behind a proxy; this process has credentials for it."""
    from moto import server

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    running = server.ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    running.start()
    proxy = Proxy(*running.get_host_and_port())
    with pytest.MonkeyPatch.context() as patch:
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            patch.setenv(name, "test")
        patch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        patch.setenv("AWS_ENDPOINT_URL", proxy.url)
        yield proxy
    proxy.close()
    running.stop()


@pytest.fixture(scope="module")
def moto() -> Iterator[Proxy]:
    """As `served_moto`."""
    pytest.importorskip("moto", reason="needs the extra dev")
    pytest.importorskip("s3fs", reason="needs the extra s3")
    with served_moto() as proxy:
        yield proxy


@pytest.fixture(scope="module")
def emulator() -> Iterator[Proxy]:
    """Google's emulator behind a proxy."""
    server = pytest.importorskip("gcp_storage_emulator.server", reason="needs the extra dev")
    pytest.importorskip("gcsfs", reason="needs the extra gcs")
    running = server.create_server("127.0.0.1", 0, in_memory=True)
    running.start()
    httpd = running._api._httpd
    httpd.handle_error = lambda *_: None  # it would print a traceback when a client hangs up
    proxy = Proxy(*httpd.socket.getsockname())
    yield proxy
    proxy.close()
    running.stop()


class Bucket:
    """An empty bucket, its address, and fsspec's own view of it."""

    def __init__(self, scheme: str, name: str, proxy: Proxy):
        self.address, self.proxy = f"{scheme}://{name}", proxy
        self.files = stores.store_of(scheme)._files
        self._name = name
        proxy.faults.clear()
        proxy.page = 0
        self.files.mkdir(name)
        proxy.seen.clear()

    def put(self, name: str, content: bytes | str) -> str:
        """Stores an object; returns its address."""
        data = content.encode() if isinstance(content, str) else content
        self.files.pipe_file(f"{self._name}/{name}", data)
        return f"{self.address}/{name}"

    def put_folder(self, folder: Any, name: str) -> str:
        """Stores the files of a local folder."""
        for path in folder.rglob("*"):
            if path.is_file():
                self.put(f"{name}/{path.relative_to(folder)}", path.read_bytes())
        return f"{self.address}/{name}"

    def get(self, name: str) -> bytes:
        return self.files.cat_file(f"{self._name}/{name}")

    def remove(self, name: str) -> None:
        self.files.rm(f"{self._name}/{name}", recursive=True)

    def names(self, folder: str = "") -> list[str]:
        """The names of all objects."""
        found = self.files.find(f"{self._name}/{folder}".rstrip("/"))
        return sorted(each.removeprefix(f"{self._name}/") for each in found)


_count = iter(range(10**6))


def _prepare(patch: pytest.MonkeyPatch, folder: Any) -> None:
    """Sets a cache of the test's own, no memory of earlier answers of stores, and short waits."""
    patch.setenv("BERT_TF_CACHE", str(folder / "cache"))
    patch.setattr(remote, "_BELIEVED", 0.0)
    patch.setattr(stores, "_WAITS", (0.01, 0.02, 0.05))
    patch.setattr(stores, "_DOWN", 0.0)


@pytest.fixture
def s3(moto, monkeypatch, tmp_path_factory) -> Bucket:
    """A bucket of moto."""
    import s3fs

    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "2")
    _prepare(monkeypatch, tmp_path_factory.mktemp("s3"))
    s3fs.S3FileSystem.clear_instance_cache()
    return Bucket("s3", f"bucket-{next(_count)}", moto)


@pytest.fixture
def gs(emulator, monkeypatch, tmp_path_factory) -> Bucket:
    """A bucket of Google's emulator."""
    import gcsfs.core

    monkeypatch.setenv("STORAGE_EMULATOR_HOST", emulator.url)
    _prepare(monkeypatch, tmp_path_factory.mktemp("gs"))
    gcsfs.core.GCSFileSystem.clear_instance_cache()
    return Bucket("gs", f"bucket-{next(_count)}", emulator)
