"""Every private symbol of TensorFlow, Keras and TensorFlow Text that bert_tf uses.

Each appears here once, with its reason and the public behaviour that it replaces. If a symbol is
gone, its use raises an AttributeError or an ImportError. `tests/test_compat.py` also fails if Keras
no longer calls a method that is overridden here.
"""

import contextlib
import functools
import logging
import re
import warnings
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import keras
import tensorflow as tf
from keras.src.backend.common import global_state
from tensorflow.core.protobuf.saved_model_pb2 import SavedModel as SavedModel
from tensorflow.core.protobuf.trackable_object_graph_pb2 import (
    TrackableObjectGraph as TrackableObjectGraph,
)
from tensorflow.lite.python.convert import ConverterError as LiteConverterError
from tensorflow.lite.python.convert import mlir_quantize
from tensorflow.lite.python.interpreter import InterpreterWithCustomOps
from tensorflow.python.eager.record import stop_recording as stop_recording
from tensorflow.python.framework import ops
from tensorflow.python.framework.func_graph import FuncGraph
from tensorflow.python.saved_model.fingerprinting_utils import (
    write_fingerprint as write_fingerprint,
)

from bert_tf.console import without_native_messages

# The two message types above describe files: `saved_model.pb`, and the object graph in a
# TensorFlow checkpoint. TensorFlow has no public names for them.

# Attributes of functions in a graph. The first keeps a function apart from its callers. With
# both, the function is optimized only when it is called itself
# (grappler/optimizers/meta_optimizer.cc). TensorFlow has no public API for that.
NO_INLINE = "_noinline"
APART_ATTRIBUTES = {NO_INLINE: True, "_tf_data_function": True}


def operations_without_lite(error: LiteConverterError) -> list[str]:
    """The operations that LiteRT lacks, from the error of a failed conversion. The class of the
    error and its list are not public in TensorFlow; only the message is.
    """
    return sorted({each.operator.name for each in error.errors if each.operator.name})


def unresolved_operation(error: Exception) -> str | None:
    """The operation that an interpreter has no kernel for, by its error; None for other errors."""
    found = re.search(r"unresolved custom op: ([\w>]+)", str(error))
    return found and found[1]


def in_safe_mode() -> bool | None:
    """Whether Keras is loading a file in safe mode; None if it is not loading one. Keras gives a
    layer's `from_config` no such argument.
    """
    from keras.src.saving import serialization_lib

    return serialization_lib.in_safe_mode()


def put_variable(holder: keras.Variable, variable: tf.Variable) -> None:
    """Puts `variable` into a Keras variable, in place of the one that it holds. Keras accepts a
    `tf.Variable` only when it creates its own, and its optimizers know a variable by its identity.
    """
    variable.assign(holder.value)
    variable._unique_id = holder.value._unique_id
    holder._value = variable


@contextlib.contextmanager
def without_values() -> Iterator[None]:
    """In this scope variables are made without values. Keras keeps a list of such variables, and
    would give them values at the end of the next stateless scope; here the list forgets them.
    """
    waiting = [*global_state.get_global_attribute("uninitialized_variables", [])]
    try:
        with keras.StatelessScope(initialize_variables=False):
            yield
    finally:
        global_state.set_global_attribute("uninitialized_variables", waiting)


def quantized_with_ranges(converter: tf.lite.TFLiteConverter, in_float: Sequence[str]) -> bytes:
    """An int8 LiteRT file with fixed ranges; operations that `in_float` names stay in float. The
    public converter quantizes all or none; its debugger fails where an operation is never reached.
    """
    converter._experimental_calibrate_only = True
    return mlir_quantize(converter.convert(), denylisted_ops=set(in_float))


