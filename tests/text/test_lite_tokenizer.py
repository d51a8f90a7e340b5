"""The tokenizer of LiteRT gives the pieces of `Tokenizer`, in TensorFlow and in LiteRT files."""

import functools
import random
from collections.abc import Callable

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import assume, given

from bert_tf.compat import lite_interpreter
from bert_tf.errors import UserError
from bert_tf.text import LiteTokenizer, Preprocessor, Tokenizer, WindowPreprocessor
from bert_tf.text import characters as known
from tests.export.odd_texts import HARD, random_text
from tests.text import oracle
from tests.text.vocabularies import (
    LOWER,
    SPECIAL,
    bounded,
    broken_texts,
    texts,
    tokenizer_of,
)

TEXT = tf.TensorSpec([None], tf.string)
ONE = tf.TensorSpec([1], tf.string)


@functools.cache
def lite(tokenizer: Tokenizer) -> Callable:
    method = LiteTokenizer(tokenizer).tokenize_with_offsets
    return tf.function(method, input_signature=[TEXT], autograph=False)


def assert_same_pieces(texts: list, tokenizer: Tokenizer, is_traced: bool = True) -> None:
    """The ids and ranges of all texts are those of the tokenizer."""
    batch = tf.constant(texts, tf.string)
    tokenize = lite(tokenizer) if is_traced else LiteTokenizer(tokenizer).tokenize_with_offsets
    got, expected = tokenize(batch), tokenizer.tokenize_with_offsets(batch)
    for name in got._fields:
        assert getattr(got, name).dtype == tf.int32
        assert getattr(got, name).to_list() == getattr(expected, name).to_list(), name


def has_marks_in_an_order(text: str) -> bool:
    """Whether the text has a mark that cleaning does not drop, so that NFD may sort it."""
    found = known.cleaning_table(lower_case=True).lookup(tf.constant([*map(ord, text)], tf.int32))
    return bool(tf.reduce_any(found.has(known.LASTING_MARK)))


def has_a_final_sigma_in_a_word(text: str) -> bool:
    """Whether a final sigma is followed by a character of its word."""
    return "\u03a3" in text and any("\u03c2" in word[:-1] for word in oracle.words(text, True))


@bounded
@given(texts)
def test_texts_lower_cased(text):
    assume(not has_marks_in_an_order(text) and not has_a_final_sigma_in_a_word(text))
    assert_same_pieces([text, "", f"{text} {text}"], tokenizer_of(True))


@bounded
@given(texts)
def test_texts_cased(text):
    assert_same_pieces([text, "", f"{text} {text}"], tokenizer_of(False))


@bounded
@given(broken_texts)
def test_bytes_that_are_not_utf8(text):
    assert_same_pieces([text, b"", text + b" " + text], tokenizer_of(False))
    decoded = text.decode("utf-8", "ignore")
    assume(not has_marks_in_an_order(decoded) and not has_a_final_sigma_in_a_word(decoded))
    assert_same_pieces([text, b"", text + b" " + text], tokenizer_of(True))


@pytest.mark.parametrize("keep_special_tokens", [False, True])
@pytest.mark.parametrize("lower_case", [True, False])
def test_odd_texts(lower_case, keep_special_tokens):
    source = random.Random(1)
    odd = [*HARD, *(random_text(source, 60) for _ in range(100))]
    assert_same_pieces(odd, tokenizer_of(lower_case, keep_special_tokens))
    assert_same_pieces([], tokenizer_of(lower_case, keep_special_tokens))


@pytest.mark.parametrize(
    ("lower_case", "normalizer"), [(True, "google"), (False, "google"), (True, "huggingface")]
)
def test_every_code_point(lower_case, normalizer):
    every = np.array([chr(each) for each in range(0x30000) if not 0xD800 <= each < 0xE000])
    texts = np.char.add(np.char.add("a", every), "b").tolist()
    batch = tf.constant(texts)
    expected = tokenizer_of(lower_case).with_settings(normalizer=normalizer)
    got = lite(expected)(batch)
    np.testing.assert_array_equal(got.ids.values, expected.tokenize(batch).values)
    np.testing.assert_array_equal(got.ids.row_splits, expected.tokenize(batch).row_splits)


def test_the_rules_of_hugging_face_need_no_rule_of_final_sigmas():
    odd = [*HARD, "\u0391\u03a31 \u0391\u03a3", "a\ue000b \U000f0001", "a\U0002b820 x\u061d"]
    assert_same_pieces(odd, tokenizer_of(True).with_settings(normalizer="huggingface"))


@pytest.mark.parametrize("letter", ["a", "é", "中", "\u0e01", "x\u0301"])
def test_words_over_the_limit(letter):
    words = [letter * size for size in (99, 100, 199, 200, 201, 202, 399, 400, 401, 801)]
    texts = [*words, " ".join(words), f"cat {letter * 201}. cat", f"{letter * 201},{letter * 200}"]
    for lower_case in (True, False):
        assert_same_pieces(texts, tokenizer_of(lower_case))


