"""A form of the encoder for CPUs in which the matrix products of its blocks are of 8-bit integers.

oneDNN computes such a product, its bias, GELU and the rounding of the result in one operation of
TensorFlow, `_QuantizedMatMul` (core/kernels/mkl/mkl_qmatmul_op.cc), which only builds for x86
processors have. Weights are scaled by the largest number of each output column, and a product's
input by one fixed range, chosen from texts. A shard of a block rounds three times: before its two
products of attention, and before the feed-forward layer, whose first product rounds its own result
for the second. The rest, with the sums before each LayerNorm, is in float32.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from bert_tf.console import Progress, logger
from bert_tf.encoder.attention import SelfAttention
from bert_tf.encoder.encoder import INPUTS, Encoder, TransformerBlock
from bert_tf.encoder.layers import Linear
from bert_tf.export.calibration import MOST_ROWS
from bert_tf.export.litert.form import Row
from bert_tf.export.sharded import ShardedBlock

# What the model card of such an export says.
REQUIREMENT = (
    "the operation _QuantizedMatMul of oneDNN, which TensorFlow's builds for x86 processors have; "
    "other builds do not load the model: Op type not registered '_QuantizedMatMul'"
)
# A product stays in float32 if integers change its result by more than this share.
_MOST_ERROR = 0.05
# The tokens by which ranges are chosen and the rows of their batches; then the candidates that are
# tried: shares of the largest number, and exponents of `_balance`.
_TOKENS, _BATCH = 1024, 16
_SHARES = (1.0, 0.8, 0.6, 0.45, 0.3, 0.2)
_EXPONENTS = (0.5, 0.75, 0.9, 1.0)
# The largest integers of an input, and of a kernel. Processors without VNNI add pairs of products
# in 16 bits. There, oneDNN's sums of large numbers are wrong if kernels go up to 127.
_LARGEST, _LARGEST_OF_KERNEL = 127, 64
# The operations that are fused with the product, by the name of the activation.
_FUSED = {None: [], "gelu": ["GeluExact"], "gelu_new": ["GeluApproximate"], "relu": ["Relu"]}


class IntegerProduct:
    """The `call` of a `Linear` that computes in integers, in a graph.

    The input is divided by `divisors`, float32 [input_size], and cut at `bound`; the kernel is
    multiplied by `divisors`. If `following` is set, it alone takes the result, as integers.
    """

    def __init__(self, linear: Linear, bound: float, divisors: np.ndarray | None = None):
        self._linear, self._bound = linear, np.float32(bound)
        self._factors = None if divisors is None else 1 / divisors
        exact = linear.kernel.numpy()
        exact = exact if divisors is None else exact * divisors[:, None]
        steps, kernel = _rounded_columns(exact)
        # The operation takes the number of each column that the integer 127 stands for.
        self._of_columns = steps * _LARGEST
        self.kernel = tf.Variable(kernel, trainable=False)
        self.following: IntegerProduct | None = None

    def __call__(self, tokens: tf.Tensor, training: bool = False) -> tf.Tensor:
        """[tokens, input_size], float32 or int8 -> [tokens, units], float32 or int8."""
        fused = _FUSED.get(self._linear.activation)
        following = None if fused is None else self.following
        given = [
            self._integers(tokens),
            tf.bitcast(self.kernel, tf.qint8),
            tf.convert_to_tensor(self._linear.bias),
            *map(tf.constant, (-self._bound, self._bound, -self._of_columns, self._of_columns)),
        ]
        if following is not None:
            given += map(tf.constant, (-following._bound, following._bound))
        result = "Dequantize" if following is None else "Requantize"
        operations = ["BiasAdd", *(fused or []), result]
        products = _quantized_matmul(given, operations)
        products.set_shape([None, self._linear.units])
        if following is not None:
            return tf.bitcast(products, tf.int8)
        return products if fused is not None else self._linear._activate(products)

    def _integers(self, tokens: tf.Tensor) -> tf.Tensor:
        if tokens.dtype == tf.int8:
            return tf.bitcast(tokens, tf.qint8)
        if self._factors is not None:
            tokens *= self._factors
        return tf.raw_ops.QuantizeV2(
            input=tokens,
            min_range=-self._bound,
            max_range=self._bound,
            T=tf.qint8,
            mode="SCALED",
            narrow_range=True,
            round_mode="HALF_TO_EVEN",
        ).output


def use_integers(encoder: Encoder, rows: Sequence[Row]) -> None:
    """Changes products of an encoder's blocks to integers, permanently, if their error is small.

    The encoder is in float32 and has BERT's blocks, whole or in shards. Nothing else uses it.
    """
    inputs, exact = _inputs_of_products(encoder, rows), []
    products: dict[int, IntegerProduct] = {}
    with Progress("choosing ranges", len(inputs), unit="products") as progress:
        linears = [(shard, linear) for shard in _shards(encoder) for linear in shard.linears]
        for done, (shard, linear) in enumerate(linears, start=1):
            kernel, tokens = linear.kernel.numpy(), inputs[id(linear)]
            bound, error = _best_bound(kernel, tokens)
            divisors = None
            # The product before this one rounds for it only if nothing is divided in between.
            follows = linear is shard.down and id(shard.up) in products
            for exponent in () if follows and error <= _MOST_ERROR else _EXPONENTS:
                balance = _balance(kernel, tokens, exponent)
                found, its_error = _best_bound(kernel * balance[:, None], tokens / balance)
                if its_error < error:
                    bound, error, divisors = found, its_error, balance
            if error > _MOST_ERROR:
                exact.append(linear.path)
            else:
                product = products[id(linear)] = IntegerProduct(linear, bound, divisors)
                linear.__dict__["call"] = product
                if follows and divisors is None:
                    products[id(shard.up)].following = product
            progress.update(done, line=True)
    if exact:
        logger.info(f"int8: {len(exact)} products stay in float32: {', '.join(exact)}")


def integer_products(encoder: Encoder) -> dict[int, IntegerProduct]:
    """The products in integers by the ids of the kernels that they replace; {} in other forms."""
    return {
        id(linear.kernel): product
        for shard in _shards(encoder)
        for linear in shard.linears
        if isinstance(product := linear.__dict__.get("call"), IntegerProduct)
    }


class _Shard(NamedTuple):
    """The layers of a block, or of one of its shards, that multiply by weights."""

    attention: SelfAttention
    up: Linear
    down: Linear

    @property
    def linears(self) -> tuple[Linear, ...]:
        attention = self.attention
        return attention.query_key_value, attention.output_projection, self.up, self.down


def _shards(encoder: Encoder) -> Iterator[_Shard]:
    """The shards of all blocks whose products can be integers."""
    for tower in encoder.towers().values():
        for block in tower.blocks:
            if isinstance(block, TransformerBlock):
                yield _Shard(block.attention, block.intermediate, block.output_projection)
            elif isinstance(block, ShardedBlock):
                each = block.attentions, block.intermediates, block.output_projections
                yield from map(_Shard, *each)


def _inputs_of_products(encoder: Encoder, rows: Sequence[Row]) -> dict[int, np.ndarray]:
    """Some inputs of each `Linear` of the blocks, float32 [tokens, input_size], by its id."""
    linears = [linear for shard in _shards(encoder) for linear in shard.linears]
    found: dict[int, list[np.ndarray]] = {id(linear): [] for linear in linears}
    chosen = sorted(rows[:MOST_ROWS], key=lambda row: len(row[INPUTS[0]]))
    batches = [chosen[i : i + _BATCH] for i in range(0, len(chosen), _BATCH)]
    source, kept = np.random.default_rng(0), -(-_TOKENS // len(batches))

    def recording(linear: Linear) -> Any:
        def call(tokens: tf.Tensor, training: bool = False) -> tf.Tensor:
            numbers = tokens.numpy()
            places = source.permutation(len(numbers))[:kept]
            found[id(linear)].append(numbers[places])
            return type(linear).call(linear, tokens)

        return call

    for linear in linears:
        linear.__dict__["call"] = recording(linear)
    try:
        for batch in batches:
            longest = len(batch[-1][INPUTS[0]])
            padded = {
                name: [np.pad(row[name], (0, longest - len(row[name]))) for row in batch]
                for name in INPUTS
            }
            encoder.encode({name: tf.constant(rows) for name, rows in padded.items()})
    finally:
        for linear in linears:
            del linear.__dict__["call"]
    return {key: np.concatenate(each) for key, each in found.items()}


def _balance(kernel: np.ndarray, tokens: np.ndarray, exponent: float) -> np.ndarray:
    """Divisors of an input's columns, which move part of large numbers into the kernel's rows.

    As SmoothQuant (Xiao et al. 2023, equation 4): a column of LayerNorm's output may have numbers
    many times as large as other columns, for which one common range leaves few integers.
    """
    of_tokens = np.maximum(np.abs(tokens).max(axis=0), 1e-5)
    of_kernel = np.maximum(np.abs(kernel).max(axis=1), 1e-5)
    return of_tokens**exponent / of_kernel ** (1 - exponent)


def _best_bound(kernel: np.ndarray, tokens: np.ndarray) -> tuple[float, float]:
    """The range with the least error of the product of tokens [tokens, n], and this error.

    The error is the root mean square, over tokens, of its share of the exact result.
    """
    steps, rounded = _rounded_columns(kernel)
    kernel_of_integers = rounded * steps
    exact = tokens @ kernel
    # Each token counts the same: a few with large numbers would hide the error of the others.
    scale = np.maximum(np.square(exact).sum(axis=1), 1e-30)
    most = max(float(np.abs(tokens).max()), 1e-6)

    def error(bound: float) -> float:
        step = bound / _LARGEST
        integers = np.clip(np.round(tokens / step), -_LARGEST, _LARGEST)
        squares = np.square((integers * step) @ kernel_of_integers - exact).sum(axis=1)
        return float((squares / scale).mean()) ** 0.5

    errors = {share * most: error(share * most) for share in _SHARES}
    return min(errors.items(), key=lambda each: each[1])


def _rounded_columns(kernel: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The step of each column, float32 [units], and the integers, int8 [input_size, units]."""
    steps = np.maximum(np.abs(kernel).max(axis=0), 1e-12) / _LARGEST_OF_KERNEL
    return steps.astype(np.float32), np.round(kernel / steps).astype(np.int8)


