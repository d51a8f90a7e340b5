"""Pieces of HTML in which nothing from outside can be anything but text."""

import html
from collections.abc import Iterable, Sequence


class Html(str):
    """Markup that is ready for the page; every other string is text, and is escaped."""

    __slots__ = ()


def tag(name: str, *inside: str, **attributes: object) -> Html:
    """An element; an underscore in an attribute's name stands for a hyphen, and one at its end for
    nothing (`class_`).
    """
    given = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{html.escape(str(value))}"'
        for key, value in attributes.items()
    )
    return Html(f"<{name}{given}>{joined(inside)}</{name}>")


def joined(parts: Iterable[str]) -> Html:
    """One after the other, what is not markup escaped."""
    return Html("".join(part if isinstance(part, Html) else html.escape(part) for part in parts))


def table(head: Sequence[str], rows: Iterable[Sequence[str]], **attributes: object) -> Html:
    """A table with one line of headings; the first cell of each row is a heading too."""
    lines = [tag("tr", *(tag("th", cell, scope="col") for cell in head))]
    for first, *others in rows:
        cells = (cell if is_cell(cell) else tag("td", cell) for cell in others)
        lines.append(tag("tr", tag("th", first, scope="row"), *cells))
    return tag("table", *lines, **attributes)


def is_cell(part: str) -> bool:
    """Whether something is already a cell of a table, with attributes of its own."""
    return isinstance(part, Html) and part.startswith("<td")


def figures(value: float) -> str:
    """A number to be read: three figures behind the point, and a true minus sign."""
    return f"{value:.3f}".replace("-", "−")
