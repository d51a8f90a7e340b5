"""Files that take strings: the tokenizer is in the graph, and answers are those of the model."""

import numpy as np
import pytest

from bert_tf.asking.lite import LiteModel
from bert_tf.errors import UserError
from tests.export.conftest import tasks
from tests.export.test_four_ways import assert_alike
from tests.tasks import tiny_objects

# Each of these families makes rows and answers of strings in its own way; LiteRT cannot read the
# strings of the family that is left out.
FAMILIES = tasks(
    *("classification", "reranking", "multiple_choice", "mlm", "question_answering", "embedding"),
    without=["token_classification"],
)
TEXTS = ["The cat sat on the mat.", "", "a DOG ran\tunder the log !", "fish " * 60, "unknown words"]
PAIRS = TEXTS, TEXTS[::-1]
GIVEN = {
    "pair": PAIRS,
    "nsp": PAIRS,
    "multiple_choice": (TEXTS, [["cat", "dogs sat"], ["a", "b", "c"]] * 2 + [["x", "y"]]),
    "reranking": (TEXTS, [["cat", "dogs sat"], ["a"], ["a", "b", "c"], ["x"], ["y", "cat"]]),
    "zero_shot": (TEXTS, [["cat", "dogs sat"], ["a"], ["a", "b", "c"], ["x"], ["y", "cat"]]),
    "mlm": ["the [MASK] sat on [MASK] .", "[MASK]", "é [MASK] cat [MASK] dog [MASK]"],
    "question_answering": (["cat", "who sat"], ["the cat sat on the mat", "é Dogs ran, not cat"]),
}


@pytest.fixture
def loaded(lite):
    """Gives the file of a family that takes strings, opened."""
    return lambda family: lite(family, inputs="strings")


@pytest.mark.end_to_end
@pytest.mark.parametrize("family", FAMILIES)
def test_answers_are_those_of_the_model(models, loaded, family):
    given = GIVEN.get(family, TEXTS)
    expected = models(family).predict(given, verbose=0)
    found = loaded(family).predict(given, verbose=0)
    if family != "question_answering":
        assert_alike(list(found), list(expected))
        return
    for one, other in zip(found, expected, strict=True):
        _check_answer(one, other)


def _check_answer(found, expected):
    """The score of the file is relative to all spans, not to the n best."""
    for name in ("answer", "start", "end"):
        assert found[name] == expected[name]
    assert found["null_score"] == pytest.approx(expected["null_score"], abs=1e-5)
    assert 0 < found["score"] <= expected["score"]
    assert [each["answer"] for each in found["nbest"]] == [found["answer"]]


def test_operations_are_built_in_or_of_tf_text(loaded):
    interpreter = loaded("classification").network.interpreter
    names = {each["op_name"] for each in interpreter._get_ops_details()}
    assert {"FastBertNormalize", "FastWordpieceTokenizeWithOffsets"} <= names
    assert not [name for name in names if "Flex" in name]


def test_words_of_texts_cannot_be_cut(models, tmp_path):
    with pytest.raises(
        UserError, match="LiteRT lacks operations that a .* requires to read strings"
    ):
        models("token_classification").export(
            tmp_path / "model.tflite", format="litert", inputs="strings"
        )


@pytest.mark.parametrize(
    "settings", [{"lengths": [8, 16]}, {"precision": "int8", "calibration": ["cat"]}]
)
def test_settings_of_files_that_take_ids(models, tmp_path, settings):
    with pytest.raises(UserError, match="takes strings has one fixed length and no calibration"):
        models("classification").export(
            tmp_path / "model.tflite", format="litert", inputs="strings", **settings
        )


def test_a_default_prompt_cannot_be_put_before_texts(tmp_path):
    model = tiny_objects.embedder(prompts={"query": "the "}, default_prompt="query")
    with pytest.raises(UserError, match="requires string concatenation, which LiteRT cannot do"):
        model.export(tmp_path / "model.tflite", format="litert", inputs="strings")


def test_a_file_of_strings_has_one_signature(loaded):
    with pytest.raises(UserError, match="takes strings, and has no signature 'scores'"):
        loaded("classification").evaluate(["cat"], ["no"], verbose=0)
    with pytest.raises(UserError, match="has no signature 'similarity'"):
        loaded("embedding").ask("similarity", [{"text_a": "cat", "text_b": "dog"}])


def test_an_interpreter_without_the_operations_of_text_says_so(models, lite_file):
    path = lite_file("classification", inputs="strings")
    form = models("classification").strings_form()
    said = "has the operation FastBertNormalize of TensorFlow Text, .* open it with bert_tf.load"
    with pytest.raises(UserError, match=said):
        LiteModel(str(path), path.read_bytes(), [32], form)


def test_vectors_of_strings_are_compared(models, loaded):
    expected = models("embedding").similarity("cat", ["dog", "cat"], verbose=0)
    found = loaded("embedding").similarity("cat", ["dog", "cat"], verbose=0)
    np.testing.assert_allclose(found, expected, atol=1e-5)
