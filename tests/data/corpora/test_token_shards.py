"""Token shards hold the corpus as it is, the same bytes every time, and damage is found."""

import json

import numpy as np
import pytest

from bert_tf.data.corpora.shard_writing import LONGEST_SENTENCE, write_token_shards
from bert_tf.data.corpora.token_shards import DEV, FORMAT, TRAIN, TokenShards
from bert_tf.errors import UserError
from bert_tf.text import Tokenizer
from tests.data import counting

LENGTHS = counting.random_lengths(number=40, sentences=5, longest=9)


def contents(folder):
    return {file.name: file.read_bytes() for file in folder.iterdir()}


def load_all(shards, part):
    """The documents of a part as lists of lists of ids."""
    found = []
    for shard in shards.parts[part]:
        tokens, starts = shards.load(shard)
        for first, last in zip(starts.documents[:-1], starts.documents[1:], strict=True):
            bounds = starts.sentences[first : last + 1]
            pairs = zip(bounds[:-1], bounds[1:], strict=True)
            found.append([tokens[a:b].tolist() for a, b in pairs])
    return found


def expected(lengths):
    """What `load_all` gives for the counting corpus."""
    count = iter(range(len(counting.SPECIAL), counting.WORDS))
    return [[[next(count) for _ in range(n)] for n in sentences] for sentences in lengths]


def test_documents_and_sentences_come_back_in_their_order(tmp_path):
    shards = counting.shards(tmp_path / "out", LENGTHS, shard_tokens=100)
    assert load_all(shards, TRAIN) == expected(LENGTHS)
    assert len(shards.parts[TRAIN]) > 3
    assert shards.vocabulary == counting.tokenizer().vocabulary


def test_the_same_corpus_gives_the_same_bytes(tmp_path):
    for name in ("a", "b"):
        counting.shards(tmp_path / name, LENGTHS, shard_tokens=100, dev_fraction=0.2)
    assert contents(tmp_path / "a") == contents(tmp_path / "b")


def test_held_out_documents_are_the_asked_share_and_not_in_the_training_part(tmp_path):
    lengths = [[5, 5]] * 1000
    shards = counting.shards(tmp_path / "out", lengths, dev_fraction=0.2)
    train, dev = load_all(shards, TRAIN), load_all(shards, DEV)
    assert 150 < len(dev) < 250
    assert sorted(train + dev) == expected(lengths)


def test_copies_of_a_document_are_on_the_same_side(tmp_path):
    documents = counting.documents([[5, 5]] * 50)
    tokenizer = counting.tokenizer()
    shards = write_token_shards(documents * 2, tokenizer, tmp_path / "out", dev_fraction=0.3)
    train, dev = (load_all(shards, part) for part in (TRAIN, DEV))
    assert dev
    assert not [document for document in dev if document in train]


@pytest.mark.parametrize(("number", "held_out"), [(3, 0), (4, 2), (22, 2)])
def test_a_small_corpus_of_at_least_four_documents_holds_out_two(tmp_path, number, held_out):
    lengths = [[5, 5]] * number
    shards = counting.shards(tmp_path / "out", lengths, dev_fraction=1e-6, shard_tokens=10)
    assert len(load_all(shards, DEV)) == held_out
    assert sorted(load_all(shards, TRAIN) + load_all(shards, DEV)) == expected(lengths)
    listed = {shard.file("tokens") for part in shards.parts.values() for shard in part}
    assert {file.name for file in (tmp_path / "out").glob("*.tokens.npy")} == listed


@pytest.mark.parametrize(("distinct", "held_out"), [(1, 0), (2, 0), (3, 8)])
def test_copies_of_few_documents_are_not_all_held_out(tmp_path, distinct, held_out):
    documents = counting.documents([[5, 5]] * distinct) * 4
    shards = write_token_shards(documents, counting.tokenizer(), tmp_path / "out", 1e-6)
    assert len(load_all(shards, DEV)) == held_out
    assert len(load_all(shards, TRAIN)) == len(documents) - held_out


def test_sentences_and_documents_without_tokens_are_left_out(tmp_path):
    tokenizer = counting.tokenizer()
    documents = [["w0", "\u200b", "w1 w0"], ["\u200b"], ["w1"]]
    shards = write_token_shards(documents, tokenizer, tmp_path / "out")
    assert load_all(shards, TRAIN) == [[[5], [6, 5]], [[6]]]
    with pytest.raises(UserError, match="the corpus has no tokens"):
        write_token_shards([["\u200b"]], tokenizer, tmp_path / "none")
    assert not (tmp_path / "none").exists()


