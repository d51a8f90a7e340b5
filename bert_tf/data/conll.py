"""Sentences with a tag on every word, in the columns of the CoNLL shared tasks.

One word a line, its columns parted by tabs or else by spaces; a blank line ends a sentence, and a
line that begins with -DOCSTART- a document. CoNLL-2003 (Tjong Kim Sang and De Meulder 2003) has
four columns, WNUT-17 (Derczynski et al. 2017) two.
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from bert_tf.data.tag_schemes import Tag, find_violation, parse, to_iob2
from bert_tf.errors import UserError
from bert_tf.files import read_text

_DOCUMENT = "-DOCSTART-"
_SHOWN = 40


class Sentence(NamedTuple):
    """One sentence.

    Attributes:
        words: its words.
        tags: their tags, in IOB2.
        line: the line of the first word; the others are on the lines after it.
        document: the number of -DOCSTART- lines before it.
    """

    words: tuple[str, ...]
    tags: tuple[str, ...]
    line: int
    document: int


class _Line(NamedTuple):
    """A word with its tag as it stands in line `number`."""

    number: int
    word: str
    tag: Tag


def read_conll(
    path: Path, word_column: int = 0, tag_column: int = -1, lenient_tags: bool = False
) -> list[Sentence]:
    """The sentences of a file, in its order.

    Args:
        path: the file.
        word_column: column of the words, counted from 0, or from the end if negative.
        tag_column: column of the tags.
        lenient_tags: take tags that break the file's scheme as conlleval and seqeval do (see
            `Tag.begins`), instead of raising.

    Raises:
        UserError: another number of columns than in the first line, no such column, no word, what
            is no tag, a tag that breaks the scheme of the others, no sentence at all; with the
            file and the line.
    """
    rows = list(_sentences(path, word_column, tag_column))
    if not rows:
        raise UserError(f"{path} has no sentences")
    if not lenient_tags:
        _check_scheme(path, rows)
    return [
        Sentence(
            tuple(line.word for line in lines),
            to_iob2([line.tag for line in lines]),
            lines[0].number,
            document,
        )
        for document, lines in rows
    ]


def _sentences(
    path: Path, word_column: int, tag_column: int
) -> Iterator[tuple[int, Sequence[_Line]]]:
    """The document and the lines of each sentence."""
    document, expected = 0, 0
    lines: list[_Line] = []
    # Not `splitlines`: a word may hold what Unicode takes for the end of a line.
    for number, text in enumerate(read_text(path, "data").removeprefix("\ufeff").split("\n"), 1):
        fields = _fields(text)
        if not fields or fields[0].startswith(_DOCUMENT):
            if lines:
                yield document, lines
            lines = []
            document += bool(fields)
            continue
        expected = expected or len(fields)
        if len(fields) != expected:
            raise UserError(
                f"{path}, line {number}: {len(fields)} columns, but {expected} in the lines before"
            )
        word = _column(fields, word_column, "word", path, number)
        tag = parse(_column(fields, tag_column, "tag", path, number))
        if tag is None:
            raise UserError(
                f"{path}, line {number}: {fields[tag_column][:_SHOWN]!r} is no tag; tags are O, or "
                "B-, I-, E-, S-, L- or U- and a type; data.tag_column says where they stand"
            )
        lines.append(_Line(number, word, tag))
    if lines:
        yield document, lines


def _fields(text: str) -> list[str]:
    text = text.removesuffix("\r")
    if not text.strip():
        return []
    return text.split("\t") if "\t" in text else re.findall("[^ ]+", text)


def _column(fields: list[str], column: int, what: str, path: Path, number: int) -> str:
    if not -len(fields) <= column < len(fields):
        raise UserError(
            f"{path}, line {number}: no column {column} for the {what}; columns are 0 to "
            f"{len(fields) - 1}; set data.{what}_column"
        )
    if not fields[column].strip():
        raise UserError(f"{path}, line {number}: the {what} is empty")
    return fields[column]


def _check_scheme(path: Path, rows: Sequence[tuple[int, Sequence[_Line]]]) -> None:
    found = find_violation([[line.tag for line in lines] for _, lines in rows])
    if found is not None:
        number = rows[found.sentence][1][found.word].number
        raise UserError(
            f"{path}, line {number}: {found.why}; mend it, or set data.lenient_tags: true to take "
            "what continues no entity for the beginning of one, as conlleval does"
        )
