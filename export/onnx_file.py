"""Writing task models as ONNX files, which runtimes other than TensorFlow read."""

import os
from pathlib import Path
from typing import Any

import tensorflow as tf

from bert_tf.asking.record import RECORD_FILE, to_json
from bert_tf.dependencies import optional
from bert_tf.encoder.encoder import INPUTS
from bert_tf.errors import UserError
from bert_tf.export.litert.saving import new_file
from bert_tf.export.precision import with_encoder
from bert_tf.export.service import Tensors, ids, record_of
from bert_tf.io.atomic import atomic_path
from bert_tf.io.vocabulary import file_text


def save_onnx(model: Any, out: str | os.PathLike, inputs: str, precision: str | None) -> Path:
    """Writes a task model of ids as an ONNX file with the record, vocabulary and labels."""
    path = new_file(out, ".onnx", "an ONNX file")
    is_plain = inputs == "ids" and precision in (None, "float32") and model.abstain is None
    if not is_plain or model.long_text == "windows":
        raise UserError(
            "an ONNX file takes ids, computes in float32, does not abstain and reads no windows of "
            "long texts; for anything else export a SavedModel"
        )
    tf2onnx = optional("tf2onnx.convert", "onnx", "format onnx")
    form = with_encoder(model, model.encoder.copied(layout="padded", dtype="float32")).device_form()
    record = to_json(record_of(model, [model.max_length], inputs, "float32").to_dict())
    lines = {"vocab.txt": model.tokenizer.vocabulary, "labels.txt": model.labels}
    texts = {name: file_text(each) for name, each in lines.items()}

    @tf.function(autograph=False)
    def answer(*rows: tf.Tensor) -> Tensors:
        return form.answer(dict(zip(INPUTS, rows, strict=True)))

    try:
        # ONNX Runtime has these operations since 1.14.
        converted, _ = tf2onnx.from_function(answer, [*ids().values()], opset=18)
        for key, value in {RECORD_FILE: record, **texts}.items():
            converted.metadata_props.add(key=key, value=value)
        content = converted.SerializeToString()
    except Exception as error:  # errors of tf2onnx and protobuf have no common class
        why = " ".join(str(error).split())[:200]
        raise UserError(
            f"tf2onnx cannot convert this {type(model).__name__} ({why}); export a SavedModel that "
            "takes ids"
        ) from error
    with atomic_path(path, is_file=True, is_new=True) as new:
        new.write_bytes(content)
    return path
