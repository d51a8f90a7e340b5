"""Turning a task model into a LiteRT file: one function for each length, one row at a time.

The functions hold operations that LiteRT has built in, and static shapes, which its delegates
require. The file holds each weight once, however many functions there are.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

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
from bert_tf.export.litert.form import LiteForm, Row, Tensors
from bert_tf.export.precision import with_encoder
from bert_tf.io.atomic import temporary_folder
from bert_tf.text.lite_tokenizer import LiteTokenizer

# The inputs of a file -> the encoder's inputs. MediaPipe finds the former by these names.
INPUTS = {"ids": "input_word_ids", "mask": "input_mask", "segment_ids": "input_type_ids"}
# Operations that would lose too much in int8 with fixed ranges, see docs/how_to/phone.md.
_IN_FLOAT = (
    "ADD BATCH_MATMUL DIV GELU L2_NORMALIZATION MEAN MUL RESHAPE RSQRT SELECT_V2 SOFTMAX "
    "SQUARED_DIFFERENCE STRIDED_SLICE SUB SUM TANH TRANSPOSE UNPACK"
).split()


def signature_name(length: int, lengths: Sequence[int]) -> str:
    """The name of the signature for rows of `length` tokens."""
    return f"tokens_{length}" if len(lengths) > 1 else "serving_default"


def convert(model: Any, how: LiteForm) -> bytes:
    """A task model with its labels as a LiteRT file; `how` has been checked for the model."""
    network = with_encoder(model, model.encoder.copied(layout="padded", dtype="float32"))
    of_strings, lengths = how.inputs == "strings", how.lengths or ()
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
        for row in how.calibration or ():
            yield signature_name(lengths[0], lengths), padded(row, lengths[0])

    root = tf.Module()
    root.functions = [*functions.values()]
    root.weights = [weight.value for weight in network.weights]
    with temporary_folder() as folder:
        path = str(folder / "model")
        tf.saved_model.save(root, path, signatures=functions)
        converter = tf.lite.TFLiteConverter.from_saved_model(path, [*functions])
        converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS]
        # tf-text's tokenizer needs custom ops. `save_lite` refuses any others.
        converter.allow_custom_ops = of_strings
        if how.precision != "float32":
            converter.optimizations = [tf.lite.Optimize.DEFAULT]
        if how.precision == "float16":
            converter.target_spec.supported_types = [tf.float16]
        try:
            with without_native_messages(), without_interpreter_notice():
                if how.calibration is None:
                    return converter.convert()
                converter.representative_dataset = examples
                return quantized_with_ranges(converter, _IN_FLOAT)
        except LiteConverterError as error:
            names = operations_without_lite(error)
            if not names:
                raise
            raise UserError(
                f"LiteRT has no operation {' or '.join(names)}, which this {type(model).__name__} "
                "uses; export a SavedModel instead"
            ) from None


def without_padding(features: Mapping[str, np.ndarray]) -> list[Row]:
    """The rows of the encoder's inputs, [rows, seq_len], without the padding at their ends."""
    sizes = np.count_nonzero(features["input_mask"], axis=1)
    return [
        {name: each[i, :size].astype(np.int32) for name, each in features.items()}
        for i, size in enumerate(sizes)
    ]


def padded(row: Mapping[str, np.ndarray], length: int) -> dict[str, np.ndarray]:
    """A row of the encoder's inputs as the inputs of a file, each int32 [1, length]."""
    given = {}
    for name, feature in INPUTS.items():
        given[name] = np.zeros([1, length], np.int32)
        given[name][0, : len(row[feature])] = row[feature]
    return given
