"""`bert-tf vocab --extend`: pieces of a domain for a checkpoint, in the format that it has."""

import numpy as np
import pytest

import bert_tf
from bert_tf import MaskedLM, UserError
from bert_tf.checkpoints import conversion
from bert_tf.checkpoints.names import weight_names
from bert_tf.cli.parser import main
from bert_tf.config.reading import load_config
from bert_tf.io.vocabulary import TokenizerSettings
from bert_tf.runs.extending import extend
from bert_tf.text import Tokenizer
from bert_tf.text.vocabulary_learning import cut
from bert_tf.text.word_counts import count_words_of_texts
from tests.tasks import tiny_objects

OLD = "[PAD] [unused1] [UNK] [CLS] [SEP] [MASK] c a t s ##a ##t ##s ##at the ##x".split()
TEXT = "The catsx and the cats, CATSX 汉字 the xat <e1>cats</e1>\n" * 3


def masked_lm(**settings):
    tokenizer = Tokenizer([*OLD, "<e1>", "</e1>"], added_tokens=["<e1>", "</e1>"], **settings)
    return MaskedLM(tiny_objects.encoder(vocab_size=tokenizer.vocab_size), tokenizer)


@pytest.fixture
def corpus(tmp_path):
    path = tmp_path / "corpus.txt"
    path.write_text(TEXT)
    return path


@pytest.mark.end_to_end
def test_old_pieces_stay_and_new_ones_start_as_the_mean_of_theirs(tmp_path, corpus, capsys):
    model = masked_lm()
    model.save_checkpoint(tmp_path / "old", "huggingface")
    arguments = ["--extend", tmp_path / "old", "--input", corpus, "--size", 35]
    assert main(["vocab", *map(str, arguments), "--out", str(tmp_path / "new")]) == 0
    report = capsys.readouterr().out
    assert "pieces           35: 5 special tokens" in report
    assert "before           18 pieces, " in report

    grown = bert_tf.load(tmp_path / "new")
    pieces = grown.tokenizer.vocabulary
    assert pieces[:18] == model.tokenizer.vocabulary
    assert len(pieces) == 35 and "cats" in pieces
    assert grown.tokenizer.settings == model.tokenizer.settings
    assert grown.tokenizer.tokenize("<E1>CATS</e1>").numpy().tolist() == [
        16,
        pieces.index("cats"),
        17,
    ]
    before, after = (
        {name: each.numpy() for name, each in weight_names(each).items()} for each in (model, grown)
    )
    for name in ("encoder/embeddings/word_embeddings", "masked_lm/output_bias"):
        np.testing.assert_array_equal(after[name][:18], before[name])
        for id, piece in list(enumerate(pieces))[18:]:
            old = [OLD.index(each) for each in cut(piece, {*OLD})] or [OLD.index("[UNK]")]
            mean = before[name][old].mean(axis=0)
            np.testing.assert_allclose(after[name][id], mean, atol=1e-6, err_msg=piece)
    assert after.keys() == before.keys()


def test_the_command_and_the_function_agree_and_repeat(tmp_path, corpus):
    masked_lm().save(tmp_path / "old.keras")
    found = [extend(tmp_path / "old.keras", [corpus], 34, tmp_path / each) for each in "ab"]
    assert found[0] == found[1]
    names = [path.name for path in sorted((tmp_path / "a").iterdir())]
    assert names == ["bert_tf.json", "model.safetensors", "vocab.txt"]
    for name in names:
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()
    assert found[0].before.pieces_per_word > found[0].pieces_per_word
    assert found[0].before.unknown_words > found[0].unknown_words


@pytest.mark.parametrize("form", ["tf1", "model_garden", "sentence_transformers"])
def test_the_new_checkpoint_has_the_format_of_the_old(tmp_path, corpus, form):
    model = masked_lm(lower_case=False, strip_accents=False)
    if form == "sentence_transformers":
        model = bert_tf.TextEmbedder(model.encoder, model.tokenizer)
    model.save_checkpoint(tmp_path / "old", form)
    extend(tmp_path / "old", [corpus], 60, tmp_path / "new")
    names = [sorted(path.name for path in (tmp_path / each).iterdir()) for each in ("old", "new")]
    assert names[0] == names[1]
    assert "CATSX" in Tokenizer.from_checkpoint(tmp_path / "new").vocabulary


@pytest.mark.end_to_end
def test_training_goes_on_from_it(tmp_path, corpus, capsys):
    masked_lm().save_checkpoint(tmp_path / "old")
    extend(tmp_path / "old", [corpus], 36, tmp_path / "new")
    model = MaskedLM.from_checkpoint(tmp_path / "new")
    model.fit([TEXT.splitlines()[0]] * 4, epochs=1)
    (tmp_path / "run.yaml").write_text(
        f"task: pretraining\n"
        f"data: {{path: {corpus}, format: sentence_per_line, next_sentence: false,\n"
        "  dev_fraction: 0}\n"
        f"init: {{checkpoint: {tmp_path / 'new'}}}\n"
        "train: {steps: 1, batch_size: 2, learning_rate: 1e-4, max_length: 16}\n"
    )
    bert_tf.runs.pretrain(load_config(tmp_path / "run.yaml"), tmp_path / "run")
    assert Tokenizer.from_checkpoint(tmp_path / "run").vocabulary == model.tokenizer.vocabulary


def test_words_are_counted_as_the_tokenizer_reads_them():
    settings = TokenizerSettings(
        lower_case=False, split_chinese=False, special_tokens="whole", added_tokens=("<e1>",)
    )
    counts = count_words_of_texts(["Cat 汉字<e1>a [MASK] 𠀀b"], settings)
    assert counts == {"Cat": 1, "汉字": 1, "a": 1, "𠀀b": 1}


def test_what_cannot_be_extended_is_refused(tmp_path, corpus, capsys):
    model = masked_lm()
    model.save_checkpoint(tmp_path / "old")
    conversion.save(model.encoder, tmp_path / "bare")
    for source, size, out, told in (
        ("old", 18, "new", "has 18 pieces already; choose a larger size"),
        ("old", 20, "new", "18 old pieces and the characters of this text need"),
        ("old", 40, "old", "exists already"),
        ("bare", 40, "new", "has no vocabulary"),
    ):
        with pytest.raises(UserError, match=told):
            extend(tmp_path / source, [corpus], size, tmp_path / out)
    arguments = ["vocab", "--extend", "old", "--cased", "--input", "x", "--size", "9", "--out", "y"]
    assert main(arguments) == 2
    assert "keeps the casing of the checkpoint; remove --cased" in capsys.readouterr().err
