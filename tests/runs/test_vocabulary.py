"""A run takes vocabulary and tokenizer from its checkpoint unless its configuration names them."""

import json

import pytest

from bert_tf import Encoder, Tokenizer
from bert_tf.checkpoints import native
from bert_tf.checkpoints.description import describe
from bert_tf.config.reading import load_config
from bert_tf.errors import UserError
from bert_tf.io.vocabulary import SPECIAL_TOKENS, TokenizerSettings, file_text
from bert_tf.runs.vocabulary import settle, with_tokenizer_of
from tests import tiny


@pytest.fixture
def load(tmp_path):
    """Loads a configuration that starts from a cased checkpoint with a vocabulary next to it."""
    tiny.write_finetuning(tmp_path)
    checkpoint = tmp_path / "checkpoint"
    checkpoint.mkdir()
    vocabulary = tiny.write_vocabulary(checkpoint)
    encoder = Encoder(tiny.encoder_config(8))
    tokenizer = Tokenizer(vocabulary, lower_case=False, split_chinese=False, longest_word=100)
    native.write(checkpoint, encoder, describe(encoder, tokenizer))

    path, start = tmp_path / "finetuning.yaml", f"init.checkpoint={checkpoint}"
    return lambda *settings: load_config(path, [start, *settings])


def test_both_come_from_the_checkpoint_by_default(load):
    settled, vocabulary = settle(load("tokenizer.vocab=null"))

    expected = TokenizerSettings(lower_case=False, split_chinese=False, longest_word=100)
    assert settled.tokenizer.settings == expected
    assert vocabulary.split("\n") == [*tiny.VOCABULARY, ""]


def test_what_the_configuration_says_is_kept(load, tmp_path):
    other = tmp_path / "other.txt"
    other.write_text(file_text(SPECIAL_TOKENS))

    own = ["lower_case=true", "strip_accents=false", "split_chinese=true", "longest_word=7"]
    settled, vocabulary = settle(
        load(f"tokenizer.vocab={other}", *(f"tokenizer.{each}" for each in own))
    )

    assert settled.tokenizer.settings == TokenizerSettings(strip_accents=False, longest_word=7)
    assert vocabulary == file_text(SPECIAL_TOKENS)


@pytest.mark.parametrize("piece", ["##s", "##S"])
@pytest.mark.parametrize("source", ["tokenizer.vocab=null", "init.checkpoint=null"])
def test_the_vocabulary_decides_the_casing_if_nothing_else_does(load, tmp_path, source, piece):
    for folder in (tmp_path, tmp_path / "checkpoint"):
        vocabulary = (folder / "vocab.txt").read_text()
        (folder / "vocab.txt").write_text(vocabulary.replace("##s", piece))
    description = tmp_path / "checkpoint" / "bert_tf.json"
    unknown = {"lower_case": None, "vocabulary": None}
    fields = json.loads(description.read_text()) | unknown
    description.write_text(json.dumps(fields))
    settled, _ = settle(load(source))

    assert settled.tokenizer.lower_case is (piece == "##s")


def test_a_checkpoint_without_a_vocabulary_is_told(load, tmp_path):
    (tmp_path / "checkpoint" / "vocab.txt").unlink()

    with pytest.raises(UserError, match="checkpoint has no vocabulary; set tokenizer.vocab"):
        settle(load("tokenizer.vocab=null"))


def test_a_resumed_run_keeps_what_was_decided_at_its_start(load):
    before, _ = settle(load("tokenizer.vocab=null"))
    again = with_tokenizer_of(before, load("tokenizer.vocab=null"))
    assert again.tokenizer.settings == before.tokenizer.settings


def test_only_a_checkpoints_vocabulary_may_have_repeated_lines(load, tmp_path):
    other = tmp_path / "other.txt"
    other.write_text(file_text([*tiny.VOCABULARY[:-1], "the"]))

    _, vocabulary = settle(load(f"tokenizer.vocab={other}"))
    assert vocabulary == other.read_text()
    with pytest.raises(UserError, match="repeats 'the' of line 8; for a new model remove it"):
        settle(load(f"tokenizer.vocab={other}", "init.checkpoint=null"))
