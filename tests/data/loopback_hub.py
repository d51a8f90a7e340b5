"""A server on the loopback interface that answers as the Hugging Face Hub does for one data set."""

import contextlib
import http.server
import json
import threading

NAME, COMMIT = "org/films", "0" * 39 + "1"


def answer(path, files):
    """What the Hub has at a path: its bytes and its headers; None if it has nothing."""
    api, content = f"/api/datasets/{NAME}", f"/datasets/{NAME}/resolve/{COMMIT}/"
    if path.startswith(f"{api}/tree/"):
        if not path.endswith(COMMIT):
            return None
        rows = [("file", name, len(data), "a" * 40) for name, data in files.items()]
        keys = ("type", "path", "size", "oid")
        return json.dumps([dict(zip(keys, row, strict=True)) for row in rows]).encode(), {}
    if path == api or path.startswith(f"{api}/revision/"):
        siblings = [{"rfilename": name} for name in files]
        return json.dumps({"id": NAME, "sha": COMMIT, "siblings": siblings}).encode(), {}
    if path.startswith(content) and path.removeprefix(content) in files:
        headers = {"ETag": '"a"', "X-Repo-Commit": COMMIT}
        return files[path.removeprefix(content)], headers
    return None


@contextlib.contextmanager
def hub(files):
    """The address of the server, while it has files, by their names."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def log_message(self, *_):
            pass

        def do_HEAD(self):
            self.do_GET(with_body=False)

        def do_GET(self, with_body=True):
            found = answer(self.path.partition("?")[0], files)
            body, headers = found or (b"", {"X-Error-Code": "EntryNotFound"})
            self.send_response(200 if found else 404)
            for name, value in (headers | {"Content-Length": str(len(body))}).items():
                self.send_header(name, value)
            self.end_headers()
            if with_body:
                self.wfile.write(body)

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
