"""TFRecords of google-research, of Model Garden and of ours are trained from, each example once."""

import shutil
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.data.records.data import RecordData
from bert_tf.data.records.format import RecordFormat
from bert_tf.errors import UserError
from tests import tiny

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"
TOKENIZER = tiny.tokenizer()
FORMAT = RecordFormat("google", max_length=8, max_predictions=2, has_labels=True)


def example(number: int, **changes) -> dict[str, np.ndarray]:
    """Distinguished by its labels: masked_lm_ids are the digits of `number` in base 20."""
    return {
        "input_word_ids": np.array([2, 7, 8, 3, 9, 3, 0, 0]),
        "input_mask": np.array([1, 1, 1, 1, 1, 1, 0, 0]),
        "input_type_ids": np.array([0, 0, 0, 0, 1, 1, 0, 0]),
        "masked_lm_positions": np.array([1, 4]),
        "masked_lm_ids": np.array(divmod(number, 20)),
        "masked_lm_weights": np.array([1.0, 0.0], np.float32),
        "next_sentence_labels": np.array(number % 2),
    } | changes


def write(path, examples, format=FORMAT):
    with tf.io.TFRecordWriter(str(path)) as writer:
        for each in examples:
            writer.write(format.encode(each))


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """400 examples in four files."""
    folder = tmp_path_factory.mktemp("written")
    for file in range(4):
        write(folder / f"{file}.tfrecord", map(example, range(file, 400, 4)))
    return folder


@pytest.fixture
def folder(written, tmp_path):
    """A copy of them."""
    return shutil.copytree(written, tmp_path, dirs_exist_ok=True)


def open_data(path, batch_size=10, max_length=8, **options):
    return RecordData(path, batch_size, max_length, TOKENIZER, **options)


def numbers(dataset, steps) -> list[list[int]]:
    ids = [targets["masked_lm_ids"] for _, targets in dataset.take(steps).as_numpy_iterator()]
    return [(batch[:, 0] * 20 + batch[:, 1]).tolist() for batch in ids]


@pytest.mark.parametrize("builder", ["google", "model_garden"])
def test_the_examples_of_other_builders_are_read(builder):
    folder = FIXTURES / f"{builder}_tfrecords"
    names = {"input_word_ids": "input_ids", "input_type_ids": "segment_ids"}
    if builder == "model_garden":
        names = {}
    expected = []
    for record in tf.data.TFRecordDataset(sorted(map(str, folder.iterdir()))):
        features = tf.train.Example.FromString(record.numpy()).features.feature
        expected.append(
            {
                name: list(features[names.get(name, name)].int64_list.value)
                or list(features[names.get(name, name)].float_list.value)
                for name in example(0)
            }
        )
    data = open_data(folder, batch_size=1, max_length=24)
    assert data.steps_per_epoch == len(expected) == 44
    found = []
    for inputs, targets in data.dataset().take(44).as_numpy_iterator():
        batch = inputs | targets
        assert batch["input_word_ids"].dtype == batch["next_sentence_labels"].dtype == np.int32
        found.append({name: values.ravel().tolist() for name, values in batch.items()})
    assert sorted(found, key=str) == sorted(expected, key=str)
    assert found != expected


def test_datasets_have_labels_where_they_are_asked_for(folder):
    data, unlabelled = open_data(folder), open_data(folder, next_sentence=False)
    (_, targets), (_, fewer) = (each.dataset().element_spec for each in (data, unlabelled))
    assert targets["next_sentence_labels"].shape == (10,)
    assert targets["masked_lm_ids"].shape == (10, data.max_predictions) == (10, 2)
    assert fewer.keys() == targets.keys() - {"next_sentence_labels"}


def test_every_epoch_has_every_example_once_in_another_order(folder):
    batches = numbers(open_data(folder, seed=4).dataset(), 80)
    first, second = (sum(batches[start : start + 40], []) for start in (0, 40))
    assert sorted(first) == sorted(second) == [*range(400)]
    assert first != second != sorted(second)
    assert numbers(open_data(folder, seed=5).dataset(), 1) != batches[:1]
    # Every batch mixes the files.
    assert min(len({number % 4 for number in batch}) for batch in batches) > 1


def test_batch_k_is_the_same_after_a_seek_and_for_any_number_of_workers(folder):
    data = open_data(folder)
    batches = numbers(data.dataset(), 90)
    for start in (1, 39, 40, 85):
        assert numbers(open_data(folder).dataset(start), 5) == batches[start : start + 5]
    for worker in range(5):
        share = numbers(data.dataset(38, worker, 5), 5)
        assert share == [batch[worker::5] for batch in batches[38:43]]
    with pytest.raises(
        UserError, match="batch_size 10 is not a multiple of the number of workers, 4"
    ):
        data.dataset(0, 0, 4)


def test_held_out_files_are_given_or_found_by_their_names(folder):
    assert open_data(folder).dev_dataset(3) is None
    write(folder / "dev-0.tfrecord", map(example, range(300, 320)))
    data = open_data(folder, seed=1)
    found = numbers(data.dev_dataset(2), 9)
    assert sorted(sum(found, [])) == [*range(300, 320)]
    assert numbers(open_data(folder, seed=2).dev_dataset(2), 9) == found
    assert data.steps_per_epoch == 40
    named = open_data(f"{folder}/[0-9]*", dev_path=folder / "dev-0.tfrecord")
    assert numbers(named.dev_dataset(2), 9) == found
    assert open_data(f"{folder}/[0-9]*").dev_dataset(1) is None


