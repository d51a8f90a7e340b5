"""Runs on many rows of Parquet: the cache of tokens changes nothing but where they are."""

import numpy as np
import pytest

from bert_tf import runs
from bert_tf.checkpoints.names import weight_names
from bert_tf.config.reading import load_config
from bert_tf.data.tables import read_table
from bert_tf.runs import finetuning
from bert_tf.tasks import task_model
from bert_tf.tasks.loading import load_model
from tests import tiny

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
datasets = pytest.importorskip("datasets")


@pytest.fixture
def config_of(tmp_path, monkeypatch):
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", str(tmp_path / "hf"))
    monkeypatch.setenv("BERT_TF_CACHE", str(tmp_path / "cache"))
    path = tiny.write_finetuning(tmp_path)
    for split in ("train", "dev", "test"):
        rows = [row for _, row in read_table(tmp_path / f"{split}.tsv", "tsv", ["text", "label"])]
        pq.write_table(pa.Table.from_pylist(rows), tmp_path / f"{split}.parquet")
    return lambda form, *more: load_config(path, [f"data.format={form}", "train.epochs=2", *more])


def weights(run):
    return {name: np.array(each) for name, each in weight_names(load_model(run)).items()}


@pytest.mark.slow
def test_a_run_from_the_cache_is_the_same_to_the_bit(config_of, tmp_path, monkeypatch):
    metrics = runs.finetune(config_of("tsv"), tmp_path / "tsv")
    assert not (tmp_path / "cache").exists()
    monkeypatch.setattr(finetuning, "_MANY_ROWS", 32)
    assert runs.finetune(config_of("parquet"), tmp_path / "parquet") == metrics
    expected = weights(tmp_path / "tsv")
    for name, each in weights(tmp_path / "parquet").items():
        np.testing.assert_array_equal(each, expected[name])
    names = {path.name for path in (tmp_path / "tsv" / "predictions").iterdir()}
    assert names == {path.name for path in (tmp_path / "parquet" / "predictions").iterdir()}

    # The trials of another run read what is there.
    def must_not_tokenize(columns, size, first=0, **_):
        assert first * size >= len(columns[0]), "rows are tokenized again"
        return iter(())

    monkeypatch.setattr(task_model, "in_chunks", must_not_tokenize)
    (folder,) = (tmp_path / "cache" / "tokens").iterdir()
    search = config_of("parquet", "train.seed=[0,1]", "train.epochs=1")
    found = runs.finetune(search, tmp_path / "search")
    assert [*(tmp_path / "cache" / "tokens").iterdir()] == [folder]
    assert found.keys() == metrics.keys()
