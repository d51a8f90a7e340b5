"""Training that is killed, stopped and damaged at random moments ends as if nothing had happened.

    python -m benchmarks.soak                       # every fault 20 times; about an hour
    python -m benchmarks.soak --times 2 --faults worker_killed chief_killed
    make soak

Each kind of fault has a pre-training of its own (a tiny one, on this machine; two processes that
train together for faults of a worker). At random moments the fault strikes, and the same
command starts it again. It must go on from its last sound checkpoint, and end with the same bits in
weights, optimizer and metrics as a run that was left alone. Started again with the same --out, the
script goes on after the last kind that was finished. Runs in a bucket are in moto's S3 server, in
this process. The exit code is 1 where anything was lost.
"""

import argparse
import contextlib
import dataclasses
import json
import os
import random
import shutil
import sys
import time
from pathlib import Path

from benchmarks.soak.faults import FAULTS, Fault
from benchmarks.soak.runs import CHECKPOINT_STEPS, Run, same, write_experiment
from bert_tf.cli import command
from bert_tf.io.atomic import make_folder
from tests.buckets import Bucket, served_moto

SPACING = 20  # steps in which one fault happens
LATEST = 60.0  # the most seconds that a worker comes late


@dataclasses.dataclass
class Result:
    """What came of one kind of fault.

    Attributes:
        title: the fault.
        injected: how often it was injected.
        resumed: how often the run went on from its last sound checkpoint.
        redone: the most steps that were saved and yet had to be done again.
        seconds: the longest time until all processes had ended.
        lost: faults after which the run did not go on, or all of them if it ended differently.
    """

    title: str
    injected: int = 0
    resumed: int = 0
    redone: int = 0
    seconds: float = 0.0
    lost: int = 0


def main() -> int:
    """Prints a table.

    Returns:
        The exit code, see `bert_tf.cli.command`; 1 if anything was lost.
    """
    parser = command.module_parser("benchmarks.soak", __doc__)
    parser.add_argument("--times", type=int, default=20, help="faults of each kind (%(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="decides the moments (%(default)s)")
    parser.add_argument("--out", type=Path, default=Path("runs/soak"), help="folder (%(default)s)")
    parser.add_argument("--faults", nargs="+", choices=FAULTS, default=list(FAULTS))
    return command.run("soak", parser, None, _work, "stopped; started again, it goes on")


def _work(arguments: argparse.Namespace) -> None:
    steps = SPACING * (arguments.times + 1)
    place = arguments.out / f"{arguments.times}-{arguments.seed}"
    make_folder(place)
    yaml = write_experiment(place)
    results = []
    with contextlib.ExitStack() as stack:
        proxy = None
        if any(FAULTS[name].in_bucket for name in arguments.faults):
            # One server for all of them: the client of a store keeps its address.
            proxy = stack.enter_context(served_moto())
        for name in arguments.faults:
            done = place / f"{name}.json"
            if not done.exists():
                undisturbed = leave_alone(place, yaml, steps, FAULTS[name].workers)
                source = random.Random(f"{arguments.seed} {name}")
                shutil.rmtree(place / name, ignore_errors=True)
                bucket = None
                if FAULTS[name].in_bucket and proxy is not None:
                    os.environ["BERT_TF_CACHE"] = str(place / f"{name}-cache")
                    bucket = Bucket("s3", name.replace("_", "-"), proxy)
                run = Run(yaml, place / name, steps, FAULTS[name].workers, bucket)
                result = disturb(run, FAULTS[name], arguments.times, undisturbed, source)
                done.write_text(json.dumps(dataclasses.asdict(result)))
            results.append(Result(**json.loads(done.read_text())))
    print_table(results)
    if any(each.lost or each.injected < arguments.times for each in results):
        sys.exit(1)


def leave_alone(place: Path, yaml: Path, steps: int, workers: int) -> Path:
    """The folder of a run without faults."""
    run = Run(yaml, place / f"undisturbed-{workers}", steps, workers)
    if not (run.folder / "metrics.json").exists():
        shutil.rmtree(run.folder, ignore_errors=True)
        run.start()
        codes = run.end()
        if any(codes):
            raise SystemExit(f"the undisturbed run ended with {codes}; see {run.log(0)}")
    return run.folder


def disturb(run: Run, fault: Fault, times: int, undisturbed: Path, source: random.Random) -> Result:
    """Injects a fault again and again, and compares the end of the run with `undisturbed`."""
    result = Result(fault.title)
    run.start()
    try:
        for number in range(times):
            inject(run, fault, number, source, result)
        ended = [*run.end()] == [0] * len(run.processes)
    finally:
        run.stop()
    if not ended or not same(run.place, undisturbed):
        result.lost = result.injected
        print(f"{fault.title}: the run ended otherwise; see {run.log(0)}", flush=True)
    return result


def inject(run: Run, fault: Fault, number: int, source: random.Random, result: Result) -> None:
    """Injects one fault at a random moment, and starts the run again."""
    # There has to be a checkpoint besides the newest one.
    target = max(number * SPACING + source.randrange(SPACING), 2 * CHECKPOINT_STEPS)
    delay = source.uniform(0, 0.5)
    while run.alive() and (not run.saved() or run.saved()[-1] < target):
        time.sleep(0.005)
    time.sleep(delay)
    if not run.alive():
        print(f"{fault.title}: ended too soon, with {run.end()}; see {run.log(0)}", flush=True)
        return
    fault.strike(run)
    result.injected += 1
    struck, before = time.monotonic(), run.saved()
    codes = run.end()
    seconds = time.monotonic() - struck
    damage = fault.aftermath(run, source)
    # The chief may have finished a checkpoint that it was writing.
    sound = run.saved()[: -1 if damage else None][-1]
    late = source.uniform(0, LATEST) if fault.late else 0.0
    run.start(late)
    while run.alive() and not run.resumed_at():
        time.sleep(0.02)
    resumed = run.resumed_at()
    right = resumed == sound and all(
        code in allowed for code, allowed in zip(codes, fault.codes, strict=True)
    )
    result.resumed += right
    result.lost += not right
    result.redone = max(result.redone, max(before[-1], sound) - resumed)
    result.seconds = max(result.seconds, seconds)
    print(
        f"{fault.title} {number + 1}: {delay:.2f} s after step {target}{damage}; "
        f"ended with {codes} in {seconds:.1f} s; {f'started {late:.0f} s late; ' if late else ''}"
        f"went on at step {resumed}{'' if right else f', LOST ({sound} was saved)'}",
        flush=True,
    )


def print_table(results: list[Result]) -> None:
    """The results, as Markdown."""
    columns = (
        "fault",
        "injected",
        "resumed",
        "lost",
        "saved steps redone, at most",
        "all processes ended within",
    )
    print(f"\n| {' | '.join(columns)} |\n|{'---|' * len(columns)}")
    for each in results:
        cells = (each.title, each.injected, each.resumed, each.lost, each.redone)
        print(f"| {' | '.join(map(str, cells))} | {each.seconds:.0f} s |")


if __name__ == "__main__":
    sys.exit(main())
