"""Every family as a LiteRT file: the same answers, by operations that LiteRT has built in."""

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.lite.python.interpreter import OpResolverType

from bert_tf.asking import rows_of
from bert_tf.compat import lite_interpreter, without_interpreter_notice
from bert_tf.export.litert.conversion import signature_name
from tests.export.conftest import TASKS, tasks
from tests.export.test_four_ways import assert_same_tensors, texts_of

LENGTHS = (8, 16, 32)
SETTINGS = {"classification": {"lengths": LENGTHS}}
# Files of pairs compute what those of texts compute.
FAMILIES = tasks(*(family for family in TASKS if family != "pair"))


@pytest.fixture
def path(lite_file):
    """Gives the file of a family; that of classification has three lengths."""
    return lambda family: lite_file(family, **SETTINGS.get(family, {}))


@pytest.fixture
def opened(lite):
    """Gives the file of a family, opened."""
    return lambda family: lite(family, **SETTINGS.get(family, {}))


@pytest.mark.end_to_end
@pytest.mark.parametrize("family", FAMILIES)
def test_a_file_answers_any_text_as_the_model_does(models, opened, path, monkeypatch, family):
    model, file = models(family), opened(family)
    other_kernels = _runners_without_delegate(path(family), file)
    assert file.signature_names() == model.signature_names()
    for signature in model.signature_names():
        ranks = model.ranks(signature)
        columns = texts_of({name: tf.TensorSpec([None] * ranks[name]) for name in ranks})
        if family == "mlm":
            columns["text"] = [f"{text[:40]} [MASK]" for text in columns["text"]]
        if signature == "words":
            columns = {"words": [["the", "cat", "sat"], ["dog"] * 40]}
        rows = rows_of(tuple(columns.values()), tuple(columns))
        expected = model.ask(signature, rows)
        assert_same_tensors(file.ask(signature, rows), expected)
        with monkeypatch.context() as patch:
            patch.setattr(file.network, "_runners", other_kernels)
            assert_same_tensors(file.ask(signature, rows), expected)


def _runners_without_delegate(path, file):
    """The signatures of a file, computed by LiteRT's own kernels, which round in another way."""
    with without_interpreter_notice():
        interpreter = tf.lite.Interpreter(
            str(path),
            experimental_op_resolver_type=OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
        )
    lengths = [*file.network._runners]
    return {
        length: interpreter.get_signature_runner(signature_name(length, lengths))
        for length in lengths
    }


@pytest.mark.parametrize("family", FAMILIES)
def test_operations_are_built_in_and_inputs_have_the_names_that_apps_know(path, family):
    interpreter = lite_interpreter(path(family).read_bytes(), 1, with_text=False)
    names = {each["op_name"] for each in interpreter._get_ops_details()}
    assert "FULLY_CONNECTED" in names
    assert not [name for name in names if "Flex" in name or "CUSTOM" in name]
    signatures = interpreter.get_signature_list()
    several = {f"tokens_{length}" for length in LENGTHS}
    assert {*signatures} == (several if family in SETTINGS else {"serving_default"})
    for signature in signatures.values():
        assert sorted(signature["inputs"]) == ["ids", "mask", "segment_ids"]


def test_weights_are_in_the_file_once(models, path):
    content = path("classification").read_bytes()
    matrices = [each.numpy() for each in models("classification").weights if each.ndim > 1]
    for matrix in matrices:
        assert content.count(matrix.tobytes()) + content.count(matrix.T.tobytes()) == 1


def test_a_row_is_run_at_the_shortest_length_that_it_fits(opened, monkeypatch):
    file = opened("classification")
    used = []
    runners = file.network._runners
    for length, runner in [*runners.items()]:
        monkeypatch.setitem(runners, length, _noting(runner, length, used))
    file.predict(["cat", "the cat sat on the mat .", "the cat sat on a mat . " * 9], verbose=0)
    assert sorted(used) == [*LENGTHS]


def _noting(runner, length, used):
    def run(**given):
        used.append(length)
        return runner(**given)

    return run


def test_evaluate_gives_the_official_metrics(models, opened):
    texts, labels = ["the cat sat", "a dog", "fish"], ["no", "yes", "maybe"]
    expected = models("classification").evaluate(texts, labels, verbose=0)
    found = opened("classification").evaluate(texts, labels, verbose=0)
    assert found == pytest.approx(expected, abs=1e-5)


def test_vectors_are_compared_as_by_the_model(models, opened):
    a, b = ["the cat", "a dog ran"], ["cat"]
    expected = models("embedding").similarity(a, b, verbose=0)
    found = opened("embedding").similarity(a, b, verbose=0)
    np.testing.assert_allclose(found, expected, atol=1e-5)
