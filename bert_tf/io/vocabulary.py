"""A vocabulary file: one piece a line. The id of a piece is the number of its line, counted from 0.

The format is that of google-research/bert (`tokenization.load_vocab`). The reference accepts blank
lines and repeated pieces without a message. In the vocabulary of a new model both are errors. A
trained model keeps them, since its ids must stay: no text gives a blank piece, and of a repeated
piece the last id counts, as in the reference and in transformers.
"""

import dataclasses
import os
import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from bert_tf.console import logger
from bert_tf.errors import UserError
from bert_tf.io.files import is_there, read_text

VOCABULARY_FILE = "vocab.txt"
PAD, UNK, CLS, SEP, MASK = SPECIAL_TOKENS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")

# The greatest `longest_word`: TensorFlow's regular expressions cannot count more repetitions.
LONGEST_WORD = 999
_LISTS = ("added_tokens", "exact_tokens")  # the settings that are lists of strings


def _are_strings(values: Iterable[Any]) -> bool:
    return all(isinstance(each, str) and each.strip() for each in values)


# For each setting, a check of its value, and the allowed values in words.
_ALLOWED: dict[str, tuple[Callable[[Any], bool], str]] = {
    "lower_case": (lambda value: isinstance(value, bool), "true or false"),
    "strip_accents": (
        lambda value: isinstance(value, bool | None),
        "true, false, or None, which follows lower_case",
    ),
    "split_chinese": (lambda value: isinstance(value, bool), "true or false"),
    "special_tokens": (lambda value: value in ("text", "whole"), '"text" or "whole"'),
    "normalizer": (lambda value: value in ("google", "huggingface"), '"google" or "huggingface"'),
    "longest_word": (
        lambda value: type(value) is int and 1 <= value <= LONGEST_WORD,
        f"a whole number from 1 to {LONGEST_WORD}",
    ),
    **dict.fromkeys(_LISTS, (_are_strings, "strings that are not blank")),
}

# The characters that are stripped from the ends of a line. Other kinds of spaces are pieces of
# published vocabularies.
_BLANKS = " \t\r"
# The most bytes of a file. The largest published vocabulary of a BERT has 5 MB.
_MOST = 2**24
_REMEDY = (
    "for a new model remove it; the vocabulary of a checkpoint must stay as it is, so open it with "
    "Tokenizer.from_checkpoint"
)


@dataclasses.dataclass(frozen=True)
class TokenizerSettings:
    """How a tokenizer reads texts, besides its vocabulary."""

    lower_case: bool = True
    strip_accents: bool | None = None  # None follows `lower_case`
    split_chinese: bool = True  # whether each CJK ideograph is a word of its own
    special_tokens: str = "text"  # whether "[MASK]" and the others are "text", or stay "whole"
    added_tokens: tuple[str, ...] = ()  # pieces of the vocabulary that stay whole in text
    longest_word: int = 200  # a word of more characters is [UNK]
    exact_tokens: tuple[str, ...] = ()  # as `added_tokens`, in the text before it is cleaned
    # The rules for characters: "google" for those of google-research/bert, or "huggingface" for
    # those of the library tokenizers. Few characters differ.
    normalizer: str = "google"

    def __post_init__(self) -> None:
        for name in _LISTS:
            object.__setattr__(self, name, tuple(getattr(self, name)))
        for name, (is_allowed, allowed) in _ALLOWED.items():
            if not is_allowed(value := getattr(self, name)):
                raise UserError(f"{name} of the tokenizer is {value!r}; it must be {allowed}")

    @property
    def strips_accents(self) -> bool:
        """`strip_accents`, or `lower_case` if it is None."""
        return self.lower_case if self.strip_accents is None else self.strip_accents

    def to_dict(self) -> dict[str, Any]:
        """The settings that are not the default, as plain data for JSON."""
        default = TokenizerSettings()
        return {
            name: [*value] if name in _LISTS else value
            for name, value in vars(self).items()
            if value != getattr(default, name)
        }

    def first_difference(self, other: "TokenizerSettings") -> str | None:
        """The name of the first setting that differs from the other's; None if none does."""
        names = [field.name for field in dataclasses.fields(self) if field.name != "strip_accents"]
        names.append("strips_accents")
        different = [name for name in names if getattr(self, name) != getattr(other, name)]
        return different[0].replace("strips", "strip") if different else None

    @property
    def besides_casing(self) -> dict[str, Any]:
        """`to_dict` without `lower_case`, which files have had for longer than the others."""
        return {name: value for name, value in self.to_dict().items() if name != "lower_case"}

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any], name: str) -> "TokenizerSettings":
        """The settings from the fields of `to_dict`; messages call their source `name`."""
        known = [field.name for field in dataclasses.fields(cls)]
        for each in fields:
            if each not in known:
                raise UserError(
                    f"{name}: the tokenizer has an unknown setting {each!r}; update bert_tf, or "
                    "copy it again"
                )
        for each in _LISTS:
            if not isinstance(fields.get(each, []), list | tuple):
                raise UserError(f"{name} is damaged ({each} is not a list); copy it again")
        try:
            return cls(**fields)
        except UserError as error:
            raise UserError(f"{name}: {error}") from None

    @classmethod
    def from_parts(cls, lower_case: Any, others: Any, name: str) -> "TokenizerSettings":
        """The settings of a file that has the casing and `besides_casing` under two keys."""
        if not isinstance(others, Mapping) or "lower_case" in others:
            raise UserError(f"{name} is damaged (settings of the tokenizer); copy it again")
        return cls.from_dict({"lower_case": lower_case, **others}, name)


