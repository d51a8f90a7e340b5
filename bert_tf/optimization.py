"""BERT's Adam and learning rate, LAMB for batches of thousands of sequences, and the clipping of
the summed gradient, which optimizers of other packages get too.

Sources: `AdamWeightDecayOptimizer` and `create_optimizer` in google-research/bert
`optimization.py`, an Adam with decoupled weight decay and without bias correction. With the
correction it is the AdamW of Loshchilov & Hutter 2019 (algorithm 2), and PyTorch's. LAMB is
algorithm 2 of You et al. 2020, "Large Batch Optimization for Deep Learning: Training BERT in 76
minutes".
"""

import functools
import math
import re
from collections import UserDict
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import keras
import tensorflow as tf

from bert_tf.compat import Gradients, UpdatesTogether
from bert_tf.config.arguments import checked
from bert_tf.config.imported import Imported
from bert_tf.config.train import TrainConfig
from bert_tf.errors import UserError

Scalars = TypeVar("Scalars")

# Weights whose path matches one of these do not decay.
NO_DECAY = (r"layer_norm\w*/\w+$", r"bias$")
# Options of Keras's optimizers that runs do not support, or replace by their own settings.
_NOT_IN_RUNS = "clipnorm global_clipnorm clipvalue gradient_accumulation_steps use_ema".split()


@keras.saving.register_keras_serializable("bert_tf")
class WarmupLinearDecay(keras.optimizers.schedules.LearningRateSchedule):
    """peak * step / warmup_steps during warm-up, then peak * (1 - step / total_steps).

    Both lines start at step 0, so the rate falls by peak * warmup_steps / total_steps where they
    meet, as in google-research/bert `optimization.py`. With `decay_after_warmup` the second line
    starts at the end of the first, as in transformers' `get_linear_schedule_with_warmup`, and the
    rate is peak * (total_steps - step) / (total_steps - warmup_steps). After `total_steps` it is 0.

    Args:
        peak: the highest learning rate.
        total_steps: number of updates in the whole training.
        warmup_steps: number of updates of warm-up; may be 0.
        decay_after_warmup: whether the decay begins where the warm-up ends.

    Raises:
        UserError: `total_steps` is below 1, or `warmup_steps` is not between 0 and `total_steps`.

    >>> rate = WarmupLinearDecay(1e-4, total_steps=100, warmup_steps=10)
    >>> [round(float(rate(step)), 7) for step in (0, 5, 10, 55, 100)]
    [0.0, 5e-05, 9e-05, 4.5e-05, 0.0]
    """

    @checked
    def __init__(
        self, peak: float, total_steps: int, warmup_steps: int = 0, decay_after_warmup: bool = False
    ):
        if warmup_steps > total_steps:
            raise UserError(
                f"warmup_steps must be between 0 and total_steps ({total_steps}), not "
                f"{warmup_steps}"
            )
        self.peak = peak
        self.total_steps = total_steps
        self.warmup_steps = warmup_steps
        self.decay_after_warmup = decay_after_warmup

    def __call__(self, step: tf.Tensor) -> tf.Tensor:
        """Step number, an integer scalar -> float64 scalar, which optimizers cast as they need."""
        step = tf.cast(step, tf.float64)
        begin = self.warmup_steps if self.decay_after_warmup else 0
        decay_steps = max(self.total_steps - begin, 1)
        rate = self.peak * (1.0 - tf.minimum((step - begin) / decay_steps, 1.0))
        if self.warmup_steps:
            warming = self.peak * step / self.warmup_steps
            rate = tf.where(step < self.warmup_steps, warming, rate)
        return rate

    def get_config(self) -> dict[str, Any]:
        return {
            "peak": self.peak,
            "total_steps": self.total_steps,
            "warmup_steps": self.warmup_steps,
            "decay_after_warmup": self.decay_after_warmup,
        }