def trained_on(data) -> list[int]:
    """The numbers of the examples of an epoch."""
    return sorted(sum(numbers(data.dataset(), data.steps_per_epoch), []))


def test_named_held_out_files_of_the_folder_are_not_trained_on(folder):
    data = open_data(folder, dev_path=folder / "2.tfrecord")
    assert trained_on(data) == [number for number in range(400) if number % 4 != 2]
    assert {number % 4 for number in sum(numbers(data.dev_dataset(3), 9), [])} == {2}
    # Another name of the same file.
    (folder.parent / "link").symlink_to(folder / "2.tfrecord")
    data = open_data(folder, dev_path=folder.parent / "link")
    assert trained_on(data) == [number for number in range(400) if number % 4 != 2]


def test_held_out_files_that_a_glob_finds_too_are_not_trained_on(folder):
    write(folder / "dev-0.tfrecord", map(example, range(380, 400)))
    for options in ({}, {"dev_path": folder / "dev-0.tfrecord"}):
        data = open_data(f"{folder}/*.tfrecord", **options)
        assert data.steps_per_epoch == 40
        assert sorted(sum(numbers(data.dev_dataset(2), 9), [])) == [*range(380, 400)]


def test_lists_of_folders_and_globs_hold_out_as_each_alone_does(folder):
    other = folder.parent / f"{folder.name}_other"
    other.mkdir()
    write(other / "dev-0.tfrecord", map(example, range(400, 420)))
    write(other / "9.tfrecord", map(example, range(440, 480)))
    (other / "notes.txt").write_text("none of the records")
    for path in ([str(folder), str(other)], [f"{folder}/*", f"{other}/*.tfrecord"]):
        data = open_data(path)
        assert trained_on(data) == [*range(400), *range(440, 480)]
        assert sorted(sum(numbers(data.dev_dataset(2), 9), [])) == [*range(400, 420)]
    data = open_data(folder, dev_path=other)
    assert sorted({*sum(numbers(data.dev_dataset(6), 9), [])}) == [
        *range(400, 420),
        *range(440, 480),
    ]


def test_the_lack_of_a_file_to_train_on_is_reported(folder):
    for path, dev_path in [
        (folder, f"{folder}/*"),
        (folder / "1.tfrecord", folder / "1.tfrecord"),
        (f"{folder}/[0-9]*", folder),
    ]:
        with pytest.raises(
            UserError, match="no file is left to train on: .* such as .*tfrecord, are h"
        ):
            open_data(path, dev_path=dev_path)


def test_a_damaged_record_is_named_when_its_turn_comes(folder):
    path = folder / "2.tfrecord"
    data = bytearray(path.read_bytes())
    data[-10] ^= 1
    path.write_bytes(bytes(data))
    with pytest.raises(UserError, match="2.tfrecord, record 100 is damaged"):
        open_data(folder).dataset()


def id_too_large(name):
    values = example(0)[name].copy()
    values[1] = len(tiny.VOCABULARY)
    return [*map(example, range(20)), example(20, **{name: values})]


@pytest.mark.parametrize(
    ("examples", "message"),
    [
        (id_too_large("input_word_ids"), "record 21 has input_word_ids 26, but the vocab"),
        (
            id_too_large("masked_lm_ids"),
            "masked_lm_ids 26, .*; set tokenizer.vocab to that of the file",
        ),
        (
            [example(0, masked_lm_positions=np.array([1, 8]))],
            "has masked_lm_positions 8, but .* tokens; make or copy the file again",
        ),
        (
            [example(0), example(1, input_mask=np.ones(9, int))],
            "record 2 differs in form from the first .* 8 tokens and up to 2 masked",
        ),
    ],
)
def test_examples_without_sense_are_named(tmp_path, examples, message):
    write(tmp_path / "a.tfrecord", examples)
    with pytest.raises(UserError, match=message) as error:
        open_data(tmp_path, batch_size=1).dataset()
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_length": 16}, "have 8 tokens, but train.max_length is 16; set it to 8"),
        ({"batch_size": 401}, "batch size 401 is larger than the data .*holds 400"),
    ],
)
def test_settings_without_sense_are_told(folder, options, message):
    with pytest.raises(UserError, match=message):
        open_data(folder, **options)


def test_other_files_are_told(tmp_path, folder):
    other = tmp_path / "other"
    other.mkdir()
    with pytest.raises(UserError, match="contains no files"):
        open_data(other)
    (other / "notes.txt").write_text("mine")
    with pytest.raises(
        UserError, match='contains no files with "tfrecord" in their names; name the files'
    ):
        open_data(other)
    write(other / "a.tfrecord", [])
    with pytest.raises(UserError, match="contains no examples"):
        open_data(other)
    images = tf.train.Example()
    images.features.feature["image/encoded"].bytes_list.value.append(b"x")
    for data, message in [
        (images.SerializeToString(), "has no input_word_ids, .*, only image/encoded"),
        (b"\xff\xff\xff", "is not a tf.train.Example"),
    ]:
        with tf.io.TFRecordWriter(str(other / "a.tfrecord")) as writer:
            writer.write(data)
        with pytest.raises(UserError, match=message) as error:
            open_data(other)
        assert "\n" not in str(error.value)
    unlabelled = {k: v for k, v in example(0).items() if k != "next_sentence_labels"}
    write(other / "a.tfrecord", [unlabelled] * 20)
    with pytest.raises(UserError, match="no next_sentence_labels; set data.next_sentence to fals"):
        open_data(other)
    assert open_data(other, next_sentence=False).steps_per_epoch == 2