class TrainedPieces(tuple[str, ...]):
    """The pieces of a trained model, of which some may be blank or repeated."""


def read_vocabulary(path: str | os.PathLike, of_model: bool = False) -> tuple[str, ...]:
    """The pieces of a file in the order of their ids; `of_model` they may be blank or repeated."""
    # Only \n ends a line: a piece may be a character that str.splitlines would cut at. U+2028 is
    # one; it is a piece of the published Chinese vocabulary.
    lines = read_text(path, "vocabulary", _MOST).removesuffix("\n").split("\n")
    if lines[0].startswith("\ufeff"):
        raise UserError(
            f"vocabulary {path}, line 1 starts with a byte-order mark; save the file as UTF-8 "
            "without one"
        )
    pieces, name = (line.strip(_BLANKS) for line in lines), f"vocabulary {path}"
    return pieces_of_model(pieces, name) if of_model else check_vocabulary(pieces, name, "line")


def file_text(pieces: Iterable[str]) -> str:
    """The text of the vocabulary file of these pieces; `read_vocabulary` reads it back."""
    return "".join(f"{piece}\n" for piece in pieces)


def read_beside(folder: Path) -> tuple[str, ...] | None:
    """The pieces of a trained model's `vocab.txt` in `folder`; None where there is none."""
    path = folder / VOCABULARY_FILE
    return read_vocabulary(path, of_model=True) if is_there(path, "vocabulary") else None


def write_beside(folder: Path, vocabulary: Sequence[str]) -> None:
    """Writes `vocab.txt`."""
    path = folder / VOCABULARY_FILE
    path.write_text(file_text(vocabulary), encoding="utf-8", newline="\n")


def check_vocabulary(
    pieces: Iterable[str], name: str = "vocabulary", place: str = "piece"
) -> tuple[str, ...]:
    """The pieces, if they are distinct and hold the special tokens; messages call one a `place`."""
    if isinstance(pieces, TrainedPieces):
        return pieces
    pieces = tuple(pieces)
    first_seen: dict[str, int] = {}
    for number, piece in enumerate(pieces, start=1):
        if not piece:
            raise UserError(f"{name}, {place} {number} is blank; {_REMEDY}")
        if "\n" in piece or piece != piece.strip(_BLANKS):
            raise UserError(
                f"{name}, {place} {number}: {piece!r} contains a line break, or begins or ends "
                "with a blank; remove it, since a vocabulary file cannot store it"
            )
        if piece in first_seen:
            raise UserError(
                f"{name}, {place} {number} repeats {piece!r} of {place} {first_seen[piece]}; "
                f"{_REMEDY}"
            )
        first_seen[piece] = number
    return tuple(pieces_of_model(pieces, name, place))


def pieces_of_model(
    pieces: Iterable[str], name: str = "vocabulary", place: str = "line"
) -> "TrainedPieces":
    """A trained model's pieces; those that a file cannot hold, and no text gives, become blank."""
    kept = tuple("" if "\n" in each or each != each.strip(_BLANKS) else each for each in pieces)
    missing = [token for token in SPECIAL_TOKENS if token not in kept]
    if missing:
        raise UserError(
            f"{name} lacks {', '.join(missing)} ({place}s 1 to {len(kept)} were read); add the "
            "missing special tokens at the end, or copy it again if it was cut"
        )
    return TrainedPieces(kept)


def ids_of(vocabulary: Iterable[str]) -> dict[str, int]:
    """The id of each piece; of a repeated piece the last one."""
    return {piece: number for number, piece in enumerate(vocabulary)}


def fitted(pieces: Sequence[str], rows: int, name: str | os.PathLike) -> tuple[str, ...]:
    """The vocabulary of a trained model with `rows` embeddings, without blank pieces after them."""
    end = len(pieces)
    while end > rows and not pieces[end - 1]:
        end -= 1
    if end < rows:
        logger.warning(
            f"{name}: the vocabulary has {end} pieces, but the model has {rows} rows of "
            "embeddings; copy the vocabulary again if it was cut"
        )
    last = ids_of(pieces)
    odd = [id for id, piece in enumerate(pieces[:end]) if not piece or last[piece] != id]
    if odd:
        logger.warning(
            f"{name}: {len(odd)} pieces of the vocabulary are blank or repeated, such as that of "
            f"id {odd[0]}; all ids stay as they are, and of a repeated piece the last one counts"
        )
    return TrainedPieces(pieces[:end])


def is_lower_case(vocabulary: Sequence[str]) -> bool:
    """Whether text was lower-cased before such pieces were learned. Then they have no capitals and
    no accents; Hangul is decomposed, and Hindi has lost its vowel signs.
    """
    for piece in vocabulary:
        decomposed = unicodedata.normalize("NFD", piece.lower())
        lowered = "".join(each for each in decomposed if unicodedata.category(each) != "Mn")
        if lowered != piece and not re.fullmatch(r"\[.*\]|<.*>", piece):
            return False
    return True
