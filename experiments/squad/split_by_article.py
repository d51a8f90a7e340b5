"""Splits a SQuAD file by article, where there is no training file or a small one is needed.

    python -m bert_tf.experiments.squad.split_by_article dev-v1.1.json --train 38 \\
        --out squad_by_article

The first articles go to train-v1.1.json, the rest to dev-v1.1.json, in the order of the file: no
context is in both. With `--version 2.0` the files are named train-v2.0.json and dev-v2.0.json.
"""

import json
import sys
from collections.abc import Sequence
from pathlib import Path

from bert_tf.cli.command import option
from bert_tf.errors import UserError
from bert_tf.experiments import program
from bert_tf.io.atomic import write_text
from bert_tf.tasks.question_answering.squad import read_squad


def main(argv: Sequence[str] | None = None) -> int:
    """Writes the two files; returns the exit code, see `bert_tf.cli.command`."""
    return program(
        "squad.split_by_article",
        __doc__,
        argv,
        split,
        option("file FILE", "an official file", type=Path),
        option("--train N", "articles to train on", required=True),
        option("--out DIR", "where to write", type=Path, required=True),
        option("--version", "SQuAD version (%(default)s)", choices=("1.1", "2.0"), default="1.1"),
        stopped="stopped",
    )


def split(file: Path, train: int, out: Path, version: str) -> None:
    """Writes train-vVERSION.json with the first `train` articles of `file`, and dev-vVERSION.json.

    Raises:
        UserError: the file is not SQuAD's, or has too few articles.
    """
    read_squad(file)  # raises an error where the file is wrong
    content = json.loads(file.read_text(encoding="utf-8-sig"))
    articles = content["data"]
    if not 0 < train < len(articles):
        raise UserError(f"{file} has {len(articles)} articles; --train must leave at least one")
    for name, chosen in (("train", articles[:train]), ("dev", articles[train:])):
        new = out / f"{name}-v{version}.json"
        write_text(new, json.dumps(content | {"data": chosen}, ensure_ascii=False))
        questions = sum(len(p["qas"]) for article in chosen for p in article["paragraphs"])
        print(f"{new}: {len(chosen)} articles, {questions} questions")


if __name__ == "__main__":
    sys.exit(main())
