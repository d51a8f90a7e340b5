"""Documents out of TensorFlow Datasets, from a folder as TFDS prepares it."""

import pytest
import tensorflow as tf

from bert_tf.data.corpora.corpus import TfdsCorpus
from bert_tf.errors import UserError
from tests.data.prepared_tfds import cut_off, prepare

TEXTS = [f"Document {n} begins. It ends." for n in range(10)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    examples = [{"text": text, "title": "not this"} for text in TEXTS]
    return prepare(tmp_path_factory.mktemp("tfds") / "tiny", examples)


def test_documents_come_in_the_order_of_the_files(folder):
    corpus = TfdsCorpus(folder, "train")
    expected = [[f"Document {n} begins.", "It ends."] for n in range(10)]
    assert list(corpus) == expected
    assert corpus.position == corpus.size == 10
    assert list(corpus) == expected
    assert len(corpus.parts) == 3
    assert [document for part in corpus.parts for document in corpus.read(part)] == expected


def test_a_part_of_a_split_and_several_data_sets(folder):
    corpus = TfdsCorpus([folder, folder], "train[2:5]")
    names = [document[0] for document in corpus]
    assert names == [f"Document {n} begins." for n in (2, 3, 4)] * 2
    assert corpus.size == 6


def test_the_only_text_is_taken_whatever_its_name(tmp_path):
    folder = prepare(tmp_path / "tiny", [{"body": "One. Two.", "year": 1900}], shards=(1,))
    assert list(TfdsCorpus(folder, "train")) == [["One.", "Two."]]


def test_what_is_not_utf_8_is_marked(tmp_path):
    folder = prepare(tmp_path / "tiny", [{"text": "Half of it."}], shards=(1,))
    (file,) = folder.glob("*tfrecord*")
    (record,) = tf.data.TFRecordDataset(str(file)).as_numpy_iterator()
    with tf.io.TFRecordWriter(str(file)) as writer:
        writer.write(record.replace(b"Half", b"H\xe4lf"))
    assert list(TfdsCorpus(folder, "train")) == [["H\ufffdlf of it."]]


@pytest.mark.parametrize(
    ("example", "message"),
    [
        (
            {"a": "x", "b": "y"},
            "has several text features, none of them named text .its features are a, b.",
        ),
        ({"year": 1900}, "has no text feature .its features are year."),
    ],
)
def test_a_data_set_without_a_clear_text_is_refused(tmp_path, example, message):
    with pytest.raises(UserError, match=message):
        TfdsCorpus(prepare(tmp_path / "tiny", [example], shards=(1,)), "train")


def test_texts_without_words_are_told(tmp_path):
    folder = prepare(tmp_path / "tiny", [{"text": " \n"}], shards=(1,))
    with pytest.raises(UserError, match="contains no text"):
        list(TfdsCorpus(folder, "train"))


def test_a_damaged_file_is_told_in_one_line(tmp_path):
    folder = cut_off(prepare(tmp_path / "tiny", [{"text": text} for text in TEXTS]))
    documents = iter(TfdsCorpus(folder, "train"))
    with pytest.raises(UserError, match="TFDS .*tiny cannot be read .*; delete the fi") as error:
        list(documents)
    assert "\n" not in str(error.value)


def test_unknown_names_are_told_in_one_line(folder, tmp_path):
    for path, split, message in [
        ("no_such_data_set", "train", "TFDS has no data set no_such_data_set"),
        (folder, "test", "has no data.split 'test' .*train"),
        (folder, "train[", "has no data.split"),
        (folder, "train[:0]", r"data.split 'train\[:0\]' of .* is empty"),
        (tmp_path, "train", "TFDS cannot prepare"),
    ]:
        with pytest.raises(UserError, match=message) as error:
            TfdsCorpus(path, split)
        assert "\n" not in str(error.value)
