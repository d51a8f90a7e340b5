"""The tokenizer gives the reference's ids, in any graph, and says clearly what it cannot use."""

import copy
import itertools
import os
import pickle
import subprocess
import sys
import unicodedata

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, strategies

from bert_tf.errors import UserError
from bert_tf.text import Preprocessor, Tokenizer
from bert_tf.text.characters import STAND_INS, UNKNOWN, cleaning_table
from tests import tiny
from tests.text import oracle
from tests.text.vocabularies import (
    SPECIAL,
    bounded,
    broken_texts,
    texts,
    tokenizer_of,
)


def pieces_of(batch: list, tokenizer: Tokenizer) -> list[list[str]]:
    ids = tokenizer.tokenize(tf.constant(batch, tf.string)).to_list()
    return [[tokenizer.vocabulary[number] for number in row] for row in ids]


# What google-research/bert's tokenization.py (commit eedf571) gives with the same vocabularies.
BOTH = {
    "  tabs\tand\r\nlines  ": "t ##a ##b ##s a ##n ##d l ##i ##n ##e ##s",
    "a\u4e2db\u4e8c": "a \u4e2d b [UNK]",
    "a\xadb\u200dc": "a ##b ##c",
    "a\x00b\x85c": "a ##b ##c",
    "x\xa0y\u2003z\u3000n\u2028t": "x y z n t",
    "\ufffda\ufeff": "a",
    "\U0001f600 cat\U0001f600": "\U0001f600 [UNK]",
    "\u20ac7 42$": "[UNK] 42 [UNK]",
    "a\u2014b\u3002": "a \u2014 b \u3002",
    "b\u302e\u093e\u1b44": "[UNK]",
    "t\u1b4ee": "[UNK]",
    "": "",
    "unableable": "un ##able ##able",
}
LOWER_CASED = BOTH | {
    "The cat, unable!": "the cat , un ##able !",
    "don't A-B [MASK]": "d ##o ##n ' t a - b [ m ##a ##s ##k ]",
    "CAF\xc9 Na\xefve caf\xe9": "cafe na ##i ##v ##e cafe",
    "\u03a3\u0391\u03a3 \u0391\u03a3. \u03a3": "\u03c3\u03b1 ##\u03c2 \u03b1 ##\u03c2 . \u03c3",
    "\u0130I \u0131": "i ##i [UNK]",
    "\xdf\u1e9e \ufb01 K \uff21": "\xdf ##\xdf [UNK] k [UNK]",
    "\ud55c \ud558": "\u1112 ##\u1161\u11ab \u1112 ##\u1161",
    "\u304c \u304b": "\u304b \u304b",
    "a\u0301\u0323b": "a ##b",
    "\u09cb n": "\u09c7 ##\u09be n",
    "\u0391'\u03a3 \u0391\u03a3'\u0391": "\u03b1 ' \u03c2 \u03b1 ##\u03c3 ' \u03b1",
    "\u0391\u0301\u03a3\u0301 \u0391\u03a3\u0301\u0391": "\u03b1 ##\u03c2 \u03b1 ##\u03c3\u03b1",
    "b\u302e\u1b44": "b ##\u1b44 ##\u302e",
    "b\u302e\u200d\u1b44": "b ##\u1b44 ##\u302e",
    "b\u302e\u0301\u1b44": "b ##\u1b44 ##\u302e",
    " \u0301": "",
}
CASED_ONLY = BOTH | {
    "The cat, unable!": "T ##h ##e cat , un ##able !",
    "don't A-B [MASK]": "d ##o ##n ' t A - B [ [UNK] ]",
    "CAF\xc9 Na\xefve caf\xe9": "[UNK] [UNK] caf\xe9",
    "\u03a3\u0391\u03a3 \u0391\u03a3. \u03a3": "[UNK] [UNK] . \u03a3",
    "\u0130I \u0131": "[UNK] [UNK]",
    "\xdf\u1e9e \ufb01 K \uff21": "[UNK] [UNK] [UNK] [UNK]",
    "\ud55c \ud558": "[UNK] [UNK]",
    "\u304c \u304b": "[UNK] \u304b",
    "a\u0301\u0323b": "[UNK]",
    "\u09cb n": "[UNK] n",
    "b\u302e\u1b44": "b ##\u302e ##\u1b44",
    "b\u302e\u0301\u1b44": "b ##\u302e ##\u0301 ##\u1b44",
    " \u0301": "\u0301",
}


