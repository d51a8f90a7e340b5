"""SQuAD's files are split by article."""

import json

from bert_tf.experiments.squad import split_by_article
from bert_tf.tasks.question_answering.squad import read_squad
from tests import tiny_questions


def split(path, train, out):
    return split_by_article.main([str(path), "--train", str(train), "--out", str(out)])


def test_a_file_is_split_by_article(tmp_path):
    path = tiny_questions.write_squad(tmp_path / "all.json", tiny_questions.rows(12, 0))
    assert split(path, 2, tmp_path / "split") == 0
    parts = [tmp_path / "split" / f"{name}-v1.1.json" for name in ("train", "dev")]
    assert [len(read_squad(part)) for part in parts] == [10, 2]
    assert sum((read_squad(part).ids for part in parts), []) == read_squad(path).ids
    titles = [article["title"] for article in json.loads(parts[1].read_text())["data"]]
    assert titles == ["article 10"]


def test_too_few_articles_are_told(tmp_path, capsys):
    path = tiny_questions.write_squad(tmp_path / "all.json", tiny_questions.rows(12, 0))
    assert split(path, 3, tmp_path / "split") == 2
    told = capsys.readouterr().err
    assert "has 3 articles; --train must leave at least one" in told
    assert told.count("\n") == 1
