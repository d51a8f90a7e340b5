"""Asks an export over the REST interface of TensorFlow Serving. Needs Python alone.

    python serving/rest_client.py reviews '{"text": "what a lovely film"}'
    python serving/rest_client.py reviews --url http://host:8501 --version stable < rows.jsonl

Each row is a JSON object with a text, or a list of texts, under the name of each input. The answers
are printed as JSON lines in the order of the rows.
"""

import argparse
import http.client
import json
import sys
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Sequence
from typing import Any

Row = dict[str, Any]

# The number of bytes that are quoted of an invalid answer.
_SHOWN = 200


def predict(
    url: str,
    model: str,
    rows: Sequence[Row],
    signature: str = "serving_default",
    version: str | None = None,
    timeout: float = 60,
) -> list[Any]:
    """The model's answer to each row, one request for all of them.

    Args:
        url: of the server, as in "http://localhost:8501".
        model: its name in the server's configuration.
        rows: a text or list of texts under each input's name; lists are padded with "".
        signature: the signature to call.
        version: a label such as "stable", or the number of a version; by default the newest.
        timeout: seconds to wait.

    Returns:
        For each row, its outputs by their names. If the signature has a single output, it is that
        output alone: a number, a text or a list.

    Raises:
        ConnectionError: the server cannot be reached, refuses (with its own message), or is no
            TensorFlow Serving.
    """
    body = {"signature_name": signature, "instances": padded(rows)}
    request = urllib.request.Request(
        place(url, model, version),
        json.dumps(body).encode(),
        {"Content-Type": "application/json"},
    )
    try:
        with urllib.request.urlopen(request, timeout=timeout) as response:
            answer = response.read()
    except urllib.error.HTTPError as error:
        raise ConnectionError(_reason(error)) from None
    except OSError as error:
        raise ConnectionError(f"no server at {url}: {error}") from None
    except http.client.HTTPException as error:
        raise ConnectionError(f"the answer of {url} is broken off or damaged: {error!r}") from None
    return _predictions(url, answer)


def place(url: str, model: str, version: str | None) -> str:
    """The URL of a model's predictions."""
    which = ""
    if version is not None:
        which = f"/{'versions' if version.isdecimal() else 'labels'}/{version}"
    return f"{url.rstrip('/')}/v1/models/{urllib.parse.quote(model)}{which}:predict"


def padded(rows: Sequence[Row]) -> list[Row]:
    """Rows whose lists are equally long under each name, as a batch must be."""
    widths: dict[str, int] = {}
    for row in rows:
        for name, value in row.items():
            if isinstance(value, list):
                widths[name] = max(widths.get(name, 0), len(value))
    return [
        {
            name: value + [""] * (widths[name] - len(value)) if isinstance(value, list) else value
            for name, value in row.items()
        }
        for row in rows
    ]


def read_row(text: str) -> Row:
    """A row from its JSON.

    Raises:
        ValueError: it is no JSON, or no object.
    """
    row = json.loads(text)
    if not isinstance(row, dict):
        raise ValueError(f"a row is a JSON object, not {text.strip()}")
    return row


def _predictions(url: str, answer: bytes) -> list[Any]:
    """What the body of an answer holds for each row."""
    try:
        predictions = json.loads(answer)["predictions"]
    except (ValueError, KeyError, TypeError, RecursionError):
        predictions = None
    if not isinstance(predictions, list):
        shown = answer[:_SHOWN].decode("utf-8", "replace")
        raise ConnectionError(f"{url} does not answer as TensorFlow Serving does: {shown!r}")
    return predictions


def _reason(error: urllib.error.HTTPError) -> str:
    """What the server says of its refusal."""
    try:
        text = error.read().decode("utf-8", "replace")
    except (OSError, http.client.HTTPException):
        text = ""
    try:
        return f"{error.code}: {json.loads(text)['error']}"
    except (ValueError, KeyError, TypeError):
        return f"{error.code}: {text.strip() or error.reason}"


def main(argv: Sequence[str] | None = None) -> int:
    """Prints the answers; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", help="the model's name in the server's configuration")
    parser.add_argument("rows", nargs="*", metavar="ROW", help="JSON objects; else standard input")
    parser.add_argument("--url", default="http://localhost:8501", help="(%(default)s)")
    parser.add_argument("--signature", default="serving_default", help="(%(default)s)")
    parser.add_argument("--version", help="a label or a number; the newest by default")
    parser.add_argument("--timeout", type=float, default=60, help="seconds (%(default)s)")
    arguments = parser.parse_args(argv)
    lines = arguments.rows or [line for line in sys.stdin if line.strip()]
    settings = (arguments.signature, arguments.version, arguments.timeout)
    try:
        rows = [read_row(line) for line in lines]
        answers = predict(arguments.url, arguments.model, rows, *settings)
    except (ValueError, ConnectionError) as error:
        print(f"rest_client: {error}", file=sys.stderr)
        return 1
    for answer in answers:
        print(json.dumps(answer, ensure_ascii=False))
    return 0


if __name__ == "__main__":
    sys.exit(main())
