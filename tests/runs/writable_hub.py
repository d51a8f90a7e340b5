"""A small Hugging Face Hub on the loopback interface that takes uploads of `huggingface_hub`."""

import base64
import hashlib
import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import yaml

OID = "0123456789abcdef0123456789abcdef01234567"


class Hub:
    """What was sent to it.

    Attributes:
        address: of the server.
        tokens: tokens that may write -> the namespace that each may write to.
        refused: part of an address -> the status with which requests to it are refused.
        large: the ends of names of files that are uploaded before the commit.
        private: repository -> whether it is private.
        commits: repository, branch and files of each commit.
        asked: the method and address of each request.
    """

    def __init__(self):
        self.address = ""
        self.tokens = {"hf_mine": "org"}
        self.refused: dict[str, int] = {}
        self.large: tuple[str, ...] = ()
        self.private: dict[str, bool] = {}
        self.branches: set[tuple[str, str]] = set()
        self.stored: dict[str, bytes] = {}
        self.commits: list[tuple[str, str, dict[str, bytes]]] = []
        self.asked: list[str] = []

    def answer(self, path: str, body: bytes, token: str) -> tuple[int, dict]:
        """The status and the content of the answer to a request."""
        for part, status in self.refused.items():
            if part in path:
                return status, {"error": f"refused with {status}"}
        if path == "/api/validate-yaml":
            _, header, _ = json.loads(body)["content"].split("---\n", 2)
            yaml.safe_load(header)
            return 200, {"errors": [], "warnings": []}
        if token not in self.tokens:
            return 401, {"error": "Invalid username or password."}
        if path == "/api/repos/create":
            return self.create(json.loads(body), token)
        if large := re.fullmatch(r"/large/(\w+)", path):
            assert hashlib.sha256(body).hexdigest() == large[1]
            self.stored[large[1]] = body
            return 200, {}
        if batch := re.fullmatch(r"/([\w.-]+/[\w.-]+)\.git/info/lfs/objects/batch", path):
            objects = json.loads(body)["objects"]
            upload = [
                each | {"actions": {"upload": {"href": f"{self.address}/large/{each['oid']}"}}}
                for each in objects
            ]
            assert batch[1] in self.private
            return 200, {"transfer": "basic", "objects": upload}
        found = re.fullmatch(r"/api/models/([\w.-]+/[\w.-]+)(?:/(\w+)/([\w.-]+))?", path)
        assert found, path
        name, kind, branch = found.groups()
        if name not in self.private:
            return 404, {"error": "Repository not found"}
        if kind is None:
            return 200, {"id": name, "private": self.private[name], "sha": OID, "siblings": []}
        if kind == "branch":
            is_new = (name, branch) not in self.branches
            self.branches.add((name, branch))
            return (200 if is_new else 409), {}
        if (name, branch) not in self.branches:
            return 404, {"error": "Invalid rev id"}
        if kind == "preupload":
            return 200, {"files": [self.mode(each["path"]) for each in json.loads(body)["files"]]}
        assert kind == "commit"
        return self.commit(name, branch, [json.loads(line) for line in body.splitlines()])

    def create(self, wanted: dict, token: str) -> tuple[int, dict]:
        name = f"{wanted['organization']}/{wanted['name']}"
        if name in self.private:
            return 409, {"error": "You already created this model repo", "url": self.url(name)}
        if wanted["organization"] != self.tokens[token]:
            return 403, {"error": "You don't have the rights to create a model under this name"}
        self.private[name] = wanted.get("visibility") == "private"
        self.branches.add((name, "main"))
        return 200, {"url": self.url(name)}

    def url(self, name: str) -> str:
        return f"{self.address}/{name}"

    def mode(self, path: str) -> dict:
        mode = "lfs" if self.large and path.endswith(self.large) else "regular"
        return {"path": path, "uploadMode": mode, "shouldIgnore": False}

    def commit(self, name: str, branch: str, lines: list[dict]) -> tuple[int, dict]:
        files = {}
        for each in lines:
            value = each["value"]
            if each["key"] == "file":
                files[value["path"]] = base64.b64decode(value["content"])
            elif each["key"] == "lfsFile":
                files[value["path"]] = self.stored[value["oid"]]
        self.commits.append((name, branch, files))
        return 200, {"commitUrl": f"{self.url(name)}/commit/{OID}", "commitOid": OID}


@contextmanager
def serving() -> Iterator[Hub]:
    """Serves a Hub without repositories, on which the token "hf_mine" may write under "org"."""
    hub = Hub()

    class Handler(BaseHTTPRequestHandler):
        def answer(self) -> None:
            length = self.headers.get("Content-Length")
            body = self.rfile.read(int(length)) if length else self.chunks()
            token = self.headers.get("Authorization", "").removeprefix("Bearer ")
            path = self.path.partition("?")[0]
            hub.asked.append(f"{self.command} {path}")
            # The addresses of large files hold their own permission.
            token = "hf_mine" if path.startswith("/large/") else token
            status, content = hub.answer(path, body, token)
            text = json.dumps(content).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        do_GET = do_POST = do_PUT = answer

        def chunks(self) -> bytes:
            found = b""
            if self.headers.get("Transfer-Encoding") == "chunked":
                while size := int(self.rfile.readline(), 16):
                    found += self.rfile.read(size)
                    self.rfile.readline()
                self.rfile.readline()
            return found

        def log_message(self, *_: object) -> None:
            """Says nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    hub.address = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
