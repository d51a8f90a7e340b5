"""One or two texts become [CLS] a [SEP] b [SEP], cut and padded to fit."""

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.errors import UserError
from bert_tf.text import Preprocessor, Tokenizer, pack, truncate
from bert_tf.text.windows import TextReader
from tests import tiny
from tests.text.vocabularies import SPECIAL

LETTERS = "abcdefghij"
TEXTS = ["the cat sat .", "", "dogs ran " * 30, "a", "\N{SNOWMAN} fish", "good " * 7]


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return Tokenizer([*SPECIAL, *LETTERS])


def shown(features: dict[str, tf.Tensor], tokenizer: Tokenizer) -> list[str]:
    """The rows as words, [PAD] as a dot."""
    names = ["." if each == "[PAD]" else each.strip("[]") for each in tokenizer.vocabulary]
    rows = features["input_word_ids"].numpy().tolist()
    return [" ".join(names[number] for number in row) for row in rows]


def test_one_text_is_packed_and_padded_to_the_length(tokenizer):
    features = Preprocessor(tokenizer, max_length=6)(["a b", ""])
    assert shown(features, tokenizer) == ["CLS a b SEP . .", "CLS SEP . . . ."]
    assert features["input_mask"].numpy().tolist() == [[1, 1, 1, 1, 0, 0], [1, 1, 0, 0, 0, 0]]
    assert features["input_type_ids"].numpy().tolist() == [[0] * 6] * 2
    assert {each.dtype for each in features.values()} == {tf.int32}


def test_two_texts_are_told_apart_by_type(tokenizer):
    features = Preprocessor(tokenizer, max_length=8)((["a b", "a"], ["c", ""]))
    assert shown(features, tokenizer) == ["CLS a b SEP c SEP . .", "CLS a SEP SEP . . . ."]
    assert features["input_type_ids"].numpy().tolist() == [
        [0, 0, 0, 0, 1, 1, 0, 0],
        [0, 0, 0, 1, 0, 0, 0, 0],
    ]
    assert features["input_mask"].numpy().sum(axis=1).tolist() == [6, 4]


def test_padding_to_the_batch_ends_at_the_longest_row(tokenizer):
    preprocess = Preprocessor(tokenizer, max_length=8, padding="batch")
    assert shown(preprocess(["a b", "c"]), tokenizer) == ["CLS a b SEP", "CLS c SEP ."]
    assert preprocess(["a " * 20])["input_word_ids"].shape == [1, 8]


def reference_truncation(first: list, second: list, budget: int) -> tuple[list, list]:
    """google-research/bert's rule, a piece at a time."""
    first, second = [*first], [*second]
    while len(first) + len(second) > budget:
        (first if len(first) > len(second) else second).pop()
    return first, second


@pytest.mark.parametrize("budget", range(1, 9))
def test_of_two_texts_the_longer_loses_a_piece_at_a_time(budget):
    pairs = [([*range(m)], [*range(n)]) for m in range(8) for n in range(8)]
    firsts, seconds = (tf.ragged.constant(each, tf.int32) for each in zip(*pairs, strict=True))
    cut = [each.to_list() for each in truncate([firsts, seconds], budget)]
    expected = [reference_truncation(first, second, budget) for first, second in pairs]
    assert [*zip(*cut, strict=True)] == expected


ONE, TWO = "CLS a b SEP .", "CLS a SEP b SEP"


@pytest.mark.parametrize(
    ("texts", "row"),
    [
        *[(one, ONE) for one in ("a b", ["a b"], tf.constant(["a b"]), (["a b"],))],
        *[(("a", "b"), TWO), ((["a"], ["b"]), TWO)],
        ([tf.constant(["a"]), tf.constant(["b"])], TWO),
    ],
)
def test_texts_may_come_in_several_forms(tokenizer, texts, row):
    assert shown(Preprocessor(tokenizer, 5)(texts), tokenizer) == [row]


def test_an_empty_batch_has_no_rows(tokenizer):
    for none in ([], tf.constant([], tf.string)):
        assert Preprocessor(tokenizer, 5)(none)["input_mask"].shape == [0, 5]