@contextlib.contextmanager
def without_interpreter_notice() -> Iterator[None]:
    """Drops TensorFlow's notice that its interpreter of LiteRT files moves to another package."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "[^.]*tf.lite.Interpreter is deprecated")
        yield


@contextlib.contextmanager
def without_retracing_notice() -> Iterator[None]:
    """Drops TensorFlow's advice not to retrace functions of Keras's trainer. Each model has such
    functions; TensorFlow counts those of all models together, and has no public setting for that.
    """

    def is_no_such_notice(record: logging.LogRecord) -> bool:
        text = record.getMessage()
        return not ("triggered tf.function retracing" in text and "TensorFlowTrainer." in text)

    tensorflow = tf.get_logger()
    tensorflow.addFilter(is_no_such_notice)
    try:
        yield
    finally:
        tensorflow.removeFilter(is_no_such_notice)


def lite_interpreter(model: bytes, threads: int, with_text: bool) -> InterpreterWithCustomOps:
    """TensorFlow's interpreter of LiteRT files; the public class takes no operations of tf-text."""
    registerers = None
    if with_text:
        import tensorflow_text

        registerers = tensorflow_text.tflite_registrar.SELECT_TFTEXT_OPS
    with without_interpreter_notice(), without_native_messages():
        interpreter = InterpreterWithCustomOps(
            custom_op_registerers=registerers, model_content=model, num_threads=threads
        )
        interpreter.allocate_tensors()  # prints native messages
    return interpreter


Layer = TypeVar("Layer", bound=keras.Layer)
Gradients = Sequence[tf.Tensor | tf.IndexedSlices]


class UpdatesTogether(keras.optimizers.Optimizer):
    """An optimizer that is given all gradients of a step at once. Keras calls `update_step` for one
    variable at a time, and clips before the gradients of the replicas are summed. BERT clips the
    norm of the sum, which requires all gradients.
    """

    def _backend_update_step(
        self,
        grads: Gradients,
        trainable_variables: Sequence[keras.Variable],
        learning_rate: tf.Tensor,
    ) -> None:
        variables = [getattr(variable, "value", variable) for variable in trainable_variables]
        self.update_all(grads, variables, learning_rate)

    def update_all(
        self, gradients: Gradients, variables: Sequence[tf.Variable], learning_rate: tf.Tensor
    ) -> None:
        """Updates all variables from this replica's gradients."""
        raise NotImplementedError

    def update_on_every_replica(
        self,
        gradients: Sequence[tf.Tensor],
        variables: Sequence[tf.Variable],
        learning_rate: tf.Tensor,
    ) -> None:
        """Calls `update_step` for each variable, on every replica that has it. TensorFlow has no
        public call for this that works inside and outside of a replica.
        """
        tf.__internal__.distribute.interim.maybe_merge_call(
            self._distributed_tf_update_step,
            self._distribution_strategy,
            list(zip(gradients, variables, strict=True)),
            learning_rate,
        )

    def index_of(self, variable: tf.Variable) -> int:
        """The number of a variable, or of a replica's part of it, among those of the optimizer."""
        return self._get_variable_index(variable)


def extensible(cls: type[Layer]) -> type[Layer]:
    """`cls`, whose layers may get more sublayers after they are built. Keras locks built layers.
    Models of bert_tf are built in the constructor, and a subclass adds its layers after that.
    """
    cls._lock_state = lambda self: None
    return cls


# The import fails if Keras has renamed an overridden method; the override would be ignored.
_OVERRIDDEN = (
    (keras.optimizers.Optimizer, "_backend_update_step"),
    (keras.Layer, "_lock_state"),
    (keras.Model, "_maybe_symbolic_build"),
)
for _class, _name in _OVERRIDDEN:
    if not hasattr(_class, _name):
        raise ImportError(
            f"Keras {keras.__version__} has no {_class.__name__}.{_name}, which bert_tf overrides; "
            "install a version that bert_tf's requirements allow"
        )


def layers_below(layer: keras.Layer, recursive: bool = True) -> list[keras.Layer]:
    """The layers inside a layer; only models have a public attribute for that."""
    return list(layer._flatten_layers(include_self=False, recursive=recursive))


