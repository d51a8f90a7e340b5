"""What the small tables are made of: every job, in an order in which each finds what it needs."""

from collections.abc import Iterable, Sequence

from bert_tf.console import logger
from bert_tf.errors import UserError
from bert_tf.experiments.small.job import Job, Sources
from bert_tf.experiments.small.own_tables import finetunings, pretrainings
from bert_tf.experiments.small.published_tables import runs_of_published

TABLES = ("1", "2", "3", "4", "5", "6", "7", "figure 4")


def jobs(sources: Sources) -> list[Job]:
    """All jobs for which there are data."""
    return [
        *_preparation(sources),
        *pretrainings(sources),
        *finetunings(sources),
        *runs_of_published(sources),
    ]


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


def _preparation(sources: Sources) -> list[Job]:
    """Corpus, vocabulary, and SQuAD's dev file in two."""
    own = ("5", "6", "figure 4")
    corpus, vocabulary, parts = sources.corpus, sources.vocabulary, sources.squad
    novels, wikitext = sources.data / "novels", sources.data / "wikitext2" / "train.txt"
    squad = sources.data / "squad" / "dev-v1.1.json"
    return [
        Job(
            own,
            "bert_tf.experiments.small.corpus",
            ("--novels", str(novels), "--wikitext", str(wikitext), "--out", str(corpus)),
            corpus,
            given=(novels, wikitext),
        ),
        Job(
            own,
            "bert_tf",
            ("vocab", "--input", str(corpus), "--size", "8000", "--out", str(vocabulary)),
            vocabulary,
            needs=(corpus,),
        ),
        Job(
            ("2", "5"),
            "bert_tf.experiments.squad.split_by_article",
            (str(squad), "--train", "38", "--out", str(parts)),
            # The one that is written last.
            parts / "dev-v1.1.json",
            given=(squad,),
        ),
    ]
