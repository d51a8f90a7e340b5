"""The vocabulary that belongs to a checkpoint."""

import re
from collections.abc import Sequence
from pathlib import Path

from bert_tf.text.vocabulary import file_text, read_vocabulary

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
    """Whether text was lower-cased before such pieces were learned: none has a capital letter.

    Letters of all alphabets count. Special tokens such as [MASK] and <S> are not looked at.
    """
    return not any(
        piece != piece.lower() for piece in vocabulary if not re.fullmatch(r"\[.*\]|<.*>", piece)
    )
