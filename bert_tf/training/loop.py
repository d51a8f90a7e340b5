"""The training loop: one update, what follows each update of a run, and a run from start to end.
The functions at the end sum over parts of a batch, so that an update takes less memory.

Keras's `fit` is the only loop. It gives every device its rows of a batch and calls `train_step` of
`EncoderModel`, which is `update`. `train` calls `fit` with `AfterUpdate` for each phase of a run.
"""

import contextlib
import dataclasses
import functools
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import keras
import tensorflow as tf

from bert_tf.compat import prepare_fit
from bert_tf.config.train import TrainConfig
from bert_tf.console import Progress, logger
from bert_tf.errors import UserError
from bert_tf.training.callbacks import Callbacks, Named, OthersFailed
from bert_tf.training.checkpointing import Checkpoints
from bert_tf.training.distributed import Cluster
from bert_tf.training.evaluations import Evaluations, Metrics, in_words
from bert_tf.training.nonfinite import NonFinite
from bert_tf.training.preemption import Preemption
from bert_tf.training.strategies import divided
from bert_tf.training.tensorboard import Scalars

# The gradient of each weight, and the loss, of a batch or of a part of it.
Gradients = tuple[list[tf.Tensor], tf.Tensor]


def update(model: Any, data: Any) -> dict[str, tf.Tensor]:
    """Updates the weights from one batch, of which each device has some rows; returns metrics."""
    batch = keras.utils.unpack_x_y_sample_weight(data)
    sums = batch_sums(model, batch[1])  # over all devices; losses are divided by them
    weights = [weight.value for weight in model.trainable_weights]

    def gradients_of(rows: Any) -> Gradients:
        x, y, sample_weight = rows
        teaching = model.teaching
        taught = None if teaching is None else teaching.answers(x)  # before the tape: no gradient

        def of_targets(y_pred: Any) -> tf.Tensor:
            return model.share_of_loss(x, y, y_pred, sample_weight, sums, training=True)

        with tf.GradientTape() as tape:
            if teaching is None:
                y_pred = model(x, training=True)
                loss = of_targets(y_pred)
            else:
                y_pred, loss = teaching.train(model, x, y, taught, of_targets, sums)
            scaled = model.optimizer.scale_loss(loss)
        if teaching is None or teaching.has_metrics:
            model.compute_metrics(x, y, y_pred, sample_weight=sample_weight)
        # Not every loss of a teacher reaches every weight; the parts of a batch need all gradients.
        missing = "none" if teaching is None else "zero"
        return tape.gradient(scaled, weights, unconnected_gradients=missing), loss

    gradients, loss = model.accumulated(gradients_of, batch, weights)
    # Sums the gradients over the devices, clips the sum, counts it if it is not finite, and moves
    # the weights: `BertOptimizer.update_all`.
    model.optimizer.apply_gradients(zip(gradients, model.trainable_weights, strict=True))
    record_loss(model, loss, sums)
    return model.get_metrics_result()


def batch_sums(model: Any, y: Any) -> dict[str, tf.Tensor]:
    """The divisors of a batch's loss: `rows` and others, float32 sums over all replicas."""
    sums = model.replica_sums(y)
    context = tf.distribute.get_replica_context()
    if context is not None and context.num_replicas_in_sync > 1:
        sums = context.all_reduce(tf.distribute.ReduceOp.SUM, sums)
    return sums


def record_loss(model: Any, loss: tf.Tensor, sums: Mapping[str, tf.Tensor]) -> None:
    """Adds this replica's share of a batch's loss to the mean that Keras reports."""
    replicas = tf.distribute.get_strategy().num_replicas_in_sync
    mean_loss(model).update_state(loss * replicas, sample_weight=sums["rows"] / replicas)


def mean_loss(model: keras.Model) -> keras.metrics.Mean:
    """The mean of the loss that Keras reports: the first metric that is named "loss"."""
    return next(metric for metric in model.metrics if metric.name == "loss")