def test_sigmas():
    texts = ["ΑΣ ΣΑΣ Σ ΣΣ", "Σ", "ΑΣ", "ΑΣ.ΑΣ", "ΑΣ'Α ΑΣ' 'ΑΣ", "αΣ\u0301 Α\u00adΣ\u00ad", "ΑΣ中"]
    texts += ["ΑΣ" * 300, "ΑΣ " * 700, "ΑΣ\x00 ΑΣ\xcd ασς Σα", "ΑΣ.ΑΣ.Α", "ΑΣ''.Α", "1Σ Α1Σ"]
    assert_same_pieces([*texts, b"\xceA\xce \xce\x91\xce\xa3\xce \xa3"], tokenizer_of(True))
    assert_same_pieces(texts, tokenizer_of(False))


def test_what_is_left_out():
    """Should this fail, the list in the module's docstring is out of date."""
    pieces = [*SPECIAL, "α", "##σ", "##ς", "##1", "##\u302e", "##\u1b44", "a"]
    tokenizer = Tokenizer(pieces)
    batch = tf.constant(["ΑΣ1", "a\u1b44\u302e"])
    assert tokenizer.tokenize(batch).to_list() == [[5, 7, 8], [11, 10, 9]]
    lite_tokenizer = LiteTokenizer(tokenizer)
    assert lite_tokenizer.tokenize_with_offsets(batch).ids.to_list() == [[5, 6, 8], [11, 10, 9]]
    batch = tf.constant(["a\u302e\u1b44"])
    assert tokenizer.tokenize(batch).to_list() == [[11, 10, 9]]
    assert lite_tokenizer.tokenize_with_offsets(batch).ids.to_list() == [[11, 9, 10]]


def test_special_tokens():
    tokenizer = tokenizer_of(True, keep_special_tokens=True)
    texts = [
        "[MASK]",
        "a[MASK]b [CLS][SEP] [mask] [MASK\u0301] [MA\u200bSK]",
        "[[MASK]] [UNK]x[PAD]",
    ]
    texts += [
        "[ MASK] [MASK ] [MASK",
        "MASK]",
        "[",
        "MASK]\u0301 [MASK]\u0301\u0301 a",
        "ΑΣ[MASK]ΑΣ",
    ]
    assert_same_pieces([*texts, b"[MA\xffSK]\xff [\xc3MASK]"], tokenizer)


def test_a_vocabulary_without_sigmas():
    for lower_case in (True, False):
        tokenizer = Tokenizer([*SPECIAL, "a", "##b"], lower_case)
        assert_same_pieces(["a ΑΣ b ab", "bΣ"], tokenizer, is_traced=False)


def test_pieces_that_no_text_has():
    pieces = [*SPECIAL, "a", "\u2028", "##\u200b", *"## # ### ##b".split()]
    pieces += ["x" * 150, "##" + "x" * 150]
    texts = ["a\u2028a # ## ### a## ab #b", "x" * 300, "x" * 150]
    assert_same_pieces(texts, Tokenizer(pieces), is_traced=False)


def converted(function: Callable, *specs: tf.TensorSpec) -> Callable[..., dict[str, np.ndarray]]:
    """`function` of texts as a LiteRT file; gives what runs it, with the file's operations."""
    concrete = tf.function(function, input_signature=specs, autograph=False).get_concrete_function()
    converter = tf.lite.TFLiteConverter.from_concrete_functions([concrete])
    converter.allow_custom_ops = True
    converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS]
    interpreter = lite_interpreter(converter.convert(), 1, with_text=True)
    inputs = sorted(interpreter.get_input_details(), key=lambda each: each["name"])
    outputs = sorted(interpreter.get_output_details(), key=lambda each: each["name"])
    names = sorted(concrete.structured_outputs)

    def run(*texts: bytes) -> dict[str, np.ndarray]:
        interpreter.allocate_tensors()
        for each, text in zip(inputs, texts, strict=True):
            interpreter.set_tensor(each["index"], np.array([text], object))
        interpreter.invoke()
        values = (interpreter.get_tensor(each["index"]) for each in outputs)
        return dict(zip(names, values, strict=True))

    interpreter.allocate_tensors()
    run.operations = {each["op_name"] for each in interpreter._get_ops_details()}
    run.shapes = [each["shape_signature"].tolist() for each in outputs]
    return run


def lite_texts() -> list[bytes]:
    source = random.Random(2)
    return [*HARD, "ΟΔΟΣ ΣΑΣ".encode(), *(random_text(source, 60) for _ in range(20))]


