"""Asks an export over the gRPC interface of TensorFlow Serving.

    python serving/grpc_client.py reviews --inputs '{"text": ["what a lovely film", "no"]}'

Needs tensorflow-serving-api, which requirements.txt has. Texts need not be UTF-8 here, and large
batches take less time than over REST.
"""

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np


def predict(
    address: str,
    model: str,
    inputs: Mapping[str, Any],
    signature: str = "serving_default",
    version: str | None = None,
    timeout: float = 60,
) -> dict[str, np.ndarray]:
    """The model's outputs, each [batch, ...]; texts are bytes.

    Args:
        address: of the server, as in "localhost:8500".
        model: its name in the server's configuration.
        inputs: a batch of texts, or of equally long lists of texts, under each input's name.
        signature: the signature to call.
        version: a label such as "stable", or the number of a version; by default the newest.
        timeout: seconds to wait.

    Raises:
        ConnectionError: the server cannot be reached, or refuses; the message is its own.
    """
    import grpc
    import tensorflow as tf
    from tensorflow_serving.apis import predict_pb2, prediction_service_pb2_grpc

    request = predict_pb2.PredictRequest()
    request.model_spec.name = model
    request.model_spec.signature_name = signature
    if version is not None and version.isdecimal():
        request.model_spec.version.value = int(version)
    elif version is not None:
        request.model_spec.version_label = version
    for name, values in inputs.items():
        request.inputs[name].CopyFrom(tf.make_tensor_proto(values, tf.string))
    # A batch of long texts is more than the 4 MB that gRPC takes in an answer by default.
    options = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]
    with grpc.insecure_channel(address, options) as channel:
        service = prediction_service_pb2_grpc.PredictionServiceStub(channel)
        try:
            response = service.Predict(request, timeout=timeout)
        except grpc.RpcError as error:
            raise ConnectionError(f"{error.code().name}: {error.details()}") from None
    return {name: tf.make_ndarray(each) for name, each in response.outputs.items()}


def as_json(values: np.ndarray) -> Any:
    """An output as lists, texts as UTF-8."""
    if values.dtype == object:
        values = np.vectorize(lambda text: text.decode("utf-8", "replace"), otypes=[object])(values)
    return values.tolist()


def main(argv: Sequence[str] | None = None) -> int:
    """Prints the outputs as one JSON object; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", help="the model's name in the server's configuration")
    parser.add_argument("--inputs", required=True, help="a JSON object: name -> batch of texts")
    parser.add_argument("--address", default="localhost:8500", help="(%(default)s)")
    parser.add_argument("--signature", default="serving_default", help="(%(default)s)")
    parser.add_argument("--version", help="a label or a number; the newest by default")
    parser.add_argument("--timeout", type=float, default=60, help="seconds (%(default)s)")
    arguments = parser.parse_args(argv)
    settings = (arguments.signature, arguments.version, arguments.timeout)
    try:
        inputs = json.loads(arguments.inputs)
        if not isinstance(inputs, dict):
            raise ValueError(f"--inputs is a JSON object, not {arguments.inputs}")
        outputs = predict(arguments.address, arguments.model, inputs, *settings)
    except (ValueError, TypeError, ConnectionError) as error:
        print(f"grpc_client: {error}", file=sys.stderr)
        return 1
    values = {name: as_json(outputs[name]) for name in sorted(outputs)}
    print(json.dumps(values, ensure_ascii=False))
    return 0


if __name__ == "__main__":
    sys.exit(main())
