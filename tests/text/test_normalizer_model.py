"""Models of tf-text's normalizer: what it does with every character, and with broken bytes."""

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_text as tf_text
from hypothesis import given, settings, strategies

from bert_tf.text.normalizer_model import normalizer_model
from tests.text.vocabularies import broken_texts

EVERY = [each for each in range(0x110000) if not 0xD800 <= each < 0xE000]


def normalized(model: np.ndarray | None, texts: list, **settings) -> list[bytes]:
    model = None if model is None else tf.constant(model)
    normalizer = tf_text.FastBertNormalizer(model_buffer=model, **settings)
    return normalizer.normalize(tf.constant(texts)).numpy().tolist()


@pytest.mark.parametrize("lower_case", [True, False])
def test_a_model_of_tf_texts_own_table_does_what_tf_texts_does(lower_case):
    texts = [f"a{chr(each)}b" for each in EVERY]
    expected = normalized(None, texts, lower_case_nfd_strip_accents=lower_case)
    changes = {}
    for code_point, text, result in zip(EVERY, texts, expected, strict=True):
        if result != text.encode():
            changes.setdefault(result.decode()[1:-1], []).append(code_point)
    assert len(changes) > (1000 if lower_case else 0)
    assert normalized(normalizer_model(changes), texts) == expected


BROKEN = normalizer_model({}, broken="?!")


@settings(max_examples=300, deadline=None, derandomize=True)
@given(broken_texts | strategies.binary(max_size=20))
def test_broken_bytes_are_replaced_as_python_finds_them(text):
    (got,) = normalized(BROKEN, [text])
    # Python marks each run of broken bytes; the character may be in the text as well.
    whole = text.replace("\ufffd".encode(), b"-")
    assert got.replace("\ufffd".encode(), b"-").decode() == whole.decode(
        "utf-8", "replace"
    ).replace("\ufffd", "?!")


def test_every_character_can_have_its_own_replacement():
    model = normalizer_model({f"<{each:x}>": [each] for each in (*range(300), 0x10FFFF, 0xAC00)})
    text = "\0a\x7f\u0129\u012c가\U0010ffff"
    assert normalized(model, [text]) == ["<0><61><7f><129>\u012c<ac00><10ffff>".encode()]


def test_a_long_replacement_is_whole():
    assert normalized(normalizer_model({"é" * 31: [ord("x")]}), ["axb"]) == [
        f"a{'é' * 31}b".encode()
    ]
    with pytest.raises(AssertionError):
        normalizer_model({"x" * 64: [1]})
