"""Splitting paragraphs into sentences, by rule.

A sentence ends:

- at `.`, `!`, `?`, `…` or a similar mark of another script, if a space follows and the next word
  does not begin in lower case. In a paragraph without capitals, the case of the next word does not
  matter. Closing quotes and brackets belong to the sentence.
- at the CJK marks `。！？．`, even without a space.
- at the end of a paragraph, that is, at a blank line. A single line break counts as a space, since
  books are wrapped at a column.

A full stop does not end a sentence after a title (`Mr.`), after an abbreviation that goes on
(`e.g.`) or after one initial (`J. S. Bach`).

Next sentence prediction needs pieces of running text in order, not perfect sentences. So a missed
or wrong boundary does no harm.
"""

import re

_PARAGRAPH_END = re.compile(r"\n[^\S\n]*\n\s*")

# It begins with one plain set of characters, which `re` finds fast, and the possessive `*+` keeps
# it linear on long runs of dots.
_WITHOUT_SPACE = "。！？．"
_WITH_SPACE = ".!?…؟۔।॥։"  # the last five are Arabic, Urdu, Hindi (two) and Armenian
_ALL = _WITHOUT_SPACE + _WITH_SPACE
_MARKS = re.compile(rf"""[{_ALL}][{_ALL}"'”’»)\]」』）]*+""")
_OPENING = "\"'“‘«(["
_GO_ON = frozenset(
    ["Mr", "Mrs", "Ms", "Messrs", "Dr", "Prof", "St", "Rev", "Hon", "Gen", "Col", "Capt", "Lieut"]
    + ["Lt", "Sgt", "Jr", "Sr", "Nos", "vol", "Vol", "ch", "Ch", "fig", "Fig", "eq", "Eq", "sec"]
    + ["Sec", "pp", "ed", "Ed", "cf", "ca", "approx", "vs", "viz", "e.g", "i.e"]
)


def split_sentences(text: str) -> list[str]:
    r"""The sentences of `text` in their order, each on one line, none of them blank.

    >>> split_sentences("Mr. Smith sat\ndown. He slept.\n\nA new paragraph")
    ['Mr. Smith sat down.', 'He slept.', 'A new paragraph']
    """
    sentences = []
    for part in _PARAGRAPH_END.split(text):
        paragraph, start = " ".join(part.split()), 0
        for marks in _MARKS.finditer(paragraph):
            if _ends_sentence(paragraph, marks):
                sentences.append(paragraph[start : marks.end()].lstrip())
                start = marks.end()
        if start < len(paragraph):
            sentences.append(paragraph[start:].lstrip())
    return sentences


def _ends_sentence(paragraph: str, marks: re.Match[str]) -> bool:
    after = paragraph[marks.end() : marks.end() + 4]
    if not after.startswith(" "):
        return marks[0][0] in _WITHOUT_SPACE
    if after.lstrip(" " + _OPENING)[:1].islower() and not paragraph.islower():
        return False
    if marks[0] != ".":
        return True
    word = paragraph[paragraph.rfind(" ", 0, marks.start()) + 1 : marks.start()]
    word = word.lstrip(_OPENING)
    is_initial = len(word) == 1 and word.isupper() and word != "I"
    return not is_initial and word not in _GO_ON