def prepare_fit(
    model: keras.Model, strategy: tf.distribute.Strategy, spec: Callable[[], Any]
) -> None:
    """Makes Keras's `fit`, `evaluate` and `predict_on_batch` work for `model` on many devices.

    Keras 3.15 needs this in three places, unless the strategy uses one device. Before training,
    Keras averages a batch over the devices and builds the model from it; this fails if the devices
    are in several processes, so the model is built here. Keras reports the metrics of each
    process separately, and assumes that all parts have the same weight; so metrics are read outside
    of the devices, where their sums cover all devices. For `predict_on_batch`, every device
    computes the whole batch, and all results are returned; so here one device computes it. Remove
    this function when Keras does all this itself (github.com/keras-team/keras, issue 20585).
    `spec` gives the form (inputs, targets) of a batch.
    """
    if is_default_strategy(strategy):
        return

    def zeros(form: tf.TensorSpec) -> tf.Tensor:
        return tf.zeros([size or 1 for size in form.shape], form.dtype)

    with strategy.scope():
        model._symbolic_build(data_batch=(*tf.nest.map_structure(zeros, spec()), None))
    model._maybe_symbolic_build = lambda **_: None

    def steps_of(step: Callable) -> Callable:
        @tf.function(reduce_retracing=True)
        def one(batches: tf.data.Iterator) -> dict[str, tf.Tensor]:
            strategy.run(step, args=(next(batches),))
            return model.get_metrics_result()

        return one

    @tf.function(reduce_retracing=True)
    def predict(data: list[tuple]) -> Any:
        ((inputs,),) = data
        return model(inputs, training=False)

    model.train_function = steps_of(model.train_step)
    model.test_function = steps_of(model.test_step)
    model.predict_function = predict
    # Otherwise `fit`, `evaluate` and `predict_on_batch` would make their own functions.
    for name in ("train", "test", "predict"):
        setattr(model, f"make_{name}_function", lambda force=False: None)


def is_default_strategy(strategy: tf.distribute.Strategy) -> bool:
    """Whether this is TensorFlow's strategy for one device, with which `fit` works unchanged."""
    return not isinstance(
        strategy,
        tf.distribute.MirroredStrategy
        | tf.distribute.MultiWorkerMirroredStrategy
        | tf.distribute.TPUStrategy,
    )


def custom_gradient(function: Callable[..., tuple]) -> Callable[..., Any]:
    """`tf.custom_gradient` of a function of tensors, without the entries it leaves in the process.

    In a graph, each call registers its gradient under a new name, for ever
    (tensorflow/python/ops/custom_gradient.py, `_graph_mode_decorator`). The gradient holds tensors,
    the tensors hold their graph, and a training step's graph holds the model with its moments. Here
    the graph holds the gradient, and the name is removed with the graph.
    """
    decorated = tf.custom_gradient(function)

    @functools.wraps(function)
    def call(*tensors: Any) -> Any:
        result = decorated(*tensors)
        if tf.executing_eagerly():
            return result
        operation = tf.nest.flatten(result)[0].op
        name = operation.get_attr("_gradient_op_type").decode()
        entry = ops.gradient_registry._registry[name]
        held: Callable[[], Any] = weakref.ref(entry["type"])
        _kept_by_graphs("_gradients_of_bert_tf", entry["type"])
        entry["type"] = lambda *upstream: held()(*upstream)
        weakref.finalize(operation.graph, ops.gradient_registry._registry.pop, name, None)
        return result

    return call


def numpy_function(
    function: Callable[..., Any],
    inputs: Sequence[tf.Tensor],
    types: tf.DType | Sequence[tf.DType],
    stateful: bool = True,
) -> Any:
    """`tf.numpy_function` in a graph, with a function that lives as long as the graph. TensorFlow
    ties the function, and all data that it uses, to the outermost graph, which is that of the
    thread and never ends (tensorflow/python/ops/script_ops.py, `_internal_py_func`).
    """
    outputs = tf.numpy_function(function, inputs, types, stateful=stateful)
    graphs = _graphs()
    if graphs[:-1]:
        _kept_by_graphs(_FUNCTIONS, getattr(graphs[-1], _FUNCTIONS).pop())
    return outputs


_FUNCTIONS = "_py_funcs_used_in_graph"


def _graphs() -> list[tf.Graph]:
    """The graph that is being built, and those around it; the last one is that of the thread."""
    graphs = [ops.get_default_graph()]
    while isinstance(graphs[-1], FuncGraph):
        graphs.append(graphs[-1].outer_graph)
    return graphs


def _kept_by_graphs(name: str, held: object) -> None:
    """Adds `held` to the list `name`, an attribute of each function graph that is being built."""
    for graph in _graphs()[:-1]:
        setattr(graph, name, [*getattr(graph, name, ()), held])


def wordpiece_model(tokenizer: Any) -> Any:
    """The bytes that a `FastWordpieceTokenizer` made of its vocabulary, for use in any graph."""
    return tokenizer._model.numpy()
