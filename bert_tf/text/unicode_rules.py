"""The Unicode properties of characters in google-research/bert and in Hugging Face's tokenizers.

The former uses `unicodedata`; `huggingface_characters.json` has those of tokenizers 0.23.3.
"""

import functools
import json
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

_OF_HUGGING_FACE = Path(__file__).with_name("huggingface_characters.json")
# BERT makes each of these ideographs a word of its own.
_IDEOGRAPHS = (
    (0x4E00, 0x9FFF),
    (0x3400, 0x4DBF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2B73F),
    (0x2B740, 0x2B81F),
    (0x2B820, 0x2CEAF),
    (0xF900, 0xFAFF),
    (0x2F800, 0x2FA1F),
)
# The categories in which tokenizers knows fewer characters than Python.
_LISTED = ("Mn", "Cf", "P")
# Letters that Unicode decomposes but tokenizers, with its older table of decompositions, does not.
_WHOLE = (0x11938, 0x105C9, 0x105E4, 0x11383, 0x11385, 0x1138E, 0x11391, 0x113C5, 0x113C7, 0x113C8)
_WHOLE_LETTERS = frozenset(map(chr, (*_WHOLE, *range(0x16121, 0x16129), *range(0x16D68, 0x16D6B))))


@dataclass(frozen=True)
class UnicodeRules:
    """The rules of google-research/bert, or those of tokenizers."""

    deleted: tuple[str, ...]  # the categories of characters that cleaning drops
    ideographs: tuple[tuple[int, int], ...] = _IDEOGRAPHS
    final_sigma: bool = True  # a capital sigma at the end of a word becomes ς, and not σ
    # Characters and their categories. If there are any, all others of the categories `_LISTED` are
    # letters. Without them, `unicodedata` decides.
    listed: Mapping[str, str] = field(default_factory=dict)
    lower_cases: Mapping[str, str] = field(default_factory=dict)  # that differ from Python's
    whole_letters: frozenset[str] = frozenset()  # letters that are not decomposed

    def category(self, character: str) -> str:
        category = self.listed.get(character) or unicodedata.category(character)
        if self.listed and character not in self.listed and category.startswith(_LISTED):
            return "Lo"
        return category

    def is_deleted(self, character: str) -> bool:
        """True for what cleaning drops: control and format characters, U+FFFD and the like."""
        if character in "\t\n\r":
            return False
        return character == "\ufffd" or self.category(character) in self.deleted

    def lowered(self, character: str) -> str:
        """The character in lower case; a capital sigma becomes σ."""
        return self.lower_cases.get(character) or character.lower()

    def decomposed(self, text: str) -> str:
        parts = (e if e in self.whole_letters else unicodedata.normalize("NFD", e) for e in text)
        return "".join(parts)


@functools.cache
def rules_of(normalizer: str) -> UnicodeRules:
    """The rules of a `TokenizerSettings.normalizer`."""
    if normalizer == "google":
        return UnicodeRules(("Cc", "Cf"))
    known = json.loads(_OF_HUGGING_FACE.read_text(encoding="utf-8"))
    pairs = (entry.split(">") for entry in " ".join(known.pop("lower")).split())
    lower_cases = {chr(int(before, 16)): chr(int(after, 16)) for before, after in pairs}
    categories: dict[str, str] = {}
    for name, lines in known.items():
        for entry in " ".join(lines).split():
            first, _, last = entry.partition("-")
            block = range(int(first, 16), int(last or first, 16) + 1)
            categories |= dict.fromkeys(map(chr, block), name)
    # By a slip, the blocks of tokenizers leave out U+2B820 to U+2B91F.
    ideographs = [each for each in _IDEOGRAPHS if each[0] != 0x2B820]
    return UnicodeRules(
        ("Cc", "Cf", "Co"),
        (*ideographs, (0x2B920, 0x2CEAF)),
        final_sigma=False,
        listed=categories,
        lower_cases=lower_cases,
        whole_letters=_WHOLE_LETTERS,
    )