class ClippedOptimizer(UpdatesTogether):
    """Clips by global norm. `update_step` of a subclass or of another base updates each weight.

    Under `tf.distribute` the norm is that of the gradient summed over all replicas. Gradients of
    embedding rows are summed into the whole table, so that moments and decay change every row in
    every step.
    """

    clip_norm: float | None = None  # the greatest norm
    # Whether `update_step` skips gradients that are not finite; all their elements become NaN.
    skip_nonfinite: bool = False

    def build(self, variables: Sequence[keras.Variable]) -> None:
        if self.built:
            return
        super().build(variables)
        # The number of updates since `build` with a gradient that was not finite. Not a Keras
        # variable, so checkpoints do not hold it.
        self.nonfinite = tf.Variable(
            0,
            trainable=False,
            dtype=tf.int32,
            aggregation=tf.VariableAggregation.ONLY_FIRST_REPLICA,
            name="nonfinite",
        )

    def update_all(
        self, gradients: Gradients, variables: Sequence[tf.Variable], learning_rate: tf.Tensor
    ) -> None:
        """Sums over replicas, clips the sum, and updates every variable on every replica."""
        grads = [
            tf.cast(tf.convert_to_tensor(grad), variable.dtype)
            for grad, variable in zip(gradients, variables, strict=True)
        ]
        context = tf.distribute.get_replica_context()
        if context is not None and context.num_replicas_in_sync > 1:
            grads = context.all_reduce(tf.distribute.ReduceOp.SUM, grads)
        norm = tf.linalg.global_norm(grads)
        finite = tf.math.is_finite(norm)
        self.nonfinite.assign_add(tf.cast(~finite, tf.int32))
        if self.clip_norm is not None:
            # Short gradients are not multiplied, which saves time. The comparison is false if the
            # norm is NaN; clipping then makes all elements NaN.
            grads = tf.cond(
                norm <= self.clip_norm,
                lambda: [tf.identity(grad) for grad in grads],
                lambda: tf.clip_by_global_norm(grads, self.clip_norm, norm)[0],
            )
        elif self.skip_nonfinite:
            nothing = tf.where(finite, 0.0, math.nan)
            grads = [grad + tf.cast(nothing, grad.dtype) for grad in grads]
        self.update_on_every_replica(grads, variables, learning_rate)


class OtherOptimizer(ClippedOptimizer):
    """Clips for an optimizer of another package, the other base class. Weights decay as in BERT."""

    def build(self, variables: Sequence[keras.Variable]) -> None:
        if self.weight_decay and not self.built:
            without = [each for each in variables if re.search("|".join(NO_DECAY), _path(each))]
            self.exclude_from_weight_decay(without)
        super().build(variables)

    def state(self, names: Mapping[int, str]) -> dict[str, keras.Variable]:
        """All variables of the built optimizer, by numbers."""
        del names  # which weight a variable belongs to is not known
        return {str(number): variable for number, variable in enumerate(self.variables)}

    def update_all(
        self, gradients: Gradients, variables: Sequence[tf.Variable], learning_rate: tf.Tensor
    ) -> None:
        # Not all optimizers cast the rate.
        super().update_all(gradients, variables, tf.cast(learning_rate, tf.float32))


