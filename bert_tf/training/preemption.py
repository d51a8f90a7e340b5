"""Handling of SIGTERM, which a scheduler sends to a run that must make room for another."""

import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import TypeVar

from bert_tf.console import logger
from bert_tf.training.distributed import Cluster

# The exit code of a process that SIGTERM has ended, in a shell. It is not 0: the run is not done,
# and jobs that depend on it must not start.
EXIT_CODE = 128 + signal.SIGTERM

Result = TypeVar("Result")


class Preempted(SystemExit):
    """The run has saved its state, and the process ends."""


class _LeftEarly(BaseException):
    """SIGTERM came during work that may be abandoned."""


class Preemption:
    """Notes a SIGTERM within its `with` block, so that training ends after a whole update. It does
    nothing outside of the main thread, since other threads cannot handle signals. `asked` says
    whether SIGTERM has come; in a cluster, whether any process had it at the last `look`.
    """

    def __init__(self, cluster: Cluster) -> None:
        self.asked = False
        self._received = False
        self._cluster = None if cluster.alone else cluster
        self._may_leave = False

    def __enter__(self) -> "Preemption":
        self._in_main_thread = threading.current_thread() is threading.main_thread()
        if self._in_main_thread:
            self._before = signal.signal(signal.SIGTERM, self._receive)
        return self

    def __exit__(self, *_: object) -> None:
        if self._in_main_thread:
            signal.signal(signal.SIGTERM, self._before)

    def look(self) -> None:
        """Finds out whether any process of the cluster got SIGTERM; all processes must call it."""
        if self._cluster is not None:
            self.asked = self._cluster.any(self._received)

    def attempt(self, work: Callable[[], Result]) -> Result | None:
        """The result of `work`, which changes nothing; None if SIGTERM comes while it runs."""
        try:
            self._may_leave = True
            result = work()
            self._may_leave = False
        except _LeftEarly:
            return None
        except BaseException:
            self._may_leave = False
            raise
        return result

    def end_if_asked(self, step: int) -> None:
        """Ends the process if SIGTERM has come; call it once the state after `step` is saved."""
        if self.asked:
            if self._cluster is not None:
                # Otherwise the other processes would take the end of this one for a failure.
                self._cluster.wait()
            logger.info(
                f"stopped by SIGTERM; step {step} is saved; start the same command again to resume"
            )
            raise Preempted(EXIT_CODE)

    def _receive(self, number: int, frame: FrameType | None) -> None:
        self._received = True
        if self._cluster is None:
            self.asked = True
        if self._may_leave:
            self._may_leave = False
            raise _LeftEarly
