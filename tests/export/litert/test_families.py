"""Every family as a LiteRT file: the same answers, by operations that LiteRT has built in."""

import numpy as np
import pytest
import tensorflow as tf

import bert_tf
from bert_tf.asking import rows_of
from bert_tf.compat import lite_interpreter
from tests.export.conftest import TASKS
from tests.export.test_four_ways import assert_same_tensors, texts_of

LENGTHS = [8, 16, 32]


@pytest.fixture(scope="module")
def files(models, tmp_path_factory):
    """Gives the file of a family, with three lengths."""
    folder, written = tmp_path_factory.mktemp("litert"), {}

    def file(family):
        if family not in written:
            written[family] = folder / f"{family}.tflite"
            models(family).export(written[family], format="litert", lengths=LENGTHS)
        return written[family]

    return file


@pytest.mark.parametrize("family", TASKS)
def test_a_file_answers_any_text_as_the_model_does(models, files, family):
    model, file = models(family), bert_tf.load(files(family))
    assert file.signature_names() == model.signature_names()
    for signature in model.signature_names():
        ranks = model.ranks(signature)
        columns = texts_of({name: tf.TensorSpec([None] * ranks[name]) for name in ranks})
        if family == "mlm":
            columns["text"] = [f"{text[:40]} [MASK]" for text in columns["text"]]
        if signature == "words":
            columns = {"words": [["the", "cat", "sat"], ["dog"] * 40]}
        rows = rows_of(tuple(columns.values()), tuple(columns))
        assert_same_tensors(file.ask(signature, rows), model.ask(signature, rows))


@pytest.mark.parametrize("family", TASKS)
def test_operations_are_built_in(files, family):
    interpreter = lite_interpreter(files(family).read_bytes(), 1, with_text=False)
    names = {each["op_name"] for each in interpreter._get_ops_details()}
    assert "FULLY_CONNECTED" in names
    assert not [name for name in names if "Flex" in name or "CUSTOM" in name]


@pytest.mark.parametrize("family", TASKS)
def test_inputs_have_the_names_that_apps_know(files, family):
    interpreter = lite_interpreter(files(family).read_bytes(), 1, with_text=False)
    signatures = interpreter.get_signature_list()
    assert {*signatures} == {f"tokens_{length}" for length in LENGTHS}
    for signature in signatures.values():
        assert sorted(signature["inputs"]) == ["ids", "mask", "segment_ids"]


def test_weights_are_in_the_file_once(models, files, tmp_path):
    alone = tmp_path / "one.tflite"
    models("classification").export(alone, format="litert", lengths=[8])
    weights = 4 * models("classification").count_params()
    more = files("classification").stat().st_size - alone.stat().st_size
    # Two more graphs, but not their weights: far less than these in a model that is not tiny.
    without = alone.stat().st_size - weights
    assert more < 2.5 * without


def test_a_row_is_run_at_the_shortest_length_that_it_fits(models, files):
    file = bert_tf.load(files("classification"))
    used = []
    runners = file.network.signatures._runners
    for length, runner in runners.items():
        runners[length] = _noting(runner, length, used)
    file.predict(["cat", "the cat sat on the mat .", "the cat sat on a mat . " * 9], verbose=0)
    assert sorted(used) == LENGTHS


def _noting(runner, length, used):
    def run(**given):
        used.append(length)
        return runner(**given)

    return run


def test_evaluate_gives_the_official_metrics(models, files):
    texts, labels = ["the cat sat", "a dog", "fish"], ["no", "yes", "maybe"]
    expected = models("classification").evaluate(texts, labels, verbose=0)
    found = bert_tf.load(files("classification")).evaluate(texts, labels, verbose=0)
    assert found == pytest.approx(expected, abs=1e-5)


def test_vectors_are_compared_as_by_the_model(models, files):
    a, b = ["the cat", "a dog ran"], ["cat"]
    expected = models("embedding").similarity(a, b, verbose=0)
    found = bert_tf.load(files("embedding")).similarity(a, b, verbose=0)
    np.testing.assert_allclose(found, expected, atol=1e-5)
