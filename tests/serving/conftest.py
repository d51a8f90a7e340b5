"""Small exports to serve, the server with its REST interface, and a stand-in with that of gRPC."""

from concurrent import futures
from pathlib import Path

import grpc
import keras
import pytest
import tensorflow as tf
from tensorflow_serving.apis import predict_pb2, prediction_service_pb2_grpc

from bert_tf import MultipleChoice, TextClassifier
from bert_tf.asking.saved_model import SavedModel
from bert_tf.console import news
from bert_tf.encoder.encoder import Encoder
from bert_tf.serve.app import Server
from bert_tf.serve.models import Source
from tests import tiny
from tests.serve.served import running


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
def models(exports):
    """Name -> the export as `bodies` calls it."""
    return {name: SavedModel.load(folder) for name, folder in exports.items()}


@pytest.fixture(scope="module")
def rest_url(exports):
    """Where `bert-tf serve` answers as TensorFlow Serving's REST interface does."""
    labels = {"stable": 1}
    found = [Source(name, str(folder), labels=labels) for name, folder in exports.items()]
    server = Server(found)
    server.models.load()
    with news(shown=False), running(server) as url:
        yield url
    server.close()


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
