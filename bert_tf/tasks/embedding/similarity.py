"""How similar two vectors are: the similarity functions of sentence-transformers.

The numbers are those of sentence-transformers 6.2.0, `util/similarity.py`, except that a cosine is
never beyond -1 or 1.
"""

import tensorflow as tf

from bert_tf.tasks.embedding.pooling import normalized
from bert_tf.text.parts import first_equal


def pairwise(name: str, a: tf.Tensor, b: tf.Tensor) -> tf.Tensor:
    """The similarity, float32 [...], of vectors [..., width]. Distances are negative; the cosine of
    a vector of zeros is 0.
    """
    if name == "cosine":
        return tf.clip_by_value(tf.reduce_sum(normalized(a) * normalized(b), axis=-1), -1.0, 1.0)
    if name == "dot":
        return tf.reduce_sum(a * b, axis=-1)
    return -tf.norm(a - b, ord="euclidean" if name == "euclidean" else 1, axis=-1)


def of_all(name: str, a: tf.Tensor, b: tf.Tensor) -> tf.Tensor:
    """The similarity [n, m] of all vectors `a` [n, width] with all vectors `b` [m, width]. Equal
    vectors have equal rows and columns.
    """
    if name == "cosine":
        product = tf.matmul(normalized(a), normalized(b), transpose_b=True)
        found = tf.clip_by_value(product, -1.0, 1.0)
    elif name == "dot":
        found = tf.matmul(a, b, transpose_b=True)
    else:
        # One row at a time: [n, m, width] would not fit into memory.
        found = tf.map_fn(lambda vector: pairwise(name, vector[tf.newaxis], b), a)
    rows, columns = first_equal(a), first_equal(b)

    def alike() -> tf.Tensor:
        return tf.gather(tf.gather(found, rows), columns, axis=1)

    # A matrix product computes its last columns in another way than the others.
    is_distinct = tf.reduce_all(rows == tf.range(tf.size(rows)))
    is_distinct &= tf.reduce_all(columns == tf.range(tf.size(columns)))
    return tf.cond(is_distinct, lambda: found, alike)
