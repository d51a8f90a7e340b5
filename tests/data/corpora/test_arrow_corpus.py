"""Documents out of Parquet files and of data sets of Hugging Face."""

import pickle

import pytest

from bert_tf.data.corpora.corpus import ArrowCorpus
from bert_tf.errors import UserError

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
datasets = pytest.importorskip("datasets")

TEXTS = [f"Document {n} begins. It ends." for n in range(10)]
DOCUMENTS = [[f"Document {n} begins.", "It ends."] for n in range(10)]


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", str(tmp_path / "hf"))
    monkeypatch.setattr("bert_tf.data.corpora.corpus._ROWS", 4)


def test_documents_come_in_the_order_of_the_rows(tmp_path):
    table = pa.table({"text": TEXTS, "title": ["not this"] * 10})
    pq.write_table(table.slice(0, 3), tmp_path / "a-0.parquet")
    pq.write_table(table.slice(3), tmp_path / "a-1.parquet")
    corpus = ArrowCorpus(tmp_path / "a-*.parquet", None)
    assert list(corpus) == list(corpus) == DOCUMENTS
    assert (corpus.position, corpus.size, len(corpus.parts)) == (10, 10, 3)
    again = pickle.loads(pickle.dumps(corpus))  # as Beam sends it to its workers
    assert [document for part in again.parts for document in again.read(part)] == DOCUMENTS


def test_a_split_of_a_saved_data_set_and_the_only_column(tmp_path):
    data_set = datasets.Dataset.from_dict({"body": [*TEXTS, None]})
    datasets.DatasetDict({"train": data_set}).save_to_disk(tmp_path / "saved")
    assert list(ArrowCorpus(tmp_path / "saved", "train")) == DOCUMENTS


def test_several_columns_none_of_which_is_named_text_are_refused(tmp_path):
    pq.write_table(pa.table({"texts": ["a"], "title": ["b"]}), tmp_path / "a.parquet")
    with pytest.raises(UserError, match="a.parquet: no column 'text'; .*'texts' is the nearest"):
        ArrowCorpus(tmp_path / "a.parquet", None)
