"""Turning a task model into a LiteRT file: one function for each length, one row at a time.

The functions hold operations that LiteRT has built in, and static shapes, which its delegates
require. The file holds each weight once, however many functions there are.
"""

import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal

import numpy as np
import tensorflow as tf

from bert_tf.compat import (
    LiteConverterError,
    operations_without_lite,
    quantized_with_ranges,
    without_interpreter_notice,
)
from bert_tf.console import without_native_messages
from bert_tf.errors import UserError
from bert_tf.export.litert.form import Tensors
from bert_tf.export.precision import with_encoder
from bert_tf.text.lite_tokenizer import LiteTokenizer

# What a file takes.
Inputs = Literal["ids", "strings"]
# What each input of a file is to the encoder; MediaPipe finds them by these names.
INPUTS = {"ids": "input_word_ids", "mask": "input_mask", "segment_ids": "input_type_ids"}
# The encoder's inputs of a row, each int32 [seq_len] without padding.
Row = dict[str, np.ndarray]
Rows = Sequence[Row]
# Products are computed in int8 with fixed ranges; these lose too much by it: docs/how_to/phone.md.
_IN_FLOAT = (
    "ADD BATCH_MATMUL DIV GELU L2_NORMALIZATION MEAN MUL RESHAPE RSQRT SELECT_V2 SOFTMAX "
    "SQUARED_DIFFERENCE STRIDED_SLICE SUB SUM TANH TRANSPOSE UNPACK"
).split()


def signature_name(length: int, lengths: Sequence[int]) -> str:
    """The name of the signature for rows of `length` tokens.

    >>> signature_name(32, [32, 64]), signature_name(64, [64])
    ('tokens_32', 'serving_default')
    """
    return f"tokens_{length}" if len(lengths) > 1 else "serving_default"


def convert(
    model: Any,
    lengths: Sequence[int],
    inputs: Inputs = "ids",
    precision: str = "float32",
    calibration: Rows = (),
) -> bytes:
    """A task model as a LiteRT file.

    Args:
        model: a task model with its labels.
        lengths: tokens of a row, for each signature.
        inputs: "ids" or "strings".
        precision: "float32"; "float16" stores weights in half the size and computes in float32;
            "int8" stores them in a quarter and computes products in int8.
        calibration: with "int8", rows from which the ranges of the products' inputs are found;
            without them, each product finds the range of its own input. There is one length then.

    Raises:
        UserError: LiteRT lacks an operation that the model has.
    """
    network = with_encoder(model, model.encoder.copied(layout="padded", dtype="float32"))
    of_strings = inputs == "strings"
    form: Any = network.strings_form() if of_strings else network.device_form()
    tokenizer = LiteTokenizer(network.tokenizer) if of_strings else None

    def function(length: int) -> tf.types.experimental.ConcreteFunction:
        @tf.function(autograph=False)
        def answer(**given: tf.Tensor) -> Tensors:
            if of_strings:
                return form.answer(given, tokenizer, length)
            return form.answer({INPUTS[name]: each for name, each in given.items()})

        specs = {name: tf.TensorSpec([1, length], tf.int32, name) for name in INPUTS}
        if of_strings:
            specs = {name: tf.TensorSpec([1], tf.string, name) for name in form.inputs}
        return answer.get_concrete_function(**specs)

    functions = {signature_name(length, lengths): function(length) for length in lengths}

    def examples() -> Iterator[tuple[str, dict[str, np.ndarray]]]:
        for row in calibration:
            yield signature_name(lengths[0], lengths), padded(row, lengths[0])

    root = tf.Module()
    root.functions = [*functions.values()]
    root.weights = [weight.value for weight in network.weights]
    return _converted(
        root,
        functions,
        type(model).__name__,
        precision,
        examples if calibration else None,
        with_text=of_strings,
    )


def without_padding(features: Mapping[str, np.ndarray]) -> list[Row]:
    """The rows of the encoder's inputs, [rows, seq_len], which begin with their tokens.

    >>> ids, mask = np.array([[2, 7, 3], [2, 3, 0]]), np.array([[1, 1, 1], [1, 1, 0]])
    >>> rows = without_padding({"input_word_ids": ids, "input_mask": mask})
    >>> [row["input_word_ids"].tolist() for row in rows]
    [[2, 7, 3], [2, 3]]
    """
    sizes = np.count_nonzero(features["input_mask"], axis=1)
    return [
        {name: each[i, :size].astype(np.int32) for name, each in features.items()}
        for i, size in enumerate(sizes)
    ]


def padded(row: Mapping[str, np.ndarray], length: int) -> dict[str, np.ndarray]:
    """A row of the encoder's inputs as the inputs of a file, each int32 [1, length].

    >>> row = {"input_word_ids": [2, 3], "input_mask": [1, 1], "input_type_ids": [0, 0]}
    >>> padded(row, 4)["ids"].tolist()
    [[2, 3, 0, 0]]
    """
    given = {}
    for name, feature in INPUTS.items():
        given[name] = np.zeros([1, length], np.int32)
        given[name][0, : len(row[feature])] = row[feature]
    return given


def _converted(
    root: tf.Module,
    functions: Mapping[str, tf.types.experimental.ConcreteFunction],
    model_name: str,
    precision: str,
    examples: Callable | None,
    with_text: bool,
) -> bytes:
    """The functions as one file; `root` holds them and their weights."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model")
        tf.saved_model.save(root, path, signatures=dict(functions))

        def converter() -> tf.lite.TFLiteConverter:
            made = tf.lite.TFLiteConverter.from_saved_model(path, [*functions])
            made.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS]
            # Those of tf-text's tokenizer; which others there are is checked below.
            made.allow_custom_ops = with_text
            if precision != "float32":
                made.optimizations = [tf.lite.Optimize.DEFAULT]
            if precision == "float16":
                made.target_spec.supported_types = [tf.float16]
            return made

        try:
            with without_native_messages(), without_interpreter_notice():
                if examples is None:
                    return converter().convert()
                calibrated = converter()
                calibrated.representative_dataset = examples
                return quantized_with_ranges(calibrated, _IN_FLOAT)
        except LiteConverterError as error:
            names = operations_without_lite(error)
            if not names:
                raise
            raise UserError(
                f"LiteRT has no operation {' or '.join(names)}, which this {model_name} uses; "
                "export a SavedModel instead"
            ) from None
