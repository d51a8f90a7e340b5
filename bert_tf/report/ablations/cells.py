"""The cells of an ablation's table: a column for each benchmark, the paper's and ours."""

from collections.abc import Sequence
from typing import NamedTuple

from bert_tf.report.runs import RunFacts


class Column(NamedTuple):
    """One benchmark.

    Attributes:
        title: of the benchmark.
        metric: what is shown of it.
    """

    title: str
    metric: str

    @property
    def heading(self) -> str:
        """What stands above the column."""
        return f"{self.title.removeprefix('GLUE: ')} ({self.metric})"


MNLI, QNLI = Column("GLUE: MNLI", "accuracy"), Column("GLUE: QNLI", "accuracy")
MRPC, SST2 = Column("GLUE: MRPC", "accuracy"), Column("GLUE: SST-2", "accuracy")
SQUAD = Column("SQuAD v1.1", "f1")


def column_of(facts: RunFacts) -> Column:
    """Where a run's result stands. Tables 5 and 6 give the accuracy on MRPC, table 1 its F1."""
    title = facts.benchmark.title
    return MRPC if title == MRPC.title else Column(title, facts.benchmark.metrics[0])


def columns_of(runs: Sequence[RunFacts], papers: Sequence[Column]) -> list[Column]:
    """The paper's columns, and those of the runs that it does not have."""
    return list(dict.fromkeys((*papers, *map(column_of, runs))))


def paper_cells(
    columns: Sequence[Column], papers: Sequence[Column], values: Sequence[float]
) -> list[str]:
    """A row of the paper's: `values` are those of its own columns, `papers`."""
    known = dict(zip(papers, values, strict=True))
    return [f"{known[column]:.1f}" if column in known else "" for column in columns]


def run_cells(columns: Sequence[Column], runs: Sequence[RunFacts]) -> list[str]:
    """A row of ours: the result of each run in its column."""
    known = {column_of(each): each for each in runs}
    return [known[c].shown(c.metric) if c in known else "" for c in columns]
