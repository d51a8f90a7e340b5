"""What the command lines have in common: how arguments are read and how a command ends.

Exit codes: 0 done, 2 a mistake of the user's, told in one line on standard error, 130 stopped by
Ctrl-C, 143 by SIGTERM (training has saved its step then). Anything else is a bug.
"""

import argparse
import os
import sys
from collections.abc import Callable
from typing import NoReturn

from bert_tf.errors import UserError
from bert_tf.files import is_disk_full


class Parser(argparse.ArgumentParser):
    """argparse whose mistakes are UserErrors, and whose help keeps the lines of the examples."""

    def __init__(self, **kwargs):
        super().__init__(
            formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False, **kwargs
        )

    def error(self, message: str) -> NoReturn:
        raise UserError(f"{message}; see {self.prog} --help")


def run(program: str, work: Callable[[], None], stopped: str) -> int:
    """Does the work of a command.

    Args:
        program: the command's name, which begins the line that tells a mistake.
        work: reads the arguments and does what they say.
        stopped: what to tell after Ctrl-C.

    Returns:
        The exit code of the process.
    """

    def say(message: str) -> None:
        print(f"{program}: {message}", file=sys.stderr)

    try:
        work()
        sys.stdout.flush()
    except UserError as error:
        say(f"error: {error}")
        return 2
    except KeyboardInterrupt:
        say(stopped)
        return 130
    except BrokenPipeError:
        # Whoever read the output has enough of it, as `head` does. What Python still wants to
        # write at its exit goes nowhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except Exception as error:
        # Most writers say where; logs of TensorBoard, for one, are written by TensorFlow itself.
        if not is_disk_full(error):
            raise
        say("error: the disk is full; free some space and start the same command again")
        return 2
    return 0
