"""What to POST to TensorFlow Serving for an export, and what it answers.

    python -m serving.bodies saved_models/reviews --name reviews
    python -m serving.bodies saved_models/answers --name answers --signature serving_default \
        --row '{"question": "Who sat?", "context": "The cat sat."}'

For each signature of the SavedModel it prints, as Markdown, where to POST, the body of a request
and that of the response: the request is read as the server reads it, and the model really answers
it. Without `--row` the rows are those of the export's own warm-up request.
"""

import argparse
import base64
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from bert_tf.errors import UserError
from bert_tf.io.json_files import as_json
from serving.rest_client import padded, place, read_row

Signatures = Mapping[str, Callable[..., Mapping[str, tf.Tensor]]]


def request_body(signature: str, rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The request in the form of rows."""
    return {"signature_name": signature, "instances": padded(rows)}


def answer(signatures: Signatures, body: Mapping[str, Any]) -> dict[str, Any]:
    """What the server answers to a request, given as rows ("instances") or columns ("inputs").

    Source: tensorflow/serving, `g3doc/api_rest.md`, predict API.

    Args:
        signatures: of a loaded SavedModel.
        body: the request.

    Raises:
        UserError: there is no such signature, or its inputs are not those of the request.
    """
    name = body.get("signature_name", "serving_default")
    if name not in signatures:
        raise UserError(f"no signature {name!r}; there are {', '.join(sorted(signatures))}")
    specs = signatures[name].structured_input_signature[1]
    columns = body.get("inputs")
    if "instances" in body:
        columns = _columns(body["instances"], specs)
    elif len(specs) == 1 and isinstance(columns, list):
        columns = {next(iter(specs)): columns}
    if not isinstance(columns, Mapping) or columns.keys() != specs.keys():
        raise UserError(f"signature {name} takes {' and '.join(sorted(specs))}")
    outputs = signatures[name](**{key: _tensor(columns[key], specs[key]) for key in specs})
    values = {key: outputs[key].numpy() for key in sorted(outputs)}
    if "instances" not in body:
        return {"outputs": _unnamed({key: as_json(value) for key, value in values.items()})}
    rows = range(len(body["instances"]))
    return {
        "predictions": [
            _unnamed({key: as_json(value[row]) for key, value in values.items()}) for row in rows
        ]
    }


def _columns(instances: Sequence[Any], specs: Mapping[str, tf.TensorSpec]) -> dict[str, list]:
    """Name -> the values of all rows; a single input may stand without its name."""
    if not isinstance(instances, list):
        raise UserError("instances is no list of rows")
    # An object is the inputs of a row, unless it is text in base64.
    named = [isinstance(row, Mapping) and set(row) != {"b64"} for row in instances]
    if len(specs) == 1 and not any(named):
        return {name: list(instances) for name in specs}
    if not all(named) or any(row.keys() != specs.keys() for row in instances):
        raise UserError(f"every row has {' and '.join(sorted(specs))}, and nothing else")
    return {name: [row[name] for row in instances] for name in specs}


def _tensor(values: Any, spec: tf.TensorSpec) -> tf.Tensor:
    if spec.dtype == tf.string:
        values = tf.nest.map_structure(_bytes, _plain(values))
    try:
        shape = None if np.size(values) else [0] * spec.shape.rank
        tensor = tf.constant(values, spec.dtype, shape)
    except (ValueError, TypeError):
        raise UserError(f"{spec.name} is no batch of {spec.dtype.name}") from None
    if not spec.shape.is_compatible_with(tensor.shape):
        raise UserError(f"{spec.name} has {tensor.shape.rank} axes, not {spec.shape.rank}")
    return tensor


def _plain(values: Any) -> Any:
    """Texts in base64, which stand as {"b64": ...}, as bytes."""
    if isinstance(values, list):
        return [_plain(each) for each in values]
    return base64.b64decode(values["b64"]) if isinstance(values, Mapping) else values


def _bytes(text: str | bytes) -> bytes:
    return text.encode() if isinstance(text, str) else text


def _unnamed(values: dict[str, Any]) -> Any:
    """A single output stands without its name."""
    return next(iter(values.values())) if len(values) == 1 else values


def warm_up_rows(folder: Path) -> dict[str, list[dict[str, Any]]]:
    """Signature -> the rows that the export's warm-up file holds for it."""
    from tensorflow_serving.apis import prediction_log_pb2

    path = folder / "assets.extra" / "tf_serving_warmup_requests"
    if not path.is_file():
        raise UserError(f"no warm-up requests at {path}; is {folder} an export?")
    found = {}
    for record in tf.data.TFRecordDataset(str(path)):
        log = prediction_log_pb2.PredictionLog.FromString(record.numpy()).predict_log.request
        columns = {name: as_json(tf.make_ndarray(each)) for name, each in log.inputs.items()}
        rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
        found[log.model_spec.signature_name] = rows
    return found


def page(folder: Path, name: str, asked: Mapping[str, Sequence[Mapping[str, Any]]]) -> str:
    """The bodies as Markdown.

    Args:
        folder: a SavedModel.
        name: what the server's configuration calls it.
        asked: signature -> rows.
    """
    import tensorflow_text  # noqa: F401  registers the ops of the tokenizer

    signatures = tf.saved_model.load(str(folder)).signatures
    lines = []
    for signature, rows in asked.items():
        # What the server gets is text: whatever is not JSON fails here.
        request = json.dumps(request_body(signature, rows), ensure_ascii=False)
        response = answer(signatures, json.loads(request))
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
