"""SQuAD's files are split by article."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from bert_tf.tasks.question_answering.squad import read_squad
from tests import tiny_questions


def split(*arguments) -> subprocess.CompletedProcess:
    command = [sys.executable, "-m", "experiments.squad.split_by_article", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parents[2])


@pytest.mark.slow
def test_a_file_is_split_by_article(tmp_path):
    path = tiny_questions.write_squad(tmp_path / "all.json", tiny_questions.rows(12, 0))
    done = split(path, "--train", 2, "--out", tmp_path / "split")
    assert done.returncode == 0, done.stderr
    parts = [tmp_path / "split" / f"{name}-v1.1.json" for name in ("train", "dev")]
    assert [len(read_squad(part)) for part in parts] == [10, 2]
    assert sum((read_squad(part).ids for part in parts), []) == read_squad(path).ids
    titles = [article["title"] for article in json.loads(parts[1].read_text())["data"]]
    assert titles == ["article 10"]


@pytest.mark.slow
def test_too_few_articles_are_told(tmp_path):
    path = tiny_questions.write_squad(tmp_path / "all.json", tiny_questions.rows(12, 0))
    done = split(path, "--train", 3, "--out", tmp_path / "split")
    assert done.returncode == 2
    assert "has 3 articles; --train must leave at least one" in done.stderr
    assert done.stderr.count("\n") == 1