MANY_SCRIPTS = (
    "The Caf\u00e9's na\u00efve fa\u00e7ade won't \u2014 \u4e2d\u6587\u03a3\u0391\u03a3 \ud55c"
    "\uad6d\u2028\u0416\u0438\u0437\u043d\u044c [MASK]\u00ad \U0001f600 unaffable"
)


@pytest.mark.parametrize(("text", "expected"), LOWER_CASED.items())
def test_lower_cased_pieces_are_the_references(text, expected):
    assert pieces_of([text], tokenizer_of()) == [expected.split()]


@pytest.mark.parametrize(("text", "expected"), CASED_ONLY.items())
def test_cased_pieces_are_the_references(text, expected):
    assert pieces_of([text], tokenizer_of(lower_case=False)) == [expected.split()]


@bounded
@given(batch=strategies.lists(texts | broken_texts, max_size=40))
@pytest.mark.parametrize("lower_case", [True, False])
def test_any_text_gives_what_the_algorithm_in_plain_python_gives(batch, lower_case):
    tokenizer = tokenizer_of(lower_case)
    known = set(tokenizer.vocabulary)
    expected = [oracle.pieces(text, known, lower_case) for text in batch]
    as_bytes = [text.encode() if isinstance(text, str) else text for text in batch]
    assert pieces_of(as_bytes, tokenizer) == expected


@pytest.mark.parametrize("lower_case", [True, False])
def test_words_of_more_than_200_characters_are_unknown_whatever_their_bytes(lower_case):
    characters = ["a", "\u0e01", "\u00e9", "\u1112", "\ud55c", "\u4e2d", "\U0001f600", "a\u0301"]
    sizes = [1, 66, 67, 68, 100, 199, 200, 201, 202, 1000]
    batch = [f"so {c * n}, {c * n}t" for c, n in itertools.product(characters, sizes)]
    tokenizer = tokenizer_of(lower_case)
    known = set(tokenizer.vocabulary)
    assert pieces_of(batch, tokenizer) == [oracle.pieces(t, known, lower_case) for t in batch]


@pytest.mark.slow
@pytest.mark.parametrize("around", ["{}", "un{}able", "the {} cat", "a,{}!"])
@pytest.mark.parametrize("lower_case", [True, False])
def test_every_code_point_gives_what_the_algorithm_gives(lower_case, around):
    tokenizer = tokenizer_of(lower_case)
    known = set(tokenizer.vocabulary)
    code_points = [*range(0xD800), *range(0xE000, 0x110000)]
    for start in range(0, len(code_points), 65536):
        batch = [around.format(chr(each)) for each in code_points[start : start + 65536]]
        assert pieces_of(batch, tokenizer) == [oracle.pieces(t, known, lower_case) for t in batch]


