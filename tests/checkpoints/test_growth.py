"""Larger vocabularies: new tokens and pieces have rows, and everything else stays as it was."""

import numpy as np
import pytest

import bert_tf
from bert_tf import MaskedLM, TextClassifier
from bert_tf.checkpoints import reading
from bert_tf.checkpoints.names import weight_names
from tests.checkpoints import tiny_models as tiny
from tests.tasks import tiny_objects

# A vocabulary of 50 pieces for the fixture huggingface_tiny_gelu, which has none.
PIECES = "[PAD] [UNK] [CLS] [SEP] [MASK] < > / e ##1 the a .".split()
PIECES += [f"w{number}" for number in range(50 - len(PIECES))]
TOKENS = ["<e1>", "</e1>"]
TEXT = "<e1>the</e1> [MASK] a <E1>."
# transformers 5.24.0, torch 2.13.0: `tokenizer.add_tokens(TOKENS)`, `resize_token_embeddings`, and
# the new rows and biases set to the means of those that its tokenizer gave before. What
# `BertForPreTraining` predicts for the mask; the last two are the new tokens.
IDS = [2, 50, 10, 51, 4, 11, 50, 12, 3]
CUT = [[5, 8, 9, 6], [5, 7, 8, 9, 6]]
LOGITS = {
    0: -0.0562044,
    5: 0.9158317,
    10: 0.4155122,
    49: -0.0318437,
    50: -0.2157409,
    51: -0.1778779,
}


@pytest.fixture
def folder(tmp_path):
    """The fixture with the vocabulary."""
    folder = tiny.copied("huggingface_tiny_gelu", tmp_path / "old")
    (folder / "vocab.txt").write_text("\n".join(PIECES) + "\n")
    return folder


def rows(model):
    weights = {name: each.numpy() for name, each in weight_names(model).items()}
    return weights["encoder/embeddings/word_embeddings"], weights.get("masked_lm/output_bias")


@pytest.mark.end_to_end
def test_new_tokens_are_those_of_transformers(folder, capsys):
    model = MaskedLM.from_checkpoint(folder, add_tokens=TOKENS)
    assert "each the mean of the rows of its pieces: <e1>, </e1>" in capsys.readouterr().err
    packed = model.preprocessor()([TEXT])
    assert packed["input_word_ids"].numpy().tolist() == [IDS]
    logits = model({**packed, "masked_lm_positions": np.array([[4]])}).numpy().reshape(-1)
    assert len(logits) == 52
    np.testing.assert_allclose(logits[[*LOGITS]], [*LOGITS.values()], atol=1e-5)


@pytest.mark.parametrize("spare", [0, 1, 6])
def test_rows_without_a_piece_are_used_first(folder, spare):
    known = 50 - spare
    (folder / "vocab.txt").write_text("\n".join(PIECES[:known]) + "\n")
    old, new = (MaskedLM.from_checkpoint(folder, add_tokens=each) for each in ((), TOKENS))
    assert new.tokenizer.vocabulary == (*PIECES[:known], *TOKENS)
    for before, after in zip(rows(old), rows(new), strict=True):
        assert len(after) == max(50, known + 2)
        np.testing.assert_array_equal(after[:known], before[:known])
        np.testing.assert_array_equal(after[known + 2 :], before[known + 2 :])
        means = [before[ids].mean(axis=0) for ids in CUT]
        np.testing.assert_allclose(after[known : known + 2], means, atol=1e-6)


@pytest.mark.end_to_end
def test_a_token_that_is_a_piece_keeps_its_row(folder, capsys):
    old = MaskedLM.from_checkpoint(folder)
    new = MaskedLM.from_checkpoint(folder, add_tokens=["the", "<e1>"])
    assert "in the vocabulary already, with their rows as they are: the" in capsys.readouterr().err
    np.testing.assert_array_equal(rows(new)[0][:50], rows(old)[0])
    assert new.tokenizer.tokenize("theathe").numpy().tolist() == [10, 11, 10]
    assert new.tokenizer.settings.added_tokens == ("the", "<e1>")


