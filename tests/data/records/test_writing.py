"""Examples written as TFRecords are what google-research reads, and what comes back is the same."""

import json
import shutil

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.config.reading import load_config
from bert_tf.data.corpora.pretraining_data import open_data
from bert_tf.data.corpora.shard_writing import write_token_shards
from bert_tf.data.corpora.token_shards import FORMAT
from bert_tf.data.records import writing as record_writing
from bert_tf.data.records.data import RecordData
from bert_tf.data.records.files import RecordFile
from bert_tf.data.records.format import RECORDS, RecordFormat
from bert_tf.data.records.writing import write_records
from bert_tf.errors import UserError
from bert_tf.text import Tokenizer
from tests import tiny

TOKENIZER = tiny.tokenizer()
MAX_LENGTH, PREDICTIONS = 24, 4


def load(folder, *settings):
    return load_config(tiny.write_pretraining(folder), ["data.dupe_factor=2", *settings])


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """The examples of the tiny corpus in google-research's naming."""
    folder = tmp_path_factory.mktemp("written")
    write_records(load(folder), TOKENIZER, folder / "out")
    return folder / "out"


def google_examples(folder, part="train") -> list[dict[str, np.ndarray]]:
    """Parsed by the specification of google-research's run_pretraining.py (input_fn_builder)."""
    feature, number = tf.io.FixedLenFeature, tf.int64
    spec = dict.fromkeys(["input_ids", "input_mask", "segment_ids"], feature([MAX_LENGTH], number))
    spec |= dict.fromkeys(["masked_lm_positions", "masked_lm_ids"], feature([PREDICTIONS], number))
    spec["masked_lm_weights"] = feature([PREDICTIONS], tf.float32)
    spec["next_sentence_labels"] = feature([1], number)
    files = sorted(str(file) for file in folder.glob(f"{part}-*"))
    records = tf.data.TFRecordDataset(files).as_numpy_iterator()
    parsed = (tf.io.parse_single_example(record, spec) for record in records)
    return [{name: value.numpy() for name, value in each.items()} for each in parsed]


def test_google_research_reads_every_example(tmp_path, written):
    examples = google_examples(written)
    data = open_data(load(tmp_path), tmp_path / "tokens", TOKENIZER, batch_size=1)
    assert len(examples) == 2 * data.examples["train"]
    assert len(google_examples(written, "dev")) == data.examples["dev"]
    for each in examples:
        length = each["input_mask"].sum()
        assert (each["input_mask"] == (np.arange(MAX_LENGTH) < length)).all()
        assert each["input_ids"][0] == 2 and each["input_ids"][length - 1] == 3
        weights = each["masked_lm_weights"]
        assert weights.sum() == min(PREDICTIONS, max(1, round(length * 0.15)))
        assert (each["masked_lm_ids"][weights > 0] > 4).all()
        assert set(each["next_sentence_labels"].tolist()) <= {0, 1}
    masks = [tuple(each["masked_lm_positions"].tolist()) for each in examples]
    assert len(set(masks)) > len(masks) / 4


def assert_read_again(folder, naming):
    data = RecordData(folder, 1, MAX_LENGTH, TOKENIZER)
    format = RecordFormat(naming, MAX_LENGTH, PREDICTIONS, has_labels=True)
    for part, dataset in (("train", data.dataset()), ("dev", data.dev_dataset(99))):
        file = RecordFile(folder / f"{part}-00000-of-00001.tfrecord")
        made = [format.parse([record]) for record in file.read(0, len(file))]
        read = [x | y for x, y in dataset.take(len(file)).as_numpy_iterator()]
        assert sorted(map(as_text, read)) == sorted(map(as_text, made))


@pytest.mark.slow
def test_what_is_written_is_read_again(tmp_path, written):
    assert_read_again(written, "google")
    write_records(load(tmp_path), TOKENIZER, tmp_path / "out", "model_garden")
    assert_read_again(tmp_path / "out", "model_garden")


def as_text(example) -> str:
    return str(sorted((name, values.tolist()) for name, values in example.items()))


def test_the_same_configuration_gives_the_same_bytes_and_tfrecords_are_replaced(tmp_path, written):
    shutil.copytree(written, tmp_path / "out")
    (tmp_path / "out" / "vocab.txt").write_text("of before\n")
    write_records(load(tmp_path), TOKENIZER, tmp_path / "out")
    contents = [
        {file.name: file.read_bytes() for file in folder.iterdir()}
        for folder in (written, tmp_path / "out")
    ]
    assert contents[0] == contents[1]
    records = [f"{part}-00000-of-00001.tfrecord" for part in ("dev", "train")]
    assert contents[0].keys() == {*records, "manifest.json", "vocab.txt"}


