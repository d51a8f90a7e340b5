"""Requests for any signature of texts."""

import tensorflow as tf

TEXTS = ["the cat [MASK] on the mat's log.", "", "dogs ran\N{SNOWMAN} é\0x [MASK]", "a fish, " * 40]


def request(signature) -> dict[str, tf.Tensor]:
    """A batch of four rows for a loaded signature; lists have two texts."""
    inputs = {}
    for name, spec in signature.structured_input_signature[1].items():
        texts = tf.constant(TEXTS)
        inputs[name] = texts if spec.shape.rank == 1 else tf.stack([texts, texts[::-1]], axis=1)
    return inputs
