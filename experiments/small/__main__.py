"""Every table of the paper in a small version, for two CPU cores.

    python -m bert_tf.experiments.small --data DATA --out OUT --glue GLUE --checkpoint FOLDER
    python -m bert_tf.experiments.small --data DATA --out OUT --tables 5 6

Tables 5 and 6 and figure 4 use pre-trainings of our own, tables 1 to 4 and 7 a published
checkpoint. Finished jobs are not done again, and stopped jobs go on. A job that fails is skipped,
as are jobs that need it. At the end the page of all finished runs is written: OUT/report.html and
OUT/report.md. Calls with different tables may share OUT: one for 1 2 3 4 7 and one for the others,
each with TF_NUM_INTRAOP_THREADS=1 in its environment, keep two cores busier than one call.
"""

import logging
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from bert_tf.cli.command import option
from bert_tf.console import logger
from bert_tf.errors import UserError
from bert_tf.experiments import program
from bert_tf.experiments.report import report
from bert_tf.experiments.small import checks, process
from bert_tf.experiments.small.job import Job, Sources
from bert_tf.experiments.small.plan import TABLES, choose, jobs


def main(argv: Sequence[str] | None = None) -> int:
    """Does all jobs; returns the exit code, see `bert_tf.cli.command`."""
    return program(
        "small",
        __doc__,
        argv,
        _work,
        option(
            "--data DIR",
            "holds novels, wikitext2, wnut17, codah and squad",
            type=Path,
            required=True,
        ),
        option(
            "--out DIR",
            "folder of all results; some 15 GB for all tables with a checkpoint of 22 million "
            "weights",
            type=Path,
            required=True,
        ),
        option("--glue DIR", "folder with CoLA and SST-2, as in GLUE", type=Path),
        option("--checkpoint PATH", "a published checkpoint, of any format", type=Path),
        option("--tables", "tables to make", nargs="+", choices=TABLES, default=TABLES),
        stopped="stopped; start the same command again to go on",
    )


def _work(tables: Sequence[str], **given: Path) -> None:
    for name, path in given.items():
        if name != "out" and path is not None and not path.is_dir():
            raise UserError(f"--{name} {path} is not a folder; give one")
    sources = Sources(**{name: path and path.resolve() for name, path in given.items()})
    known = checks.known_sources(sources)
    chosen = choose(sources, tables)
    checks.check(chosen, sources.checkpoint)
    checks.remember(known)
    began = time.monotonic()
    _do_all(chosen)
    # A job that failed because another call was doing it may be done by now.
    left = [job.name for job in chosen if not job.makes.exists()]
    minutes = (time.monotonic() - began) / 60
    logger.info(
        f"{len(chosen) - len(left)} of {len(chosen)} done, {minutes:.0f} minutes in this call"
    )
    _write_page(known)
    if left:
        raise UserError(
            f"not done: {', '.join(left)}; fix what is reported above, and start the same command "
            "again to go on"
        )


def _do_all(chosen: Sequence[Job]) -> None:
    """Does the jobs; warns of jobs that fail, and of jobs that are skipped because of that."""
    options = [] if logger.isEnabledFor(logging.INFO) else ["--quiet"]
    for number, job in enumerate(chosen, start=1):
        if job.makes.exists():
            continue
        missing = [path for path in job.needs if not path.exists()]
        if missing:
            logger.warning(f"{job.name} is skipped: it requires {missing[0]}, which is missing")
            continue
        logger.info(f"{number} of {len(chosen)}: {job.name}")
        problem = process.run([sys.executable, "-m", job.module, *options, *job.arguments])
        if problem is not None:
            logger.warning(f"{job.name} {problem}; going on with the jobs that do not require it")


def _write_page(sources: Sources) -> None:
    """Writes the page of all runs that are done, whichever call has made them."""
    done = [job for job in jobs(sources) if job.is_run and job.makes.exists()]
    runs = [job.makes.parent for job in done]
    stand_ins = {job.makes.parent: job.stands_for for job in done if job.stands_for}
    if runs:
        for ending in ("html", "md"):
            report(runs, sources.out / f"report.{ending}", stand_ins)


if __name__ == "__main__":
    sys.exit(main())
