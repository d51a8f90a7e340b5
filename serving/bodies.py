"""What to POST to TensorFlow Serving for an export, and what it answers.

    python -m serving.bodies saved_models/reviews --name reviews
    python -m serving.bodies saved_models/answers --name answers --signature serving_default \
        --row '{"question": "Who sat?", "context": "The cat sat."}'

For each signature of the SavedModel it prints, as Markdown, where to POST, the body of a request
and that of the response: the request is read as the server reads it, and the model really answers
it. Without `--row` the rows are those of the export's own warm-up request.
"""

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import tensorflow as tf

from bert_tf.asking.saved_model import SavedModel
from bert_tf.errors import UserError
from bert_tf.serve import rest
from bert_tf.serve.models import warm_up_rows
from serving.rest_client import padded, place, read_row


def request_body(signature: str, rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The request in the form of rows."""
    return {"signature_name": signature, "instances": padded(rows)}


def answer(model: SavedModel, body: Mapping[str, Any]) -> dict[str, Any]:
    """What the server answers to a request, given as rows ("instances") or columns ("inputs").

    Source: tensorflow/serving, `g3doc/api_rest.md`, predict API.

    Args:
        model: the export.
        body: the request.

    Raises:
        UserError: there is no such signature, or its inputs are not those of the request.
    """
    specs = {name: model.specs(name) for name in model.signature_names()}
    asked = rest.question(body, specs)
    tensors = {
        name: tf.constant(column, specs[asked.signature][name].dtype)
        for name, column in asked.columns.items()
    }
    outputs = model.call(asked.signature, tensors)
    return rest.answer({name: each.numpy() for name, each in outputs.items()}, asked.by_row)


def page(folder: Path, name: str, asked: Mapping[str, Sequence[Mapping[str, Any]]]) -> str:
    """The bodies as Markdown.

    Args:
        folder: a SavedModel.
        name: what the server's configuration calls it.
        asked: signature -> rows.
    """
    model, lines = SavedModel.load(folder), []
    for signature, rows in asked.items():
        # What the server gets is text: whatever is not JSON fails here.
        request = json.dumps(request_body(signature, rows), ensure_ascii=False)
        response = answer(model, json.loads(request))
        where = place("http://localhost:8501", name, None)
        lines += [f"`POST {where}`", "", *_fenced(json.loads(request)), ""]
        lines += ["is answered", "", *_fenced(response), ""]
    return "\n".join(lines)


def _fenced(body: Mapping[str, Any]) -> list[str]:
    """A block of JSON with a line for each key and each row."""
    lines = []
    for key, value in body.items():
        if isinstance(value, list):
            rows = ",\n    ".join(json.dumps(each, ensure_ascii=False) for each in value)
            lines += [f"  {json.dumps(key)}: [\n    {rows}\n  ]"]
        else:
            lines += [f"  {json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}"]
    return ["```json", "{", ",\n".join(lines), "}", "```"]


def main(argv: Sequence[str] | None = None) -> int:
    """Prints the page; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("saved_model", type=Path, metavar="SAVED_MODEL")
    parser.add_argument("--name", default="model", help="in the server's configuration")
    parser.add_argument("--signature", help="this one only")
    parser.add_argument("--row", action="append", help="a JSON object; may be given several times")
    arguments = parser.parse_args(argv)
    try:
        asked: dict[str, Any] = warm_up_rows(arguments.saved_model)
        if not asked:
            raise UserError(f"no warm-up requests in {arguments.saved_model}; is it an export?")
        if arguments.signature is not None:
            asked = {arguments.signature: asked.get(arguments.signature, [])}
        if arguments.row:
            asked = {name: [read_row(row) for row in arguments.row] for name in asked}
        print(page(arguments.saved_model, arguments.name, asked))
    except (ValueError, UserError) as error:
        print(f"bodies: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
