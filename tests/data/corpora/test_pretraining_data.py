"""The batches that pre-training reads."""

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.data.corpora.shard_data import ShardData
from bert_tf.data.corpora.token_shards import TRAIN, TokenShards
from bert_tf.errors import UserError
from tests.data import counting

LENGTHS = counting.random_lengths(number=150, sentences=12, longest=9)
MAX_LENGTH, PREDICTIONS, BATCH = 32, 5, 12


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("shards") / "out"
    counting.shards(folder, LENGTHS, shard_tokens=300, dev_fraction=0.1)
    return folder


def open_data(folder, batch_size=BATCH, max_length=MAX_LENGTH, **options) -> ShardData:
    return ShardData(folder, batch_size, max_length, PREDICTIONS, **options)


def take(dataset: tf.data.Dataset, number: int) -> list[dict[str, np.ndarray]]:
    """The first batches, inputs and targets in one dict."""
    return [inputs | targets for inputs, targets in dataset.take(number).as_numpy_iterator()]


def assert_same(batches, others):
    assert len(batches) == len(others)
    for batch, other in zip(batches, others, strict=True):
        assert batch.keys() == other.keys()
        for name, values in batch.items():
            np.testing.assert_array_equal(values, other[name], err_msg=name)


def unmasked_words(batch) -> set[int]:
    """The ids of the text as it was."""
    ids = batch["input_word_ids"].copy()
    row, column = np.nonzero(batch["masked_lm_weights"])
    ids[row, batch["masked_lm_positions"][row, column]] = batch["masked_lm_ids"][row, column]
    return set(ids[ids >= len(counting.SPECIAL)].tolist())


def test_rows_are_cls_a_sep_b_sep_and_padding(folder):
    for batch in take(open_data(folder).dataset(), 20):
        ids, mask, types = (batch[f"input_{name}"] for name in ("word_ids", "mask", "type_ids"))
        length = mask.sum(1)
        rows = np.arange(len(ids))
        first = length - types.sum(1)
        assert (ids[:, 0] == 2).all()
        assert (ids[rows, first - 1] == 3).all() and (ids[rows, length - 1] == 3).all()
        np.testing.assert_array_equal(mask, np.arange(MAX_LENGTH) < length[:, None])
        np.testing.assert_array_equal(types, mask * (np.arange(MAX_LENGTH) >= first[:, None]))
        assert (ids[mask == 0] == 0).all() and (ids[mask == 1] > 0).all()


@pytest.mark.parametrize("cross_documents", [True, False])
def test_without_next_sentence_a_row_is_one_segment(folder, cross_documents):
    options = {"next_sentence": False, "cross_documents": cross_documents}
    dataset = open_data(folder, **options).dataset()
    assert "next_sentence_labels" not in dataset.element_spec[1]
    for batch in take(dataset, 5):
        assert not batch["input_type_ids"].any()
        ids = batch["input_word_ids"]
        assert (ids[np.arange(BATCH), batch["input_mask"].sum(1) - 1] == 3).all()
        assert ((ids == 3).sum(1) > 1).any() == cross_documents


def test_batch_k_is_the_same_after_a_seek_also_beyond_an_epoch(folder):
    data = open_data(folder, seed=5)
    steps = 2 * data.steps_per_epoch + 3
    batches = take(data.dataset(), steps)
    for start in (1, data.steps_per_epoch - 1, data.steps_per_epoch + 2):
        fresh = open_data(folder, seed=5).dataset(start)
        assert_same(take(fresh, 3), batches[start : start + 3])


def test_an_epoch_brings_new_pairs_and_the_same_pair_new_masks(folder):
    data = open_data(folder)
    first, second = (take(data.dataset(step), 1)[0] for step in (0, data.steps_per_epoch + 1))
    assert (first["input_word_ids"] != second["input_word_ids"]).any()
    assert (first["masked_lm_positions"] != second["masked_lm_positions"]).any()


def test_seeds_give_different_batches(folder):
    first, second = (take(open_data(folder, seed=seed).dataset(), 1)[0] for seed in (0, 2**31 - 1))
    assert unmasked_words(first) != unmasked_words(second)


