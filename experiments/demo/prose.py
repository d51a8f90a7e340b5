"""Finds the English sentences of a documentation string.

Docstrings mix prose with code, doctests, tables, headings, citations and the markup of three
dialects: reStructuredText, numpydoc (https://numpydoc.readthedocs.io/en/latest/format.html) and
Google style (https://google.github.io/styleguide/pyguide.html#383-functions-and-methods). This
module does not parse these dialects. It finds the paragraphs of prose, removes the markup, cuts the
text into sentences, and keeps a sentence only if it reads as English. There is enough text, so
doubtful sentences are dropped.
"""

import inspect
import re
from collections.abc import Iterator

from bert_tf.data.corpora.sentences import split_sentences

MIN_WORDS, MAX_WORDS = 4, 60
MIN_SHARE_OF_PLAIN_WORDS = 0.8

_UNDERLINE = re.compile(r"""([=\-~^"'#*+`.])\1{2,}$""")
_TABLE_RULE = re.compile(r"[=+\-|: ]{4,}$")
_DIRECTIVE = re.compile(r"\.\. ?([\w-]+) ?:: ?(.*)")
_PROSE_DIRECTIVES = frozenset(
    {"attention", "caution", "hint", "important", "note", "tip", "warning"}
)
_BULLET = re.compile(r"(?:[-*+•]|\(?\d{1,2}[.)])\s+(\S.*)")
_FIELD = re.compile(r":(?:param|arg|return|raise|except|var|ivar)\w*(?: [^:]*)?:\s*(.*)")
_FIELD_OF_TYPES = re.compile(r":(?:type|rtype|vartype)\b")
_GOOGLE_HEADING = re.compile(r"[A-Z][a-z]+(?: [a-z]+)?:$")
_GOOGLE_ENTRY = re.compile(r"\*{0,2}`?[\w.]+`?(?:, `?\w+`?)*(?: ?\([^)]*\))?: +(\S.*)")
_DROPPED_SECTIONS = frozenset({"methods", "reference", "references", "see also"})
_LEGAL = re.compile(
    r"copyright|licen[cs]e|warrant(?:y|ies)|redistribut|hereby|infringement|rights reserved"
)

_MAY_HAVE_MARKUP = re.compile(r"[`*\[\t]|  ")
_MARKUP = [
    # Sphinx shows the last name of :class:`~numpy.ndarray`, the title of :ref:`the guide <guide>`,
    # and `.Axes` without its dot.
    (re.compile(r"(?::[\w:+-]+:)?(?<!`)`~(?:\w*\.)*([^`]*)`"), r"\1"),
    (re.compile(r":[\w:+-]+:`[!.]?([^`<]+?)(?:\s*<[^`]*>)?`"), r"\1"),
    (re.compile(r"(?<!`)`\.([A-Za-z][^`]*)`"), r"\1"),
    (re.compile(r"`([^`<]+?)\s*<[^`>]*>`_{1,2}"), r"\1"),
    (re.compile(r"!?\[([^\]]*)\]\((?:[^()\s]|\([^()]*\))*\)"), r"\1"),
    (re.compile(r"\s*\(see(?: \[[\w.-]{1,12}\]_)+\)|\s*\[[\w.-]{1,12}\]_"), ""),
    (re.compile(r"`{1,3}([^`]+)`{1,3}_?"), r"\1"),
    (re.compile(r"(?<![\w*])\*{1,2}([^\s*](?:[^*]*[^\s*])?)\*{1,2}(?![\w*])"), r"\1"),
    (re.compile(r"\s+"), " "),
]

_PLAIN_WORD = re.compile(r"""["'(\[]*[A-Za-z]+(?:['/-][A-Za-z]+)*["')\],.;:!?]*$""")
_NOT_PROSE = re.compile(r"[{}<>=|\\^@$~`\x00-\x1f]|::|//|\.\. |%\(|__")
_FUNCTION_WORDS = frozenset(
    "a an and are as at be but by can does for from has have if in into is it its may must no not"
    " of on or should that the then there these this to was were when which will with you".split()
)


def sentences(docstring: str) -> tuple[str, ...]:
    """The English sentences of a documentation string, in order, free of markup."""
    found: list[str] = []
    legal = _LEGAL.search(docstring.lower()) is not None
    for number, paragraph in enumerate(_paragraphs(inspect.cleandoc(docstring).split("\n"))):
        if legal and _LEGAL.search(paragraph.lower()):
            continue
        text = _without_markup(paragraph)
        if number == 0 and text[-1:].isalnum():
            # Half of all summary lines have no full stop, depending on their authors.
            text += "."
        found.extend(filter(reads_as_english, split_sentences(text)))
    return tuple(found)


