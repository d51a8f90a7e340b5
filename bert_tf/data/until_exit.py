"""Python functions inside tf.data that do not hang the interpreter when it exits.

tf.data calls a `tf.numpy_function` from its own threads, ahead of whoever reads the dataset. A
thread that comes back for the interpreter's lock once it is shutting down is ended there and then,
and the dataset's destructor waits for it for ever. So the calls have to stop before that.
"""

import atexit
import threading
import time
from collections.abc import Callable

_call = threading.Lock()
_exiting = threading.Event()


def until_exit(function: Callable) -> Callable:
    """Wraps `function`: one call at a time, and from the end of the program on none.

    A call that comes later raises StopIteration, which ends the dataset, and with it the calls.
    """

    def wrapped(*arguments):
        with _call:
            if _exiting.is_set():
                raise StopIteration
            return function(*arguments)

    return wrapped


@atexit.register
def _stop_calls() -> None:
    with _call:
        _exiting.set()
    # tf.data may have a call or two on its way to the lock; let them in to hear that it is over.
    time.sleep(0.05)