@pytest.mark.slow
def test_workers_read_the_rows_of_one_global_batch(folder):
    data = open_data(folder)
    whole = take(data.dataset(3), 2)
    for worker in range(3):
        share = take(data.dataset(3, worker, 3), 2)
        expected = [{name: values[worker::3] for name, values in b.items()} for b in whole]
        assert_same(share, expected)
    with pytest.raises(
        UserError, match="batch_size 12 is not a multiple of the number of workers, 5"
    ):
        data.dataset(0, 0, 5)


def test_each_worker_reads_only_the_shards_of_its_rows(tmp_path, monkeypatch):
    lengths = counting.random_lengths(number=400, sentences=12, longest=9)
    counting.shards(tmp_path / "out", lengths, shard_tokens=400)
    read: list[str] = []
    load = TokenShards.load

    def noting(self, shard):
        read.append(shard.name)
        return load(self, shard)

    monkeypatch.setattr(TokenShards, "load", noting)
    data = open_data(tmp_path / "out")
    whole = len(TokenShards(tmp_path / "out").parts[TRAIN])
    # What is left at the end of an epoch is for all workers.
    steps = int(0.9 * data.steps_per_epoch)
    shares = []
    for worker in range(4):
        read.clear()
        for step in range(steps):
            data._train.rows(step * BATCH + worker, (step + 1) * BATCH, 4)
        assert len(read) == len(set(read))
        shares.append(set(read))
    assert whole >= 32
    assert len(set.union(*shares)) == sum(map(len, shares)) > 0.8 * whole


def test_sequences_of_two_lengths_come_from_the_same_shards(folder):
    short, long = (open_data(folder, max_length=length, seed=3) for length in (16, 64))
    first, second = (take(data.dataset(2), 1)[0] for data in (short, long))
    assert first["input_word_ids"].shape == (BATCH, 16)
    assert second["input_word_ids"].shape == (BATCH, 64)
    assert short.steps_per_epoch > 2 * long.steps_per_epoch


@pytest.mark.parametrize(("attention", "predicted"), [("left_to_right", 1), ("right_to_left", -1)])
def test_with_one_way_attention_every_token_predicts_its_neighbour(folder, attention, predicted):
    data = ShardData(folder, BATCH, 32, next_sentence=False, attention=attention)
    assert data.max_predictions == 31
    for batch in take(data.dataset(), 3):
        ids, length = batch["input_word_ids"], batch["input_mask"].sum(1)
        assert not (ids == 4).any()
        assert (batch["masked_lm_weights"].sum(1) == length - 1).all()
        for row in range(BATCH):
            used = batch["masked_lm_weights"][row] > 0
            positions = batch["masked_lm_positions"][row][used]
            np.testing.assert_array_equal(
                batch["masked_lm_ids"][row][used], ids[row][positions + predicted]
            )


def test_next_sentence_prediction_needs_attention_to_what_follows(folder):
    with pytest.raises(UserError, match="with left_to_right attention, .*next_sentence to f"):
        open_data(folder, attention="left_to_right")


def test_what_becomes_of_the_chosen_tokens_can_be_set(folder):
    def kept_and_masked(**shares):
        batch = take(open_data(folder, batch_size=200, **shares).dataset(), 1)[0]
        row, column = np.nonzero(batch["masked_lm_weights"])
        found = batch["input_word_ids"][row, batch["masked_lm_positions"][row, column]]
        return np.mean(found == batch["masked_lm_ids"][row, column]), np.mean(found == 4)

    assert kept_and_masked(mask_share=0.0, random_share=0.0) == (1, 0)
    assert kept_and_masked(mask_share=1.0, random_share=0.0) == (0, 1)
    kept, masked = kept_and_masked(mask_share=0.3, random_share=0.5)
    assert abs(kept - 0.2) < 0.06 and abs(masked - 0.3) < 0.06


