"""Writing a service as a SavedModel folder."""

import tempfile
from collections.abc import Mapping
from pathlib import Path

import tensorflow as tf

from bert_tf.asking.saved_model import register_ops
from bert_tf.export import model_card, optimizing
from bert_tf.export.model_card import Origin
from bert_tf.export.service import Service, Signature, Tensors, endpoint, traced

# Where TensorFlow Serving looks for requests that it sends before it takes those of others.
_WARMUP_FILE = "tf_serving_warmup_requests"


def write(service: Service, folder: Path, origin: Origin) -> None:
    """Writes the SavedModel `folder`, which must not exist: signatures, attributes, assets, extras.

    The written model is loaded again and run on the signatures' examples; the model card holds its
    answers. The caller makes the folder appear atomically.

    Args:
        service: what is served.
        folder: where.
        origin: what the model card is to say about the model.
    """
    signatures = service.signatures()
    functions = {name: traced(signature) for name, signature in signatures.items()}
    serve = endpoint(functions["serving_default"], signatures["serving_default"])
    attributes = {"serve": serve} | service.attributes()
    with tempfile.TemporaryDirectory() as texts:
        attributes |= _assets(service, Path(texts))
        root = tf.train.Checkpoint(**attributes)
        options = tf.saved_model.SaveOptions(experimental_custom_gradients=service.trains)
        tf.saved_model.save(root, str(folder), signatures=functions, options=options)
    optimizing.spare(folder, service.trains)
    answers = _ask(folder, signatures)
    extra = folder / "assets.extra"
    extra.mkdir()
    _write_warmup(extra / _WARMUP_FILE, signatures)
    model_card.write(extra, model_card.describe(service, signatures, answers, origin))


def _assets(service: Service, folder: Path) -> dict[str, tf.saved_model.Asset]:
    """The service's assets, written to `folder`, under such names as `vocab_file`.

    As objects of the SavedModel they stay with it where it is loaded and saved again.
    """
    for name, text in service.assets().items():
        (folder / name).write_text(text, encoding="utf-8", newline="\n")
    return {f"{each.stem}_file": tf.saved_model.Asset(str(each)) for each in folder.iterdir()}


def _ask(folder: Path, signatures: Mapping[str, Signature]) -> dict[str, Tensors]:
    """What the SavedModel answers to each signature's example."""
    register_ops()
    loaded = tf.saved_model.load(str(folder))
    return {
        name: loaded.signatures[name](**signature.example_tensors())
        for name, signature in signatures.items()
    }


def _write_warmup(path: Path, signatures: Mapping[str, Signature]) -> None:
    """Writes one PredictionLog record for each signature: its example."""
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
