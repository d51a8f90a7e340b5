"""Files of smaller numbers: their sizes, and answers near those of float32."""

import keras
import numpy as np
import pytest

import bert_tf
from bert_tf.encoder.encoder import Encoder
from tests import tiny
from tests.tasks import tiny_objects

TEXTS = ["the cat sat on the mat .", "a dog ran under the log .", "bird", "a fish swam"]


@pytest.fixture(scope="module")
def model():
    """A classifier whose matrices are large enough to be quantized."""
    keras.utils.set_random_seed(3)
    config = tiny.encoder_config(64, initializer_range=0.1)
    return bert_tf.TextClassifier(Encoder(config), tiny_objects.tokenizer(), ["bad", "good"])


@pytest.fixture(scope="module")
def answered(model, tmp_path_factory):
    """Gives the file of a precision, and its probabilities of TEXTS."""
    folder, known = tmp_path_factory.mktemp("precisions"), {}

    def answer(name, **settings):
        if name not in known:
            model.export(folder / f"{name}.tflite", format="litert", **settings)
            found = bert_tf.load(folder / f"{name}.tflite").predict(TEXTS, verbose=0)
            known[name] = folder / f"{name}.tflite", _good(found)
        return known[name]

    return answer


def _good(answers):
    return np.array([each["probabilities"]["good"] for each in answers])


@pytest.mark.parametrize(
    ("precision", "share", "off"), [("float16", 0.62, 2e-3), ("int8", 0.45, 3e-2)]
)
def test_weights_take_less_space(answered, precision, share, off):
    exact, expected = answered("float32")
    file, found = answered(precision, precision=precision)
    assert file.stat().st_size < share * exact.stat().st_size
    np.testing.assert_allclose(found, expected, atol=off)


def test_fixed_ranges_are_found_on_texts(answered):
    exact, expected = answered("float32")
    file, found = answered("fixed", precision="int8", calibration=TEXTS)
    assert file.stat().st_size < 0.6 * exact.stat().st_size
    np.testing.assert_allclose(found, expected, atol=5e-2)
    # Ranges of other texts are other ranges.
    _, other = answered("other", precision="int8", calibration=["fish"])
    assert np.abs(other - expected).max() > np.abs(found - expected).max()


def test_products_compute_in_int8(answered):
    file, _ = answered("fixed", precision="int8", calibration=TEXTS)
    interpreter = bert_tf.load(file).network.signatures.interpreter
    details = {each["index"]: each["dtype"] for each in interpreter.get_tensor_details()}
    inputs = [
        details[each["inputs"][0]]
        for each in interpreter._get_ops_details()
        if each["op_name"] == "FULLY_CONNECTED"
    ]
    assert set(inputs) == {np.int8}
