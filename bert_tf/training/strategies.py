"""Which devices share the work, and Keras's `fit` on them.

Every device computes its part of each batch; losses divide by the whole batch, gradients are summed
before they are clipped, so that the result does not depend on the number of devices.
"""

import json
import os
from collections.abc import Callable

import keras
import tensorflow as tf

from bert_tf.config import TrainConfig
from bert_tf.errors import UserError

# Gives part `part` of `parts` of every batch from a step on: (start, part, parts).
PartsOfBatches = Callable[[int, int, int], tf.data.Dataset]


def make_strategy(settings: TrainConfig) -> tf.distribute.Strategy:
    """The strategy that `train.strategy` names.

    * one_device: the first GPU, or else the CPU.
    * mirrored: all GPUs of this machine, or all logical CPUs where it has none.
    * multi_worker: this process and the others of the environment variable TF_CONFIG.
    * tpu: the TPU of `train.tpu`, a name or an address; null is the TPU of this machine.

    It must come before anything else of TensorFlow's for multi_worker and tpu.

    Raises:
        UserError: the devices are not there, or the batch cannot be divided among them.
    """
    strategy = _STRATEGIES[settings.strategy](settings)
    replicas = strategy.num_replicas_in_sync
    if settings.batch_size % (replicas * settings.accumulation_steps):
        parts = f"{replicas} devices"
        if settings.accumulation_steps > 1:
            parts += f" x {settings.accumulation_steps} accumulation steps"
        raise UserError(
            f"train.batch_size {settings.batch_size} cannot be divided among {parts}; choose a "
            "multiple"
        )
    return strategy


def is_chief(strategy: tf.distribute.Strategy) -> bool:
    """Whether this process is the one that writes."""
    resolver = strategy.cluster_resolver
    return resolver is None or resolver.task_id in (None, 0)


def divided(strategy: tf.distribute.Strategy, parts: PartsOfBatches, start: int) -> tf.data.Dataset:
    """The batches from step `start` on, for `fit`: each device is given its part of every one."""
    if strategy.num_replicas_in_sync == 1:
        return parts(start, 0, 1)

    def of_this_process(context: tf.distribute.InputContext) -> tf.data.Dataset:
        replicas = context.num_replicas_in_sync
        here = replicas // context.num_input_pipelines
        first = context.input_pipeline_id * here
        # The strategy deals the elements of this dataset to its devices in turn.
        own = [parts(start, first + i, replicas) for i in range(here)]
        return tf.data.Dataset.choose_from_datasets(own, tf.data.Dataset.range(here).repeat())

    return strategy.distribute_datasets_from_function(of_this_process)


def prepare_fit(model: keras.Model, strategy: tf.distribute.Strategy, example: tuple) -> None:
    """Makes Keras's `fit` work for `model` on many devices.

    Keras 3.15 asks for it in two places: before training it averages a batch over the devices to
    build the model from, which fails where they are in several processes, and it reports each
    process's own metrics, which also assumes that all parts weigh the same. So the model is built
    here, and metrics are read outside of the devices, where their sums are those of all. To be
    removed when Keras does so itself (github.com/keras-team/keras, issue 20585).

    Args:
        model: compiled in the strategy's scope.
        strategy: its strategy.
        example: one batch (inputs, targets), of which only the form matters.
    """
    if strategy.num_replicas_in_sync == 1:
        return
    with strategy.scope():
        model._symbolic_build(data_batch=(*example, None))
        model.optimizer.build(model.trainable_variables)
    model._maybe_symbolic_build = lambda **_: None

    def make_train_function(force: bool = False) -> None:
        @tf.function(reduce_retracing=True)
        def train(batches: tf.data.Iterator) -> dict[str, tf.Tensor]:
            strategy.run(model.train_step, args=(next(batches),))
            return model.get_metrics_result()

        model.train_function = train

    model.make_train_function = make_train_function


def _one_device(settings: TrainConfig) -> tf.distribute.Strategy:
    return tf.distribute.get_strategy()


def _mirrored(settings: TrainConfig) -> tf.distribute.Strategy:
    devices = tf.config.list_logical_devices("GPU") or tf.config.list_logical_devices("CPU")
    return tf.distribute.MirroredStrategy([device.name for device in devices])


def _multi_worker(settings: TrainConfig) -> tf.distribute.Strategy:
    try:
        cluster = json.loads(os.environ["TF_CONFIG"])
        workers = cluster["cluster"]["worker"]
        cluster["task"]["index"]
    except (KeyError, TypeError, ValueError):
        raise UserError(
            "train.strategy multi_worker needs the environment variable TF_CONFIG, such as "
            '{"cluster": {"worker": ["host1:12345", "host2:12345"]}, '
            '"task": {"type": "worker", "index": 0}}'
        ) from None
    if len(workers) == 1:
        return tf.distribute.get_strategy()
    return tf.distribute.MultiWorkerMirroredStrategy()


def _tpu(settings: TrainConfig) -> tf.distribute.Strategy:
    try:
        resolver = tf.distribute.cluster_resolver.TPUClusterResolver(settings.tpu or "local")
        tf.config.experimental_connect_to_cluster(resolver)
        tf.tpu.experimental.initialize_tpu_system(resolver)
    except (ValueError, tf.errors.OpError) as error:
        reason = str(error).splitlines()[0]
        raise UserError(f"no TPU at {settings.tpu or 'this machine'}: {reason}") from None
    return tf.distribute.TPUStrategy(resolver)


_STRATEGIES = {
    "one_device": _one_device,
    "mirrored": _mirrored,
    "multi_worker": _multi_worker,
    "tpu": _tpu,
}
