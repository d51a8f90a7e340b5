"""Exports in several precisions are timed in turns."""

import keras

from benchmarks import int8
from bert_tf.encoder.encoder import Encoder
from bert_tf.export.served_model import Form, ServedModel
from tests import tiny


def test_each_precision_has_rates_and_an_error(monkeypatch):
    monkeypatch.setattr(int8, "_SHAPES", ((2, 8), (1, 5)))
    monkeypatch.setattr(int8, "_ROUNDS", 1)
    keras.utils.set_random_seed(0)
    encoder = Encoder(tiny.encoder_config(hidden_size=16, vocab_size=1100))
    rows = [int8._row(length, encoder.config.vocab_size) for length in range(4, 16)]
    served = {
        "float32": ServedModel(encoder, Form("float32")),
        "int8": ServedModel(encoder, Form("int8", calibration=rows)),
    }
    found = int8._measured(encoder, served, rows, openvino=False)
    assert found.keys() == served.keys()
    for *rates, error in found.values():
        assert len(rates) == 2 and min(map(float, rates)) > 0
        assert error.endswith(" %")
    assert found["float32"][-1] == "0.0 %" != found["int8"][-1]
