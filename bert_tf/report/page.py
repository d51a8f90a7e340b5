"""A page of sections with tables and pictures, as Markdown or as one HTML file."""

import base64
import dataclasses
import html
import urllib.parse
from collections.abc import Sequence

_STYLE = """\
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; margin: 1rem 0; }
th, td { border-bottom: 1px solid #ccc; padding: .3rem .8rem; text-align: left; }
th + th, td + td { text-align: right; }
tr.paper { color: #666; }
img { max-width: 100%; }"""


@dataclasses.dataclass(frozen=True)
class Row:
    """A line of a table.

    Attributes:
        cells: what stands in it.
        quoted: whether it is somebody else's result, such as the paper's.
    """

    cells: tuple[str, ...]
    quoted: bool = False


@dataclasses.dataclass(frozen=True)
class Section:
    """A part of a page.

    Attributes:
        title: its heading.
        columns: heading of the table.
        rows: its lines.
        notes: what is said below the table.
        picture: a PNG, or None.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    notes: tuple[str, ...] = ()
    picture: bytes | None = None


def to_markdown(title: str, intro: Sequence[str], sections: Sequence[Section], folder: str) -> str:
    """The page for a repository; pictures are files `picture_name` in `folder` next to it."""
    lines = [f"# {title}", "", *_paragraphs(intro)]
    for number, section in enumerate(sections):
        lines += [f"## {section.title}", ""]
        lines += [_line(section.columns), _line(["---"] * len(section.columns))]
        for row in section.rows:
            lines += [_line([f"*{cell}*" if row.quoted and cell else cell for cell in row.cells])]
        lines += ["", *_paragraphs(section.notes)]
        if section.picture:
            path = urllib.parse.quote(f"{folder}/{picture_name(number)}")
            lines += [f"![{section.title}]({path})", ""]
    return "\n".join(lines).rstrip() + "\n"


def picture_name(number: int) -> str:
    """File of the picture of a section."""
    return f"{number}.png"


def to_html(title: str, intro: Sequence[str], sections: Sequence[Section]) -> str:
    """The page as one file that needs nothing else."""
    parts = [
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">',
        f"<title>{_safe(title)}</title>",
        f"<style>\n{_STYLE}\n</style></head><body>",
        f"<h1>{_safe(title)}</h1>",
        *(f"<p>{_safe(text)}</p>" for text in intro),
    ]
    for section in sections:
        parts += [f"<h2>{_safe(section.title)}</h2>", "<table>"]
        parts.append(f"<tr>{_cells(section.columns, 'th')}</tr>")
        for row in section.rows:
            kind = ' class="paper"' if row.quoted else ""
            parts.append(f"<tr{kind}>{_cells(row.cells, 'td')}</tr>")
        parts.append("</table>")
        parts += [f"<p>{_safe(text)}</p>" for text in section.notes]
        if section.picture:
            data = base64.b64encode(section.picture).decode("ascii")
            alt = _safe(section.title)
            parts.append(f'<p><img alt="{alt}" src="data:image/png;base64,{data}"></p>')
    return "\n".join([*parts, "</body></html>"]) + "\n"


def _paragraphs(texts: Sequence[str]) -> list[str]:
    return [line for text in texts for line in (text, "")]


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _cells(cells: Sequence[str], tag: str) -> str:
    return "".join(f"<{tag}>{_safe(cell)}</{tag}>" for cell in cells)


def _safe(text: str) -> str:
    return html.escape(text)
