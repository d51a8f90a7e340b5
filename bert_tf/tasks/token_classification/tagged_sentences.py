"""Sentences with a tag on every word, or on none, wherever they were read."""

from collections.abc import Sequence
from typing import NamedTuple

from bert_tf.errors import UserError
from bert_tf.tasks.token_classification.tag_schemes import Tag, find_violation, to_iob2


class Sentence(NamedTuple):
    """One sentence.

    >>> sentence = Sentence(("Ada", "sat"), ("B-PER", "O"), row=1, line=7)
    >>> sentence.known_tags, sentence.place(1)
    (('B-PER', 'O'), 'line 8')

    Attributes:
        words: its words.
        tags: their tags, in IOB2; None if they are not known.
        row: its number among all sentences, counted from 1.
        line: the line of the first word in a file of one word a line, else None; the other words
            are on the lines after it.
        document: the number of its document.
    """

    words: tuple[str, ...]
    tags: tuple[str, ...] | None
    row: int
    line: int | None = None
    document: int = 0

    @property
    def known_tags(self) -> tuple[str, ...]:
        """`tags` of data that have them. Raises ValueError if they are None."""
        if self.tags is None:
            raise ValueError(f"sentence {self.row} has no tags")
        return self.tags

    def place(self, word: int) -> str:
        """The place of word `word`, counted from 0, for a message."""
        if self.line is None:
            return f"row {self.row}, word {word + 1}"
        return f"line {self.line + word}"


class RawSentence(NamedTuple):
    """A sentence as it was read, its tags of any scheme; otherwise as `Sentence`."""

    words: Sequence[str]
    tags: Sequence[Tag] | None
    line: int | None = None
    document: int = 0


def tidied(source: str, rows: Sequence[RawSentence], lenient_tags: bool = False) -> list[Sentence]:
    """Sentences in IOB2.

    >>> tags = [Tag("S", "PER"), Tag("", "")]  # of BIOES
    >>> tidied("train.txt", [RawSentence(["Ada", "sat"], tags)])[0].tags
    ('B-PER', 'O')

    Args:
        source: the name of their origin in messages.
        rows: the sentences as they were read; all of them have tags, or none.
        lenient_tags: take tags that break the scheme of the others as conlleval and seqeval do (see
            `Tag.begins`), instead of raising.

    Raises:
        UserError: a tag that breaks the scheme of the others, or no sentence at all.
    """
    if not rows:
        raise UserError(f"{source} has no sentences")
    sentences = [
        Sentence(
            tuple(each.words),
            None if each.tags is None else to_iob2(each.tags),
            row,
            each.line,
            each.document,
        )
        for row, each in enumerate(rows, start=1)
    ]
    tagged = [each.tags for each in rows if each.tags is not None]
    if lenient_tags or not tagged:
        return sentences
    found = find_violation(tagged)
    if found is not None:
        place = sentences[found.sentence].place(found.word)
        raise UserError(
            f"{source}, {place}: {found.why}; mend it, or set data.lenient_tags: true to take what "
            "continues no entity for the beginning of one, as conlleval does"
        )
    return sentences
