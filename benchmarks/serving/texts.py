"""The texts to answer, the same for every contestant."""

import json
import random
from pathlib import Path

TASKS = ("classification", "question_answering")
# Where a task's texts are, in the folder of the data.
FILES = {"classification": "wikitext2/valid.txt", "question_answering": "squad/dev-v1.1.json"}
MAX_LENGTH = {"classification": 128, "question_answering": 384}
# The output that has the answer.
OUTPUT = {"classification": "label", "question_answering": "answer"}
STRIDE, N_BEST, MAX_ANSWER = 128, 20, 30
_ROWS = 4000


def texts(task: str, data: Path) -> list[dict[str, str]]:
    """Inputs of a task in a random order: WikiText's sentences, or SQuAD's dev questions."""
    rows = _questions(data) if task == "question_answering" else _sentences(data)
    random.Random(0).shuffle(rows)
    return rows[:_ROWS]


def _questions(data: Path) -> list[dict[str, str]]:
    articles = json.loads((data / FILES["question_answering"]).read_text(encoding="utf-8"))["data"]
    return [
        {"question": question["question"], "context": paragraph["context"]}
        for article in articles
        for paragraph in article["paragraphs"]
        for question in paragraph["qas"]
    ]


def _sentences(data: Path) -> list[dict[str, str]]:
    lines = (data / FILES["classification"]).read_text(encoding="utf-8").splitlines()
    texts = (line.strip() for line in lines if not line.startswith(" ="))
    # WikiText's sentences end with a full stop between spaces.
    sentences = (each.strip() for text in texts for each in text.split(" . "))
    return [{"text": each} for each in sentences if len(each.split()) > 3]


class Batches:
    """Endless batches of the texts in a file, in order."""

    def __init__(self, path: str, size: int):
        self._rows, self._size, self._at = json.loads(Path(path).read_text()), size, 0

    def next(self) -> dict[str, list[str]]:
        """The next batch: name -> texts."""
        chosen = [self._rows[(self._at + i) % len(self._rows)] for i in range(self._size)]
        self._at += self._size
        return {name: [row[name] for row in chosen] for name in chosen[0]}