def _quantized_matmul(given: Sequence[tf.Tensor], fused: Sequence[str]) -> tf.Tensor:
    """The internal operation, for which TensorFlow has no function in Python."""
    attribute = tf.compat.v1.AttrValue

    def types(*dtypes: tf.DType) -> Any:
        numbers = [each.as_datatype_enum for each in dtypes]
        return attribute(list=attribute.ListValue(type=numbers))

    result = tf.float32 if fused[-1] == "Dequantize" else tf.qint8
    outputs = [result] if result == tf.float32 else [result, tf.float32, tf.float32]
    names = [name.encode() for name in fused]
    attributes = {
        "Tdevice_inputs": types(*(each.dtype for each in given)),
        "Thost_inputs": types(),
        "Tdevice_outputs": types(*outputs),
        "Thost_outputs": types(),
        "is_weight_const": attribute(b=True),
        "is_bias_const": attribute(b=True),
        "fused_ops": attribute(list=attribute.ListValue(s=names)),
        "input_quant_mode": attribute(s=b"SCALED"),
        "output_quant_mode": attribute(s=b"SCALED"),
    }
    dtypes = {"T1": tf.qint8, "T2": tf.qint8, "Tbias": tf.float32, "Tout": result, "U": tf.float32}
    for name, dtype in dtypes.items():
        attributes[name] = attribute(type=dtype.as_datatype_enum)
    graph = tf.compat.v1.get_default_graph()
    made = graph.create_op(
        "_QuantizedMatMul", [*given], outputs, attrs=attributes, name="integer_product"
    )
    return made.outputs[0]
