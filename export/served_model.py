"""The model inside an export: one function that all signatures call, its weights frozen or not.

The weights are stored in the precision the model computes in, so that no call has to convert them.
A frozen model needs no variables: its weights are constants, which the kernels of some CPUs lay out
once instead of on every call.
"""

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Literal

import keras
import numpy as np
import tensorflow as tf

from bert_tf.compat import APART_ATTRIBUTES
from bert_tf.encoder.config import POLICIES
from bert_tf.errors import UserError
from bert_tf.export.fused_norms import can_fuse_norms, fuse_norms
from bert_tf.export.integer_products import REQUIREMENT, integer_products, use_integers
from bert_tf.export.litert.form import Row
from bert_tf.export.precision import copied, in_precision, with_encoder
from bert_tf.export.sharded import can_shard, sharded
from bert_tf.text.parts import shared

# Where an export computes.
Device = Literal["cpu", "any"]

# A graph is one protobuf message of at most 2 GiB; the tokenizer's tables need some of that.
_MOST_BYTES = 2**31 - 2**26


@dataclasses.dataclass(frozen=True)
class Form:
    """How an export computes; the precision None is that of the model.

    `calibration` decides the ranges of "int8" (`bert_tf.export.integer_products`). With `freeze`
    the weights become constants of the graph. The device "cpu" has the form that is fastest there
    (`bert_tf.export.fused_norms`, `bert_tf.export.sharded`); with "any" the caller chooses one.
    """

    precision: str | None = None
    freeze: bool = False
    device: Device = "cpu"
    calibration: Sequence[Row] | None = None

    def applied(self, model: keras.Model) -> keras.Model:
        """A model in this form, or the model itself if it is in this form already."""
        if self.precision == "int8":
            return self._of_integers(model)
        if self.calibration is not None:
            raise UserError("calibration is for precision int8; remove it, or choose int8")
        served = in_precision(model, self.precision)
        if self.device != "cpu" or not can_fuse_norms(getattr(served, "encoder", served)):
            return served
        if served is model:
            served = copied(model, model.dtype_policy)
        return _divided(served)

    def _of_integers(self, model: keras.Model) -> keras.Model:
        if self.freeze or self.device != "cpu":
            raise UserError(
                "precision int8 is for the CPU and stores its weights as variables; remove freeze "
                "and device"
            )
        if self.calibration is None:
            raise UserError(
                "precision int8 of a SavedModel requires texts to compute value ranges; give a few "
                "hundred as calibration"
            )
        served = copied(model, POLICIES["float32"])
        if not can_fuse_norms(getattr(served, "encoder", served)):
            raise UserError("precision int8 is for BERT's own blocks; choose another precision")
        served = _divided(served)
        use_integers(getattr(served, "encoder", served), self.calibration)
        return served


def _divided(model: keras.Model) -> keras.Model:
    """A model that nothing else uses, with fused norms, and in shards if possible."""
    encoder = getattr(model, "encoder", model)
    fuse_norms(encoder)
    return with_encoder(model, sharded(encoder)) if can_shard(encoder.config) else model


