"""Python functions inside tf.data that do not hang the interpreter when it exits.

tf.data calls a `tf.numpy_function` from its own threads, ahead of whoever reads the dataset. A
thread that comes back for the interpreter's lock once it is shutting down is ended there and then,
and the dataset's destructor waits for it for ever. So the calls have to stop before that.
"""

import atexit
import collections
import threading
import time
from collections.abc import Callable

# One entry for every call under way. No lock is held around a call: garbage collection may run in
# any, and destroy another dataset, which waits for its own calls.
_under_way: collections.deque[None] = collections.deque()
_exiting = threading.Event()


def until_exit(function: Callable) -> Callable:
    """Wraps `function` so that at the end of the program it is not called any more.

    It raises StopIteration instead, which ends the dataset, and with it the calls.
    """

    def wrapped(*arguments):
        _under_way.append(None)
        try:
            if _exiting.is_set():
                raise StopIteration
            return function(*arguments)
        finally:
            _under_way.pop()

    return wrapped


@atexit.register
def _stop_calls() -> None:
    _exiting.set()
    # A call or two may be on their way here; let them come and hear that it is over.
    time.sleep(0.05)
    while _under_way:
        time.sleep(0.01)