def test_held_out_text_is_never_trained_on(folder):
    data = open_data(folder)
    dev = set().union(*map(unmasked_words, take(data.dev_dataset(30), 30)))
    train = set().union(*map(unmasked_words, take(data.dataset(), data.steps_per_epoch)))
    assert len(dev) > 500 and len(train) > 5000
    assert not dev & train


def test_held_out_batches_are_the_same_every_time_and_for_every_seed(folder):
    dataset = open_data(folder, seed=1).dev_dataset(4)
    first = take(dataset, 9)
    assert len(first) == dataset.cardinality() == 4
    data = open_data(folder, seed=2)
    assert_same(take(data.dev_dataset(4), 4), first)
    assert_same(take(data.dev_dataset(4), 4), first)


def test_masking_options_reach_the_batches(tmp_path):
    counting.shards(tmp_path / "out", LENGTHS)
    batch = take(ShardData(tmp_path / "out", 8, 32, rate=0.4).dataset(), 1)[0]
    assert batch["masked_lm_ids"].shape == (8, 13)
    assert batch["masked_lm_weights"].sum(1).max() == 13


def test_a_changed_shard_is_reported_at_the_start_or_when_its_turn_comes(tmp_path):
    folder = tmp_path / "out"
    shards = counting.shards(folder, LENGTHS, shard_tokens=100)
    data = open_data(folder)
    batches = data.dataset()
    for shard in shards.parts[TRAIN]:
        file = folder / shard.file("tokens")
        file.write_bytes(file.read_bytes()[:-1] + b"?")
    with pytest.raises(UserError, match="has changed since it was written"):
        data.dataset(data.steps_per_epoch // 2)
    with pytest.raises(UserError, match="has changed"), data.explained_errors():
        take(batches, data.steps_per_epoch)
    with pytest.raises(UserError, match="has changed"):
        open_data(folder)


def test_one_document_is_too_few_for_next_sentence_prediction(tmp_path):
    counting.shards(tmp_path / "out", [[9] * 500])
    with pytest.raises(UserError, match="next sentence prediction is impossible: .* 1 document,"):
        open_data(tmp_path / "out")
    single = open_data(tmp_path / "out", next_sentence=False)
    assert len(take(single.dataset(), 3)) == 3


def test_documents_of_one_sentence_are_enough(tmp_path):
    counting.shards(tmp_path / "out", [[6]] * 200)
    for batch in take(open_data(tmp_path / "out").dataset(), 3):
        assert batch["next_sentence_labels"].all()
        assert (batch["input_mask"].sum(1) >= 5).all()
    (batch,) = take(open_data(tmp_path / "out", next_sentence=False).dataset(), 1)
    assert (batch["input_mask"].sum(1) > 16).any()


def test_without_a_held_out_share_there_are_no_held_out_batches(tmp_path):
    lengths = [[9] * 20] * 3
    counting.shards(tmp_path / "none", lengths)
    assert open_data(tmp_path / "none").dev_dataset(1) is None
    counting.shards(tmp_path / "few", lengths, dev_fraction=1e-6)
    with pytest.raises(UserError, match="has no held-out documents; .* or with 0 to"):
        open_data(tmp_path / "few").dev_dataset(1)


def test_a_warning_says_that_nearly_all_next_sentences_are_random(tmp_path, capsys):
    counting.shards(tmp_path / "many", [[9] * 20] * 3)
    open_data(tmp_path / "many")
    counting.shards(tmp_path / "one", [[9]] * 60)
    open_data(tmp_path / "one", next_sentence=False)
    assert "warning" not in capsys.readouterr().err
    open_data(tmp_path / "one")
    assert "warning: 100% of the pairs in" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"batch_size": 10**6}, "batch size 1000000 is larger than the data"),
        ({"max_length": 4}, "max_length is 4, but an example requires at least 5"),
        (
            {"max_length": 4, "next_sentence": False},
            "data.max_predictions_per_seq is 5; set it to a number from 1 to",
        ),
    ],
)
def test_settings_without_sense_are_reported(folder, options, message):
    with pytest.raises(UserError, match=message):
        open_data(folder, **options)
