"""Losses of ranking: how far the scores of each query's passages are from their relevance.

The numbers and gradients are those of the cross-encoder losses of sentence-transformers 6.2.0.
"""

import math
from typing import Any, ClassVar

import keras
import tensorflow as tf

from bert_tf.config.arguments import checked_argument
from bert_tf.errors import UserError
from bert_tf.models.logits import hide_padding

ACTIVATIONS = {"sigmoid": tf.math.sigmoid, "identity": tf.identity}
# The weight of NDCG-Loss2 in NDCG-Loss2++ (sentence-transformers' default).
_MU = 10.0
# The lower limit of the ideal DCG, for a query without a relevant passage.
_LEAST_DCG = 1e-10


class RankingLoss(keras.losses.Loss):
    """A loss that divides a sum over the queries of a whole batch by a count over them. It takes
    the relevance, float32 [queries, passages], NaN where a query has fewer passages, and the logits
    of the same shape.
    """

    # The name of the loss in `fit`.
    short_name: ClassVar[str]
    # Whether the loss compares the passages of a query with each other.
    compares: ClassVar[bool] = False

    def __init__(self, name: str | None = None, **kwargs: Any):
        super().__init__(name=name or self.short_name, **kwargs)

    def sums(self, relevance: tf.Tensor, logits: tf.Tensor) -> tf.Tensor:
        """float32 [queries]: the contribution of each query to the sum."""
        raise NotImplementedError

    def counts(self, relevance: tf.Tensor) -> tf.Tensor:
        """float32 [queries]: each query's count in the divisor, by default its passages."""
        return tf.reduce_sum(tf.cast(_is_there(relevance), tf.float32), axis=1)

    def call(self, y_true: tf.Tensor, y_pred: tf.Tensor) -> tf.Tensor:
        """float32 [queries], the mean of which is the loss."""
        counts = self.counts(y_true)
        queries = tf.cast(tf.size(counts), tf.float32)
        return self.sums(y_true, y_pred) * queries / tf.maximum(tf.reduce_sum(counts), 1.0)


@keras.saving.register_keras_serializable("bert_tf")
class BinaryCrossEntropyLoss(RankingLoss):
    """The mean over passages of cross-entropy, for a relevance from 0 to 1.

    >>> relevance, logits = tf.constant([[1.0, 0.0]]), tf.constant([[0.0, 0.0]])
    >>> round(float(BinaryCrossEntropyLoss()(relevance, logits)), 4)  # the logarithm of 2
    0.6931
    """

    short_name = "binary_cross_entropy"

    def sums(self, relevance: tf.Tensor, logits: tf.Tensor) -> tf.Tensor:
        targets, logits = _without_padding(relevance), _at_passages(relevance, logits)
        losses = tf.nn.sigmoid_cross_entropy_with_logits(targets, logits)
        return tf.reduce_sum(_at_passages(relevance, losses), axis=1)


@keras.saving.register_keras_serializable("bert_tf")
class MeanSquaredErrorLoss(RankingLoss):
    """The mean over passages of the squared error, for example of the scores of a teacher.

    >>> relevance, logits = tf.constant([[3.0], [-1.0]]), tf.constant([[1.0], [-1.0]])
    >>> float(MeanSquaredErrorLoss()(relevance, logits))
    2.0

    Args:
        activation: the function from logits to the scores that are compared: "identity", for a
            teacher's logits, or "sigmoid", for its probabilities.
        name: as in Keras.
        **kwargs: as in Keras.

    Raises:
        UserError: an unknown activation.
    """

    short_name = "mean_squared_error"

    def __init__(self, activation: str = "identity", name: str | None = None, **kwargs: Any):
        super().__init__(name, **kwargs)
        self.activation = checked_argument("activation", activation)

    def sums(self, relevance: tf.Tensor, logits: tf.Tensor) -> tf.Tensor:
        scores = ACTIVATIONS[self.activation](_at_passages(relevance, logits))
        errors = tf.math.squared_difference(scores, _without_padding(relevance))
        return tf.reduce_sum(_at_passages(relevance, errors), axis=1)

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | {"activation": self.activation}


@keras.saving.register_keras_serializable("bert_tf")
class ListNetLoss(RankingLoss):
    """The mean over queries of the cross-entropy between two distributions over their passages.

    These are the softmax of the relevance and the softmax of the logits (Cao et al. 2007, "Learning
    to rank: from pairwise approach to listwise approach").

    >>> relevance, logits = tf.constant([[2.0, 0.0, float("nan")]]), tf.constant([[2.0, 0.0, 9.0]])
    >>> round(float(ListNetLoss()(relevance, logits)), 4)
    0.3653
    """

    short_name = "list_net"
    compares = True

    def sums(self, relevance: tf.Tensor, logits: tf.Tensor) -> tf.Tensor:
        mask = tf.cast(_is_there(relevance), tf.int32)
        wanted = tf.nn.softmax(hide_padding(_without_padding(relevance), mask))
        return tf.nn.softmax_cross_entropy_with_logits(wanted, hide_padding(logits, mask))

    def counts(self, relevance: tf.Tensor) -> tf.Tensor:
        return tf.ones_like(relevance[:, 0])


