"""Writing models, and other services, as SavedModels."""

import contextlib
import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import keras
import tensorflow as tf

from bert_tf.asking.record import RECORD_FILE, to_json
from bert_tf.asking.saved_model import NETWORK, register_ops
from bert_tf.compat import NO_INLINE, SavedModel, write_fingerprint
from bert_tf.config.arguments import checked_argument
from bert_tf.encoder.encoder import Encoder
from bert_tf.errors import UserError
from bert_tf.export import INPUTS, LITERT, ONNX, SAVED_MODEL, Inputs, hub, model_card
from bert_tf.export.litert.form import LiteForm
from bert_tf.export.litert.saving import save_lite
from bert_tf.export.model_card import Origin
from bert_tf.export.onnx_file import save_onnx
from bert_tf.export.precision import in_precision
from bert_tf.export.served_model import Form, ServedModel
from bert_tf.export.service import Service, Signature, endpoint, record_of, traced
from bert_tf.io.atomic import atomic_path
from bert_tf.io.remote import exists, local_path
from bert_tf.tasks import registry
from bert_tf.text import Tokenizer


class TaskService(Service):
    """A task model as it is served, with its own signatures of "strings" or of "ids"."""

    def __init__(self, model: Any, network: ServedModel, inputs: Inputs):
        super().__init__(model.tokenizer, model.labels)
        self._network, served = network, model.with_network(network)
        self._functions = model.exported_functions()
        all_of_them = served.ids_signatures() if inputs == "ids" else served.signatures()
        if inner := all_of_them.get(NETWORK):
            self._functions |= {NETWORK: endpoint(traced(inner), inner)}
        self._signatures = {name: s for name, s in all_of_them.items() if not s.is_inner}
        self._record = record_of(model, [model.max_length], inputs, network.facts()["precision"])
        family = registry.family_of(self._record.class_name)
        self.task = family.name if family else None

    def facts(self) -> dict[str, Any]:
        return self._network.facts() | self._record.model["settings"]

    def assets(self) -> dict[str, str]:
        record = to_json(self._record.to_dict()) + "\n"
        return super().assets() | {RECORD_FILE: record}

    def signatures(self) -> dict[str, Signature]:
        return self._signatures

    def attributes(self) -> dict[str, Any]:
        return {"weights": self._network.variables} | self._functions


def save_model(
    model: Any,
    out: str | os.PathLike,
    format: str = SAVED_MODEL,
    inputs: Inputs | None = None,
    form: Form | None = None,
    version: int | None = None,
    lengths: Sequence[int] | None = None,
) -> Path:
    """Writes a task model in a format, as `TaskModel.export` describes; returns its place."""
    inputs, form = inputs or INPUTS[format], form or Form()
    if format == LITERT:
        lite = LiteForm(form.precision or "float32", lengths, inputs, form.calibration)
        return save_lite(model, out, lite)
    if format == ONNX:
        return save_onnx(model, out, inputs, form.precision)
    services = {"": TaskService(model, ServedModel(model, form), inputs)}
    return save(services, out, version, model.origin)


def save_hub(
    model: keras.Model,
    tokenizer: Tokenizer,
    out: str | os.PathLike,
    form: Form | None = None,
    version: int | None = None,
    origin: Origin | None = None,
    max_length: int | None = None,
) -> Path:
    """Writes an encoder and its preprocessor as SavedModels in the form of TF Hub."""
    form = form or Form()
    encoder = getattr(model, "encoder", model)
    if not isinstance(encoder, Encoder):
        raise UserError(f"a {type(model).__name__} has no encoder; give a bert_tf model")
    # Otherwise texts would become ids or rows that the model has no embeddings for.
    encoder.config.check_vocabulary(tokenizer.vocab_size)
    encoder.config.check_length("max_length", max_length or 0)
    if form.freeze:
        raise UserError(
            "--freeze is not for --kind hub, whose encoder must stay trainable; remove it"
        )
    if not hasattr(model, "masked_lm"):
        model = encoder
    length = max_length or min(hub.LENGTH, encoder.config.max_position_embeddings)
    preprocessor = hub.HubPreprocessor(tokenizer, length)
    served = hub.HubEncoder(in_precision(model, form.precision), tokenizer)
    return save({"preprocessor": preprocessor, "encoder": served}, out, version, origin)


