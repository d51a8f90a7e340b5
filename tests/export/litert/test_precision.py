"""Files of smaller numbers: their sizes, and answers near those of float32."""

import keras
import numpy as np
import pytest

import bert_tf
from bert_tf.encoder.encoder import Encoder
from bert_tf.export.calibration import rows_of_texts
from tests import tiny
from tests.tasks import tiny_objects

TEXTS = ["the cat sat on the mat .", "a dog ran under the log .", "bird", "a fish swam"]


@pytest.fixture(scope="module")
def model():
    """A classifier whose matrices are large enough to be quantized."""
    keras.utils.set_random_seed(3)
    config = tiny.encoder_config(64, num_hidden_layers=1, initializer_range=0.1)
    return bert_tf.TextClassifier(Encoder(config), tiny_objects.tokenizer(), ["bad", "good"])


@pytest.fixture(scope="module")
def answered(model, tmp_path_factory):
    """Gives the file of a precision, and its probabilities of TEXTS."""
    folder, known = tmp_path_factory.mktemp("precisions"), {}
    rows = rows_of_texts(model, TEXTS)

    def answer(name, **settings):
        if name not in known:
            path = folder / f"{name}.tflite"
            model.export(path, format="litert", **settings)
            network = bert_tf.load(path).network
            known[name] = path, [network.run(row)["probabilities"][0] for row in rows]
        return known[name]

    return answer


@pytest.mark.end_to_end
@pytest.mark.parametrize(
    ("precision", "share", "off"), [("float16", 0.62, 2e-3), ("int8", 0.45, 3e-2)]
)
def test_weights_take_less_space(answered, precision, share, off):
    exact, expected = answered("float32")
    file, found = answered(precision, precision=precision)
    assert file.stat().st_size < share * exact.stat().st_size
    np.testing.assert_allclose(found, expected, atol=off)


@pytest.mark.end_to_end
def test_fixed_ranges_are_found_on_texts(answered):
    exact, expected = answered("float32")
    file, found = answered("fixed", precision="int8", calibration=TEXTS)
    assert file.stat().st_size < 0.6 * exact.stat().st_size
    np.testing.assert_allclose(found, expected, atol=5e-2)


@pytest.mark.end_to_end
def test_products_compute_in_int8_within_the_ranges_of_the_texts(answered):
    file, _ = answered("fixed", precision="int8", calibration=TEXTS)
    other, _ = answered("other", precision="int8", calibration=["fish"])
    inputs = _inputs_of_products(file)
    assert {each["dtype"] for each in inputs} == {np.int8}
    scales = [each["quantization"][0] for each in inputs]
    assert scales != [each["quantization"][0] for each in _inputs_of_products(other)]


def _inputs_of_products(file):
    interpreter = bert_tf.load(file).network.interpreter
    details = {each["index"]: each for each in interpreter.get_tensor_details()}
    return [
        details[each["inputs"][0]]
        for each in interpreter._get_ops_details()
        if each["op_name"] == "FULLY_CONNECTED"
    ]
