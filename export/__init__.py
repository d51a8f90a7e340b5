"""Trained models -> SavedModels that take strings and return answers, and files for phones.

Task models have a method `export`; `bert-tf export` and `python -m export` export the model at a
path. An export needs only TensorFlow to run, and tensorflow-text where it takes strings: the
tokenizer and the decoding are in the graph, and nothing of bert_tf or Keras is in the file.
"""

from collections.abc import Mapping
from typing import Any, Literal

# The formats of an export.
SAVED_MODEL, LITERT, ONNX = FORMATS = ("tf_saved_model", "litert", "onnx")
# The options that not every format has, with their defaults.
_OPTIONS: dict[str, dict[str, Any]] = {
    SAVED_MODEL: dict(freeze=False, device="cpu", version=None, inputs=None, calibration=None),
    LITERT: dict(inputs=None, lengths=None, calibration=None),
    ONNX: dict(inputs=None),
}
# The inputs that an export may take, and the default of each format.
Inputs = Literal["ids", "strings"]
INPUTS: Mapping[str, Inputs] = {SAVED_MODEL: "strings", LITERT: "ids", ONNX: "ids"}
# The precisions of a LiteRT file, and those of all formats.
LITE_PRECISIONS = ("float32", "float16", "int8")
PRECISIONS = ("bfloat16", *LITE_PRECISIONS)
# The kinds of exports; see `bert_tf.export.run.export_run`.
KINDS = ("task", "hub", "mlm", "nsp", "embedding")


def misplaced(format: str, given: Mapping[str, Any]) -> tuple[str, str] | None:
    """An option that only another format has, and that format; None if all fit."""
    for other, defaults in _OPTIONS.items():
        for name, default in defaults.items():
            value = given.get(name, default)
            is_given = value is not None if default is None else value != default
            if is_given and name not in _OPTIONS.get(format, {}):
                return name, other
    return None
