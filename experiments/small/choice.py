"""Which jobs are run: those of the requested tables, as far as there are data for them."""

from collections.abc import Iterable, Sequence

from bert_tf.console import logger
from bert_tf.errors import UserError
from bert_tf.experiments.small.job import Job, Sources
from bert_tf.experiments.small.plan import jobs


def choose(sources: Sources, names: Sequence[str]) -> list[Job]:
    """The jobs of the tables `names`; logs what is left out, and why.

    Raises:
        UserError: everything is left out.
    """
    possible = _tables(jobs(sources))
    # Any path will do: nothing is read.
    complete = Sources(*(path or sources.data for path in sources))
    lacking = [name for name, path in sources._asdict().items() if path is None]
    for name in lacking:
        kept = {job.makes for job in jobs(Sources(**complete._asdict() | {name: None}))}
        lost = _tables(job for job in jobs(complete) if job.makes not in kept)
        left_out = [
            f"a part of {_called(table)}" if table in possible else _called(table)
            for table in names
            if table in lost
        ]
        if left_out:
            logger.info(f"--{name} is not given; left out: {', '.join(left_out)}")
    tables = possible & set(names)
    if not tables:
        options = " and ".join(f"--{name}" for name in lacking)
        raise UserError(f"nothing is left of {', '.join(map(_called, names))}; give {options}")
    return [job for job in jobs(sources) if tables & set(job.tables)]


def _tables(some: Iterable[Job]) -> set[str]:
    """The tables that have a run among these."""
    return {table for job in some if job.is_run for table in job.tables}


def _called(table: str) -> str:
    return table if table.startswith("figure") else f"table {table}"