@dataclasses.dataclass(eq=False)
class AfterUpdate(keras.callbacks.Callback):
    """What follows each update of a run: check, log, evaluate, save, stop. The curves of training
    are means since the last line of the log; in pre-training, an evaluation also starts new means.
    """

    settings: TrainConfig
    step: int  # updates that are done; at first, those of earlier sessions
    total: int
    nonfinite: NonFinite
    progress: Progress
    checkpoints: Checkpoints
    evaluations: Evaluations
    preemption: Preemption
    callbacks: Callbacks
    curves: Scalars
    dev_curves: Scalars
    updated: float | None = None  # the time of the last update, by `time.monotonic`

    def __post_init__(self) -> None:
        super().__init__()
        self._saved = time.monotonic()

    def begin(self, phase: "Phase", evaluate: Callable[[], Metrics | None]) -> None:
        """Begins a phase, with the evaluation that SIGTERM has cut short, if there is one."""
        self._phase, self._evaluate = phase, evaluate
        if self._evaluate_if_due() or self.preemption.asked:
            self.checkpoints.save(self.model, self.step, self.evaluations)
        self.preemption.end_if_asked(self.step)

    def on_train_begin(self, logs: Metrics | None = None) -> None:
        self.nonfinite.begin(self.model)

    def on_train_batch_begin(self, batch: int, logs: Metrics | None = None) -> None:
        self.callbacks.batch_begin(self.step)

    def on_train_batch_end(self, batch: int, logs: Metrics | None = None) -> None:
        self.step += 1
        self.updated = time.monotonic()
        self.nonfinite.check(self.model, self.step, logs or {}, self._phase.batches_from)
        means = {name: float(value) for name, value in (logs or {}).items()}
        self.callbacks.batch_end(self.model, self.step, means)
        self._log(means)
        self._evaluate_if_due()
        if self._is_save_due():
            self.checkpoints.save(self.model, self.step, self.evaluations)
            self._saved = time.monotonic()
        self.preemption.end_if_asked(self.step)
        if self.evaluations.over:
            self.model.stop_training = True

    def _log(self, means: dict[str, float]) -> None:
        line = self.step == self.total or self.step % self.settings.log_steps == 0
        self.progress.update(self.step, means, line=line)
        if line:
            rate = float(self.model.optimizer.learning_rate)
            self.curves.write(self.step, means | {"learning_rate": rate})
            self.model.reset_metrics()

    def _evaluate_if_due(self) -> bool:
        """Evaluates if that is due and the process need not end now; returns whether it did."""
        self.preemption.look()
        if self.preemption.asked or not self.evaluations.due(self.step, self.total):
            return False
        if self.step:
            self.callbacks.call("on_test_begin", {})
        metrics = self._evaluate()
        self.preemption.look()
        if metrics is None:
            return False
        self.evaluations.add(self.step, metrics)
        self.dev_curves.write(self.step, metrics)
        logger.info(f"step {self.step}: " + in_words(metrics))
        if self.step:
            self.callbacks.epoch_end(self.model, self.step, metrics)
        return True

    def _is_save_due(self) -> bool:
        evaluations, minutes = self.evaluations, self.settings.checkpoint_minutes
        return bool(
            self.step == self.total
            or self.step % self.settings.checkpoint_steps == 0
            or (minutes is not None and time.monotonic() - self._saved >= 60 * minutes)
            or evaluations.over
            or (evaluations.keep_best and evaluations.is_best(self.step))
            or self.preemption.asked
        )


@dataclasses.dataclass(frozen=True)
class Phase:
    """A part of a run whose batches all have one form."""

    end: int  # how many updates of the run are done when the phase is over
    # Given (update, part, parts), an endless dataset of (inputs, targets) that begins with that
    # update of the run; of every batch it has the rows `part::parts`.
    batches_from: Callable[[int, int, int], tf.data.Dataset]
    evaluate: Callable[[], Metrics]  # dev metrics of the model as it is
    tokens: float  # average tokens of a batch, without padding
    together: bool = False  # whether all processes of a cluster evaluate, or the chief alone


def train(
    folder: Path,
    settings: TrainConfig,
    model: keras.Model,
    checkpoints: Checkpoints,
    phases: Sequence[Phase],
    evaluations: Evaluations,
    cluster: Cluster,
    callbacks: Named = (),
) -> float | None:
    """Trains the compiled `model` from the newest checkpoint to the end of the last phase.

    `model` was compiled in the scope of the cluster's strategy. `evaluations` gets all results.
    Afterwards the chief's model has the weights that the run ends with. All processes call the
    `callbacks`; if one of these or a metric fails, the last update is saved. Returns the time of
    the last update, by `time.monotonic`; None if all updates were done before.
    """
    total = phases[-1].end
    # If variables are created while Keras traces the step, Keras traces it twice.
    with cluster.strategy.scope():
        model.optimizer.build(model.trainable_variables)
    prepare_fit(model, cluster.strategy, lambda: phases[0].batches_from(0, 0, 1).element_spec)
    step = checkpoints.restore(model, evaluations)
    if cluster.from_chief(lambda: step) != step:
        raise UserError(
            f"this worker and the chief find different checkpoints in {checkpoints.folder}; put "
            "that folder on a file system that all workers share"
        )
    if 0 < step < total and not evaluations.over:
        logger.info(f"resuming {folder} at step {step} of {total}")
    logs = folder / "logs" if cluster.chief else None
    nonfinite = NonFinite(total, folder if cluster.chief else None, settings.skip_nonfinite)
    shown = step < total and not evaluations.over
    with (
        Progress("training", total, step, "tokens", _tokens(phases), shown) as progress,
        contextlib.closing(Scalars(logs and logs / "train")) as curves,
        contextlib.closing(Scalars(logs and logs / "dev")) as dev_curves,
        Preemption(cluster) as preemption,
    ):
        observers = Callbacks(callbacks, total, evaluations)
        work = nonfinite, progress, checkpoints, evaluations, preemption, observers
        after = AfterUpdate(settings, step, total, *work, curves, dev_curves)
        after.set_model(model)
        try:
            if shown or step and evaluations.due(step, total):
                observers.begin(model, step)
            for phase in phases:
                if after.step > phase.end:
                    continue
                evaluate: Callable[[], Metrics | None] = phase.evaluate
                # Processes that evaluate together would wait for one that leaves early.
                if cluster.alone or not phase.together:
                    attempt = functools.partial(preemption.attempt, phase.evaluate)
                    evaluate = functools.partial(cluster.from_chief, attempt)
                after.begin(phase, evaluate)
                if after.step == phase.end or evaluations.over:
                    continue
                model.fit(
                    divided(cluster.strategy, functools.partial(phase.batches_from, after.step)),
                    steps_per_epoch=phase.end - after.step,
                    shuffle=False,
                    verbose=0,
                    callbacks=[after],
                )
        except OthersFailed as error:
            if after.step:
                checkpoints.save(model, after.step, evaluations)
            saved = f"; step {after.step} is saved" if after.step else ""
            raise OthersFailed(error.found, saved) from error
        preemption.end_if_asked(after.step)
    if cluster.chief and evaluations.kept(after.step) != after.step:
        checkpoints.load_weights(model, evaluations.kept(after.step))
    return after.updated