@pytest.mark.slow
def test_examples_are_dealt_to_files_of_a_bounded_size(tmp_path, monkeypatch, written):
    monkeypatch.setattr(record_writing, "_FILE_EXAMPLES", 40)
    write_records(load(tmp_path), TOKENIZER, tmp_path / "out")
    files = sorted((tmp_path / "out").glob("train-*"))
    whole = google_examples(written)
    assert len(files) == -(-len(whole) // 40) > 1
    dealt = [each["input_ids"].tolist() for each in google_examples(tmp_path / "out")]
    assert sorted(dealt) == sorted(each["input_ids"].tolist() for each in whole)


def test_without_next_sentence_and_held_out_documents(tmp_path):
    config = load(tmp_path, "data.next_sentence=false", "data.dev_fraction=0")
    write_records(config, TOKENIZER, tmp_path / "out")
    assert not list((tmp_path / "out").glob("dev-*"))
    for each in google_examples(tmp_path / "out"):
        assert not each["segment_ids"].any() and not each["next_sentence_labels"].any()
    config = load(tmp_path, "data.format=tfrecord", f"data.path={tmp_path / 'out'}")
    data = open_data(config, tmp_path / "none", TOKENIZER)
    assert data.dev_dataset(1) is None
    assert next(iter(data.dataset()))[0]["input_word_ids"].shape == (4, MAX_LENGTH)


def test_another_vocabulary_or_casing_is_noticed(written):
    other = Tokenizer([*tiny.VOCABULARY[:-1], "other"])
    for tokenizer, message in [
        (other, "were made with a different vocabulary"),
        (tiny.tokenizer(False), "made without tokenizer.lower_case false"),
        (tiny.tokenizer().with_settings(longest_word=9), "made without tokenizer.longest_word 9"),
    ]:
        with pytest.raises(UserError, match=message):
            RecordData(written, 1, MAX_LENGTH, tokenizer)


def test_a_damaged_manifest_is_reported_and_one_of_another_program_is_ignored(tmp_path, written):
    folder = tmp_path / "copy"
    shutil.copytree(written, folder)
    manifest = folder / "manifest.json"
    manifest.write_text(json.dumps({"format": RECORDS}))
    with pytest.raises(UserError, match="manifest.json is damaged .lower_case is missing"):
        RecordData(folder, 1, MAX_LENGTH, TOKENIZER)
    for settings in ([1], {"lower_case": True}):
        manifest.write_text(
            json.dumps({"format": RECORDS, "lower_case": True, "tokenizer": settings})
        )
        with pytest.raises(UserError, match="manifest.json is damaged .settings of the tokenizer"):
            RecordData(folder, 1, MAX_LENGTH, TOKENIZER)
    for content in ("[" * 100_000, "mine", '{"format": "mine"}'):
        manifest.write_text(content)
        assert RecordData(folder, 1, MAX_LENGTH, TOKENIZER).steps_per_epoch > 1


def test_one_way_attention_refuses_tfrecords(tmp_path):
    config = load(tmp_path, "data.format=tfrecord", f"data.path={tmp_path}")
    with pytest.raises(UserError, match="data.format tfrecord cannot be combined with"):
        open_data(config, tmp_path, TOKENIZER, attention="left_to_right")


@pytest.mark.parametrize("content", ["mine", "[1]", "{}", f'{{"format": "{FORMAT}"}}'])
def test_only_tfrecords_are_ever_replaced(tmp_path, content):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "manifest.json").write_text(content)
    with pytest.raises(UserError, match="exists and does not contain TFRecords"):
        write_records(load(tmp_path), TOKENIZER, tmp_path / "out")
    assert (tmp_path / "out" / "manifest.json").read_text() == content


def test_tokens_that_are_damaged_meanwhile_are_told(tmp_path, monkeypatch):
    documents = [[f"{word} sat ."] * 3 for word in tiny.WORDS * 4]
    tokens = write_token_shards(documents, TOKENIZER, tmp_path / "tokens", shard_tokens=10)
    write = record_writing._write

    def damage_and_write(*arguments):
        for shard in tokens.parts["train"]:
            file = tmp_path / "tokens" / shard.file("tokens")
            file.write_bytes(file.read_bytes()[:-1] + b"?")
        write(*arguments)

    monkeypatch.setattr(record_writing, "_write", damage_and_write)
    settings = ["data.format=token_shards", f"data.path={tokens.folder}"]
    with pytest.raises(UserError, match="has changed since it was written"):
        write_records(load(tmp_path, *settings), TOKENIZER, tmp_path / "out")
    assert not (tmp_path / "out").exists()