def test_a_line_of_ten_megabytes_becomes_sentences_that_fit(tmp_path):
    documents = [["w " * 5_000_000], ["w0"]]
    shards = write_token_shards(documents, counting.tokenizer(), tmp_path / "out")
    tokens, starts = shards.load(shards.parts[TRAIN][0])
    assert len(tokens) == 5_000_000
    lengths = np.diff(starts.sentences)
    assert lengths.max() == LONGEST_SENTENCE
    assert (lengths[:-1] == LONGEST_SENTENCE).all()


def test_large_vocabularies_are_written_in_32_bits(tmp_path):
    vocabulary = [*counting.SPECIAL, *(f"w{i}" for i in range(70_000))]
    shards = write_token_shards([["w1 w69999"]], Tokenizer(vocabulary), tmp_path / "out")
    tokens, _ = shards.load(shards.parts[TRAIN][0])
    assert tokens.dtype == np.int32
    assert tokens.tolist() == [6, 70_004]


def test_a_changed_byte_is_found_when_the_shard_is_loaded(tmp_path):
    shards = counting.shards(tmp_path / "out", LENGTHS)
    for array in ("tokens", "sentences", "documents"):
        file = tmp_path / "out" / shards.parts[TRAIN][0].file(array)
        good = file.read_bytes()
        file.write_bytes(good[:-1] + bytes([good[-1] ^ 1]))
        with pytest.raises(UserError, match=rf"{file.name} has changed .*SHA-256"):
            shards.load(shards.parts[TRAIN][0])
        file.write_bytes(good)
    shards.load(shards.parts[TRAIN][0])


def test_missing_and_cut_files_are_found_at_once(tmp_path):
    out = tmp_path / "out"
    shards = counting.shards(out, LENGTHS, shard_tokens=100)
    last = out / shards.parts[TRAIN][-1].file("tokens")
    good = last.read_bytes()
    last.write_bytes(good[:-2])
    with pytest.raises(UserError, match=f"{last.name} has changed .*bytes instead of"):
        TokenShards(out)
    last.unlink()
    with pytest.raises(UserError, match=f"token shard is missing: .*{last.name}"):
        TokenShards(out)
    last.write_bytes(good)
    (out / "vocab.txt").write_text("other\n")
    with pytest.raises(UserError, match="vocab.txt has changed"):
        TokenShards(out)


def test_a_folder_without_a_usable_manifest_is_refused(tmp_path):
    with pytest.raises(UserError, match="no token shards in"):
        TokenShards(tmp_path)
    for text, message in [
        ("{", "is damaged"),
        ("[]", "is damaged"),
        (json.dumps({"format": "bert_tf token shards 9"}), "has the format 'bert_tf token sha"),
        (json.dumps({"format": "bert_tf token shards 1"}), "is damaged"),
        ("[" * 100_000, "is damaged"),
        (f'{{"format": "{FORMAT}", "lower_case": true, "dev_fraction": 1{"0" * 400}}}', "is damag"),
    ]:
        (tmp_path / "manifest.json").write_text(text)
        with pytest.raises(UserError, match=message) as error:
            TokenShards(tmp_path)
        assert "\n" not in str(error.value)


def test_only_token_shards_are_ever_replaced(tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    counting.shards(out, LENGTHS)
    counting.shards(out, LENGTHS[:5])
    assert len(load_all(TokenShards(out), TRAIN)) == 5
    for number, (name, content) in enumerate(
        [("mine.txt", "mine"), ("manifest.json", '{"name": "My app"}'), ("manifest.json", "mine")]
    ):
        other = tmp_path / str(number)
        other.mkdir()
        (other / name).write_text(content)
        with pytest.raises(UserError, match="exists and does not contain token shards"):
            counting.shards(other, LENGTHS)
        assert (other / name).read_text() == content


def test_a_failure_on_the_way_leaves_the_old_shards(tmp_path):
    out = tmp_path / "out"
    counting.shards(out, LENGTHS[:5])
    before = contents(out)

    def failing():
        yield from counting.documents(LENGTHS)
        raise UserError("a bad file")

    with pytest.raises(UserError, match="a bad file"):
        write_token_shards(failing(), counting.tokenizer(), out, shard_tokens=100)
    assert contents(out) == before
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
