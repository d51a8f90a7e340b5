"""The processes that train one model together, each with devices of its own."""

import contextlib
import json
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import numpy as np
import tensorflow as tf

from bert_tf.config.train import TrainConfig
from bert_tf.console import be_silent
from bert_tf.errors import UserError
from bert_tf.training.strategies import make_strategy

Value = TypeVar("Value")

# What TensorFlow raises when another process is gone.
_LOST = (
    tf.errors.AbortedError,
    tf.errors.CancelledError,
    tf.errors.DeadlineExceededError,
    tf.errors.UnavailableError,
)
# A text as numbers that every device can add up: its bytes, each in a float of 32 bits.
_BYTES = np.dtype(np.uint8)


class Cluster:
    """The processes of one run, often just one, take every step together; the `chief` writes. All
    methods wait for the other processes, which must call the same ones in the same order.
    """

    def __init__(self, strategy: tf.distribute.Strategy):
        self.alone = not isinstance(strategy, tf.distribute.MultiWorkerMirroredStrategy)
        self.chief = self.alone or _is_chief(strategy.cluster_resolver)
        self.strategy = strategy

        @tf.function(input_signature=[tf.TensorSpec([None], tf.float32)])
        def add_up(numbers: tf.Tensor) -> tf.Tensor:
            here = len(strategy.extended.worker_devices)

            def on_replica() -> tf.Tensor:
                replica = tf.distribute.get_replica_context()
                # The first device of each process adds the numbers of the process.
                is_first = tf.equal(replica.replica_id_in_sync_group % here, 0)
                added = tf.where(is_first, numbers, tf.zeros_like(numbers))
                return replica.all_reduce(tf.distribute.ReduceOp.SUM, added)

            return strategy.experimental_local_results(strategy.run(on_replica))[0]

        self._add_up = add_up

    def any(self, flag: bool) -> bool:
        """Whether `flag` is true in any process."""
        return flag if self.alone else bool(self._sum([flag])[0])

    def wait(self) -> None:
        self.any(False)

    def from_chief(self, make: Callable[[], Value]) -> Value:
        """Calls `make` in the chief; all return its result, sent as JSON, or raise its error."""
        if self.alone:
            return make()
        words: dict[str, Any] = {}
        if self.chief:
            try:
                words = {"value": make()}
            except UserError as error:
                words = {"error": str(error)}
        # The bytes of the chief's words are added to zeros, so every process gets them.
        mine = np.frombuffer(json.dumps(words).encode() if self.chief else b"", _BYTES)
        everyone = np.zeros(int(self._sum([len(mine)])[0]), np.float32)
        everyone[: len(mine)] = mine
        message = json.loads(self._sum(everyone).astype(_BYTES).tobytes().decode())
        if "error" in message:
            raise UserError(message["error"])
        return words["value"] if self.chief else message["value"]

    @contextlib.contextmanager
    def losses_explained(self) -> Iterator[None]:
        """Within this context, raises a UserError when another process is gone."""
        try:
            yield
        except _LOST as error:
            if self.alone:
                raise
            raise UserError(
                "another worker has stopped; start all workers again with the same command to "
                "resume from the last checkpoint"
            ) from error

    def _sum(self, numbers: np.ndarray | list) -> np.ndarray:
        """float32 [n], the same n in every process -> their sums."""
        return self._add_up(np.asarray(numbers, np.float32)).numpy()


def assemble(settings: TrainConfig) -> Cluster:
    """The processes that `train.strategy` names; call it before anything else uses TensorFlow."""
    cluster = Cluster(make_strategy(settings))
    if not cluster.chief:
        be_silent()
    return cluster


def _is_chief(cluster: tf.distribute.cluster_resolver.ClusterResolver) -> bool:
    if cluster.task_type == "chief":
        return True
    has_chief = "chief" in cluster.cluster_spec().jobs
    return not has_chief and (cluster.task_type, cluster.task_id) == ("worker", 0)
