"""BERT's tokenizer once more, character by character in plain Python, to hold the graph against.

Written from the description of google-research/bert's algorithm (commit eedf571); the tests' pinned
vectors come from that code itself.
"""

import unicodedata

CJK_BLOCKS = (
    "\u3400\u4dbf",
    "\u4e00\u9fff",
    "\uf900\ufaff",
    "\U00020000\U0002a6df",
    "\U0002a700\U0002b73f",
    "\U0002b740\U0002b81f",
    "\U0002b820\U0002ceaf",
    "\U0002f800\U0002fa1f",
)


def words(
    text: str | bytes,
    lower_case: bool,
    strip_accents: bool | None = None,
    split_chinese: bool = True,
) -> list[str]:
    """The words of `text`, cleaned, in order; punctuation and ideographs are words."""
    if isinstance(text, bytes):
        text = text.decode("utf-8", "ignore")
    kept = "".join(_cleaned(each, split_chinese) for each in text)
    found = []
    for token in kept.split():
        if lower_case:
            token = token.lower()
        if lower_case if strip_accents is None else strip_accents:
            decomposed = unicodedata.normalize("NFD", token)
            token = "".join(each for each in decomposed if unicodedata.category(each) != "Mn")
        found += "".join(f" {e} " if is_punctuation(e) else e for e in token).split()
    return found


def _cleaned(character: str, split_chinese: bool) -> str:
    if character in "\t\n\r" or unicodedata.category(character) == "Zs":
        return " "
    if character == "\ufffd" or unicodedata.category(character) in ("Cc", "Cf"):
        return ""
    if split_chinese and any(first <= character <= last for first, last in CJK_BLOCKS):
        return f" {character} "
    return character


def is_punctuation(character: str) -> bool:
    """Unicode's punctuation, and ASCII's signs."""
    is_sign = "!" <= character <= "~" and not character.isalnum()
    return is_sign or unicodedata.category(character).startswith("P")


def pieces(
    text: str | bytes,
    vocabulary: set[str],
    lower_case: bool,
    longest_word: int = 200,
    **settings: bool | None,
) -> list[str]:
    """The word pieces of `text`: always the longest that fits, [UNK] for a word that none fits.

    `settings` are those of `words`.
    """
    found = words(text, lower_case, **settings)
    return [piece for word in found for piece in _split(word, vocabulary, longest_word)]


def _split(word: str, vocabulary: set[str], longest_word: int) -> list[str]:
    if len(word) > longest_word:
        return ["[UNK]"]
    found, start = [], 0
    while start < len(word):
        prefix = "##" if start else ""
        ends = range(len(word), start, -1)
        end = next((e for e in ends if prefix + word[start:e] in vocabulary), None)
        if end is None:
            return ["[UNK]"]
        found.append(prefix + word[start:end])
        start = end
    return found
