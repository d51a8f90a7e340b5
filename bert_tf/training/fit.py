"""One call of Keras's `fit` that can be stopped at any step and taken up again."""

from collections.abc import Callable

import keras
import tensorflow as tf

from bert_tf.config import TrainConfig
from bert_tf.progress import say
from bert_tf.training.callbacks import Evaluate, Log, Metrics, Save, Stop, describe
from bert_tf.training.checkpointing import Checkpoints
from bert_tf.training.run_folder import RunFolder


def train(
    run: RunFolder,
    model: keras.Model,
    checkpoints: Checkpoints,
    batches_from: Callable[[int], tf.data.Dataset],
    total_steps: int,
    eval_steps: int | None,
    evaluate: Callable[[], Metrics],
) -> None:
    """Trains the compiled `model` to `total_steps` updates, from the newest checkpoint on.

    Args:
        run: where logs go.
        model: compiled, with its initial weights.
        checkpoints: where its states are.
        batches_from: the endless dataset of (inputs, targets) from a step on.
        total_steps: updates of the whole run.
        eval_steps: updates between evaluations; None evaluates not at all.
        evaluate: gives dev metrics of the model as it is.
    """
    settings: TrainConfig = run.config.train
    start = checkpoints.restore(model)
    if start >= total_steps:
        return
    if start:
        say(f"resuming {run.path} at step {start} of {total_steps}")
    position = (start, total_steps)
    model.fit(
        batches_from(start),
        epochs=1,
        steps_per_epoch=total_steps - start,
        shuffle=False,
        verbose=0,
        callbacks=[
            Stop(*position),
            Log(*position, settings.log_steps, settings.batch_size, run.logs),
            Evaluate(*position, eval_steps, evaluate, run.logs, say),
            Save(*position, settings.checkpoint_steps, checkpoints),
        ],
    )


def report(run: RunFolder, metrics: Metrics) -> None:
    """Writes the final metrics and says them."""
    run.write_metrics(metrics)
    say(f"{run.path}: " + describe(metrics))
