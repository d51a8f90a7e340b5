"""What goes wrong, and what may come of it."""

import dataclasses
import os
import random
import resource
import shutil
import signal
from collections.abc import Callable

from benchmarks.soak.runs import Run


@dataclasses.dataclass(frozen=True)
class Fault:
    """Something that goes wrong.

    Attributes:
        title: the fault, in words.
        workers: processes of the run.
        strike: injects it into a run that is at work.
        codes: the exit codes that may follow, of the chief and of the worker.
        aftermath: what also happens once all processes have ended.
        late: whether the worker starts late afterwards.
        in_bucket: whether the run is in a bucket.
    """

    title: str
    workers: int
    strike: Callable[[Run], None]
    codes: tuple[set[int], ...]
    aftermath: Callable[[Run, random.Random], str] = lambda run, source: ""
    late: bool = False
    in_bucket: bool = False


def send(number: int, index: int) -> Callable[[Run], None]:
    """A function that sends a signal to one process of a run."""
    return lambda run: run.processes[index].send_signal(number)


def fill_disk(run: Run) -> None:
    """From now on the process can write no file of more than 16 kB, as if the disk were full."""
    resource.prlimit(run.processes[0].pid, resource.RLIMIT_FSIZE, (16384, 16384))


def damage(run: Run, source: random.Random) -> str:
    """Truncates a file of the newest checkpoint, or flips one of its bits; says what was done."""
    newest = run.folder / "checkpoints" / f"step-{run.saved()[-1]:08d}"
    file = source.choice(sorted(path for path in newest.iterdir() if path.is_file()))
    content = bytearray(file.read_bytes())
    place = source.randrange(len(content))
    if source.random() < 0.5:
        content[place] ^= 1 << source.randrange(8)
        done = f"bit flipped in byte {place}"
    else:
        del content[place:]
        done = f"cut to {place} bytes"
    file.write_bytes(content)
    return f"; {newest.name}/{file.name} {done}"


def lose_copy(run: Run, source: random.Random) -> str:
    """Removes the local copies, as if the run went on elsewhere, and breaks the next requests."""
    assert run.bucket is not None
    shutil.rmtree(os.environ["BERT_TF_CACHE"], ignore_errors=True)
    proxy = run.bucket.proxy
    for what, method in (("slow_down", "PUT"), ("lose", "PUT"), ("internal", "GET")):
        proxy.fault(what, method, times=source.randrange(4))
    proxy.fault("drop", "GET", "safetensors", times=source.randrange(4))
    return ""


# Exit codes: of SIGKILL, of SIGTERM, and of an error that is reported in one line.
KILLED, TERMINATED, TOLD = -signal.SIGKILL, 143, 2
FAULTS = {
    "killed": Fault("SIGKILL of the only process", 1, send(signal.SIGKILL, 0), ({KILLED},)),
    "terminated": Fault("SIGTERM of the only process", 1, send(signal.SIGTERM, 0), ({TERMINATED},)),
    "disk_full": Fault("disk full", 1, fill_disk, ({TOLD},)),
    "damaged": Fault(
        "SIGKILL and the newest checkpoint damaged",
        1,
        send(signal.SIGKILL, 0),
        ({KILLED},),
        aftermath=damage,
    ),
    "bucket_killed": Fault(
        "SIGKILL of a run in a bucket",
        1,
        send(signal.SIGKILL, 0),
        ({KILLED},),
        in_bucket=True,
    ),
    "bucket_moved": Fault(
        "the same, which goes on without its local copies, with requests that fail",
        1,
        send(signal.SIGKILL, 0),
        ({KILLED},),
        aftermath=lose_copy,
        in_bucket=True,
    ),
    "worker_killed": Fault("SIGKILL of a worker", 2, send(signal.SIGKILL, 1), ({TOLD}, {KILLED})),
    "chief_killed": Fault("SIGKILL of the chief", 2, send(signal.SIGKILL, 0), ({KILLED}, {TOLD})),
    "worker_terminated": Fault(
        "SIGTERM of a worker", 2, send(signal.SIGTERM, 1), ({TERMINATED}, {TERMINATED})
    ),
    "worker_late": Fault(
        "SIGKILL of a worker, which comes back late",
        2,
        send(signal.SIGKILL, 1),
        ({TOLD}, {KILLED}),
        late=True,
    ),
}
