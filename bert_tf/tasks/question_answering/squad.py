"""Questions about contexts: SQuAD's JSON of versions 1.1 and 2.0, and the same from TFDS.

Format: https://rajpurkar.github.io/SQuAD-explorer. Its offsets count the characters (code points)
of a context; everywhere else in this library offsets count the bytes of its UTF-8.
"""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from bert_tf.errors import UserError
from bert_tf.io.json_files import read_json, value_at, whole_text
from bert_tf.tasks.texts.tfds_rows import load_split


class Answer(NamedTuple):
    """A text and the character of the context at which it starts."""

    text: str
    start: int


class Question(NamedTuple):
    """One question.

    >>> question = Question("q1", "Where?", "In the café.", (Answer("café", 7),))
    >>> question.answer_bytes()  # é has two bytes
    (7, 12)
    >>> question._replace(answers=(Answer("café", 6),)).answer_bytes()  # not at that place

    Attributes:
        id: its name, unique in a file.
        question: the question itself.
        context: the text to find the answer in.
        answers: the answers of annotators; () if the context holds no answer, None if the
            data do not include answers.
    """

    id: str
    question: str
    context: str
    answers: tuple[Answer, ...] | None

    def answer_bytes(self) -> tuple[int, int] | None:
        """First byte and end (exclusive) in the context's UTF-8 of the answer to learn.

        This is the first answer that is in the context at its offset; None if there is none.
        """
        for text, start in self.answers or ():
            if text.strip() and start >= 0 and self.context.startswith(text, start):
                first = len(self.context[:start].encode())
                return first, first + len(text.encode())
        return None


def read_squad(path: Path) -> list[Question]:
    """The questions of an official file, in its order.

    An empty list of answers means that the context holds none, like `"is_impossible": true`. It has
    no meaning together with `"is_impossible": false`, or in a file that gives no answer and marks
    no question as impossible.

    >>> question = Question("q1", "Where?", "In the café.", (Answer("café", 7),))
    >>> _ = Path("train.json").write_text(squad_json([("Places", [question])]))
    >>> read_squad(Path("train.json")) == [question]
    True

    Raises:
        UserError: broken JSON, a missing or ill-typed value, an id given twice, no question; with
            the place, such as data[3].paragraphs[0].
    """
    questions = []
    places: dict[str, str] = {}
    is_labelled = False
    for place, context, row in _rows(path, read_json(path)):
        id, question = (
            whole_text(value_at(path, place, row, key, str)) for key in ("id", "question")
        )
        answers = _answers(path, place, row)
        if id in places:
            raise UserError(f"{path}: {places[id]} and {place} have the same id")
        places[id] = place
        questions.append(Question(id, question, context, answers))
        is_labelled = is_labelled or bool(answers or row.get("is_impossible"))
    if not questions:
        raise UserError(f"{path} has no questions")
    return questions if is_labelled else [each._replace(answers=None) for each in questions]


def read_tfds(name: str, split: str) -> list[Question]:
    """The questions of a TFDS data set of SQuAD's features, such as squad/v1.1 or squad/v2.0.

    Raises:
        UserError: there is no such data set or split, or it has other features.
    """
    rows, features = load_split(name, split)
    source = f"TFDS {name}, split {split}"
    for feature in ("id", "question", "context", "answers"):
        if feature not in features:
            raise UserError(
                f"{source}: no feature {feature!r}; the features are {', '.join(features)}"
            )
    questions = []
    for row in rows:
        # The lists of TFDS's own mock data have different sizes.
        answers = zip(row["answers"]["text"], row["answers"]["answer_start"], strict=False)
        known = tuple(Answer(_decoded(text), int(start)) for text, start in answers)
        id, question, context = (_decoded(row[key]) for key in ("id", "question", "context"))
        given = () if row.get("is_impossible") else known
        questions.append(Question(id, question, context, given))
    if not questions:
        raise UserError(f"{source} has no questions")
    return questions


def squad_json(articles: Sequence[tuple[str, Sequence[Question]]]) -> str:
    """The JSON of version 1.1, with a paragraph for each question, from titles and questions.

    >>> question = Question("q1", "Where?", "In the café.", (Answer("café", 7),))
    >>> written = json.loads(squad_json([("Places", [question])]))
    >>> written["data"][0]["paragraphs"][0]["qas"]
    [{'id': 'q1', 'question': 'Where?', 'answers': [{'text': 'café', 'answer_start': 7}]}]
    """

    def paragraph(of: Question) -> dict[str, Any]:
        answers = [{"text": text, "answer_start": start} for text, start in of.answers or ()]
        question = {"id": of.id, "question": of.question, "answers": answers}
        return {"context": of.context, "qas": [question]}

    data = [
        {"title": title, "paragraphs": list(map(paragraph, questions))}
        for title, questions in articles
    ]
    return json.dumps({"version": "1.1", "data": data}, ensure_ascii=False)


def _rows(path: Path, content: Any) -> Iterator[tuple[str, str, Any]]:
    """The JSON of every question, after its place in the file and its context."""
    for a, article in enumerate(value_at(path, "", content, "data", list)):
        of_article = f"data[{a}]"
        paragraphs = value_at(path, of_article, article, "paragraphs", list)
        for p, paragraph in enumerate(paragraphs):
            of_paragraph = f"{of_article}.paragraphs[{p}]"
            context = whole_text(value_at(path, of_paragraph, paragraph, "context", str))
            for q, row in enumerate(value_at(path, of_paragraph, paragraph, "qas", list)):
                yield f"{of_paragraph}.qas[{q}]", context, row


def _answers(path: Path, place: str, row: dict[str, Any]) -> tuple[Answer, ...] | None:
    if row.get("is_impossible") is not None and value_at(path, place, row, "is_impossible", bool):
        return ()
    if "answers" not in row:
        return None
    answers = []
    for i, answer in enumerate(value_at(path, place, row, "answers", list)):
        here = f"{place}.answers[{i}]"
        text = whole_text(value_at(path, here, answer, "text", str))
        answers.append(Answer(text, value_at(path, here, answer, "answer_start", int)))
    # Files whose answers are kept secret have empty lists too.
    is_secret = not answers and row.get("is_impossible") is False
    return None if is_secret else tuple(answers)


def _decoded(value: bytes) -> str:
    return value.decode("utf-8", "replace")