def save(
    services: Mapping[str, Service],
    out: str | os.PathLike,
    version: int | None = None,
    origin: Origin | None = None,
) -> Path:
    """Writes each service into the folder of `out` with its name ("" is `out`); all or none."""
    checked_argument("version", version)
    folder = local_path(out)
    for name in services:
        # Path.exists raises an error for a name that is too long; writing there explains it.
        if exists(place := _place(folder, name, version)):
            raise UserError(f"{place} exists already; remove it or choose another folder")
        if exists(whole := _place(folder, name, None) / "saved_model.pb"):
            raise UserError(
                f"{whole.parent} is an export without versions; choose another folder for exports "
                "with versions"
            )
    # Neither folder of a pair appears before both are written.
    with contextlib.ExitStack() as stack:
        for name, service in services.items():
            new = stack.enter_context(atomic_path(_place(folder, name, version), is_new=True))
            _write(service, new, origin or Origin())
    return _place(folder, "", version) if "" in services else folder


def _place(out: Path, name: str, version: int | None) -> Path:
    """Where a SavedModel goes. A version is a last folder of its own, as servers expect."""
    return out / name / ("" if version is None else str(version))


def _write(service: Service, folder: Path, origin: Origin) -> None:
    """Writes the new SavedModel `folder`: signatures, attributes, assets, extras.

    It is loaded again and run on the signatures' examples; the model card holds its answers.
    """
    from tensorflow_serving.apis import prediction_log_pb2

    signatures = service.signatures()
    functions = {name: traced(signature) for name, signature in signatures.items()}
    serve = endpoint(functions["serving_default"], signatures["serving_default"])
    attributes = {"serve": serve} | service.attributes()
    with tempfile.TemporaryDirectory() as texts:
        # As objects of the SavedModel, assets stay with it where it is loaded and saved again.
        for name, text in service.assets().items():
            path = Path(texts, name)
            path.write_text(text, encoding="utf-8", newline="\n")
            attributes[f"{path.stem}_file"] = tf.saved_model.Asset(str(path))
        root = tf.train.Checkpoint(**attributes)
        options = tf.saved_model.SaveOptions(experimental_custom_gradients=service.trains)
        tf.saved_model.save(root, str(folder), signatures=functions, options=options)
    _spare_optimizing(folder, service.trains)
    register_ops()
    loaded = tf.saved_model.load(str(folder))
    answers = {
        name: loaded.signatures[name](**signature.example_tensors())
        for name, signature in signatures.items()
    }
    extra = folder / "assets.extra"
    extra.mkdir()
    # TensorFlow Serving sends these requests to a model before it accepts those of others.
    with tf.io.TFRecordWriter(str(extra / "tf_serving_warmup_requests")) as records:
        for name, signature in signatures.items():
            log = prediction_log_pb2.PredictionLog()
            log.predict_log.request.model_spec.signature_name = name
            for key, value in signature.example_tensors().items():
                log.predict_log.request.inputs[key].CopyFrom(tf.make_tensor_proto(value))
            records.write(log.SerializeToString())
    model_card.write(extra, model_card.describe(service, signatures, answers, origin))


def _spare_optimizing(folder: Path, trains: bool) -> None:
    """Changes a SavedModel so that its functions with `APART_ATTRIBUTES` load in less time.

    A process that loads a graph optimizes each function twice: with its caller, and again when it
    is called itself. Every pass of TensorFlow's graph optimizer copies the function, with frozen
    weights if there are any. The passes that look for memory to save, and those that go through
    MLIR, find nothing in a model and take most of the time, so they are left out. The other passes
    need two rounds: the tanh form of GELU becomes part of its product only in the second.

    If nothing trains, operations also lose the names of their custom gradients. These gradients
    were not saved, so TensorFlow would not find them.
    """
    path = folder / "saved_model.pb"
    saved = SavedModel.FromString(path.read_bytes())
    config = tf.compat.v1.ConfigProto(allow_soft_placement=True)
    rewriting = config.graph_options.rewrite_options
    rewriting.memory_optimization = rewriting.NO_MEM_OPT
    rewriting.disable_tfg_optimizer = True
    rewriting.meta_optimizer_iterations = rewriting.TWO
    options = config.SerializeToString(deterministic=True)
    library = saved.meta_graphs[0].graph_def.library
    apart = {each.signature.name for each in library.function if NO_INLINE in each.attr}
    for function in library.function:
        for node in function.node_def:
            if not trains:
                node.attr.pop("_gradient_op_type", None)
            # Looking an attribute up would add it.
            if "f" in node.attr and node.attr["f"].func.name in apart:
                node.attr["config_proto"].s = options
    path.write_bytes(saved.SerializeToString(deterministic=True))
    # The fingerprint that TensorFlow wrote is that of the file before the change.
    write_fingerprint(str(folder))
