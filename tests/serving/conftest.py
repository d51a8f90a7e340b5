"""Small exports to serve, and stand-ins for the server with its two interfaces."""

import http.server
import json
import re
import threading
from concurrent import futures
from pathlib import Path

import grpc
import keras
import pytest
import tensorflow as tf
from tensorflow_serving.apis import predict_pb2, prediction_service_pb2_grpc

from bert_tf import MultipleChoice, TextClassifier
from bert_tf.encoder.encoder import Encoder
from bert_tf.errors import UserError
from serving import bodies
from tests import tiny

_PATH = re.compile(r"/v1/models/(\w+)(?:/(versions|labels)/(\w+))?:predict")
_VERSIONS = {(None, None), ("versions", "1"), ("labels", "stable")}


@pytest.fixture(scope="session")
def exports(tmp_path_factory) -> dict[str, Path]:
    """Name -> SavedModel."""
    keras.utils.set_random_seed(3)
    tokenizer = tiny.tokenizer()
    config = tiny.encoder_config(num_hidden_layers=1)
    folder = tmp_path_factory.mktemp("served")
    models = {
        "reviews": TextClassifier(Encoder(config), tokenizer, [0, 1]),
        "endings": MultipleChoice(Encoder(config), tokenizer),
    }
    for name, model in models.items():
        model.export(folder / name, version=1)
    return {name: folder / name / "1" for name in models}


@pytest.fixture(scope="session")
def signatures(exports):
    """Name -> the signatures of the loaded SavedModel."""
    loaded = {name: tf.saved_model.load(folder) for name, folder in exports.items()}
    # A signature keeps its variables only through the loaded object.
    yield {name: each.signatures for name, each in loaded.items()}


@pytest.fixture(scope="session")
def rest_url(signatures):
    """Where a server answers as TensorFlow Serving's REST interface does."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            path = _PATH.fullmatch(self.path)
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if path is None or path[1] not in signatures:
                return self._send(404, {"error": f"no model at {self.path}"})
            if (path[2], path[3]) not in _VERSIONS:
                return self._send(404, {"error": f"no version {path[3]}"})
            try:
                self._send(200, bodies.answer(signatures[path[1]], json.loads(body)))
            except (UserError, ValueError) as error:
                self._send(400, {"error": str(error)})

        def _send(self, code: int, body: dict) -> None:
            data = json.dumps(body).encode()
            self.send_response(code)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *arguments) -> None:
            """Tests are silent."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="session")
def grpc_address(signatures):
    """Where a server answers as TensorFlow Serving's gRPC interface does."""

    class Service(prediction_service_pb2_grpc.PredictionServiceServicer):
        def Predict(self, request, context):
            spec = request.model_spec
            which = spec.version_label or spec.version.value
            if spec.name not in signatures or which not in ("", 0, 1, "stable"):
                context.abort(grpc.StatusCode.NOT_FOUND, f"no servable {spec.name} {which}")
            signature = signatures[spec.name].get(spec.signature_name)
            inputs = {key: tf.make_ndarray(each) for key, each in request.inputs.items()}
            if signature is None or inputs.keys() != signature.structured_input_signature[1].keys():
                context.abort(grpc.StatusCode.INVALID_ARGUMENT, "not what the signature takes")
            outputs = signature(**{key: tf.constant(each) for key, each in inputs.items()})
            response = predict_pb2.PredictResponse()
            for key, value in outputs.items():
                response.outputs[key].CopyFrom(tf.make_tensor_proto(value))
            return response

    server = grpc.server(
        futures.ThreadPoolExecutor(2), options=[("grpc.max_receive_message_length", -1)]
    )
    prediction_service_pb2_grpc.add_PredictionServiceServicer_to_server(Service(), server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    yield f"127.0.0.1:{port}"
    server.stop(None)
