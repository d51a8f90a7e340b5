"""One training through Keras's `fit` that can be stopped at any step and taken up again."""

import contextlib
import dataclasses
import functools
from collections.abc import Callable, Sequence

import keras
import tensorflow as tf

from bert_tf.config.run import RunConfig
from bert_tf.console import logger
from bert_tf.errors import UserError
from bert_tf.training.callbacks import Evaluate, Log, Save
from bert_tf.training.checkpointing import Checkpoints
from bert_tf.training.distributed import Cluster
from bert_tf.training.evaluations import Evaluations, Metrics
from bert_tf.training.nonfinite import NonFinite
from bert_tf.training.preemption import Preemption
from bert_tf.training.run_folder import RunFolder
from bert_tf.training.strategies import divided, prepare_fit
from bert_tf.training.tensorboard import Scalars


@dataclasses.dataclass(frozen=True)
class Phase:
    """A part of a run whose batches all have one form.

    Attributes:
        end: how many updates of the run are done when it is over.
        batches_from: the endless dataset of (inputs, targets) from an update of the run on, given
            (update, part, parts): of every batch the rows `part::parts`.
        evaluate: gives dev metrics of the model as it is.
        tokens: tokens of a batch, padding left out, on average.
        together: whether all processes of a cluster evaluate together; otherwise the chief does.
    """

    end: int
    batches_from: Callable[[int, int, int], tf.data.Dataset]
    evaluate: Callable[[], Metrics]
    tokens: float
    together: bool = False


def train(
    run: RunFolder[RunConfig],
    model: keras.Model,
    checkpoints: Checkpoints,
    phases: Sequence[Phase],
    evaluations: Evaluations,
    cluster: Cluster,
) -> None:
    """Trains the compiled `model` to the end of the last phase, from the newest checkpoint on.

    Afterwards it has, in the chief, the weights that the run ends with.

    Args:
        run: the run.
        model: compiled in the scope of the cluster's strategy, with its initial weights.
        checkpoints: where its states are.
        phases: in their order.
        evaluations: filled with the results of this session and of those before.
        cluster: the processes that share the work.

    Raises:
        UserError: the loss is no longer a number, or a checkpoint cannot be written or read.
        Preempted: the process was asked to end, and the run is saved.
    """
    settings, total = run.config.train, phases[-1].end
    # Variables that are made while Keras traces the step have it traced twice.
    with cluster.strategy.scope():
        model.optimizer.build(model.trainable_variables)
    prepare_fit(model, cluster.strategy, lambda: phases[0].batches_from(0, 0, 1).element_spec)
    step = _restore(checkpoints, model, evaluations, cluster)
    if 0 < step < total and not evaluations.over:
        logger.info(f"resuming {run.path} at step {step} of {total}")
    faults = run.path if cluster.chief else None
    curves = {
        name: Scalars(run.logs / name if cluster.chief else None) for name in ("train", "dev")
    }
    log = Log(step, total, settings.log_steps, _tokens(phases), curves["train"])
    with (
        contextlib.closing(log),
        contextlib.closing(curves["dev"]),
        Preemption(cluster) as preemption,
    ):
        for phase in phases:
            if step > phase.end:
                continue
            score = _evaluator(phase, preemption, cluster)
            evaluate = Evaluate(step, total, score, evaluations, curves["dev"], preemption)
            # One that was cut short when the run was stopped.
            if evaluate.evaluate_if_due() or preemption.asked:
                checkpoints.save(model, step, evaluations)
            preemption.end_if_asked(step)
            if step == phase.end or evaluations.over:
                continue
            save = Save(
                step,
                total,
                settings.checkpoint_steps,
                settings.checkpoint_minutes,
                checkpoints,
                evaluations,
                preemption,
            )
            model.fit(
                divided(cluster.strategy, functools.partial(phase.batches_from, step)),
                epochs=1,
                steps_per_epoch=phase.end - step,
                shuffle=False,
                verbose=0,
                callbacks=[
                    NonFinite(step, total, phase.batches_from, faults, settings.skip_nonfinite),
                    log,
                    evaluate,
                    save,
                ],
            )
            step = log.step
        preemption.end_if_asked(step)
    if cluster.chief and evaluations.kept(step) != step:
        checkpoints.load_weights(model, evaluations.kept(step))


def _restore(
    checkpoints: Checkpoints, model: keras.Model, evaluations: Evaluations, cluster: Cluster
) -> int:
    """The updates done, with the state after them in the model; the same in all processes."""
    step = checkpoints.restore(model, evaluations)
    if cluster.told_by_chief(lambda: step) != step:
        raise UserError(
            f"this worker finds another checkpoint in {checkpoints.folder} than the chief; all "
            "workers need the same folder, on a file system that they share"
        )
    return step


def _evaluator(
    phase: Phase, preemption: Preemption, cluster: Cluster
) -> Callable[[], Metrics | None]:
    """What evaluates in a phase; it gives None if the process was asked to end in its middle."""
    if phase.together and not cluster.alone:
        # Whoever left would leave the others waiting.
        return phase.evaluate
    return lambda: cluster.told_by_chief(lambda: preemption.attempt(phase.evaluate))


def _tokens(phases: Sequence[Phase]) -> Callable[[int], float]:
    """The number of tokens in the first so many updates."""

    def tokens(step: int) -> float:
        amount, begin = 0.0, 0
        for phase in phases:
            amount += phase.tokens * max(0, min(step, phase.end) - begin)
            begin = phase.end
        return amount

    return tokens
