"""What every task family shows of its texts and of its dev data."""

from abc import ABC, abstractmethod
from collections.abc import Sequence

from bert_tf.interpret.looks import Look, Mark, Section
from bert_tf.interpret.subject import Subject
from bert_tf.predict.rows import Row


class Pictures(ABC):
    """The pictures of one model.

    Args:
        subject: the model.

    Attributes:
        accepted: the names of the inputs of a row; several where there is a choice.
    """

    accepted: tuple[tuple[str, ...], ...]

    def __init__(self, subject: Subject):
        self.subject = subject

    @abstractmethod
    def look(self, row: Row) -> Look:
        """What the model says of a text, and why."""

    def among_texts(self, marks: Sequence[Mark]) -> list[Section]:
        """The texts that were looked at, where there are no dev data; by default nothing."""
        del marks
        return []

    def dev(self, rows: int, marks: Sequence[Mark]) -> list[Section]:
        """What it says of the dev data of a run; by default nothing.

        Args:
            rows: how many of them to take.
            marks: of the texts that were looked at.

        Raises:
            UserError: the data cannot be read.
        """
        del rows, marks
        return []
