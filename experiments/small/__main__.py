"""Every table of the paper in a small version, for two CPU cores.

    python -m experiments.small --data DATA --out OUT --glue GLUE --checkpoint FOLDER
    python -m experiments.small --data DATA --out OUT --tables 5 6

Tables 5 and 6 and figure 4 are made of pre-trainings of our own, tables 1 to 4 and 7 of a published
checkpoint. What is done is not done again, and what was stopped goes on. In the end the page of all
finished runs is written, OUT/report.html and OUT/report.md.
"""

import argparse
import subprocess
import sys
import time
from pathlib import Path

from bert_tf import command
from bert_tf.errors import UserError
from bert_tf.progress import say
from bert_tf.report import report
from experiments.small.plan import Job, Sources, jobs

TABLES = ("1", "2", "3", "4", "5", "6", "7", "figure 4")


def main() -> int:
    """Does all jobs; returns the exit code, see `bert_tf.command`."""
    stopped = "stopped; start the same command again to go on"
    return command.run("experiments.small", _parser(), None, _work, stopped)


def _parser() -> command.Parser:
    parser = command.Parser(
        prog="python -m experiments.small",
        description=__doc__.splitlines()[0],
        epilog="example:\n  python -m experiments.small --data data --out runs/small "
        "--tables 5 'figure 4'",
    )
    parser.add_argument(
        "--data", type=Path, required=True, help="holds novels, wikitext2, wnut17, codah and squad"
    )
    parser.add_argument("--out", type=Path, required=True, help="folder of all results")
    parser.add_argument("--glue", type=Path, help="holds CoLA and SST-2 as GLUE has them")
    parser.add_argument("--checkpoint", type=Path, help="a published checkpoint, of any format")
    parser.add_argument("--tables", nargs="+", choices=TABLES, default=TABLES, help="only these")
    return parser


def _work(arguments: argparse.Namespace) -> None:
    for name in ("data", "glue", "checkpoint"):
        path = getattr(arguments, name)
        if path is not None and not path.is_dir():
            raise UserError(f"--{name} {path} is no folder")
    given = (arguments.data, arguments.out, arguments.glue, arguments.checkpoint)
    sources = Sources(*(path and path.resolve() for path in given))
    chosen = [job for job in jobs(sources) if set(job.tables) & set(arguments.tables)]
    began = time.monotonic()
    for number, job in enumerate(chosen, start=1):
        if not job.makes.exists():
            say(f"{number} of {len(chosen)}: {job.name}")
            _do(job)
    say(f"all {len(chosen)} done, {(time.monotonic() - began) / 60:.0f} minutes in this call")
    runs = [job.makes.parent for job in chosen if job.is_run]
    stand_ins = {job.makes.parent: job.stands_for for job in chosen if job.stands_for}
    for ending in ("html", "md"):
        report(runs, arguments.out / f"report.{ending}", stand_ins)


def _do(job: Job) -> None:
    done = subprocess.run([sys.executable, "-m", job.module, *job.arguments], check=False)
    if done.returncode < 0 or done.returncode > 128:
        raise KeyboardInterrupt
    if done.returncode:
        raise UserError(f"{job.name} failed, as said above; mend it and start again to go on")


if __name__ == "__main__":
    sys.exit(main())
