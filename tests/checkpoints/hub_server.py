"""A small Hugging Face Hub on the loopback interface, for `huggingface_hub` with HF_ENDPOINT."""

import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

REVISION = "0123456789abcdef0123456789abcdef01234567"


@contextmanager
def serving(repositories: dict[str, Path], broken: tuple[str, ...] = ()) -> Iterator[str]:
    """Serves folders under names such as "org/name", and yields the address of the Hub.

    Args:
        repositories: name -> the folder of its files.
        broken: repositories whose weights are cut off in the middle of each download.
    """

    class Handler(BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            self.answer(with_body=False)

        def do_GET(self) -> None:
            self.answer(with_body=True)

        def answer(self, with_body: bool) -> None:
            path = self.path.partition("?")[0].strip("/")
            for name, folder in repositories.items():
                if path.startswith(f"api/models/{name}"):
                    self.describe(name, folder, path)
                    return
                if path.startswith(f"{name}/resolve/"):
                    self.send_file(name, folder / path.split("/")[-1], with_body)
                    return
            self.send_response(404)
            self.send_header("X-Error-Code", "RepoNotFound")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def describe(self, name: str, folder: Path, path: str) -> None:
            files = sorted(folder.iterdir())
            if "/tree/" in path:
                content = [
                    {"type": "file", "path": f.name, "size": f.stat().st_size, "oid": _hash(f)}
                    for f in files
                ]
            else:
                siblings = [{"rfilename": file.name} for file in files]
                content = {"id": name, "modelId": name, "sha": REVISION, "siblings": siblings}
            body = json.dumps(content).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def send_file(self, name: str, file: Path, with_body: bool) -> None:
            if not file.is_file():
                self.send_response(404)
                self.send_header("X-Error-Code", "EntryNotFound")
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            body = file.read_bytes()
            self.send_response(200)
            self.send_header("ETag", f'"{_hash(file)}"')
            self.send_header("X-Repo-Commit", REVISION)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if with_body:
                is_cut = name in broken and file.suffix == ".safetensors"
                self.wfile.write(body[: len(body) // 2] if is_cut else body)
                self.close_connection = True

        def log_message(self, *_: object) -> None:
            """Says nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _hash(file: Path) -> str:
    return hashlib.sha1(file.read_bytes()).hexdigest()
