"""What a vocabulary says about its text; vocabularies with blank, repeated or missing lines."""

import json

import pytest

import bert_tf
from bert_tf import Tokenizer, UserError
from bert_tf.checkpoints import conversion
from bert_tf.io.vocabulary import TokenizerSettings, file_text, is_lower_case, read_vocabulary
from tests.checkpoints import tiny_models as tiny

# A vocab.txt with a blank line and repeated ones, and the ids that transformers 5.24.0 (tokenizers
# 0.23.3) gives with it, also after it has written the tokenizer as tokenizer.json.
ODD = (*tiny.PIECES[:6], "", *tiny.PIECES[7:9], "a", *tiny.PIECES[10:13], "[SEP]")
TEXT, IDS = "a cb aa b [SEP]", [9, 7, 10, 1, 1, 13]
TOLD = "3 pieces of the vocabulary are blank or repeated, such as that of id 3; all ids stay as "

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "[unused1]", "<S>", "<T>"]


@pytest.mark.parametrize("piece", ["The", "##D", "Москва", "Ελλάδα", "Éire", "##İ", "Ա"])
def test_a_capital_letter_of_any_alphabet_means_text_that_was_not_lower_cased(piece):
    assert not is_lower_case([*SPECIAL, "the", piece])


@pytest.mark.parametrize("piece", ["é", "##ु", "한", "##각", "й", "が"])
def test_a_letter_that_lower_casing_would_change_means_text_that_was_not_lower_cased(piece):
    assert not is_lower_case([*SPECIAL, "the", piece])


@pytest.mark.parametrize(
    ("name", "lower_case"),
    [("uncased", True), ("cased", False), ("chinese", True), ("multilingual-cased", False)],
)
def test_published_vocabularies_are_told_apart(shared_data, name, lower_case):
    pieces = read_vocabulary(shared_data / "vocab" / f"bert-base-{name}-vocab.txt")
    assert is_lower_case(pieces) == lower_case


def test_without_such_letters_the_text_was_lower_cased_despite_the_special_tokens():
    assert is_lower_case([*SPECIAL, "the", "##d", "москва", "ες", "straße", "中", "##1", "!"])


@pytest.fixture(scope="module")
def odd_tokenizer():
    return Tokenizer.of(ODD, TokenizerSettings(special_tokens="whole"))


@pytest.mark.end_to_end
def test_ids_are_those_of_transformers(odd_tokenizer):
    assert odd_tokenizer.tokenize(TEXT).numpy().tolist() == IDS
    assert (odd_tokenizer.sep_id, odd_tokenizer.pad_id) == (13, 0)
    assert odd_tokenizer.with_settings(lower_case=False).vocabulary == ODD


@pytest.mark.parametrize(
    ("to", "kind"),
    [
        ("bert_tf", "classifier"),
        ("huggingface", "classifier"),
        ("tf1", "classifier"),
        ("model_garden", "classifier"),
        ("sentence_transformers", "embedder"),
    ],
)
def test_every_format_keeps_ids_and_says_so_in_one_line(tmp_path, capsys, odd_tokenizer, to, kind):
    conversion.save(tiny.make(kind), tmp_path / "one", to, odd_tokenizer)
    conversion.convert(tmp_path / "one", tmp_path / "two", to)
    capsys.readouterr()

    for folder in (tmp_path / "one", tmp_path / "two"):
        model = bert_tf.load(folder)
        assert capsys.readouterr().err.count(TOLD) == 1
        assert model.tokenizer.vocabulary == ODD
        assert model.tokenizer.tokenize(TEXT).numpy().tolist() == IDS


@pytest.mark.end_to_end
def test_files_and_exports_keep_ids(tmp_path, capsys, odd_tokenizer):
    made = bert_tf.TextClassifier(tiny.make("encoder"), odd_tokenizer, tiny.LABELS)
    made.save(tmp_path / "model.keras")
    capsys.readouterr()
    model = bert_tf.load(tmp_path / "model.keras")
    assert capsys.readouterr().err.count(TOLD) == 1
    assert bert_tf.TextClassifier.from_checkpoint(tmp_path / "model.keras").tokenizer.sep_id == 13
    model.export(tmp_path / "saved_model")
    model.export(tmp_path / "ids.tflite", format="litert")
    model.export(tmp_path / "text.tflite", format="litert", inputs="strings")
    expected = made.predict(TEXT)["probabilities"]
    for name in ("model.keras", "saved_model", "ids.tflite", "text.tflite"):
        found = bert_tf.load(tmp_path / name).predict(TEXT)["probabilities"]
        assert found == pytest.approx(expected, abs=1e-5), name
    other = bert_tf.TextClassifier(
        made.encoder, odd_tokenizer.with_settings(special_tokens="text"), tiny.LABELS
    )
    assert other.predict(TEXT)["probabilities"] != pytest.approx(expected, abs=1e-3)


def test_a_gap_among_the_ids_of_tokenizer_json_stays_one(tmp_path, capsys):
    folder = tiny.copied("huggingface_heads/BertModel", tmp_path)
    tokenizer = json.loads((folder / "tokenizer.json").read_text())
    tokenizer["model"]["vocab"] = {piece: number for number, piece in enumerate(ODD)}
    tokenizer["added_tokens"] = []
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))

    found = Tokenizer.from_checkpoint(folder)
    assert found.vocabulary == (*ODD[:3], "", ODD[4], "", "", *ODD[7:])
    assert found.tokenize(TEXT).numpy().tolist() == IDS
    assert TOLD in capsys.readouterr().err


@pytest.mark.parametrize("fixture", ["google_tiny_classifier", "model_garden_tiny_classifier"])
def test_the_numbers_of_lines_and_of_embeddings_are_compared(tmp_path, capsys, fixture):
    folder = tiny.copied(fixture, tmp_path)
    vocabulary = folder / "vocab.txt"
    vocabulary.write_text(file_text(tiny.PIECES[:7]))
    bert_tf.load(folder)
    told = "the vocabulary has 7 pieces, but the model has 14 rows of embeddings; copy the voc"
    assert capsys.readouterr().err.count(told) == 1

    vocabulary.write_text(file_text([*tiny.PIECES, "more"]))
    tiny.refused("has 15 pieces, but the model has only 14", bert_tf.load, folder)
    convert = conversion.convert, folder, tmp_path / "new", "bert_tf"
    tiny.refused("has 15 pieces, but the model has only 14", *convert)

    # A blank line at the end has no embedding, and needs none.
    vocabulary.write_text(file_text([*tiny.PIECES, "", ""]))
    assert bert_tf.load(folder).tokenizer.vocabulary == tiny.PIECES
    assert "vocabulary" not in capsys.readouterr().err


def test_a_new_model_has_no_such_vocabulary(tmp_path):
    (tmp_path / "vocab.txt").write_text(file_text(ODD))
    told = "for a new model remove it; the vocabulary of a checkpoint must stay as it is"
    tiny.refused(f"piece 7 is blank; {told}", Tokenizer, ODD)
    tiny.refused(f"piece 10 repeats 'a' of piece 6; {told}", Tokenizer, [*ODD[:6], "x", *ODD[7:]])
    with pytest.raises(UserError, match=f"line 7 is blank; {told}"):
        Tokenizer(tmp_path / "vocab.txt")
