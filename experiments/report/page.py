"""A page of sections with tables and pictures, as Markdown or as one HTML file."""

import base64
import dataclasses
import urllib.parse
from collections.abc import Sequence

from bert_tf.templates import TEMPLATES


@dataclasses.dataclass(frozen=True)
class ReportRow:
    """A row of a table; it is quoted if it is somebody else's result, such as the paper's."""

    cells: tuple[str, ...]
    quoted: bool = False


@dataclasses.dataclass(frozen=True)
class ReportSection:
    """A part of a page."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[ReportRow, ...]
    notes: tuple[str, ...] = ()
    picture: bytes | None = None

    @property
    def picture_base64(self) -> str:
        """The picture in base64; "" if there is none."""
        return base64.b64encode(self.picture or b"").decode("ascii")


def to_markdown(
    title: str, intro: Sequence[str], sections: Sequence[ReportSection], folder: str
) -> str:
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
    """The file name of the picture of a section."""
    return f"{number}.png"


def to_html(title: str, intro: Sequence[str], sections: Sequence[ReportSection]) -> str:
    """The page as one file, with its pictures inside."""
    template = TEMPLATES.get_template("bert_tf/experiments/report/page.html")
    return template.render(title=title, intro=intro, sections=sections)


def _paragraphs(texts: Sequence[str]) -> list[str]:
    return [line for text in texts for line in (text, "")]


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
