"""Which devices share the work, and Keras's `fit` on them.

Every device computes its part of each batch. Losses divide by sums over the whole batch, and
gradients are summed before they are clipped, so only dropout depends on the number of devices.
"""

import functools
import json
import os
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from bert_tf.compat import is_default_strategy
from bert_tf.config.train import TrainConfig
from bert_tf.errors import UserError

# Given (part, parts), an endless dataset of one part of every batch.
PartsOfBatches = Callable[[int, int], tf.data.Dataset]


def make_strategy(settings: TrainConfig) -> tf.distribute.Strategy:
    """The strategy that `train.strategy` names.

    * one_device: the first GPU, or else the CPU.
    * mirrored: all GPUs of this machine, or all logical CPUs where it has none.
    * multi_worker: this process and the others of the environment variable TF_CONFIG.
    * tpu: the TPU of `train.tpu`, a name or an address; null is the TPU of this machine.

    For multi_worker and tpu, call it before anything else uses TensorFlow. A process has one
    strategy of each kind, since TensorFlow groups devices only once.
    """
    strategy = _make(settings.strategy, settings.tpu)
    check_batches(strategy, settings)
    return strategy


def check_batches(strategy: tf.distribute.Strategy, settings: TrainConfig) -> None:
    """Raises UserError where a batch cannot be divided among the devices."""
    replicas = strategy.num_replicas_in_sync
    for key in ("batch_size", "long_batch_size"):
        if (getattr(settings, key, None) or 0) % (replicas * settings.accumulation_steps):
            parts = f"{replicas} devices"
            if settings.accumulation_steps > 1:
                parts += f" x {settings.accumulation_steps} accumulation steps"
            raise UserError(
                f"train.{key} {getattr(settings, key)} cannot be divided among {parts}; choose a "
                "multiple"
            )


def divided(strategy: tf.distribute.Strategy, parts: PartsOfBatches) -> tf.data.Dataset:
    """The batches for `fit`, without end; a process deals its part of each to its devices."""
    if is_default_strategy(strategy):
        return parts(0, 1)

    def of_this_process(context: tf.distribute.InputContext) -> tf.data.Dataset:
        here = context.num_replicas_in_sync // context.num_input_pipelines
        mine = parts(context.input_pipeline_id, context.num_input_pipelines)
        if here > 1:
            # The strategy gives the elements of this dataset to its devices in turn.
            mine = mine.map(lambda *batch: _dealt(batch, here)).unbatch()
        # Without this, the strategy checks before every step whether there is a next one.
        return mine.apply(tf.data.experimental.assert_cardinality(tf.data.INFINITE_CARDINALITY))

    return strategy.distribute_datasets_from_function(of_this_process)


def _dealt(batch: Any, hands: int) -> Any:
    """[batch, ...] in any structure -> [hands, batch / hands, ...], the rows dealt out in turn."""

    def deal(rows: tf.Tensor) -> tf.Tensor:
        each = rows.shape[0] // hands
        shape = tf.concat([[each, hands], tf.shape(rows)[1:]], 0)
        dealt = tf.experimental.numpy.swapaxes(tf.reshape(rows, shape), 0, 1)
        return tf.ensure_shape(dealt, [hands, each, *rows.shape[1:]])

    return tf.nest.map_structure(deal, batch)


@functools.cache
def _make(kind: str, tpu: str | None) -> tf.distribute.Strategy:
    if kind == "multi_worker":
        return _multi_worker()
    if kind == "tpu":
        return _tpu(tpu)
    if kind == "one_device":
        return tf.distribute.get_strategy()
    devices = tf.config.list_logical_devices("GPU") or tf.config.list_logical_devices("CPU")
    return tf.distribute.MirroredStrategy([device.name for device in devices])


def _multi_worker() -> tf.distribute.Strategy:
    try:
        cluster = json.loads(os.environ["TF_CONFIG"])
        processes = [
            each for job in ("chief", "worker") for each in cluster["cluster"].get(job, [])
        ]
        task = cluster["task"]
        known = task["index"] < len(cluster["cluster"][task["type"]])
    except (KeyError, TypeError, ValueError, AttributeError):
        known = False
    if not known:
        raise UserError(
            "train.strategy multi_worker requires --workers HOST:PORT HOST:PORT --worker N, or the "
            'environment variable TF_CONFIG, such as {"cluster": {"worker": ["host1:12345", '
            '"host2:12345"]}, "task": {"type": "worker", "index": 0}}'
        )
    if len(processes) == 1:
        return _make("mirrored", None)
    try:
        return tf.distribute.MultiWorkerMirroredStrategy()
    except (RuntimeError, ValueError, tf.errors.OpError) as error:
        reason = str(error).splitlines()[0]
        raise UserError(
            f"the workers of TF_CONFIG cannot connect to each other: {reason}"
        ) from None


def _tpu(place: str | None) -> tf.distribute.Strategy:
    try:
        resolver = tf.distribute.cluster_resolver.TPUClusterResolver(place or "local")
        tf.config.experimental_connect_to_cluster(resolver)
        tf.tpu.experimental.initialize_tpu_system(resolver)
    except (ImportError, OSError, RuntimeError, ValueError, tf.errors.OpError) as error:
        # A name is looked up in the cloud's own directory, which needs a network.
        reason = str(error).splitlines()[0].split(". ")[0]
        raise UserError(f"TPU not found: {place or 'this machine'} ({reason})") from None
    return tf.distribute.TPUStrategy(resolver)