class SharedModel:
    """Wraps a model so that a graph holds it only once, however many signatures call it."""

    reads_rows: ClassVar[bool] = False

    def __init__(self, model: keras.Model):
        self._model = model

    @functools.cached_property
    def _forward(self) -> Callable[[Any], Any]:
        return self.function(functools.partial(self._model, training=False))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)

    def __call__(self, inputs: Any, training: bool = False) -> Any:
        return self._forward(inputs)

    def function(self, compute: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """`compute`, which uses parts of this object, as one function of the graph."""
        return shared(compute)


class ServedModel(SharedModel):
    """A model as the services of an export use it, in the form that they compute in."""

    def __init__(self, model: keras.Model, form: Form | None = None):
        self._form = form or Form()
        self._device = "/device:CPU:0" if self._form.device == "cpu" else None
        super().__init__(self._form.applied(model))
        # The scope in which the model reads its weights.
        self._weights = _Constants(self._model) if self._form.freeze else _Stored(self._model)

    @property
    def variables(self) -> list[tf.Variable]:
        return self._weights.variables

    def facts(self) -> dict[str, Any]:
        return model_facts(self._model, self._form)

    def function(self, compute: Callable[[Any], Any]) -> Callable[[Any], Any]:
        if isinstance(self._weights, _Constants):
            self._weights.readers += 1

        def computed(inputs: Any) -> Any:
            with self._weights, tf.device(self._device):
                return compute(inputs)

        # Without these attributes TensorFlow would copy the function, with its frozen weights, into
        # each of its callers.
        return shared(computed, experimental_attributes=APART_ATTRIBUTES)


class _Stored(keras.StatelessScope):
    """Within this scope matrices are variables, in the dtype that the model computes in.

    Vectors are constants, as TensorFlow's optimizer recognizes a LayerNorm only with constants.
    Matrices are variables, since a process that loads a graph copies its constants several times.
    """

    def __init__(self, model: keras.Model):
        super().__init__(initialize_variables=False)
        self.variables: list[tf.Variable] = []
        self._values: dict[int, Callable[[], tf.Tensor]] = {}
        is_stored_so = model.compute_dtype == model.variable_dtype
        integers = integer_products(getattr(model, "encoder", model))
        for weight in model.weights:
            if weight.ndim < 2:
                self._values[id(weight)] = functools.partial(tf.constant, weight.numpy())
                continue
            if product := integers.get(id(weight)):
                matrix = product.kernel
            elif is_stored_so:
                matrix = weight.value
            else:
                matrix = tf.Variable(_for_serving(weight, model.compute_dtype), trainable=False)
            self.variables.append(matrix)
            self._values[id(weight)] = matrix.read_value

    def get_current_value(self, variable: keras.Variable) -> tf.Tensor | None:
        value = self._values.get(id(variable))
        return value and value()


class _Constants(keras.StatelessScope):
    """Within this scope Keras's variables have constant values.

    For several `readers`, which are counted before any is traced, each matrix is the result of a
    function of its own, so that the file holds it once. TensorFlow dissolves these functions when
    it loads the graph.
    """

    def __init__(self, model: keras.Model):
        super().__init__(initialize_variables=False)
        arrays = {id(weight): _for_serving(weight, model.compute_dtype) for weight in model.weights}
        size = sum(array.nbytes for array in arrays.values())
        if size > _MOST_BYTES:
            raise UserError(
                f"the weights have {size / 1e9:.1f} GB, but a frozen graph holds at most 2 GB; "
                "freeze in bfloat16, or do not freeze"
            )
        self.variables: list[tf.Variable] = []
        self.readers = 0
        self._constants = {key: functools.partial(tf.constant, a) for key, a in arrays.items()}
        self._functions = {
            key: tf.function(constant, autograph=False) for key, constant in self._constants.items()
        }

    def get_current_value(self, variable: keras.Variable) -> tf.Tensor | None:
        if id(variable) not in self._functions:
            return None
        if self.readers == 1 or variable.ndim < 2:  # a vector needs no function
            return self._constants[id(variable)]()
        return self._functions[id(variable)].get_concrete_function()()


def model_facts(model: keras.Model, form: Form) -> dict[str, Any]:
    """What a model card says of a model that is served in a form."""
    encoder = getattr(model, "encoder", model)
    facts = {
        "class": type(model).__name__,
        "parameters": model.count_params(),
        "precision": form.precision or model.compute_dtype,
        "frozen": form.freeze,
        "device": "CPU" if form.device == "cpu" else form.device,
        "encoder": encoder.config.to_dict(),
    }
    return facts | {"requires": REQUIREMENT} if form.precision == "int8" else facts


def _for_serving(weight: keras.Variable, dtype: str) -> np.ndarray:
    """A weight as it is stored: matrices in the compute dtype, vectors, which are small, as is."""
    array = weight.numpy()
    return array.astype(tf.as_dtype(dtype).as_numpy_dtype) if array.ndim > 1 else array