@keras.saving.register_keras_serializable("bert_tf")
class LambdaLoss(RankingLoss):
    """A bound of NDCG: the mean over all pairs in which one passage is more relevant.

    The weight of a pair is the change of NDCG by its order, as in NDCG-Loss2++ (Wang et al. 2018,
    "The LambdaLoss framework for ranking metric optimization").

    >>> relevance = tf.constant([[1.0, 0.0]])
    >>> right, wrong = tf.constant([[2.0, -2.0]]), tf.constant([[-2.0, 2.0]])
    >>> [round(float(LambdaLoss()(relevance, logits)), 1) for logits in (right, wrong)]
    [0.1, 23.5]
    """

    short_name = "lambda_loss"
    compares = True

    def sums(self, relevance: tf.Tensor, logits: tf.Tensor) -> tf.Tensor:
        logits = hide_padding(logits, tf.cast(_is_there(relevance), tf.int32))
        order = tf.argsort(logits, direction="DESCENDING", stable=True)
        relevance, logits = (tf.gather(each, order, batch_dims=1) for each in (relevance, logits))
        places = tf.range(tf.shape(relevance)[1])
        discounts = tf.math.log(tf.cast(places, tf.float32) + 2.0) / math.log(2)
        gains = tf.maximum(2.0 ** _without_padding(relevance) - 1.0, 0.0)
        ideal = tf.reduce_sum(tf.sort(gains, direction="DESCENDING") / discounts, axis=1)
        gains /= tf.maximum(ideal, _LEAST_DCG)[:, tf.newaxis]
        # The weight depends on the distance of the places, and on the places themselves.
        distances = tf.abs(places[:, tf.newaxis] - places)
        nearer = tf.gather(1.0 / discounts, tf.maximum(distances - 1, 0))
        by_distance = tf.abs(nearer - tf.gather(1.0 / discounts, distances))
        by_place = tf.abs(_differences(1.0 / discounts))
        weights = tf.abs(_differences(gains)) * (_MU * by_distance + by_place)
        is_pair = _is_pair(relevance)
        # Differences with padding must not have a gradient.
        ahead = tf.where(is_pair, _differences(logits), 0.0)
        losses = -weights * tf.math.log_sigmoid(ahead) / math.log(2)
        return tf.reduce_sum(tf.where(is_pair, losses, 0.0), axis=(1, 2))

    def counts(self, relevance: tf.Tensor) -> tf.Tensor:
        return tf.reduce_sum(tf.cast(_is_pair(relevance), tf.float32), axis=(1, 2))


LOSSES: dict[str, type[RankingLoss]] = {
    each.short_name: each
    for each in (BinaryCrossEntropyLoss, MeanSquaredErrorLoss, ListNetLoss, LambdaLoss)
}


def loss_of(given: Any) -> keras.losses.Loss:
    """The loss of a name; a loss itself is returned as it is."""
    if isinstance(given, str) and given in LOSSES:
        return LOSSES[given]()
    if isinstance(given, keras.losses.Loss):
        return given
    raise UserError(
        f"unknown loss {given!r}; choose one of {', '.join(LOSSES)}, or give a keras.losses.Loss"
    )


def _is_there(relevance: tf.Tensor) -> tf.Tensor:
    """bool, False at padding."""
    return ~tf.math.is_nan(relevance)


def _at_passages(relevance: tf.Tensor, values: tf.Tensor) -> tf.Tensor:
    """Values of the same shape as the relevance, 0 and without a gradient at padding."""
    return tf.where(_is_there(relevance), values, 0.0)


def _without_padding(relevance: tf.Tensor) -> tf.Tensor:
    """The relevance, 0 at padding."""
    return _at_passages(relevance, relevance)


def _is_pair(relevance: tf.Tensor) -> tf.Tensor:
    """bool [queries, passages, passages]: whether the first is more relevant than the second."""
    # A comparison with NaN is False.
    return _differences(relevance) > 0


def _differences(values: tf.Tensor) -> tf.Tensor:
    """[..., n] -> [..., n, n]: each value minus each other."""
    return values[..., :, tf.newaxis] - values[..., tf.newaxis, :]
