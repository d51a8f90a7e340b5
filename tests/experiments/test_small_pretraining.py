"""The small experiment: its corpus is made of both sources, and its configurations are valid."""

from pathlib import Path

import pytest

from bert_tf import config as configuration
from bert_tf.data.corpus import Corpus
from experiments.pretraining.small import corpus

FOLDER = Path(corpus.__file__).parent


def test_the_corpus_holds_the_documents_of_both_sources(tmp_path):
    (tmp_path / "novels").mkdir()
    (tmp_path / "novels" / "a.txt").write_text("CHAPTER I\n\nIt was late. All slept.\n")
    wiki = " = York = \n\n The <unk> club won . \n\n = Hull = \n\n <unk> \n"
    (tmp_path / "wiki.txt").write_text(wiki)
    out = tmp_path / "out" / "corpus.txt"
    corpus.write(str(tmp_path / "novels"), [str(tmp_path / "wiki.txt")], out)

    documents = list(Corpus(out, "sentence_per_line"))
    assert documents == [
        ["CHAPTER I", "It was late.", "All slept."],
        ["York", "The  club won ."],
        ["Hull"],
    ]


def test_a_novel_is_cut_into_chapters(tmp_path):
    (tmp_path / "novels").mkdir()
    (tmp_path / "novels" / "a.txt").write_text("It was late.\n\n" * 450)
    corpus.write(str(tmp_path / "novels"), [], tmp_path / "out")
    assert list(map(len, Corpus(tmp_path / "out", "sentence_per_line"))) == [200, 200, 50]


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.yaml")), ids=lambda path: path.stem)
def test_the_configurations_are_valid(path):
    assert configuration.load(path).model.preset == "bert-mini-uncased"