def test_a_dataset_knows_the_fixed_shape(tokenizer):
    dataset = tf.data.Dataset.from_tensor_slices((["a", "b"], ["c", "d"])).batch(2)
    preprocess = Preprocessor(tokenizer, 7)
    mapped = dataset.map(lambda first, second: preprocess((first, second)))
    assert {each.shape[1] for each in mapped.element_spec.values()} == {7}
    (features,) = mapped
    assert shown(features, tokenizer) == ["CLS a SEP c SEP . .", "CLS b SEP d SEP . ."]


def test_a_saved_model_gives_the_same_and_takes_the_length_as_an_input(tokenizer, tmp_path):
    module = tf.Module()

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string), tf.TensorSpec([], tf.int32)])
    def call(texts: tf.Tensor, length: tf.Tensor) -> dict[str, tf.Tensor]:
        return pack([tokenizer.tokenize(texts)], tokenizer, length)

    module.call = call
    tf.saved_model.save(module, str(tmp_path))
    loaded = tf.saved_model.load(str(tmp_path)).call(tf.constant(["a b c"]), tf.constant(4))
    assert shown(loaded, tokenizer) == ["CLS a b SEP"]


def test_settings_and_inputs_that_cannot_be_are_refused(tokenizer):
    with pytest.raises(UserError, match="max_length is 4"):
        Preprocessor(tokenizer, max_length=4)
    with pytest.raises(UserError, match="padding is 'longest'"):
        Preprocessor(tokenizer, padding="longest")
    with pytest.raises(UserError, match="3 texts"):
        Preprocessor(tokenizer)(("a", "b", "c"))


@pytest.mark.parametrize("pair", [("a", "b"), ["a", "b"], ["a"]])
@pytest.mark.parametrize("rows", [1, 2, 3])
def test_pairs_one_by_one_are_refused_rather_than_taken_for_two_batches(tokenizer, pair, rows):
    with pytest.raises(UserError, match=r"a list of (tuple|list)s is not .* \(first_texts, second"):
        Preprocessor(tokenizer)([pair] * rows)


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ((["a"], ["b", "c"]), r"first and second texts differ \(1 and 2\)"),
        (np.array([["a", "b"]]), r"texts must have shape \[batch\], not \(1, 2\); give pairs as"),
        (["a", None], "the input is not a batch of texts"),
        (tf.ragged.constant([["a"], ["b", "c"]]), "the input is not a batch of texts"),
    ],
)
def test_an_input_that_is_no_batch_of_texts_is_reported(texts, message):
    with pytest.raises(UserError, match=message):
        Preprocessor(tiny.tokenizer(), max_length=8)(texts)


@pytest.mark.parametrize(("max_bytes", "pair"), [(1, True), (40, False), (10_000, True)])
def test_groups_of_any_size_give_the_same(max_bytes, pair):
    texts = (TEXTS, TEXTS[::-1]) if pair else (TEXTS,)
    grouped = tf.function(TextReader(tiny.tokenizer(), 24, max_bytes=max_bytes))
    features = grouped([tf.constant(each) for each in texts]).features
    expected = Preprocessor(tiny.tokenizer(), 24, padding="batch")(texts)
    assert features.keys() == expected.keys()
    for name, values in expected.items():
        np.testing.assert_array_equal(features[name], values, err_msg=name)


def test_no_texts_give_no_rows():
    grouped = tf.function(TextReader(tiny.tokenizer(), 24))
    features = grouped([tf.constant([], tf.string)]).features
    assert {values.shape[0] for values in features.values()} == {0}


def test_texts_that_do_not_pair_up_are_an_error():
    signature = [[tf.TensorSpec([None], tf.string)] * 2]
    grouped = tf.function(TextReader(tiny.tokenizer(), 24), input_signature=signature)
    with pytest.raises(tf.errors.InvalidArgumentError):
        grouped([tf.constant(["a", "b"]), tf.constant(["a"])])
