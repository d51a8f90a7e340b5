"""Requests that TensorFlow Serving sends to a model before it takes those of others."""

from collections.abc import Mapping
from pathlib import Path

import tensorflow as tf

from bert_tf.export.service import Signature

FILE = "tf_serving_warmup_requests"


def write(path: Path, signatures: Mapping[str, Signature]) -> None:
    """Writes one PredictionLog record for each signature: its example.

    The server finds the file at `assets.extra/tf_serving_warmup_requests` of the SavedModel.
    """
    from tensorflow_serving.apis import predict_pb2, prediction_log_pb2

    with tf.io.TFRecordWriter(str(path)) as records:
        for name, signature in signatures.items():
            request = predict_pb2.PredictRequest()
            request.model_spec.signature_name = name
            for key, value in signature.example_tensors().items():
                request.inputs[key].CopyFrom(tf.make_tensor_proto(value))
            log = prediction_log_pb2.PredictionLog(
                predict_log=prediction_log_pb2.PredictLog(request=request)
            )
            records.write(log.SerializeToString())
