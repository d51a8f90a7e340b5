"""What is embedded: sentences with scores, and questions with the paragraphs that answer them."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from bert_tf.data.tables import read_tsv
from bert_tf.errors import UserError
from bert_tf.io.json_files import read_json, value_at
from bert_tf.retrieval.collection import Collection

# Columns of a file of the STS benchmark: genre, file, year, number, score, and the two sentences.
_SCORE, _FIRST, _SECOND = 4, 5, 6
_HIGHEST = 5.0


class Pairs(NamedTuple):
    """Pairs of texts.

    Attributes:
        first: one text of each pair.
        second: the other.
        scores: how similar they are, from 0 to 1; None for a question and its paragraph.
    """

    first: list[str]
    second: list[str]
    scores: list[float] | None = None

    def head(self, rows: int | None) -> "Pairs":
        """The first `rows` pairs; None is all."""
        return Pairs(*(column and column[:rows] for column in self))


class Paragraph(NamedTuple):
    """A paragraph of SQuAD.

    Attributes:
        text: the paragraph.
        questions: id -> question that it answers.
    """

    text: str
    questions: dict[str, str]


Article = list[Paragraph]


def alone(pairs: Pairs) -> Pairs:
    """Each distinct text of the pairs, paired with itself.

    >>> alone(Pairs(["a", "b"], ["b", "c"])).first
    ['a', 'b', 'c']
    """
    texts = list(dict.fromkeys([*pairs.first, *pairs.second]))
    return Pairs(texts, texts)


def read_sts(path: Path) -> Pairs:
    """A file of the STS benchmark.

    Raises:
        UserError: a line has too few fields, or a score that is not a number.
    """
    pairs = Pairs([], [], [])
    for number, fields in read_tsv(path):
        if len(fields) <= _SECOND:
            raise UserError(f"{path}, line {number}: {len(fields)} fields; the STS benchmark has 7")
        try:
            pairs.scores.append(float(fields[_SCORE]) / _HIGHEST)
        except ValueError:
            raise UserError(
                f"{path}, line {number}: the score {fields[_SCORE]!r} is not a number"
            ) from None
        pairs.first.append(fields[_FIRST])
        pairs.second.append(fields[_SECOND])
    return pairs


def read_articles(path: Path) -> list[Article]:
    """The articles of a file of SQuAD.

    Raises:
        UserError: the file is of another form.
    """
    articles = []
    for i, article in enumerate(value_at(path, "", read_json(path), "data", list)):
        place, paragraphs = f"data[{i}]", []
        for j, paragraph in enumerate(value_at(path, place, article, "paragraphs", list)):
            inner = f"{place}.paragraphs[{j}]"
            questions = value_at(path, inner, paragraph, "qas", list)
            paragraphs.append(
                Paragraph(
                    value_at(path, inner, paragraph, "context", str),
                    {
                        value_at(path, inner, each, "id", str): value_at(
                            path, inner, each, "question", str
                        ).strip()
                        for each in questions
                    },
                )
            )
        articles.append(paragraphs)
    return articles


def collection_of(articles: Sequence[Article], questions: int | None = None) -> Collection:
    """Questions as queries, and paragraphs as passages; each question has one paragraph.

    Args:
        articles: what to search in.
        questions: take whole paragraphs from the start until they have that many; None takes all.
    """
    collection = Collection({}, {}, {})
    for paragraph in (each for article in articles for each in article):
        if questions is not None and len(collection.queries) >= questions:
            break
        name = f"paragraph {len(collection.passages)}"
        collection.passages[name] = paragraph.text
        collection.queries.update(paragraph.questions)
        collection.relevant.update({each: {name: 1} for each in paragraph.questions})
    return collection


def pairs_of(articles: Sequence[Article]) -> Pairs:
    """Every question with its paragraph."""
    rows = [
        (question, paragraph.text)
        for article in articles
        for paragraph in article
        for question in paragraph.questions.values()
    ]
    return Pairs([question for question, _ in rows], [text for _, text in rows])
