"""`bert-tf inspect`: one page that shows what a model looks at, and how far it can be trusted."""

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from bert_tf import asking
from bert_tf.asking.row_files import Row, read_blocks
from bert_tf.console import Progress, logger
from bert_tf.errors import UserError
from bert_tf.interpret.looks import Look, Mark, PageSection
from bert_tf.interpret.pictures import EncoderPictures, Pictures
from bert_tf.interpret.subject import Subject
from bert_tf.io.atomic import text_file
from bert_tf.tasks.task_model import TaskModel
from bert_tf.templates import TEMPLATES, content_hash


def inspect(
    path: str | os.PathLike,
    rows: Sequence[Row],
    out: str | os.PathLike | None = None,
    dev_rows: int = 300,
    input_file: str | None = None,
) -> Path:
    """Writes a page about a run with its dev data, or about an encoder.

    `rows`, and those of `input_file`, are the texts to look at, by the names of the inputs of
    `bert-tf predict`. `out` is None for `inspect.html` in the run folder.
    """
    subject = Subject.load(path)
    if out is None:
        if subject.run is None:
            raise UserError(
                f"{subject.path} is not a run folder; name the page with --out, as in --out "
                "page.html"
            )
        out = subject.run.path / "inspect.html"
    if Path(out).suffix != ".html":
        raise UserError(f"--out {out} must end in .html")
    family = subject.family
    pictures = EncoderPictures(subject) if family is None else family.pictures_class()(subject)
    if input_file is not None:
        ranks = dict.fromkeys(pictures.accepted[0], 1)
        if isinstance(subject.model, TaskModel):
            ranks = subject.model.ranks("serving_default")
        blocks = read_blocks(input_file, ranks)
        rows = [*rows, *(row for block, _ in blocks for row in block)]
    check_rows(rows, pictures.accepted, subject.path)
    if subject.task is None and not rows:
        options = " and ".join(map(option, pictures.accepted[0]))
        raise UserError(f"{path} has no dev data to show; give texts with {options} or --input")
    with text_file(out) as file:
        looks: list[Look] = []
        with Progress("looking at texts", len(rows), unit="texts") as progress:
            for row in rows:
                looks.append(pictures.look(row))
                progress.update(len(looks), line=True)
        marks = [mark for look in looks for mark in look.marks]
        about_dev, sections = _dev(pictures, dev_rows, marks)
        config = subject.encoder.config
        page = TEMPLATES.get_template("bert_tf/interpret/page.html").render(
            title=Path(path).name or Path(path).resolve().name,
            intro=f"{'Encoder' if family is None else family.title}; "
            f"{config.num_hidden_layers} layers of width {config.hidden_size} with "
            f"{config.num_attention_heads} heads, computed in float32. From {subject.path}.",
            looks=looks,
            about_dev=about_dev,
            sections=sections,
            # The page's Content-Security-Policy allows only this script to run.
            script_hash=content_hash("bert_tf/templates/parts.js", "bert_tf/interpret/viewer.js"),
        )
        file.write(page)
    logger.info(f"{out}: open it in a browser")
    return Path(out)


def _dev(pictures: Pictures, rows: int, marks: Sequence[Mark]) -> tuple[str, list[PageSection]]:
    """A sentence about the dev data, "" if there are none, and the sections about them."""
    subject = pictures.subject
    if subject.task is None:
        return "", pictures.among_texts(marks)
    try:
        sections = pictures.dev(rows, marks)
    except UserError as error:
        return f"This part is missing, because the dev data cannot be read: {error}", []
    return f"At most {rows} rows of {subject.dev_path()}.", sections


def rows_of(columns: Mapping[str, Sequence[str] | Sequence[Sequence[str]] | None]) -> list[Row]:
    """The rows of some columns by their names; a column that is None is left out."""

    def readable(value: Any) -> Any:
        """Replaces bytes of the command line that are not UTF-8."""
        if isinstance(value, str):
            return value.encode("utf-8", "replace").decode("utf-8")
        return [readable(each) for each in value]

    given = {name: readable(values) for name, values in columns.items() if values is not None}
    counts = {name: len(values) for name, values in given.items()}
    if len(set(counts.values())) > 1:
        found = ", ".join(f"{count} of {option(name)}" for name, count in counts.items())
        raise UserError(f"each option must be given as often as the others, but there are {found}")
    return asking.rows_of([*given.values()], [*given])


def check_rows(rows: Iterable[Row], accepted: Sequence[tuple[str, ...]], path: str) -> None:
    """Raises UserError for a row without the inputs of any of `accepted`, or with an empty text."""
    for number, row in enumerate(rows, start=1):
        if not any(set(row) == set(names) for names in accepted):
            ways = " or ".join(" and ".join(map(option, names)) for names in accepted)
            there = " and ".join(map(option, row))
            raise UserError(f"{path} takes {ways}, not {there}; see bert-tf inspect --help")
        for name, value in row.items():
            texts = [value] if isinstance(value, str) else value
            if not all(text.strip() for text in texts):
                raise UserError(f"{option(name)}: text {number} is empty")
            if name == "choices" and len(texts) < 2:
                raise UserError(f"{option(name)}: text {number} has one choice; give two or more")


def option(name: str) -> str:
    """The option of the command line that gives an input."""
    return f"--{name.replace('_', '-')}"
