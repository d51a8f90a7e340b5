"""A run that resumes far into its data reads no more than a new one."""

import itertools

import numpy as np
import pytest

from bert_tf.data.batching import EncodedRows, training_batches
from bert_tf.data.corpora.corpus import Corpus
from bert_tf.data.corpora.shard_data import ShardData
from bert_tf.data.corpora.shard_writing import write_token_shards
from bert_tf.data.corpora.token_shards import TokenShards
from bert_tf.text import Tokenizer
from tests import tiny


@pytest.fixture(scope="module")
def shards(tmp_path_factory):
    """A corpus of many small shards."""
    folder = tmp_path_factory.mktemp("corpus")
    corpus = Corpus(tiny.write_corpus(folder, documents=60), "sentence_per_line")
    tokenizer = Tokenizer(tiny.write_vocabulary(folder))
    write_token_shards(corpus, tokenizer, folder / "tokens", shard_tokens=200)
    return folder / "tokens"


@pytest.mark.end_to_end
def test_pre_training_loads_no_more_shards_for_a_late_step(shards, monkeypatch):
    loaded = []
    load = TokenShards.load

    def counting_load(self, shard):
        loaded.append(shard.name)
        return load(self, shard)

    monkeypatch.setattr(TokenShards, "load", counting_load)

    def loads_at(step):
        data = ShardData(shards, 8, 24)
        assert data.steps_per_epoch < 100
        before = len(loaded)
        assert len(list(data.dataset(step).take(1))) == 1
        return len(loaded) - before

    at_first = loads_at(0)
    assert at_first > 0
    for step in (1_000, 1_000_000_000):
        assert loads_at(step) <= 3 * at_first


def test_fine_tuning_takes_no_more_rows_for_a_late_step():
    taken = itertools.count()
    lengths = np.random.RandomState(0).randint(3, 9, 1000)
    starts = np.concatenate([[0], np.cumsum(lengths)])
    ids = np.arange(starts[-1], dtype=np.int32)

    class Rows(EncodedRows):
        def take(self, rows):
            next(taken)
            return super().take(rows), rows

    def takes_at(step):
        before = next(taken)
        batches = training_batches(Rows(ids, ids, starts), 8, 0, step).take(1)
        assert len(list(batches)) == 1
        return next(taken) - before - 1

    # Some batches are read ahead; how many depends on the machine. An epoch has 125.
    assert 1 <= takes_at(1_000_000_000) < 50
