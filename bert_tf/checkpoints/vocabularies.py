"""The vocabulary that belongs to a checkpoint."""

import re
import unicodedata
from collections.abc import Sequence
from pathlib import Path

from bert_tf.io.vocabulary import file_text, read_vocabulary

VOCABULARY_FILE = "vocab.txt"


def read_beside(folder: Path) -> tuple[str, ...] | None:
    """The pieces of `vocab.txt` in `folder`; None where there is none.

    Raises:
        UserError: it is not a vocabulary.
    """
    path = folder / VOCABULARY_FILE
    return read_vocabulary(path) if path.is_file() else None


def write_beside(folder: Path, vocabulary: Sequence[str]) -> None:
    """Writes `vocab.txt`."""
    path = folder / VOCABULARY_FILE
    path.write_text(file_text(vocabulary), encoding="utf-8", newline="\n")


def is_lower_case(vocabulary: Sequence[str]) -> bool:
    """Whether text was lower-cased before such pieces were learned: it would not change them.

    It has neither capitals nor accents then, of any alphabet: also Hangul is taken apart, and Hindi
    loses its vowel signs. Special tokens such as [MASK] and <S> are not looked at.
    """
    return all(
        piece == _lower_cased(piece)
        for piece in vocabulary
        if not re.fullmatch(r"\[.*\]|<.*>", piece)
    )


def _lower_cased(piece: str) -> str:
    """What BERT's lower-casing makes of a piece: without accents too."""
    decomposed = unicodedata.normalize("NFD", piece.lower())
    return "".join(each for each in decomposed if unicodedata.category(each) != "Mn")
