"""BERT's Adam, and LAMB for batches of thousands of sequences.

Sources: `AdamWeightDecayOptimizer` and `create_optimizer` in google-research/bert
`optimization.py`, an Adam with decoupled weight decay and without bias correction. With the
correction it is the AdamW of Loshchilov & Hutter 2019 (algorithm 2), and PyTorch's. LAMB is
algorithm 2 of You et al. 2020, "Large Batch Optimization for Deep Learning: Training BERT in 76
minutes".
"""

import math
from typing import Any, NamedTuple

import keras
import tensorflow as tf

from bert_tf.optimization.base import BertOptimizer


class _Numbers(NamedTuple):
    """Scalars of an update. They keep the rate `given`, whose id stands for it meanwhile."""

    given: tf.Tensor
    rate: tf.Tensor
    scaled_rate: tf.Tensor
    beta_1: tf.Tensor
    beta_2: tf.Tensor
    epsilon: tf.Tensor
    no_power: tf.Tensor


@keras.saving.register_keras_serializable("bert_tf")
class AdamW(BertOptimizer):
    """m = b1 m + (1-b1) g; v = b2 v + (1-b2) g^2; w -= lr (m / (sqrt(v) + eps) + decay w).

    The moments start at zero. Without a correction, the first updates are larger: 3.6 times after
    80 updates, 1.4 times after 800. With it, m is divided by 1 - b1^t, and v by 1 - b2^t.

    Args:
        *arguments: see `BertOptimizer`.
        bias_correction: whether the moments are corrected in update t, counted from 1.
        **options: see `BertOptimizer`.

    >>> import keras
    >>> weight = keras.Variable([1.0, -1.0], name="kernel")
    >>> optimizer = AdamW(0.1, weight_decay=0.0, bias_correction=True)
    >>> optimizer.apply([tf.constant([0.3, -0.2])], [weight])
    >>> print(weight.numpy().round(4))
    [ 0.9 -0.9]
    """

    def __init__(self, *arguments: Any, bias_correction: bool = False, **options: Any):
        super().__init__(*arguments, **options)
        self.bias_correction = bias_correction

    def step(self, w: tf.Variable, m: tf.Tensor, v: tf.Tensor, decay: float | None) -> tf.Tensor:
        """m / (sqrt(v) + eps) + decay w, for updates that the one operation cannot do."""
        if self.bias_correction:
            first, second = self._biases(w.dtype)
            m, v = m / first, v / second
        step = m / (tf.sqrt(v) + self.epsilon)
        return step + decay * w if decay else step

    def update_step(
        self, gradient: tf.Tensor, variable: tf.Variable, learning_rate: tf.Tensor
    ) -> None:
        # `step` computes updates that may be skipped, and those of bfloat16, which cannot hold
        # 1 - 0.999.
        if self.skip_nonfinite or variable.dtype.size < 4:
            super().update_step(gradient, variable, learning_rate)
            return
        index, dtype = self.index_of(variable), variable.dtype
        factor, decay = self._factors[index], self._decays[index]
        numbers = self.once(
            (id(learning_rate), dtype, factor), lambda: self._numbers(learning_rate, dtype, factor)
        )
        if decay:
            shrunk = self.once((id(numbers), decay), lambda: numbers.rate * decay)
            # First `w -= lr decay w`, then the rest: the same except for one rounding. Without the
            # dependency, TensorFlow computes all these products, which are as large as the weights,
            # at the beginning of a step.
            with tf.control_dependencies([gradient]):
                variable.assign_sub(shrunk * variable)
        # Given the powers of beta, the operation would correct the rate, but not epsilon.
        tf.raw_ops.ResourceApplyAdam(
            var=variable.handle,
            m=self._momentums[index].value.handle,
            v=self._velocities[index].value.handle,
            beta1_power=numbers.no_power,
            beta2_power=numbers.no_power,
            lr=numbers.scaled_rate,
            beta1=numbers.beta_1,
            beta2=numbers.beta_2,
            epsilon=numbers.epsilon,
            grad=gradient,
        )

    def _numbers(self, learning_rate: tf.Tensor, dtype: tf.DType, factor: float) -> _Numbers:
        """The arguments of the operation for all weights with a dtype and a factor of the rate."""
        rate = tf.cast(learning_rate, dtype) * factor
        # The operation computes 1 - beta in float32; for 0.999 the result is off by 1.3e-5. That
        # scales both moments, and a scaled rate and epsilon compensate for it.
        number = dtype.as_numpy_dtype
        first, second = (
            float(number(1) - number(beta)) / (1.0 - beta) for beta in (self.beta_1, self.beta_2)
        )
        scaled, epsilon = rate * (math.sqrt(second) / first), self.epsilon * math.sqrt(second)
        if self.bias_correction:
            lacking_1, lacking_2 = self._biases(dtype)
            scaled, epsilon = scaled * tf.sqrt(lacking_2) / lacking_1, epsilon * tf.sqrt(lacking_2)
        return _Numbers(
            learning_rate,
            rate,
            scaled,
            tf.constant(self.beta_1, dtype),
            tf.constant(self.beta_2, dtype),
            tf.convert_to_tensor(epsilon, dtype),
            tf.zeros([], dtype),
        )

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | {"bias_correction": self.bias_correction}


@keras.saving.register_keras_serializable("bert_tf")
class LAMB(BertOptimizer):
    """Adam's step with bias correction and decay, rescaled to the norm of each weight.

    `r = m / (1 - b1^t) / (sqrt(v / (1 - b2^t)) + eps)`, `u = r + decay w`, `w -= lr |w| / |u| u`.
    A weight that is excluded from the decay, or one of norm zero, is not rescaled; with a decay
    rate of 0 the others still are. Query, key and value of a layer are one weight here and share
    one ratio.

    >>> import keras
    >>> weight = keras.Variable([3.0, 4.0], name="kernel")
    >>> optimizer = LAMB(0.1, weight_decay=0.0)
    >>> optimizer.apply([tf.constant([0.2, 0.2])], [weight])
    >>> print(weight.numpy().round(4))  # a step of 0.1 times the norm of the weight, 5
    [2.6464 3.6464]
    """

    def step(self, w: tf.Variable, m: tf.Tensor, v: tf.Tensor, decay: float | None) -> tf.Tensor:
        """|w| / |u| u; r if the weight does not decay."""
        first, second = self._biases(w.dtype)
        step = m / first / (tf.sqrt(v / second) + self.epsilon)
        if decay is None:
            return step
        step += decay * w
        ratio = tf.math.divide_no_nan(tf.norm(w), tf.norm(step))
        return tf.where(ratio > 0.0, ratio, 1.0) * step
