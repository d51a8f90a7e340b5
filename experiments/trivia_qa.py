"""Converts TriviaQA to the SQuAD format, to train on it together with SQuAD or before it.

    python -m bert_tf.experiments.trivia_qa --questions qa/wikipedia-train.json \\
        --evidence evidence/wikipedia --out triviaqa-train.json

As in the BERT paper (section 4.2), a context is the first 400 words of a Wikipedia document of a
question, if they hold one of its answers. The answer is the first occurrence of one of these, as
whole words; upper and lower case are the same.

Format: https://nlp.cs.washington.edu/triviaqa.
"""

import itertools
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bert_tf.cli.command import option
from bert_tf.console import Progress, logger
from bert_tf.data.columns import Columns, columns_of_rows
from bert_tf.errors import UserError
from bert_tf.experiments import program
from bert_tf.io.atomic import write_text
from bert_tf.io.json_files import read_json, value_at, whole_text
from bert_tf.tasks.question_answering.squad import Answer, squad_json

WORDS = 400


def main(argv: Sequence[str] | None = None) -> int:
    """Converts one file; returns the exit code, see `bert_tf.cli.command`."""
    required: dict[str, Any] = {"type": Path, "required": True}
    return program(
        "trivia_qa",
        __doc__,
        argv,
        convert,
        option("--questions FILE", "an official file, such as wikipedia-train.json", **required),
        option("--evidence DIR", "the folder of the documents named in --questions", **required),
        option("--out FILE", "the file to write", **required),
        option("--words N", "how many words of a document to keep (%(default)s)", default=WORDS),
    )


def convert(questions: Path, evidence: Path, out: Path, words: int = WORDS) -> int:
    """Writes `out` with a question for each document that holds its answer; returns their number.

    >>> import json
    >>> row = {"QuestionId": "q1", "Question": "Where does it rise?"}
    >>> row["Answer"] = {"Value": "hills", "Aliases": ["the hills"], "NormalizedAliases": []}
    >>> row["EntityPages"] = [{"Filename": "river.txt"}]
    >>> _ = Path("questions.json").write_text(json.dumps({"Data": [row]}))
    >>> _ = Path("river.txt").write_text("The river rises in the hills.")
    >>> convert(Path("questions.json"), Path("."), Path("train.json"))
    1
    >>> json.loads(Path("train.json").read_text())["data"][0]["paragraphs"][0]["qas"][0]["answers"]
    [{'text': 'the hills', 'answer_start': 19}]

    Raises:
        UserError: the file is not TriviaQA's, no document holds an answer, or `words` is below 1.
    """
    if words < 1:
        raise UserError(f"--words must be at least 1, not {words}")
    rows = value_at(questions, "", read_json(questions), "Data", list)
    found: dict[str, tuple[str, str, tuple[Answer, ...]]] = {}
    documents = missing = 0
    with Progress("reading documents", len(rows), unit="questions") as progress:
        for i, row in enumerate(rows):
            question_id, question, answers, names = _fields(questions, f"Data[{i}]", row)
            for name in names:
                id = f"{question_id}--{name}"
                if id in found:
                    continue
                documents += 1
                text = _read(evidence, name)
                if text is None:
                    missing += 1
                    continue
                kept = [*itertools.islice(re.finditer(r"\S+", text), words)]
                context = text[: kept[-1].end()] if kept else ""
                answer = _first_answer(context, answers)
                if answer is not None:
                    found[id] = question, context, (answer,)
            progress.update(i + 1, line=True)
    if not found:
        raise UserError(
            f"{evidence}: {missing} of {documents} documents are missing, and the others hold no "
            f"answer; give the folder of the documents that {questions} names"
        )
    asked, contexts, targets = columns_of_rows(found.values(), 3)
    converted = Columns(("question", "context"), (asked, contexts), targets, ids=list(found))
    write_text(out, squad_json([("TriviaQA", converted)]))
    logger.info(f"{out}: {len(found)} questions from {documents} documents ({missing} are missing)")
    return len(found)


def _fields(path: Path, place: str, row: Any) -> tuple[str, str, set[str], list[str]]:
    """The id of a question, the question, its answers, and the names of its documents."""
    id, question = (
        whole_text(value_at(path, place, row, key, str)) for key in ("QuestionId", "Question")
    )
    answer = value_at(path, place, row, "Answer", dict)
    answers = {value_at(path, f"{place}.Answer", answer, "Value", str)}
    for key in ("Aliases", "NormalizedAliases"):
        for i, alias in enumerate(value_at(path, f"{place}.Answer", answer, key, list)):
            if not isinstance(alias, str):
                raise UserError(f"{path}: {place}.Answer.{key}[{i}] must be a text")
            answers.add(alias)
    pages = value_at(path, place, row, "EntityPages", list)
    names = [
        whole_text(value_at(path, f"{place}.EntityPages[{i}]", page, "Filename", str))
        for i, page in enumerate(pages)
    ]
    # A page may be listed twice.
    return id, question, {each for each in answers if each.strip()}, list(dict.fromkeys(names))


def _read(evidence: Path, name: str) -> str | None:
    """The document `name`; None if it cannot be read or is outside the folder."""
    path = evidence / name
    try:
        if not path.resolve().is_relative_to(evidence.resolve()):
            return None
        return path.read_text(encoding="utf-8", errors="replace")
    except (OSError, ValueError):  # ValueError: the name has a NUL
        return None


def _first_answer(context: str, answers: set[str]) -> Answer | None:
    """The first occurrence of an answer; of several at one place, the longest."""
    longest_first = sorted(answers, key=lambda each: (-len(each), each))
    patterns = (r"\s+".join(map(re.escape, each.split())) for each in longest_first)
    match = re.search(rf"(?<!\w)(?:{'|'.join(patterns)})(?!\w)", context, re.IGNORECASE)
    return Answer(match.group(), match.start()) if match and answers else None


if __name__ == "__main__":
    sys.exit(main())