def assert_same(got: dict[str, np.ndarray], expected: dict[str, tf.Tensor], text: object) -> None:
    assert got.keys() == expected.keys()
    for name, values in expected.items():
        np.testing.assert_array_equal(got[name], values, err_msg=f"{name} of {text}")


def assert_operations_are_known(operations: set[str]) -> None:
    assert not [name for name in operations if "Flex" in name]
    custom = {name for name in operations if not name.isupper()}
    known = {"FastWordpieceTokenizeWithOffsets"}
    assert known <= custom <= known | {"FastBertNormalize", "TFText>ByteSplitByOffsets"}


@pytest.mark.end_to_end
def test_pairs_in_a_file():
    tokenizer = tokenizer_of(True)
    texts = lite_texts()
    run = converted(lambda a, b: LiteTokenizer(tokenizer).packed((a, b), 24), ONE, ONE)
    assert_operations_are_known(run.operations)
    assert run.shapes == [[1, 24]] * 3
    preprocess = Preprocessor(tokenizer, 24)
    for first, second in zip(texts, texts[5:] + texts[:5], strict=True):
        assert_same(run(first, second), preprocess(([first], [second])), (first, second))


def test_single_texts_in_a_file():
    tokenizer = tokenizer_of(False, keep_special_tokens=True)
    run = converted(lambda a: LiteTokenizer(tokenizer).packed((a,), 24), ONE)
    assert_operations_are_known(run.operations)
    assert "TFText>ByteSplitByOffsets" not in run.operations
    preprocess = Preprocessor(tokenizer, 24)
    for text in lite_texts():
        assert_same(run(text), preprocess([text]), text)


@pytest.mark.end_to_end
def test_questions_in_a_file():
    tokenizer = tokenizer_of(True)
    texts = lite_texts()

    def question(first: tf.Tensor, second: tf.Tensor) -> dict[str, tf.Tensor]:
        packed = LiteTokenizer(tokenizer).packed_question(first, second, 24, 8)
        return {**packed.features, "starts": packed.starts, "ends": packed.ends}

    run = converted(question, ONE, ONE)
    assert_operations_are_known(run.operations)
    assert run.shapes == [[1, 24]] * 5
    preprocess = WindowPreprocessor(tokenizer, 24, 4, 8)
    for first, second in zip(texts, texts[5:] + texts[:5], strict=True):
        windows = preprocess(([first], [second]))
        expected = {**windows.features, "starts": windows.starts, "ends": windows.ends}
        assert_same(
            run(first, second), {name: each[:1] for name, each in expected.items()}, (first, second)
        )


def test_a_network_after_the_tokenizer_runs_on_its_fast_kernels():
    tokenizer = tokenizer_of(True)
    table = np.random.RandomState(1).randn(len(LOWER), 64).astype(np.float32)
    weights = np.eye(64, dtype=np.float32) * 2

    def network(text: tf.Tensor) -> dict[str, tf.Tensor]:
        ids = LiteTokenizer(tokenizer).packed((text,), 16)["input_word_ids"]
        return {"hidden": tf.nn.tanh(tf.reshape(tf.gather(table, ids), [16, 64]) @ weights)}

    run = converted(network, ONE)
    # LiteRT hands over only what has a fixed shape.
    assert "DELEGATE" in run.operations
    expected = {"hidden": network(tf.constant(["the cat"]))["hidden"]}
    np.testing.assert_allclose(run(b"the cat")["hidden"], expected["hidden"], atol=1e-5)


@pytest.mark.parametrize("lengths", [(0, 0), (3, 9), (9, 3), (9, 9), (2, 1), (5, 4), (1, 30)])
@pytest.mark.parametrize("max_length", [5, 6, 9, 10])
def test_truncation(lengths, max_length):
    tokenizer = tokenizer_of(True)
    pair = tuple([" ".join("abcdefghijklmnopqrstuvwxyzabcd"[:size])] for size in lengths)
    for given_texts in (pair, pair[:1]):
        packed = LiteTokenizer(tokenizer).packed([*map(tf.constant, given_texts)], max_length)
        expected = Preprocessor(tokenizer, max_length)(
            given_texts if len(given_texts) == 2 else given_texts[0]
        )
        assert_same(packed, expected, given_texts)


def test_mistakes_are_explained():
    tokenizer = LiteTokenizer(tokenizer_of(True))
    text = tf.constant(["a"])
    with pytest.raises(UserError, match="there are 3 texts"):
        tokenizer.packed([text] * 3, 8)
    with pytest.raises(UserError, match="max_length is 4"):
        tokenizer.packed([text], 4)
    with pytest.raises(UserError, match="max_question_length must be at least 1, got 0"):
        tokenizer.packed_question(text, text, 8, 0)
    with pytest.raises(UserError, match="give 68 or more"):
        tokenizer.packed_question(text, text, 67)
