"""The plane of the principal components, and the vectors that are seen in it."""

import keras
import numpy as np

from bert_tf.data.batching import EncodedRows
from bert_tf.encoder.encoder import Encoder
from bert_tf.interpret.projection import mean, plane_of, pooled, row_vectors
from tests import tiny


def test_a_line_in_space_has_one_component():
    steps = np.array([-2.0, -1.0, 0.0, 3.0])  # their mean is 0
    plane = plane_of(5 + steps[:, None] * np.array([0.6, 0.0, 0.8]))
    np.testing.assert_allclose(plane.explained_variance_ratio_, [1, 0], atol=1e-12)
    np.testing.assert_allclose(plane.transform(np.array([[5.6, 5, 5.8], [5, 5, 5]]))[:, 0], [1, 0])


def test_what_lies_in_a_plane_keeps_its_distances():
    random = np.random.RandomState(0)
    flat = random.normal(size=(20, 2))
    directions, _ = np.linalg.qr(random.normal(size=(5, 2)))
    vectors = flat @ directions.T + random.normal(size=5)
    plane = plane_of(vectors)
    seen = plane.transform(vectors)
    np.testing.assert_allclose(
        np.linalg.norm(seen[:, None] - seen, axis=-1),
        np.linalg.norm(flat[:, None] - flat, axis=-1),
        atol=1e-12,
    )
    np.testing.assert_allclose(plane.explained_variance_ratio_.sum(), 1)
    np.testing.assert_allclose(seen.mean(axis=0), 0, atol=1e-12)
    assert seen.var(axis=0)[0] >= seen.var(axis=0)[1]


def test_equal_vectors_are_one_point():
    vectors = np.ones([3, 4])
    assert not plane_of(vectors).transform(vectors).any()


def test_a_vector_does_not_depend_on_the_batch():
    keras.utils.set_random_seed(0)
    encoder = Encoder(tiny.encoder_config())
    lengths = np.array([3, 6, 4, 5, 3])
    starts = np.cumsum([0, *lengths])
    ids = np.random.RandomState(0).randint(5, 20, starts[-1]).astype(np.int32)
    rows = EncodedRows(ids, np.zeros_like(ids), starts)
    vectors = row_vectors(encoder, mean, rows.take, lengths, batch_size=2)
    heads = row_vectors(encoder, pooled, rows.take, lengths, batch_size=2)
    for row in range(5):
        alone = encoder(rows.take(np.array([row])))
        expected = alone["sequence_output"][0].numpy().mean(axis=0)
        np.testing.assert_allclose(vectors[row], expected, atol=1e-5)
        np.testing.assert_allclose(heads[row], alone["pooled_output"][0], atol=1e-5)
