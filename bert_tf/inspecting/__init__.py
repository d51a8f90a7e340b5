"""`bert-tf inspect`: one page that shows what a model looks at, and how far it can be believed."""

import os
from collections.abc import Sequence
from pathlib import Path

from bert_tf.atomic import write_text
from bert_tf.errors import UserError
from bert_tf.inspecting.choices import ChoicePictures
from bert_tf.inspecting.encoder_only import EncoderPictures
from bert_tf.inspecting.given import check_rows
from bert_tf.inspecting.looks import Look, Mark
from bert_tf.inspecting.markup import Html, tag
from bert_tf.inspecting.page import page, section
from bert_tf.inspecting.pictures import Pictures
from bert_tf.inspecting.questions import QuestionPictures
from bert_tf.inspecting.subject import Subject
from bert_tf.inspecting.tags import TagPictures
from bert_tf.inspecting.texts import ClassificationPictures, RegressionPictures
from bert_tf.predict.rows import Row
from bert_tf.progress import Progress, say

_PICTURES: dict[str, type[Pictures]] = {
    "classification": ClassificationPictures,
    "regression": RegressionPictures,
    "multiple_choice": ChoicePictures,
    "question_answering": QuestionPictures,
    "token_classification": TagPictures,
}
_PAGE = "inspect.html"


def inspect(
    path: str | os.PathLike,
    rows: Sequence[Row],
    out: str | os.PathLike | None = None,
    dev_rows: int = 300,
) -> Path:
    """Writes a page about a run, or about an encoder.

    Args:
        path: a run folder, or a checkpoint as for `Encoder.from_checkpoint` with its vocabulary.
        rows: the texts to look at, each by the names of the model's inputs as `bert-tf predict`
            has them: text; text_a, text_b; question, context; context, choices.
        out: the page, which ends in .html; None is `inspect.html` in the run folder.
        dev_rows: how many rows of the dev data to take.

    Returns:
        The page.

    Raises:
        UserError: `path` is nothing of the kind, takes other texts, or `out` cannot be written.
    """
    subject = Subject.load(path)
    out = _place(subject, out)
    pictures = _PICTURES[subject.task_name](subject) if subject.task else EncoderPictures(subject)
    check_rows(rows, pictures.accepted, subject.path)
    if subject.task is None and not rows:
        raise UserError(f"{path} has no dev data to show; give --text")
    looks: list[Look] = []
    with Progress("looking at texts", len(rows), unit="texts") as progress:
        for row in rows:
            looks.append(pictures.look(row))
            progress.update(len(looks), line=True)
    marks = [mark for look in looks for mark in look.marks]
    title = Path(path).resolve().name
    write_text(out, page(title, [_intro(subject)], looks, _dev(pictures, dev_rows, marks)))
    say(f"{out}: open it in a browser")
    return out


def _place(subject: Subject, out: str | os.PathLike | None) -> Path:
    if out is None:
        if subject.run is None:
            raise UserError(
                f"{subject.path} is no run folder; name the page, as in --out page.html"
            )
        return subject.run.path / _PAGE
    if Path(out).suffix != ".html":
        raise UserError(f"--out {out} must end in .html")
    return Path(out)


def _dev(pictures: Pictures, rows: int, marks: Sequence[Mark]) -> list[Html]:
    """What there is about the dev data, or why there is nothing."""
    subject = pictures.subject
    if subject.task is None:
        return [section(part) for part in pictures.dev(rows, marks)]
    heading = tag("h2", "On the dev data")
    try:
        parts = [section(part) for part in pictures.dev(rows, marks)]
    except UserError as error:
        return [heading, tag("p", f"Left out, since the dev data cannot be read: {error}")]
    return [heading, tag("p", f"At most {rows} rows of {subject.dev_path()}."), *parts]


def _intro(subject: Subject) -> str:
    config = subject.encoder.config
    what = subject.task_name.replace("_", " ") if subject.task else "encoder"
    return (
        f"{what[0].upper()}{what[1:]}; {config.num_hidden_layers} layers of width "
        f"{config.hidden_size} with {config.num_attention_heads} heads, computed in float32. "
        f"From {subject.path}."
    )