class BertOptimizer(ClippedOptimizer):
    """Clips by global norm, then updates each weight from its first and second moments.

    Args:
        learning_rate: a number or a schedule such as `WarmupLinearDecay`.
        weight_decay: decay rate.
        beta_1: decay of the first moment.
        beta_2: decay of the second moment.
        epsilon: added to the root of the second moment.
        clip_norm: greatest global norm of the gradient; None does not clip.
        exclude_from_weight_decay: regular expressions; a weight whose path (for example
            "layer_0/attention/output/bias") matches one does not decay.
        rate_factors: regular expression -> factor of the learning rate of weights whose path
            matches. The first that matches counts.
        skip_nonfinite: skip an update whose gradient has an element that is not finite; the
            schedule and the count of updates go on.
    """

    @checked
    def __init__(
        self,
        learning_rate: float | keras.optimizers.schedules.LearningRateSchedule,
        weight_decay: float = 0.01,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float = 1e-6,
        clip_norm: float | None = 1.0,
        exclude_from_weight_decay: Sequence[str] = NO_DECAY,
        rate_factors: Mapping[str, float] | None = None,
        skip_nonfinite: bool = False,
        **kwargs: Any,
    ):
        super().__init__(learning_rate=learning_rate, **kwargs)
        # Keras itself would apply an attribute named `weight_decay`.
        self.decay_rate = weight_decay
        self.beta_1 = beta_1
        self.beta_2 = beta_2
        self.epsilon = epsilon
        self.clip_norm = clip_norm
        self.excluded = tuple(exclude_from_weight_decay)
        self.rate_factors = dict(rate_factors or {})
        self.skip_nonfinite = skip_nonfinite
        # The results that `once` keeps during an update. Keras would track those in a plain dict.
        self._scalars: UserDict[Hashable, Any] = UserDict()

    def build(self, variables: Sequence[keras.Variable]) -> None:
        if self.built:
            return
        super().build(variables)
        kinds = ["momentum", "velocity"]
        self._momentums, self._velocities = self.add_optimizer_variables(variables, kinds)
        self._weight_ids = [id(variable) for variable in variables]
        paths = [_path(variable) for variable in variables]
        excluded = [any(re.search(each, path) for each in self.excluded) for path in paths]
        self._decays = [None if each else self.decay_rate for each in excluded]
        factors = self.rate_factors.items()
        self._factors = [
            next((factor for pattern, factor in factors if re.search(pattern, path)), 1.0)
            for path in paths
        ]

    def state(self, names: Mapping[int, str]) -> dict[str, keras.Variable]:
        """All variables of the built optimizer, by names that do not depend on their order.

        `names` has the name of each trained weight by its id. Its moments are "momentum/NAME" and
        "velocity/NAME"; all other variables keep their own names, such as "iteration".
        """
        found = {}
        for kind, moments in (("momentum", self._momentums), ("velocity", self._velocities)):
            for weight, moment in zip(self._weight_ids, moments, strict=True):
                found[f"{kind}/{names[weight]}"] = moment
        moments = {id(moment) for moment in found.values()}
        return found | {each.name: each for each in self.variables if id(each) not in moments}

    def exclude_from_weight_decay(
        self,
        var_list: Sequence[keras.Variable] | None = None,
        var_names: Sequence[str] | None = None,
    ) -> None:
        """Keras's own way to exclude weights before `build`; names are regular expressions."""
        super().exclude_from_weight_decay(var_list, var_names)
        paths = (f"^{re.escape(_path(variable))}$" for variable in var_list or ())
        self.excluded = (*self.excluded, *paths, *(var_names or ()))

    def update_all(
        self, gradients: Gradients, variables: Sequence[tf.Variable], learning_rate: tf.Tensor
    ) -> None:
        self._scalars.clear()
        super().update_all(gradients, variables, learning_rate)
        self._scalars.clear()

    def once(self, key: Hashable, make: Callable[[], Scalars]) -> Scalars:
        """The result of `make`, computed once per update: a graph has it once for all weights."""
        if key not in self._scalars:
            self._scalars[key] = make()
        return self._scalars[key]

    def step(self, w: tf.Variable, m: tf.Tensor, v: tf.Tensor, decay: float | None) -> tf.Tensor:
        """The change of a weight before multiplication by the rate; `decay` None is no decay."""
        raise NotImplementedError

    def update_step(
        self, gradient: tf.Tensor, variable: tf.Variable, learning_rate: tf.Tensor
    ) -> None:
        index = self.index_of(variable)
        momentum, velocity = self._momentums[index].value, self._velocities[index].value

        def unless_skipped(new: tf.Tensor, old: tf.Tensor | tf.Variable) -> tf.Tensor:
            # A gradient to be skipped has NaN in all elements.
            return tf.where(tf.math.is_nan(gradient), old, new) if self.skip_nonfinite else new

        new = self.beta_1 * momentum + (1.0 - self.beta_1) * gradient
        momentum.assign(unless_skipped(new, momentum))
        new = self.beta_2 * velocity + (1.0 - self.beta_2) * tf.square(gradient)
        velocity.assign(unless_skipped(new, velocity))
        rate = tf.cast(learning_rate, variable.dtype) * self._factors[index]
        change = rate * self.step(variable, momentum, velocity, self._decays[index])
        variable.assign_sub(unless_skipped(change, tf.zeros([], change.dtype)))

    def _biases(self, dtype: tf.DType) -> tuple[tf.Tensor, tf.Tensor]:
        """1 - b1^t and 1 - b2^t: the factors by which moments that start at 0 are too small."""

        def biases() -> tuple[tf.Tensor, tf.Tensor]:
            # In float64, since float32 has only five correct digits of 1 - 0.999.
            count = tf.cast(self.iterations + 1, tf.float64)
            return tuple(tf.cast(1.0 - beta**count, dtype) for beta in (self.beta_1, self.beta_2))

        return self.once(("biases", dtype), biases)

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | {
            "weight_decay": self.decay_rate,
            "beta_1": self.beta_1,
            "beta_2": self.beta_2,
            "epsilon": self.epsilon,
            "clip_norm": self.clip_norm,
            "exclude_from_weight_decay": list(self.excluded),
            "rate_factors": self.rate_factors,
            "skip_nonfinite": self.skip_nonfinite,
        }