# Name -> whether it lower-cases, and the ids of MANY_SCRIPTS.
PUBLISHED = {
    "uncased": (
        True,
        "1996 7668 1005 1055 15743 8508 2180 1005 1056 1517 1746 1861 1173 14608 19579 "
        "1469 30006 30021 29991 30014 30020 1186 10325 29744 18947 23742 1031 7308 1033 "
        "100 14477 20961 3468",
    ),
    "cased": (
        False,
        "1109 21036 112 188 9468 28203 2707 18578 1281 112 189 783 980 1030 408 28315 "
        "28329 100 454 17424 28398 17127 28414 164 9960 1708 2428 166 100 8362 9823 8057 "
        "2165",
    ),
    "chinese": (
        True,
        "8174 8377 112 161 11469 8857 12289 8808 8510 165 8224 112 162 100 704 3152 226 "
        "13380 13395 303 10928 9877 13454 13479 11953 239 11000 13408 13412 13425 138 "
        "9622 8998 140 100 163 8374 9049 9609",
    ),
    "multilingual-cased": (
        False,
        "10117 37065 112 187 10132 27514 10612 46510 11367 112 188 100 2104 4313 454 "
        "58548 85362 48556 69345 164 27277 10731 11733 166 100 10153 43311 11203",
    ),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_vocabularies_give_the_references_ids(shared_data, name):
    lower_case, expected = PUBLISHED[name]
    tokenizer = Tokenizer(shared_data / "vocab" / f"bert-base-{name}-vocab.txt", lower_case)
    assert tokenizer.tokenize(MANY_SCRIPTS).numpy().tolist() == [*map(int, expected.split())]


def test_special_tokens_are_kept_whole_when_asked_for():
    kept = tokenizer_of(keep_special_tokens=True)
    batch = ["[MASK][MASK]", "the[MASK]cat.[SEP]", "[mask] [MA SK]", "[MASK", "\u00c9 [CLS]\x01"]
    assert pieces_of(batch, kept) == [
        ["[MASK]", "[MASK]"],
        ["the", "[MASK]", "cat", ".", "[SEP]"],
        "[ m ##a ##s ##k ] [ m ##a s ##k ]".split(),
        "[ m ##a ##s ##k".split(),
        ["e", "[CLS]"],
    ]


def test_special_tokens_kept_whole_have_their_place_in_the_text():
    found = tokenizer_of(keep_special_tokens=True).tokenize_with_offsets(["\u00e9[MASK] a"])
    assert found.starts.to_list() == [[0, 2, 9]]
    assert found.ends.to_list() == [[2, 8, 10]]


def test_a_piece_with_a_space_or_control_character_is_never_matched():
    vocabulary = [*SPECIAL, "a", "\u2028", "a\x01", "\ufffd", "##\u2028", "b"]
    assert pieces_of(["a\u2028b a\x01 \ufffd a\u2028"], Tokenizer(vocabulary)) == [list("abaa")]


def test_results_have_the_shape_of_the_texts_and_one_axis_more():
    tokenizer = tokenizer_of()
    a, b = tokenizer.vocabulary.index("a"), tokenizer.vocabulary.index("b")
    assert tokenizer.tokenize("a b").numpy().tolist() == [a, b]
    assert tokenizer.tokenize(["a b", "", "b"]).to_list() == [[a, b], [], [b]]
    assert tokenizer.tokenize([["a", "b a"]]).to_list() == [[[a], [b, a]]]
    ragged = tf.ragged.constant([["a"], [], ["b a", "b"]])
    assert tokenizer.tokenize(ragged).to_list() == [[[a]], [], [[b, a], [b]]]
    short = ragged.with_row_splits_dtype(tf.int32)
    assert tokenizer.tokenize(short).to_list() == [[[a]], [], [[b, a], [b]]]
    none = tokenizer.tokenize_with_offsets(tf.constant([], tf.string))
    assert [part.shape for part in none] == [[0, None]] * 3
    assert {part.dtype for part in none} == {tf.int32}


def test_special_ids_are_the_places_of_the_special_tokens():
    tokenizer = Tokenizer([*reversed(SPECIAL), "a"])
    special = [tokenizer.pad_id, tokenizer.unk_id, tokenizer.cls_id, tokenizer.sep_id]
    assert [*special, tokenizer.mask_id] == [4, 3, 2, 1, 0]
    assert tokenizer.vocab_size == 6
    assert tokenizer.lower_case


def test_detokenize_joins_the_pieces_of_words():
    tokenizer = tokenizer_of()
    ids = tokenizer.tokenize(["The cat, unable!", "", "unableable"])
    assert tokenizer.detokenize(ids).numpy().tolist() == [
        b"the cat , unable !",
        b"",
        b"unableable",
    ]
    assert tokenizer.detokenize(ids[0]).numpy() == b"the cat , unable !"


def test_tokenizing_in_a_dataset_and_in_a_saved_model_gives_the_same(tmp_path):
    tokenizer = tokenizer_of()
    batch = ["The caf\u00e9, \ud55c!", "plain", "\u03a3\u0391\u03a3"]
    expected = [part.to_list() for part in tokenizer.tokenize_with_offsets(batch)]
    dataset = tf.data.Dataset.from_tensor_slices(batch).batch(3)
    (mapped,) = dataset.map(tokenizer.tokenize_with_offsets)
    assert [part.to_list() for part in mapped] == expected
    module = tf.Module()
    signature = [tf.TensorSpec([None], tf.string)]
    module.call = tf.function(tokenizer.tokenize_with_offsets, input_signature=signature)
    tf.saved_model.save(module, str(tmp_path))
    loaded = tf.saved_model.load(str(tmp_path))
    assert [part.to_list() for part in loaded.call(tf.constant(batch))] == expected


def test_the_graph_has_no_table_no_python_and_only_the_wordpiece_op_of_tf_text():
    signature = tf.TensorSpec([None], tf.string)
    traced = tf.function(tokenizer_of(keep_special_tokens=True).tokenize_with_offsets)
    graph = traced.get_concrete_function(signature).graph.as_graph_def()
    ops = {node.op for function in graph.library.function for node in function.node_def}
    assert not {op for op in ops if "Table" in op or "PyFunc" in op}
    assert {op for op in ops if "Wordpiece" in op or op.startswith("TFText")} == {
        "FastWordpieceTokenizeWithOffsets"
    }


@pytest.mark.slow
def test_the_locale_does_not_change_lower_casing():
    """ICU's own lower-casing makes a dotless i of I where the language is Turkish."""
    script = (
        "from bert_tf.text import Tokenizer\n"
        f"tokenizer = Tokenizer({[*SPECIAL, 'i', 'e', '##i']})\n"
        "print(tokenizer.tokenize('I \u00c9I').numpy().tolist())"
    )
    # A process of its own: ICU reads the language only once.
    done = subprocess.run(
        [sys.executable, "-c", script],
        env=os.environ | {"LC_ALL": "tr_TR.UTF-8", "PYTHONUTF8": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "[5, 6, 7]"


def test_differences_between_the_op_and_python_come_from_the_unicode_version_alone():
    """The characters at which only tf-text 2.20's WordPiece op splits, or only this Python.

    These are punctuation in Unicode 15 and 16 and unassigned before. Where Python does not know
    them they stay within their word, as they do in the reference: the table bends the op.
    """
    newer = [
        *(0x1B4E, 0x1B4F, 0x1B7F, 0x10D6E, 0x113D4, 0x113D5, 0x113D7, 0x113D8),
        *range(0x11B00, 0x11B0A),
        0x11BE1,
        *range(0x11F43, 0x11F50),
        *(0x16D6D, 0x16D6E, 0x16D6F, 0x1E5FF),
    ]
    unknown = [each for each in newer if unicodedata.category(chr(each)) == "Cn"]
    assert bent(lower_case=False) == unknown
    assert bent(lower_case=True) == unknown


def bent(lower_case: bool) -> list[int]:
    """The code points that the table turns into an unknown character or sets between spaces."""
    table = cleaning_table(lower_case)
    code_points = np.arange(0x110000, dtype=np.int32)
    first = table.lookup(code_points).first.numpy()
    becomes = table.replacement(first)[0].numpy()
    stand_ins = np.isin(code_points, [*map(ord, STAND_INS)])
    is_bent = (first > 0) & ((becomes == UNKNOWN) | (becomes == ord(" ")))
    return code_points[is_bent & ~stand_ins].tolist()


@pytest.mark.parametrize("pieces", [["[UNK]"], [*SPECIAL, "a", "a"], [*SPECIAL, "", "a"]])
def test_an_invalid_vocabulary_is_refused(pieces):
    with pytest.raises(UserError, match="vocabulary"):
        Tokenizer(pieces)


def test_a_tokenizer_is_pickled_and_copied_also_after_its_first_call():
    tokenizer = tiny.tokenizer()
    expected = tokenizer.tokenize(["the cats sat"]).to_list()
    preprocess = Preprocessor(tokenizer, max_length=8)
    for again in (pickle.loads(pickle.dumps(tokenizer)), copy.deepcopy(tokenizer)):
        assert again.tokenize(["the cats sat"]).to_list() == expected
    ids = copy.deepcopy(preprocess)(["the cats sat"])["input_word_ids"]
    np.testing.assert_array_equal(ids, preprocess(["the cats sat"])["input_word_ids"])