@pytest.mark.end_to_end
@pytest.mark.parametrize(
    ("form", "make"),
    [
        ("bert_tf", tiny_objects.tagger),
        ("huggingface", tiny_objects.answerer),
        ("tf1", tiny_objects.regressor),
        ("model_garden", tiny_objects.filler),
        ("sentence_transformers", tiny_objects.embedder),
        ("keras", tiny_objects.chooser),
    ],
)
def test_every_format_and_family_grows_and_carries_the_tokens(tmp_path, form, make):
    model, old, new = make(), tmp_path / "old.keras", tmp_path / "new.keras"
    if "labels" in model.settings or model.has_labels:
        model.name_classes(["O", "B-a"])

    def save(model, path):
        model.save(path) if form == "keras" else model.save_checkpoint(path.with_suffix(""), form)
        return path if form == "keras" else path.with_suffix("")

    grown = type(model).from_checkpoint(save(model, old), add_tokens=TOKENS)
    again = type(model).from_checkpoint(save(grown, new), add_tokens=TOKENS)
    known = model.tokenizer.vocab_size
    for each in (grown, again):
        ids = each.tokenizer.tokenize("<e1>cat</e1>").numpy().tolist()
        assert ids == [known, 9, known + 1]
        assert each.tokenizer.vocabulary[known:] == (*TOKENS,)
    for before, after in zip(rows(grown), rows(again), strict=True):
        np.testing.assert_array_equal(before, after)
    np.testing.assert_array_equal(rows(grown)[0][:known], rows(model)[0])


def test_an_encoder_and_its_tokenizer_grow_alike(folder):
    encoder = bert_tf.Encoder.from_checkpoint(folder, add_tokens=TOKENS)
    tokenizer = bert_tf.Tokenizer.from_checkpoint(folder, add_tokens=TOKENS)
    model = TextClassifier(encoder, tokenizer, labels=["a", "b"])
    np.testing.assert_array_equal(
        rows(model)[0], rows(TextClassifier.from_checkpoint(folder, add_tokens=TOKENS))[0]
    )


def test_an_encoder_of_two_directions_grows_in_both(tmp_path):
    encoder = tiny_objects.encoder(attention="side_by_side")
    model = TextClassifier(encoder, tiny_objects.tokenizer(), labels=["a", "b"])
    model.save(tmp_path / "model.keras")
    grown = TextClassifier.from_checkpoint(tmp_path / "model.keras", add_tokens=TOKENS)
    before, after = (each.encoder.right_to_left.embeddings for each in (model, grown))
    ids = model.tokenizer.tokenize(TOKENS)[1].numpy()
    np.testing.assert_allclose(
        after.word_embeddings[-1], before.word_embeddings.numpy()[ids].mean(axis=0), atol=1e-6
    )


@pytest.mark.parametrize(
    ("tokens", "told"),
    [
        ("<e1>", "give a list"),
        ({"<e1>"}, "give a list"),
        (None, "give a list"),
        ("", "give a list"),
        ([3], "the token 3 cannot be added, because it is not a text"),
        ([""], "is blank"),
        (["\t "], "is blank"),
        (["a "], "begins or ends with a space"),
        (["a\nb"], "has a line break"),
        (["[MASK]"], "is a special token; set special_tokens='whole'"),
        (["\ud800"], "half of a surrogate pair"),
        (["<e2>", "<e2>"], "is listed twice"),
        (["<E2>", "<e2>"], "'<E2>' is the same text for this tokenizer"),
        (["\u200d"], "only has characters that are dropped"),
        ([f"<{number}>" for number in range(1001)], "at most 1000"),
    ],
)
def test_other_tokens_are_refused(folder, tokens, told):
    tiny.refused(told, lambda: TextClassifier.from_checkpoint(folder, add_tokens=tokens))


@pytest.mark.end_to_end
def test_a_checkpoint_without_a_vocabulary_or_with_fewer_rows_is_refused(folder):
    (folder / "vocab.txt").write_text("\n".join([*PIECES, "more"]) + "\n")
    tiny.refused("51", lambda: MaskedLM.from_checkpoint(folder, add_tokens=TOKENS))
    (folder / "vocab.txt").unlink()
    tiny.refused("has no vocabulary", lambda: MaskedLM.from_checkpoint(folder, add_tokens=TOKENS))
    assert reading.find(folder).encoder.vocab_size == 50