def _path(variable: keras.Variable) -> str:
    return getattr(variable, "path", variable.name)


class _Numbers(NamedTuple):
    """Scalars of an update. They keep the rate `given` alive, whose id is part of their key."""

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
        """m / (sqrt(v) + eps) + decay w, for updates that `ResourceApplyAdam` cannot do."""
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
    A weight that is excluded from the decay, or one of norm zero, is not rescaled. All others are,
    even with a decay rate of 0. Query, key and value of a layer are one weight here and share
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


def values_of(settings: TrainConfig, total_steps: int) -> dict[str, Any]:
    """The value of each `$name` in the arguments of `Imported`."""
    return {
        "learning_rate": settings.learning_rate,
        "total_steps": total_steps,
        "warmup_steps": round(total_steps * settings.warmup_fraction),
    }


def make_optimizer(
    settings: TrainConfig, total_steps: int, rate_factors: Mapping[str, float] | None = None
) -> ClippedOptimizer:
    """The optimizer of a run of `total_steps` updates, with BERT's schedule or that of the run."""
    values = values_of(settings, total_steps)
    schedule = WarmupLinearDecay(
        settings.learning_rate, total_steps, values["warmup_steps"], settings.decay_after_warmup
    )
    for each in settings.named["schedule"]:
        schedule = each.make(keras.optimizers.schedules.LearningRateSchedule, values)
    for each in settings.named["optimizer"]:
        optimizer = each.make(keras.optimizers.Optimizer, values, learning_rate=schedule)
        return _clipped(each, optimizer, settings.gradient_clip)
    make: Callable[..., BertOptimizer] = LAMB
    if settings.optimizer == "adamw":
        make = functools.partial(AdamW, bias_correction=settings.bias_correction)
    return make(
        schedule,
        epsilon=settings.adam_epsilon,
        weight_decay=settings.weight_decay,
        clip_norm=settings.gradient_clip,
        rate_factors=rate_factors,
        skip_nonfinite=settings.skip_nonfinite,
    )


def _clipped(named: Imported, optimizer: Any, clip_norm: float | None) -> ClippedOptimizer:
    """An optimizer of another package that clips as ours do."""
    for option in _NOT_IN_RUNS:
        if getattr(optimizer, option, None):
            raise UserError(
                f"{named.place}: {named.name} has {option}, which runs do not support; remove it, "
                "or see train.gradient_clip and train.accumulation_steps"
            )
    kind = type(optimizer)
    # Files name the class without the clipping, so that Keras finds it.
    names = {"__module__": kind.__module__, "__qualname__": kind.__qualname__}
    optimizer.__class__ = type(kind.__name__, (OtherOptimizer, kind), names)
    optimizer.clip_norm = clip_norm
    return optimizer
