"""Splits a SQuAD file by article, where there is no training file or a small one is needed.

    python -m experiments.squad.split_by_article dev-v1.1.json --train 38 --out squad_by_article

The first articles go to train-v1.1.json, the rest to dev-v1.1.json, in the order of the file: no
context is in both. With `--version 2.0` the files are named after that.
"""

import argparse
import json
import sys
from pathlib import Path

from bert_tf.cli import command
from bert_tf.errors import UserError
from bert_tf.io.atomic import write_text
from bert_tf.tasks.question_answering.squad import read_squad


def main() -> int:
    """Writes the two files; returns the exit code, see `bert_tf.cli.command`."""

    def work(given: argparse.Namespace) -> None:
        split(given.file, given.train, given.out, given.version)

    parser = command.module_parser("experiments.squad.split_by_article", __doc__)
    parser.add_argument("file", type=Path, help="an official file")
    parser.add_argument(
        "--train", type=int, required=True, metavar="N", help="articles to train on"
    )
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="where to write")
    parser.add_argument("--version", choices=("1.1", "2.0"), default="1.1", help="(%(default)s)")
    return command.run("split_by_article", parser, None, work, "stopped")


def split(path: Path, train: int, out: Path, version: str) -> None:
    """Writes train-vVERSION.json with the first `train` articles of `path`, and dev-vVERSION.json.

    Raises:
        UserError: the file is not SQuAD's, or has too few articles.
    """
    read_squad(path)  # raises an error where the file is wrong
    content = json.loads(path.read_text(encoding="utf-8-sig"))
    articles = content["data"]
    if not 0 < train < len(articles):
        raise UserError(f"{path} has {len(articles)} articles; --train must leave at least one")
    for name, chosen in (("train", articles[:train]), ("dev", articles[train:])):
        file = out / f"{name}-v{version}.json"
        write_text(file, json.dumps(content | {"data": chosen}, ensure_ascii=False))
        questions = sum(len(p["qas"]) for article in chosen for p in article["paragraphs"])
        print(f"{file}: {len(chosen)} articles, {questions} questions")


if __name__ == "__main__":
    sys.exit(main())
