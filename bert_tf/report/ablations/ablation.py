"""What each of the other modules in this package finds."""

from collections.abc import Sequence
from typing import NamedTuple

from bert_tf.report.page import Section
from bert_tf.report.runs import RunFacts


class Ablation(NamedTuple):
    """A group of runs that differ in one thing.

    Attributes:
        section: their table.
        shown: those that need no other table, since this one has their result.
    """

    section: Section
    shown: Sequence[RunFacts]
