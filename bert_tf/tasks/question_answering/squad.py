"""Questions about contexts: SQuAD's JSON of versions 1.1 and 2.0, and the same from TFDS.

Format: https://rajpurkar.github.io/SQuAD-explorer. Its offsets count the characters (code points)
of a context; everywhere else in this library offsets count the bytes of its UTF-8.
"""

import dataclasses
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np

from bert_tf.asking import Text, encoded, plain
from bert_tf.console import logger
from bert_tf.data import arrow
from bert_tf.data.columns import Columns, Target, TextColumn, columns_of_rows
from bert_tf.data.tfds import load_split
from bert_tf.errors import UserError
from bert_tf.io.json_files import read_json, value_at, whole_text

_NAMED = 3  # questions that a message names


class Answer(NamedTuple):
    """A text and the character of the context at which it starts; -1 if that is not known."""

    text: str
    start: int


# The inputs of a row. Its target is a tuple of the answers of annotators: () if the context has no
# answer, None if the data do not include answers. `ids` are the ids of the questions.
_CONTEXT = "The river rises in the hills and reaches the sea after ninety miles."
COLUMNS = (
    TextColumn("question", example="Where does the river rise?"),
    TextColumn("context", example=_CONTEXT),
)


@dataclasses.dataclass(frozen=True)
class AnswerSpan(Target):
    """The part of the context that answers the question, or none; `unanswerable` may be None."""

    unanswerable: bool | None = None
    what: ClassVar[str] = "answer"
    plural: ClassVar[str] = "answers"
    column_names: ClassVar[tuple[str, ...]] = ("answers", "answer")

    def checked_one(self, rows: Columns, row: int, given: Any) -> tuple[Answer, ...]:
        """A row has one answer, several in a list, or none. An answer without a start must occur
        once.
        """
        place, context = rows.at(row, self.what), plain(rows.column("context")[row])
        if isinstance(given, Mapping) and isinstance(given.get("text"), list | tuple | np.ndarray):
            # The lists of SQuAD's rows in Hugging Face's datasets.
            texts = list(given["text"])
            starts = given.get("answer_start", given.get("start"))
            starts = [None] * len(texts) if starts is None else list(starts)
            if len(texts) != len(starts):
                raise UserError(
                    f"{place} has {len(texts)} texts, but {len(starts)} starts; give one start for "
                    "each text"
                )
            pairs = zip(texts, starts, strict=True)
            several: list[Any] = [{"text": text, "start": start} for text, start in pairs]
        elif isinstance(given, list | tuple | np.ndarray) and not isinstance(given, Answer):
            several = list(given)
        else:
            several = [] if given == {} else [given]
        found = []
        for each in several:
            fields = each._asdict() if isinstance(each, Answer) else each
            fields = fields if isinstance(fields, Mapping) else {"text": each}
            text, start = fields.get("text"), fields.get("start", fields.get("answer_start"))
            text = plain(text) if isinstance(text, bytes) else text
            if text == "" and start in (None, -1):
                continue
            if not isinstance(text, str) or not isinstance(start, int | np.integer | None):
                raise UserError(
                    f'{place} is {each!r}; give its text, or a dict with "text" and "start", the '
                    "position of its first character in the context, or None if there is no answer"
                )
            if start is None:
                start = _only_place(text, context)
            elif not text.strip() or start < 0 or not context.startswith(text, int(start)):
                raise UserError(
                    f"{place}, {text!r}, is not at character {start} of its context; correct start"
                )
            found.append(Answer(text, int(start)))
        return tuple(found)

    def numbers(self, rows: Columns) -> np.ndarray:
        """int32 [rows, 2]: first byte and end of the answer to learn, -1 and -1 if there is none.
        For a row whose answers are not known, it is the whole context.
        """
        if self.unanswerable is False and () in rows.known_targets():
            raise UserError(
                f"{rows.at(rows.known_targets().index(()), self.what)} is missing, but the model "
                "always answers; give the answer, or create the model with unanswerable=True"
            )
        spans = [
            (0, len(encoded(context))) if answers is None else answer_bytes(answers, context)
            for answers, context in zip(rows.known_targets(), rows.column("context"), strict=True)
        ]
        return np.array(spans, np.int32)


