"""The bodies of TensorFlow Serving's REST interface, as tensors and back.

Source: tensorflow/serving, `g3doc/api_rest.md`.
"""

import base64
import binascii
import json
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from bert_tf.asking import Outputs, encoded
from bert_tf.errors import UserError
from bert_tf.io.json_files import as_json, whole_text

# Inputs by their names.
Specs = Mapping[str, tf.TensorSpec]

# Outputs whose names end in this are sent in base64, whatever their bytes are.
_BYTES = "_bytes"
# An input must have fewer axes than this if the model does not say their number.
_MOST_AXES = 32


class Question(NamedTuple):
    """The request in a body; the answer has rows if the body has them."""

    signature: str
    columns: dict[str, np.ndarray]
    by_row: bool


def parsed(body: bytes) -> dict[str, Any]:
    """The JSON object of a body."""
    try:
        found = json.loads(body.decode())
        if b"\\u" in body:  # half of a surrogate pair, perhaps, which no answer could repeat
            found = json.loads(whole_text(json.dumps(found, ensure_ascii=False)))
    except (ValueError, RecursionError) as error:
        raise UserError(f"JSON Parse error: {error}") from None
    if not isinstance(found, dict):
        raise UserError("JSON Parse error: the body is not an object")
    return found


def question(body: Mapping[str, Any], signatures: Mapping[str, Specs]) -> Question:
    """The request in a body of the predict API, as rows ("instances") or columns ("inputs")."""
    name = body.get("signature_name", "serving_default")
    specs = signatures.get(name) if isinstance(name, str) else None
    if specs is None:
        there = ", ".join(sorted(signatures))
        raise UserError(
            f"Serving signature name: {json.dumps(name)} not found in signature def; "
            f"the signatures are {there}"
        )
    if not specs or any(spec.shape.rank == 0 for spec in specs.values()):
        raise UserError(f"signature {name} takes no batches, which this server requires")
    by_row = "instances" in body
    if by_row == ("inputs" in body):
        raise UserError(
            'the request has both "instances" and "inputs"; give one of them'
            if by_row
            else f'the request has neither "instances" nor "inputs"; signature {name} takes '
            f"{' and '.join(sorted(specs))}"
        )
    columns: Any = _columns(body["instances"], specs) if by_row else body["inputs"]
    if len(specs) == 1 and (not isinstance(columns, Mapping) or set(columns) == {"b64"}):
        columns = {next(iter(specs)): columns}
    if not isinstance(columns, Mapping) or columns.keys() != specs.keys():
        raise UserError(f"signature {name} takes {' and '.join(sorted(specs))}")
    found = {key: _array(key, columns[key], spec) for key, spec in specs.items()}
    if len({len(each) for each in found.values()}) > 1:
        raise UserError(f"{' and '.join(sorted(specs))} have different numbers of rows")
    return Question(name, found, by_row)


def answer(outputs: Outputs, by_row: bool) -> dict[str, Any]:
    """The body of an answer: {"predictions": rows} or {"outputs": columns}."""
    columns = {
        name: _in_base64(values)
        if name.endswith(_BYTES) and np.asarray(values).dtype.kind in "OS"
        else as_json(values)
        for name, values in sorted(outputs.items())
    }
    if not by_row:
        return {"outputs": _unnamed(columns)}
    if len({np.shape(values)[:1] for values in outputs.values()} | {()}) != 2:
        names = " and ".join(columns)
        raise UserError(f'{names} are not a batch of rows; send columns, as "inputs"')
    rows = zip(*columns.values(), strict=True)
    return {"predictions": [_unnamed(dict(zip(columns, row, strict=True))) for row in rows]}


def _columns(instances: Any, specs: Specs) -> dict[str, list]:
    """Name -> the values of all rows; a single input may stand without its name."""
    if not isinstance(instances, list):
        raise UserError('"instances" is not a list of rows')
    # An object is the inputs of a row, unless it is text in base64.
    named = [isinstance(row, Mapping) and set(row) != {"b64"} for row in instances]
    if len(specs) == 1 and not any(named):
        return {name: list(instances) for name in specs}
    if not all(named) or any(row.keys() != specs.keys() for row in instances):
        raise UserError(f"every row has {' and '.join(sorted(specs))}, and nothing else")
    return {name: [row[name] for row in instances] for name in specs}


def _array(name: str, values: Any, spec: tf.TensorSpec) -> np.ndarray:
    """The values of an input, as an array of the dtype and the axes that a signature takes."""
    if spec.dtype == tf.string:
        values = _as_bytes(name, values)
    # As objects: an array of bytes would be as wide as the longest text in each row.
    plain, rank = np.asarray(values, object), spec.shape.rank
    uneven = UserError(
        f"{name} is not a batch of {spec.dtype.name} in which all rows have the same shape"
    )
    if not plain.size and plain.ndim == 1:
        plain = plain.reshape([0] * (rank or 1))
    # TensorFlow ends the process on lists that are nested more deeply than this.
    if plain.ndim < _MOST_AXES and any(isinstance(each, list) for each in plain.flat):
        raise uneven
    if plain.ndim != rank and (rank or not 0 < plain.ndim < _MOST_AXES):
        raise UserError(f"{name} has {plain.ndim} axes, not {rank or 'those of a batch'}")
    try:
        array = tf.constant(values, spec.dtype, None if plain.size else plain.shape).numpy()
    except (ValueError, TypeError, OverflowError, SystemError):  # the last one for large integers
        raise uneven from None
    if spec.dtype.is_integer and not np.array_equal(plain, array):
        raise UserError(f"{name} has numbers that {spec.dtype.name} cannot hold")
    if not spec.shape.is_compatible_with(array.shape):
        raise UserError(f"{name} has the shape {array.shape}, not {tuple(spec.shape)}")
    return array


def _as_bytes(name: str, values: Any) -> Any:
    """Texts as UTF-8, also those in base64, given as {"b64": ...}."""
    if isinstance(values, list):
        return [_as_bytes(name, each) for each in values]
    if isinstance(values, str):
        return encoded(values)
    if isinstance(values, Mapping) and set(values) == {"b64"} and isinstance(values["b64"], str):
        try:
            return base64.b64decode(values["b64"], validate=True)
        except (binascii.Error, ValueError):
            raise UserError(f'{name}: the value of "b64" is not base64') from None
    raise UserError(f"{name} takes texts, not {json.dumps(values)[:40]}")


def _in_base64(values: Any) -> Any:
    if isinstance(values, bytes):
        return {"b64": base64.b64encode(values).decode()}
    return [_in_base64(each) for each in values]


def _unnamed(values: dict[str, Any]) -> Any:
    """A single output stands without its name."""
    return next(iter(values.values())) if len(values) == 1 else values
