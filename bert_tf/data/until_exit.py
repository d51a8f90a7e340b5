"""Python functions inside tf.data that do not block the exit of the interpreter.

tf.data calls a `tf.numpy_function` from its own threads, ahead of the reader of the dataset. A
thread that requests the interpreter's lock while the interpreter shuts down is ended at that point,
and the dataset's destructor waits for it for ever. So the calls have to stop before that.
"""

import atexit
import collections
import threading
import time
from collections.abc import Callable, Sequence

import numpy as np
import tensorflow as tf

# One entry for every call under way. No lock is held around a call: garbage collection may run in
# a call and destroy another dataset, whose destructor waits for that dataset's calls.
_under_way: collections.deque[None] = collections.deque()
_exiting = threading.Event()


def counter(start: int) -> tf.data.Dataset:
    """The numbers from `start`, endless, int64. `tf.data.Dataset.counter` leaves a function in the
    process for each dataset.
    """
    endless = tf.data.experimental.assert_cardinality(tf.data.INFINITE_CARDINALITY)
    return tf.data.Dataset.range(start, tf.int64.max).apply(endless)


def map_until_exit(
    dataset: tf.data.Dataset,
    function: Callable[[np.ndarray], Sequence[np.ndarray]],
    types: Sequence[tf.DType],
) -> tf.data.Dataset:
    """Maps a function of NumPy arrays in one other thread, until the program or the data end."""

    # This imports Keras, which a process that only answers requests does not need.
    from bert_tf.compat import numpy_function

    def call(element: np.ndarray) -> tuple[np.ndarray | np.bool_, ...]:
        _under_way.append(None)
        try:
            if _exiting.is_set():
                return np.False_, *(np.zeros(0, each.as_numpy_dtype) for each in types)
            return np.True_, *function(element)
        finally:
            _under_way.pop()

    def goes_on(flag: tf.Tensor, *_: tf.Tensor) -> tf.Tensor:
        return tf.ensure_shape(flag, [])

    # An exception would not end the data: tf.data counts it as one bad element and reads the next.
    # Without `num_parallel_calls`, tf.data runs a map in several threads.
    calls = dataset.map(
        lambda element: numpy_function(call, [element], [tf.bool, *types], stateful=False),
        num_parallel_calls=1,
    )
    results = calls.take_while(goes_on).map(lambda _, *results: results)
    return results.apply(tf.data.experimental.assert_cardinality(dataset.cardinality()))


@atexit.register
def _stop_calls() -> None:
    _exiting.set()
    # A call or two may be about to begin; they see the flag and end.
    time.sleep(0.05)
    while _under_way:
        time.sleep(0.01)
