"""Exports as layers of Keras 3, which returns their strings."""

import keras
import numpy as np
import tensorflow as tf

TEXTS = ["the cat sat .", "", "a dog " * 30]


def test_one_text_goes_in_and_strings_come_out(exported, loaded, loads_once):
    text = keras.Input([], dtype="string")
    layer = keras.layers.TFSMLayer(exported("classification"), call_endpoint="serve")
    model = keras.Model(text, layer(text))
    found = model.predict(tf.constant(TEXTS), verbose=0)
    answers = loaded("classification").signatures["serving_default"](text=tf.constant(TEXTS))
    assert found["label"].tolist() == answers["label"].numpy().tolist()
    np.testing.assert_allclose(found["probabilities"], answers["probabilities"], atol=1e-6)


def test_several_texts_go_in_under_their_names(exported, loaded, loads_once):
    texts = {name: keras.Input([], dtype="string", name=name) for name in ("text_a", "text_b")}
    layer = keras.layers.TFSMLayer(exported("nsp"), call_endpoint="serve")
    model = keras.Model(texts, layer(texts))
    request = {"text_a": tf.constant(TEXTS), "text_b": tf.constant(TEXTS[::-1])}
    answers = loaded("nsp").signatures["serving_default"](**request)
    found = model.predict(request, verbose=0)
    np.testing.assert_allclose(found["is_next"], answers["is_next"], atol=1e-6)
