"""A command as a process of its own, which is not left behind when this one is stopped."""

import signal
import subprocess
from collections.abc import Sequence
from types import FrameType

from bert_tf.console import logger

# The codes that a shell reports for processes ended by a signal; bert_tf exits with the same.
_TERMINATED, _INTERRUPTED = 128 + signal.SIGTERM, 128 + signal.SIGINT


def run(command: Sequence[str]) -> str | None:
    """Runs a command to its end.

    If this process gets SIGTERM or Ctrl-C, it sends SIGTERM to the command and waits for it;
    training then saves its last step.

    Returns:
        How it failed, in words; None if it did not.

    Raises:
        KeyboardInterrupt: Ctrl-C has stopped this process or the command.
        SystemExit: SIGTERM has stopped one of them; with the exit code for that.
    """
    child: subprocess.Popen | None = None
    stopped = False

    def stop(number: int, frame: FrameType | None) -> None:
        nonlocal stopped
        stopped = True
        if child is not None:
            child.terminate()

    before = signal.signal(signal.SIGTERM, stop)
    try:
        child = subprocess.Popen(command)
        if stopped:  # while the command was being started
            child.terminate()
        code = child.wait()
    except KeyboardInterrupt:
        if child is not None:
            child.terminate()
            child.wait()
        raise
    finally:
        signal.signal(signal.SIGTERM, before)
    if stopped or code in (-signal.SIGTERM, _TERMINATED):
        logger.info("stopped by SIGTERM; start the same command again to go on")
        raise SystemExit(_TERMINATED)
    if code in (-signal.SIGINT, _INTERRUPTED):
        raise KeyboardInterrupt
    if code < 0:
        return f"was ended by signal {-code} ({signal.strsignal(-code)})"
    return f"failed with exit code {code}" if code else None
