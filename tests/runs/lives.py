"""Runs in processes of their own, to be killed: each is forked from one that has imported all."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bert_tf.training.checkpointing import Checkpoints

ROOT = Path(__file__).resolve().parents[2]

_NURSERY = """
import json, os, sys
from bert_tf.cli.parser import main
from bert_tf import runs
for line in sys.stdin:
    argv, log = json.loads(line)
    pid = os.fork()
    if pid == 0:
        handle = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(handle, 1), os.dup2(handle, 2)
        code = 1
        try:
            code = main(argv)
        except SystemExit as error:
            code = error.code
        except BaseException:
            import traceback
            traceback.print_exc()
        finally:
            os._exit(code)
    print(pid, flush=True)
    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
"""


class Nursery:
    """Starts one process after the other; their output goes to the file `log`."""

    def __init__(self, log: Path):
        self.log = log
        self._process = subprocess.Popen(
            [sys.executable, "-c", _NURSERY],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def live(
        self,
        *argv: str | Path,
        until: Callable[[], bool] | None = None,
        number: int = signal.SIGKILL,
        strike: Callable[[int], None] | None = None,
    ) -> int:
        """Runs a command of `bert-tf`; the signal `number` ends it once `until` holds.

        If `strike` is given, it is called instead, with the process id.

        Returns:
            The exit code, negative for a signal.
        """
        self._process.stdin.write(json.dumps([[str(each) for each in argv], str(self.log)]) + "\n")
        self._process.stdin.flush()
        pid = int(self._process.stdout.readline())
        if until is not None:
            while Path(f"/proc/{pid}/exe").exists() and not until():
                time.sleep(0.002)
            strike(pid) if strike else os.kill(pid, number)
        return int(self._process.stdout.readline())

    def close(self) -> None:
        """Ends the process that the others come from."""
        self._process.stdin.close()
        self._process.wait()


def last_step(run: Path) -> int:
    """The step of the newest checkpoint, 0 before the first."""
    names = [path.name for path in (run / "checkpoints").glob("step-*")]
    return max((int(name.removeprefix("step-")) for name in names), default=0)


@contextlib.contextmanager
def killed_after(step: int, folder: Path) -> Iterator[None]:
    """Copies `folder / "run"`, which is trained meanwhile, to `killed` when this step is saved."""
    save = Checkpoints.save

    def save_and_copy(self, model, saved, evaluations):
        save(self, model, saved, evaluations)
        if saved == step:
            shutil.copytree(folder / "run", folder / "killed")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Checkpoints, "save", save_and_copy)
        yield
