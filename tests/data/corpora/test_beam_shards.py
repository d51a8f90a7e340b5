"""Beam writes the same files as the local writer, in whatever order it processes the parts."""

import random
from pathlib import Path

import numpy as np
import pytest

from bert_tf.config.reading import load_config
from bert_tf.data.corpora import beam_shards
from bert_tf.data.corpora.beam_shards import lay_out
from bert_tf.data.corpora.corpus import Corpus
from bert_tf.data.corpora.shard_writing import write_token_shards
from bert_tf.data.corpora.token_shards import DEV, TRAIN
from bert_tf.errors import UserError, named
from bert_tf.io.remote import fetched
from tests import tiny

TOKENIZER = tiny.tokenizer()


def contents(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir()}


def write_corpus(folder: Path, files: int = 5) -> Path:
    source = random.Random(0)
    folder.mkdir()
    for number in range(files):
        lengths = [[source.randint(1, 9) for _ in range(source.randint(1, 6))] for _ in range(20)]
        documents = ["\n".join(tiny.sentence(source, n) for n in each) for each in lengths]
        (folder / f"{number}.txt").write_text("\n\n".join([*documents, "\u200b"]))
    return folder


def tokenized_batches(corpus: Corpus) -> list[tuple]:
    vocabulary = (TOKENIZER.vocabulary, TOKENIZER.settings)
    batches = [b for part in enumerate(corpus.parts) for b in beam_shards._read(part, corpus)]
    return [beam_shards._tokenize(batch, vocabulary) for batch in batches]


@pytest.mark.parametrize("dev_fraction", [0.0, 1e-9, 0.2, 1.0])
def test_shards_are_laid_out_as_they_are_written_here(tmp_path, monkeypatch, dev_fraction):
    monkeypatch.setattr("bert_tf.data.corpora.shard_writing._BATCH_CHARACTERS", 300)
    corpus = Corpus(write_corpus(tmp_path / "corpus"), "sentence_per_line")
    sizes = list(map(beam_shards._measure, tokenized_batches(corpus)))
    assert len(sizes) > 10
    random.Random(1).shuffle(sizes)
    layout = lay_out(sizes, dev_fraction, 100)
    written = write_token_shards(corpus, TOKENIZER, tmp_path / "out", dev_fraction, 100)
    counts = {TRAIN: {}, DEV: {}}
    for batch in tokenized_batches(corpus):
        for (part, number), (_, documents) in beam_shards._assign(batch, layout):
            tokens = sum(len(document.ids) for document in documents)
            counts[part][number] = counts[part].get(number, 0) + tokens
    for part, shards in written.parts.items():
        assert [counts[part][n] for n in sorted(counts[part])] == [s.tokens for s in shards]
        assert len(layout[1][part]) == len(shards)


@pytest.mark.end_to_end
@pytest.mark.parametrize("in_bucket", [False, True])
def test_workers_write_the_files_that_are_written_here(tmp_path, request, monkeypatch, in_bucket):
    monkeypatch.setattr("bert_tf.data.corpora.shard_writing._BATCH_CHARACTERS", 300)
    texts, out = write_corpus(tmp_path / "corpus"), str(tmp_path / "out")
    if in_bucket:
        bucket = request.getfixturevalue("s3")
        texts, out = bucket.put_folder(texts, "corpus"), f"{bucket.address}/out"
        bucket.put("out/manifest.json", "{}")
    corpus = Corpus(texts, "sentence_per_line")
    with beam_shards._new_folder(out) as folder:
        parts = [(n, named(str(part))) for n, part in enumerate(corpus.parts)]
        if in_bucket:
            assert bucket.names("out") == []  # what was there
            assert folder == out and parts[0][1].startswith("s3://")
            monkeypatch.setenv("BERT_TF_CACHE", str(tmp_path / "worker"))
        vocabulary = (TOKENIZER.vocabulary, TOKENIZER.settings)
        read = [batch for part in parts for batch in beam_shards._read(part, corpus)]
        batches = [beam_shards._tokenize(batch, vocabulary) for batch in read]
        layout = lay_out(map(beam_shards._measure, batches), 0.2, 100)
        shards = {}
        for batch in batches:
            for place, members in beam_shards._assign(batch, layout):
                shards.setdefault(place, []).append(members)
        written = [beam_shards._write(shard, folder) for shard in reversed(shards.items())]
        beam_shards._finish(written, folder, vocabulary, 0.2)
    write_token_shards(corpus, TOKENIZER, tmp_path / "here", 0.2, 100)
    assert contents(fetched(out)) == contents(tmp_path / "here")


def test_a_corpus_without_tokens_is_told():
    empty = (0, 0), np.array([], np.uint64), np.array([], np.int64)
    for sizes in ([], [empty]):
        with pytest.raises(UserError, match="the corpus has no tokens"):
            lay_out(sizes, 0.1, 100)


class TestWithBeam:
    """What runs only where Apache Beam is installed."""

    @pytest.fixture(autouse=True)
    def beam(self):
        return pytest.importorskip("apache_beam", reason="install the extra beam to run this test")

    @pytest.mark.parametrize("dev_fraction", [0.0, 0.2])
    def test_the_files_are_the_same(self, tmp_path, monkeypatch, dev_fraction):
        monkeypatch.setattr("bert_tf.data.corpora.shard_writing._BATCH_CHARACTERS", 300)
        corpus = Corpus(write_corpus(tmp_path / "corpus"), "sentence_per_line")
        write_token_shards(corpus, TOKENIZER, tmp_path / "here", dev_fraction, 100)
        (tmp_path / "beam").mkdir()
        beam_shards.run(corpus, TOKENIZER, tmp_path / "beam", dev_fraction, 100)
        assert contents(tmp_path / "beam") == contents(tmp_path / "here")
        assert len(contents(tmp_path / "here")) > 20

    def test_a_configuration_becomes_token_shards(self, tmp_path):
        config = load_config(tiny.write_pretraining(tmp_path))
        shards = beam_shards.build(config, TOKENIZER, tmp_path / "out")
        assert sum(shard.documents for part in shards.parts.values() for shard in part) == 12
        assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []

    def test_a_mistake_in_the_corpus_is_told_in_one_line(self, tmp_path):
        path = tiny.write_pretraining(tmp_path)
        (tmp_path / "corpus.txt").write_bytes(b"good\nb\xe4d\n")
        with pytest.raises(UserError, match="not UTF-8: .*corpus.txt, line 2, byte 1") as error:
            beam_shards.build(load_config(path), TOKENIZER, tmp_path / "out")
        assert "\n" not in str(error.value) and "while running" not in str(error.value)
        assert not (tmp_path / "out").exists()