def reads_as_english(sentence: str) -> bool:
    """Whether a sentence is complete and consists mostly of words, not of code."""
    words = sentence.split()
    if not MIN_WORDS <= len(words) <= MAX_WORDS or _NOT_PROSE.search(sentence):
        return False
    if not sentence.rstrip("\"')]").endswith((".", "!", "?")) or not sentence[0].isalpha():
        return False
    plain = sum(_PLAIN_WORD.match(word) is not None for word in words)
    return plain >= MIN_SHARE_OF_PLAIN_WORDS * len(words) and any(
        word.lower() in _FUNCTION_WORDS for word in words
    )


def _without_markup(text: str) -> str:
    if _MAY_HAVE_MARKUP.search(text):
        for pattern, plain in _MARKUP:
            text = pattern.sub(plain, text)
    return text.strip()


class _Block:
    """The lines of a paragraph so far, and its indentation.

    The first line of a hanging paragraph (a list item, a parameter) is further to the left than the
    others. Any other paragraph ends where the indentation changes.
    """

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.indent = 0
        self.hanging = False

    def add(self, text: str, indent: int, hanging: bool = False) -> None:
        if not self.lines:
            self.indent, self.hanging = indent, hanging
        self.lines.append(text)

    def close(self) -> list[str]:
        """Empties the block; returns its paragraph, if there is one."""
        text = " ".join(self.lines).strip()
        self.lines = []
        return [text] if text else []


def _paragraphs(lines: list[str]) -> Iterator[str]:
    """The texts that may be prose: paragraphs, list items and descriptions of parameters."""
    block = _Block()
    code_until = ""  # the fence that ends a block of code
    code_deeper_than: int | None = None  # the indentation above a block of code; None outside
    skip_to_blank = False  # inside a doctest or a table
    dropped_section = False
    heading_indent: int | None = None  # of a heading such as `Args:`; None below other headings
    for number, line in enumerate(lines):
        text = line.strip()
        indent = len(line) - len(line.lstrip())
        following = lines[number + 1].strip() if number + 1 < len(lines) else ""

        if code_until:
            if text.startswith(code_until):
                code_until = ""
            continue
        if not text:
            skip_to_blank = False
            if block.lines and block.lines[-1].endswith("::"):
                code_deeper_than = block.indent
            yield from block.close()
            continue
        if skip_to_blank:
            continue
        if code_deeper_than is not None:
            if indent > code_deeper_than:
                continue
            code_deeper_than = None
        if heading_indent is not None and indent <= heading_indent and not _BULLET.match(text):
            dropped_section = False

        if text.startswith(("```", "~~~")):
            yield from block.close()
            code_until = text[:3] if text.count(text[:3]) == 1 else ""
        elif text.startswith((">>>", "In [")):
            yield from block.close()
            skip_to_blank = True
        elif _UNDERLINE.match(following) and not block.lines:
            dropped_section = text.lower().rstrip(":") in _DROPPED_SECTIONS
            heading_indent = None
        elif _UNDERLINE.match(text):
            continue
        elif _TABLE_RULE.match(text):
            block = _Block()
            skip_to_blank = True
        elif _GOOGLE_HEADING.match(text) and not block.lines:
            dropped_section = text.lower().rstrip(":") in _DROPPED_SECTIONS
            heading_indent = indent
        elif dropped_section:
            continue
        elif text.startswith(".. "):
            yield from block.close()
            directive = _DIRECTIVE.match(text)
            if directive and directive[1] in _PROSE_DIRECTIVES:
                block.add(directive[2], indent, hanging=True)
            else:
                code_deeper_than = indent
        elif _FIELD_OF_TYPES.match(text):
            yield from block.close()
        elif (item := _BULLET.match(text) or _FIELD.match(text)) or (
            heading_indent is not None
            and indent > heading_indent
            and (not block.lines or (block.hanging and indent <= block.indent))
            and (item := _GOOGLE_ENTRY.match(text))
        ):
            yield from block.close()
            block.add(item[1], indent, hanging=True)
        else:
            if indent <= block.indent if block.hanging else indent != block.indent:
                yield from block.close()
            block.add(text, indent)
    yield from block.close()
