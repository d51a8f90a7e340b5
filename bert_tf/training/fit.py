"""One training through Keras's `fit` that can be stopped at any step and taken up again."""

import contextlib
import dataclasses
from collections.abc import Callable, Sequence

import keras
import tensorflow as tf

from bert_tf.progress import say
from bert_tf.training.callbacks import Evaluate, Log, Save, Stop
from bert_tf.training.checkpointing import Checkpoints
from bert_tf.training.evaluations import Evaluations, Metrics, describe
from bert_tf.training.preemption import Preemption
from bert_tf.training.run_folder import RunFolder
from bert_tf.training.tensorboard import Scalars


@dataclasses.dataclass(frozen=True)
class Phase:
    """A part of a run whose batches all have one form.

    Attributes:
        end: how many updates of the run are done when it is over.
        batches_from: the endless dataset of (inputs, targets) from an update of the run on.
        evaluate: gives dev metrics of the model as it is.
        tokens: tokens of a batch, padding left out, on average.
    """

    end: int
    batches_from: Callable[[int], tf.data.Dataset]
    evaluate: Callable[[], Metrics]
    tokens: float


def train(
    run: RunFolder,
    model: keras.Model,
    checkpoints: Checkpoints,
    phases: Sequence[Phase],
    evaluations: Evaluations,
) -> None:
    """Trains the compiled `model` to the end of the last phase, from the newest checkpoint on.

    Afterwards it has the weights that the run ends with.

    Args:
        run: the run.
        model: compiled, with its initial weights.
        checkpoints: where its states are.
        phases: in their order.
        evaluations: filled with the results of this sitting and of those before.

    Raises:
        UserError: the loss is no longer a number, or a checkpoint cannot be written or read.
        Preempted: the process was asked to end, and the run is saved.
    """
    settings, total = run.config.train, phases[-1].end
    # Variables that are made while Keras traces the step have it traced twice.
    model.optimizer.build(model.trainable_variables)
    step = checkpoints.restore(model, evaluations)
    if 0 < step < total and not evaluations.over:
        say(f"resuming {run.path} at step {step} of {total}")
    log = Log(step, total, settings.log_steps, _tokens(phases), run.logs)
    with (
        contextlib.closing(log),
        contextlib.closing(Scalars(run.logs / "dev")) as dev,
        Preemption() as preemption,
    ):
        for phase in phases:
            if step > phase.end:
                continue
            evaluate = Evaluate(step, total, phase.evaluate, evaluations, dev, preemption)
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
                phase.batches_from(step),
                epochs=1,
                steps_per_epoch=phase.end - step,
                shuffle=False,
                verbose=0,
                callbacks=[Stop(step, total), log, evaluate, save],
            )
            step = log.step
        preemption.end_if_asked(step)
    if evaluations.kept(step) != step:
        checkpoints.load_weights(model, evaluations.kept(step))


def report(run: RunFolder, metrics: Metrics) -> None:
    """Writes the final metrics and says them."""
    run.write_metrics(metrics)
    say(f"{run.path}: " + describe(metrics))


def _tokens(phases: Sequence[Phase]) -> Callable[[int], float]:
    """The number of tokens in the first so many updates."""

    def tokens(step: int) -> float:
        amount, begin = 0.0, 0
        for phase in phases:
            amount += phase.tokens * max(0, min(step, phase.end) - begin)
            begin = phase.end
        return amount

    return tokens
