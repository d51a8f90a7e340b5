"""Tagged sentences in the columns of the CoNLL shared tasks.

One word a line, with columns separated by tabs or else by spaces. A blank line ends a sentence, and
a line that begins with -DOCSTART- begins a document. CoNLL-2003 (Tjong Kim Sang and De Meulder
2003) has four columns, WNUT-17 (Derczynski et al. 2017) two.
"""

import dataclasses
import re
import string
from collections.abc import Iterator
from pathlib import Path

from bert_tf.data.columns import Columns, columns_of_rows
from bert_tf.errors import UserError
from bert_tf.io.json_files import text_of
from bert_tf.tasks.token_classification.tagged_sentences import in_scheme

_DOCUMENT = "-DOCSTART-"


def read_conll(
    path: Path,
    word_column: int = 0,
    tag_column: int = -1,
    lenient_tags: bool = False,
    needs_tags: bool = True,
) -> Columns:
    r"""The sentences of a file, in its order, each with the line of its first word as its place.

    `ids` are numbers of documents; sentences before the first -DOCSTART- are of document 0.

    >>> _ = Path("train.txt").write_text("Ada B-PER\nmet O\nBabbage B-PER\n\nHello O\n")
    >>> rows = read_conll(Path("train.txt"))
    >>> rows.values, rows.targets, rows.places
    (([['Ada', 'met', 'Babbage'], ['Hello']],), [('B-PER', 'O', 'B-PER'), ('O',)], [1, 5])

    Args:
        path: the file.
        word_column: column of the words, counted from 0, or from the end if negative.
        tag_column: column of the tags.
        lenient_tags: see `in_scheme`.
        needs_tags: whether it is a mistake if there are no tags. If not, a file of one column is
            read as words alone.

    Raises:
        UserError: another number of columns than in the first line, no such column, no word, no
            tag, a tag that breaks the scheme of the others, no sentence at all; with the file and
            the line.
    """
    sentences = _sentences(path, word_column, tag_column, needs_tags)
    words, tags, lines, documents = columns_of_rows(sentences, 4)
    rows = Columns(("words",), (words,), tags, str(path), lines, ids=documents, path=path)
    has_tags = any(each is not None for each in tags)
    return in_scheme(rows if has_tags else dataclasses.replace(rows, targets=None), lenient_tags)


def separator(path: Path) -> str:
    """The separator of the columns of a file: a tab, or a space."""
    return "\t" if "\t" in text_of(path) else " "


def _sentences(
    path: Path, word_column: int, tag_column: int, needs_tags: bool
) -> Iterator[tuple[list[str], tuple[str, ...] | None, int, int]]:
    """The words of each sentence, its tags of any scheme, its first line, and its document."""
    document, columns = 0, 0
    words: list[str] = []
    tags: list[str] = []
    # The blank line ends the last sentence. `splitlines` would not do, since a word may contain a
    # character that Unicode treats as the end of a line.
    lines = [*text_of(path).split("\n"), ""]
    for number, text in enumerate(lines, start=1):
        fields = _fields(text)
        if not fields or fields[0].startswith(_DOCUMENT):
            if words:
                yield words, tuple(tags) or None, number - len(words), document
            words, tags = [], []
            document += bool(fields)
            continue
        if any("\r" in field for field in fields):
            raise UserError(
                f"{path}, line {number}: lines end with CR only; convert the line endings to LF"
            )
        columns = columns or len(fields)
        if len(fields) != columns:
            raise UserError(
                f"{path}, line {number}: {len(fields)} columns, but earlier lines have {columns}"
            )
        if columns == 1 and not needs_tags:
            words.append(fields[0])
            continue
        words.append(_column(fields, word_column, "word", path, number))
        tags.append(_column(fields, tag_column, "tag", path, number))
        if word_column % columns == tag_column % columns:
            raise UserError(
                f"{path}, line {number}: the words and the tags are the same column; add the tags, "
                "or set data.tag_column to their column"
            )


def _fields(text: str) -> list[str]:
    text = text.removesuffix("\r")
    if _is_blank(text):
        return []
    return text.split("\t") if "\t" in text else re.findall("[^ ]+", text)


def _is_blank(text: str) -> bool:
    """Only ASCII blanks count; a word may consist of others, such as the ideographic space."""
    return not text.strip(string.whitespace)


def _column(fields: list[str], column: int, what: str, path: Path, number: int) -> str:
    if not -len(fields) <= column < len(fields):
        raise UserError(
            f"{path}, line {number}: no column {column} for the {what}; columns are 0 to "
            f"{len(fields) - 1}; set data.{what}_column"
        )
    if _is_blank(fields[column]):
        raise UserError(f"{path}, line {number}: the {what} is empty")
    return fields[column]