def _tokens(phases: Sequence[Phase]) -> Callable[[int], float]:
    def tokens(step: int) -> float:
        amount, begin = 0.0, 0
        for phase in phases:
            amount += phase.tokens * max(0, min(step, phase.end) - begin)
            begin = phase.end
        return amount

    return tokens


# A loop that makes one pass at a time; by default, TensorFlow runs ten at a time.
_loop = functools.partial(tf.while_loop, parallel_iterations=1)


def accumulated(
    gradients_of: Callable[[Any], Gradients],
    batch: Any,
    parts: int,
    weights: list[tf.Variable],
    unrolled: bool = False,
) -> Gradients:
    """The sums of `gradients_of` over parts of the batch. Rows are dealt out in turn, so that every
    part is a fair sample; the first parts may have one row more. An `unrolled` graph has no loop,
    since in a loop XLA cannot find the size of a part if the batch size is unknown.

    Keras's own accumulation, over several calls, fails under `MirroredStrategy`, its schedule
    advances with every part, and a loss that divides by a sum of weights becomes a mean of ratios.
    """
    if parts == 1:
        return gradients_of(batch)

    def add_part(part: tf.Tensor | int, sums: list[tf.Tensor], total: tf.Tensor) -> tuple:
        gradients, loss = gradients_of(_part(batch, part, parts))
        pairs = zip(sums, gradients, strict=True)
        sums = [so_far + tf.convert_to_tensor(gradient) for so_far, gradient in pairs]
        return part + 1, sums, total + loss

    sums, loss = [tf.zeros_like(weight) for weight in weights], tf.constant(0.0)
    if unrolled:
        for part in range(parts):
            _, sums, loss = add_part(part, sums, loss)
    else:
        start = (tf.constant(0), sums, loss)
        _, sums, loss = _loop(lambda part, *_: part < parts, add_part, start)
    return sums, loss


def in_parts(
    compute: Callable[[Any], tf.Tensor],
    batch: Any,
    parts: int,
    shape: Sequence[int | None],
    unrolled: bool = False,
) -> tf.Tensor:
    """The results of `compute` for the parts of `accumulated`, float32 [batch, ...], in row order.
    `shape` is that of the result of a part, [rows, ...], as far as it is known.
    """
    if unrolled:
        found = tf.concat([compute(_part(batch, part, parts)) for part in range(parts)], axis=0)
    else:
        results = tf.TensorArray(tf.float32, parts, infer_shape=False, element_shape=shape)

        def add_part(part: tf.Tensor, results: tf.TensorArray) -> tuple:
            return part + 1, results.write(part, compute(_part(batch, part, parts)))

        start = (tf.constant(0), results)
        found = _loop(lambda part, _: part < parts, add_part, start)[1].concat()
    rows = tf.shape(found)[0]
    order = tf.concat([_part(tf.range(rows), part, parts) for part in range(parts)], axis=0)
    return tf.gather(found, tf.math.invert_permutation(order))


def _part(batch: Any, part: tf.Tensor | int, parts: int) -> Any:
    """Rows part, part + parts, … of [batch, ...]; static shapes stay static, as XLA needs them."""

    def every(rows: tf.Tensor | None) -> tf.Tensor | None:
        if rows is None:
            return None
        size = rows.shape[0]
        if size is not None and size % parts == 0:
            count = size // parts
        else:
            # A replica's share of the last batch may even have fewer rows than there are parts.
            count = (tf.shape(rows)[0] - part + parts - 1) // parts
        return tf.gather(rows, tf.range(count) * parts + part)

    return tf.nest.map_structure(every, batch)