def answer_bytes(answers: Sequence[Answer], context: Text) -> tuple[int, int]:
    """The bytes, in UTF-8, of the first answer that is at its offset; -1 and -1 if none is."""
    whole = plain(context)
    for text, start in answers:
        if text.strip() and start >= 0 and whole.startswith(text, start):
            first = len(whole[:start].encode())
            return first, first + len(text.encode())
    return -1, -1


def usable(rows: Columns) -> Columns:
    """The questions to learn from; a message names those whose answer has no known place."""
    pairs = zip(rows.known_targets(), rows.column("context"), strict=True)
    lost = {
        row: answers[0].text
        for row, (answers, context) in enumerate(pairs)
        if answers and answer_bytes(answers, context)[0] < 0
    }
    if not lost:
        return rows
    place = "in the context at its offset, or exactly once if it has no offset"
    if len(lost) == len(rows):
        raise UserError(
            f"{rows.source}: none of {len(rows)} answers is {place}; the offset is the number of "
            "characters before the answer in its context"
        )
    names = [f"row {row}" for row in lost] if rows.ids is None else [rows.ids[row] for row in lost]
    first = ", ".join(map("{} ({!r})".format, names[:_NAMED], lost.values()))
    logger.warning(
        f"{rows.source}: questions skipped because no answer is {place}: {len(lost)} of "
        f"{len(rows)}, the first {first}"
    )
    return rows.take([row for row in range(len(rows)) if row not in lost])


def _only_place(text: str, context: str) -> int:
    """The character at which a text starts if it occurs exactly once, or else -1."""
    first = context.find(text)
    return -1 if context.find(text, first + 1) >= 0 else first


def ids_of(rows: Columns) -> list[str]:
    """The ids of questions; without ids their numbers."""
    return list(map(str, range(len(rows)) if rows.ids is None else rows.ids))


def given_texts(rows: Columns) -> dict[str, list[str]]:
    """The texts of the answers of each question, by its id."""
    pairs = zip(ids_of(rows), rows.known_targets("answers"), strict=True)
    return {id: [text for text, _ in answers] for id, answers in pairs}


def read_squad(path: Path) -> Columns:
    """The questions of an official file, in its order.

    An empty list of answers means that the context holds none, like `"is_impossible": true`. It has
    no meaning together with `"is_impossible": false`, or in a file that gives no answer and marks
    no question as impossible. An answer without `answer_start` starts where its text occurs, if it
    occurs once. The default id of a question is its place, such as data[3].paragraphs[0].qas[1].

    >>> names, target = ("question", "context"), [(Answer("café", 7),)]
    >>> rows = Columns(names, (["Where?"], ["In the café."]), target, ids=["q1"])
    >>> _ = Path("train.json").write_text(squad_json([("Places", rows)]))
    >>> read_squad(Path("train.json")).targets
    [(Answer(text='café', start=7),)]

    Raises:
        UserError: broken JSON, a missing or ill-typed value, an id given twice, no question; with
            the place, such as data[3].paragraphs[0].
    """
    found: list[tuple[str, str, str, Any]] = []
    places: dict[str, str] = {}
    is_labelled = False
    for place, context, row in _rows(path, read_json(path)):
        question = whole_text(value_at(path, place, row, "question", str))
        id = place if row.get("id") is None else whole_text(value_at(path, place, row, "id", str))
        answers = _answers(path, place, row, context)
        if places.setdefault(id, place) != place:
            raise UserError(f"{path}: {places[id]} and {place} have the same id")
        found.append((id, question, context, answers))
        is_labelled = is_labelled or bool(answers or row.get("is_impossible"))
    rows = _columns(found, str(path), path)
    return rows if is_labelled else dataclasses.replace(rows, targets=None)


