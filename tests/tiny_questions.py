"""Questions in the tiny language: the answer is the place that the context names."""

import json
import random
from pathlib import Path
from typing import Any

from tests import tiny

PLACES = ("tree", "sea", "log", "mat")
_OTHERS = [word for word in tiny.WORDS if word not in PLACES]

SETTINGS = """\
data: {{path: ., format: squad, stride: 8, max_question_length: 4, n_best: 5,
       max_answer_length: 4, unanswerable: {unanswerable}}}
tokenizer: {{vocab: vocab.txt}}
"""


def rows(count: int, seed: int, unanswerable: bool = False) -> list[dict[str, Any]]:
    """Questions as SQuAD's files have them, a context each; of every three one has no answer."""
    source = random.Random(seed)
    made = []
    for i in range(count):
        words = source.choices(_OTHERS, k=source.randint(4, 30))
        answers = []
        if not (unanswerable and i % 3 == 2):
            at = source.randrange(len(words))
            words[at] = source.choice(PLACES)
            answers = [{"text": words[at], "answer_start": len(" ".join([*words[:at], ""]))}]
        row = {"id": f"{seed}-{i}", "question": source.choice(_OTHERS), "answers": answers}
        if unanswerable:
            row["is_impossible"] = not answers
        made.append({"context": " ".join(words), "qas": [row]})
    return made


def write_squad(path: Path, paragraphs: list[dict[str, Any]]) -> Path:
    """Writes a file of one article for every five contexts."""
    articles = [
        {"title": f"article {i}", "paragraphs": paragraphs[i : i + 5]}
        for i in range(0, len(paragraphs), 5)
    ]
    path.write_text(json.dumps({"data": articles}))
    return path


def write_finetuning(folder: Path, unanswerable: bool = False) -> Path:
    """Writes a configuration that fine-tunes in seconds, with its data and vocabulary."""
    tiny.write_vocabulary(folder)
    version = "2.0" if unanswerable else "1.1"
    write_squad(folder / f"train-v{version}.json", rows(96, 1, unanswerable))
    write_squad(folder / f"dev-v{version}.json", rows(24, 2, unanswerable))
    path = folder / "questions.yaml"
    path.write_text(
        "task: question_answering\n"
        + SETTINGS.format(unanswerable=str(unanswerable).lower())
        + tiny.MODEL
        + "train: {epochs: 2, batch_size: 8, max_length: 24, learning_rate: 0.01,"
        " checkpoint_steps: 1000}\n"
    )
    return path