def read_tfds(name: str, split: str) -> Columns:
    """The questions of a TFDS data set of SQuAD's features, such as squad/v1.1 or squad/v2.0."""
    rows, features = load_split(name, split)
    source = f"TFDS {name}, split {split}"
    for feature in ("id", "question", "context", "answers"):
        if feature not in features:
            raise UserError(
                f"{source}: no feature {feature!r}; the features are {', '.join(features)}"
            )
    found: list[tuple[str, str, str, Any]] = []
    for row in rows:
        # The lists of TFDS's own mock data have different sizes.
        answers = zip(row["answers"]["text"], row["answers"]["answer_start"], strict=False)
        known = tuple(Answer(plain(text), int(start)) for text, start in answers)
        id, question, context = (plain(row[key]) for key in ("id", "question", "context"))
        found.append((id, question, context, () if row.get("is_impossible") else known))
    return _columns(found, source, Path(name) / split)


def read_arrow(path: Path) -> Columns:
    """The questions of a table, with `question`, `context`, and maybe `answers` and `id`."""
    table = arrow.read(path)
    table.check_texts(["question", "context"])
    names = ["question", "context", *({"id", "answers"} & {*table.names})]

    def found(number: int, row: dict[str, Any]) -> tuple:
        return row.get("id", number), row["question"], row["context"], row.get("answers")

    rows = _columns(table.rows(names, found), str(path), path)
    places = range(len(table.data))
    return dataclasses.replace(rows, places=places, unit="row").checked(COLUMNS, AnswerSpan())


def _columns(found: Sequence[tuple[str, str, str, Any]], source: str, path: Path) -> Columns:
    if not found:
        raise UserError(f"{source} has no questions")
    ids, questions, contexts, answers = columns_of_rows(found, 4)
    answers = [*answers]
    targets = None if all(each is None for each in answers) else answers
    names = tuple(column.name for column in COLUMNS)
    return Columns(names, (questions, contexts), targets, source, ids=ids, path=path)


def squad_json(articles: Sequence[tuple[str, Columns]]) -> str:
    """The JSON of version 1.1, with a paragraph for each question, from titles and questions."""

    def paragraphs(rows: Columns) -> Iterator[dict[str, Any]]:
        targets = rows.targets or [()] * len(rows)
        for id, asked, context, of in zip(ids_of(rows), *rows.values, targets, strict=True):
            answers = [{"text": text, "answer_start": start} for text, start in of or ()]
            yield {"context": context, "qas": [{"id": id, "question": asked, "answers": answers}]}

    data = [{"title": title, "paragraphs": list(paragraphs(rows))} for title, rows in articles]
    return json.dumps({"version": "1.1", "data": data}, ensure_ascii=False)


def _rows(path: Path, content: Any) -> Iterator[tuple[str, str, Any]]:
    for a, article in enumerate(value_at(path, "", content, "data", list)):
        of_article = f"data[{a}]"
        paragraphs = value_at(path, of_article, article, "paragraphs", list)
        for p, paragraph in enumerate(paragraphs):
            of_paragraph = f"{of_article}.paragraphs[{p}]"
            context = whole_text(value_at(path, of_paragraph, paragraph, "context", str))
            for q, row in enumerate(value_at(path, of_paragraph, paragraph, "qas", list)):
                yield f"{of_paragraph}.qas[{q}]", context, row


def _answers(
    path: Path, place: str, row: dict[str, Any], context: str
) -> tuple[Answer, ...] | None:
    if row.get("is_impossible") is not None and value_at(path, place, row, "is_impossible", bool):
        return ()
    if "answers" not in row:
        return None
    answers = []
    for i, answer in enumerate(value_at(path, place, row, "answers", list)):
        here = f"{place}.answers[{i}]"
        text = whole_text(value_at(path, here, answer, "text", str))
        if answer.get("answer_start") is None:
            start = _only_place(text, context)
        else:
            start = value_at(path, here, answer, "answer_start", int)
        answers.append(Answer(text, start))
    # Files whose answers are kept secret have empty lists too.
    is_secret = not answers and row.get("is_impossible") is False
    return None if is_secret else tuple(answers)
