"""Losses of vectors, with which an embedder learns from pairs, scores, labels, or another model.

Each takes the vectors of a whole batch, since most of them compare a row with the others. The
arithmetic is that of sentence-transformers 6.2.0 (`sentence_transformer/losses`).
"""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, Literal

import keras
import numpy as np
import tensorflow as tf

from bert_tf.errors import UserError
from bert_tf.tasks.embedding.pooling import normalized

# The targets of rows, in addition to their texts: nothing, a number, a class, or a vector.
Form = Literal["texts", "scores", "labels", "vectors"]


class EmbeddingLoss(keras.losses.Loss):
    """A loss of the vectors of a whole batch.

    `call(y_true, y_pred)` takes float32 vectors [batch, texts, width], those of the texts of each
    row, and gives a scalar. What `y_true` is depends on `takes`:

    * "texts": int [batch, texts], the same number for the same text.
    * "scores": float [batch], how similar the two texts of a row are.
    * "labels": int [batch], the class of the row's texts.
    * "vectors": float [batch, width], the vector of a teacher.
    """

    takes: Form
    # Whether the negatives of a row are the texts of the other rows.
    in_batch: bool = False
    # The name of the loss in configurations, and the arguments of its constructor.
    short_name: ClassVar[str]
    options: ClassVar[tuple[str, ...]] = ()

    def __init__(self, name: str | None = None):
        super().__init__(name=name or self.short_name)

    def check(self, targets: np.ndarray) -> None:
        """Raises UserError if a target, [rows, ...], does not suit the loss."""

    def check_width(self, width: int) -> None:
        """Raises UserError if the loss cannot take vectors of this width."""

    @abstractmethod
    def call(self, y_true: tf.Tensor, y_pred: tf.Tensor) -> tf.Tensor:
        """The loss of a batch, a scalar; see the class."""

    def get_config(self) -> dict[str, Any]:
        return {"name": self.name} | {each: getattr(self, each) for each in self.options}


@keras.saving.register_keras_serializable("bert_tf")
class MultipleNegativesRanking(EmbeddingLoss):
    """Each anchor has to find its positive among the texts of the batch (InfoNCE).

    A row is an anchor, its positive, and any number of hard negatives. The candidates of each
    anchor are the positives and the hard negatives of all rows: the loss is the cross-entropy of
    `scale` times the cosine (van den Oord et al. 2018; Henderson et al. 2017).

    >>> pairs = tf.constant([[[1.0, 0.0], [1.0, 0.0]], [[0.0, 1.0], [0.0, 1.0]]])
    >>> loss = MultipleNegativesRanking(scale=1.0)
    >>> round(float(loss.call(tf.constant([[0, 1], [2, 3]]), pairs)), 4)  # log(1 + 1 / e)
    0.3133

    A candidate is not a negative of an anchor if it is the same text as the anchor or its positive,
    or the positive of the same anchor in another row. If a batch has no such candidates, the loss
    is that of sentence-transformers.

    Args:
        scale: multiplies the cosines; 1 / temperature.
        symmetric: whether each positive has to find its anchor among all anchors too; the loss is
            then the mean of both.
    """

    takes = "texts"
    in_batch = True
    short_name = "multiple_negatives_ranking"
    options = ("scale", "symmetric")

    def __init__(self, scale: float = 20.0, symmetric: bool = False, name: str | None = None):
        super().__init__(name)
        self.scale = _positive("scale", scale)
        self.symmetric = symmetric

    def call(self, y_true: tf.Tensor, y_pred: tf.Tensor) -> tf.Tensor:
        unit = normalized(y_pred)
        anchors, candidates = unit[:, 0], _by_column(unit[:, 1:])
        cosines = self.scale * tf.matmul(anchors, candidates, transpose_b=True)
        rows = tf.shape(anchors)[0]
        anchor, positive, others = y_true[:, 0], y_true[:, 1], _by_column(y_true[:, 1:])
        hard = tf.shape(others)[0] - rows
        same_anchor, same_positive = _equal(anchor, anchor), _equal(positive, positive)
        hidden = (
            _equal(anchor, others)
            | _equal(positive, others)
            | tf.pad(same_anchor, [[0, 0], [0, hard]])
        )
        loss = _cross_entropy(cosines, hidden)
        if not self.symmetric:
            return loss
        hidden = _equal(positive, anchor) | same_anchor | same_positive
        return (loss + _cross_entropy(tf.transpose(cosines[:, :rows]), hidden)) / 2


@keras.saving.register_keras_serializable("bert_tf")
class CoSENT(EmbeddingLoss):
    """Pairs with higher scores must have higher cosines than pairs with lower scores.

    log(1 + sum exp(scale * (cos_i - cos_j))) over all pairs of rows where the score of i is below
    that of j (Huang et al. 2024, doi 10.1109/TASLP.2024.3402087). Only the order of the scores
    counts.

    >>> pairs = tf.constant([[[1.0, 0.0], [1.0, 0.0]], [[1.0, 0.0], [0.0, 1.0]]])
    >>> loss = CoSENT(scale=1.0)
    >>> round(float(loss.call(tf.constant([1.0, 0.0]), pairs)), 4)  # log(1 + 1 / e)
    0.3133

    Args:
        scale: multiplies the cosines.
    """

    takes = "scores"
    short_name = "cosent"
    options = ("scale",)

    def __init__(self, scale: float = 20.0, name: str | None = None):
        super().__init__(name)
        self.scale = _positive("scale", scale)

    def call(self, y_true: tf.Tensor, y_pred: tf.Tensor) -> tf.Tensor:
        cosines = self.scale * _cosines(y_pred)
        is_lower = y_true[:, None] < y_true[None, :]
        differences = tf.where(is_lower, cosines[:, None] - cosines[None, :], -np.inf)
        # The padded 0 becomes the 1 in the logarithm, since exp(0) = 1.
        return tf.reduce_logsumexp(tf.pad(tf.reshape(differences, [-1]), [[1, 0]]))


@keras.saving.register_keras_serializable("bert_tf")
class CosineRegression(EmbeddingLoss):
    """The mean squared error of the cosine; scores are from -1 to 1 (Reimers and Gurevych 2019).

    >>> pairs = tf.constant([[[1.0, 0.0], [1.0, 0.0]], [[1.0, 0.0], [0.0, 1.0]]])
    >>> float(CosineRegression().call(tf.constant([0.5, 0.0]), pairs))
    0.125
    """

    takes = "scores"
    short_name = "cosine_regression"

    def check(self, targets: np.ndarray) -> None:
        _check_each(targets, np.abs(targets) <= 1, "CosineRegression takes scores from -1 to 1")

    def call(self, y_true: tf.Tensor, y_pred: tf.Tensor) -> tf.Tensor:
        return tf.reduce_mean(tf.square(_cosines(y_pred) - tf.cast(y_true, y_pred.dtype)))


@keras.saving.register_keras_serializable("bert_tf")
class OnlineContrastive(EmbeddingLoss):
    """Pulls the pairs with score 1 together and pushes those with 0 apart, the hard ones only.

    The distance is 1 - cosine. A similar pair is hard if it is farther apart than the closest
    dissimilar pair. A dissimilar pair is hard if it is closer than the farthest similar pair. The
    loss is the sum of distance² over the former and of max(0, margin - distance)² over the latter
    (Hadsell et al. 2006).

    >>> pairs = tf.constant([[[1.0, 0.0], [0.0, 1.0]], [[1.0, 0.0], [1.0, 0.0]]])
    >>> float(OnlineContrastive(margin=0.5).call(tf.constant([1.0, 0.0]), pairs))
    1.25

    Args:
        margin: dissimilar pairs at this distance or farther apart do not count.
    """

    takes = "scores"
    short_name = "online_contrastive"
    options = ("margin",)

    def __init__(self, margin: float = 0.5, name: str | None = None):
        super().__init__(name)
        self.margin = _positive("margin", margin)

    def check(self, targets: np.ndarray) -> None:
        _check_each(
            targets, (targets == 0) | (targets == 1), "OnlineContrastive takes the scores 0 and 1"
        )

    def call(self, y_true: tf.Tensor, y_pred: tf.Tensor) -> tf.Tensor:
        distances = 1 - _cosines(y_pred)
        similar, dissimilar = y_true == 1, y_true == 0
        mean = tf.reduce_mean(distances)
        farthest = tf.reduce_max(tf.where(similar, distances, -np.inf))
        closest = tf.reduce_min(tf.where(dissimilar, distances, np.inf))
        # If there are no pairs of the other kind, pairs beyond the mean distance are hard.
        farthest = tf.where(tf.reduce_any(similar), farthest, mean)
        closest = tf.where(tf.reduce_any(dissimilar), closest, mean)
        pull = tf.where(similar & (distances > closest), distances, 0)
        push = tf.where(dissimilar & (distances < farthest), self.margin - distances, 0)
        return tf.reduce_sum(tf.square(pull)) + tf.reduce_sum(tf.square(tf.nn.relu(push)))


@keras.saving.register_keras_serializable("bert_tf")
class BatchAllTriplet(EmbeddingLoss):
    """Texts of one class have to be closer to each other than to those of other classes.

    The mean of max(0, distance to a text of the class - distance to one of another class + margin)
    over all such triplets of the batch for which it is not 0; the distance is Euclidean (Hermans
    et al. 2017, "batch all").

    >>> texts = tf.constant([[[0.0, 0.0]], [[0.0, 3.0]], [[4.0, 0.0]]])
    >>> float(BatchAllTriplet(margin=2.0).call(tf.constant([0, 0, 1]), texts))  # 3 - 4 + 2
    1.0

    Args:
        margin: how much closer texts of one class have to be.
    """

    takes = "labels"
    short_name = "batch_all_triplet"
    options = ("margin",)

    def __init__(self, margin: float = 5.0, name: str | None = None):
        super().__init__(name)
        self.margin = _positive("margin", margin)

    def call(self, y_true: tf.Tensor, y_pred: tf.Tensor) -> tf.Tensor:
        shape = tf.shape(y_pred)
        labels = tf.repeat(y_true, shape[1])
        distances = _distances(tf.reshape(y_pred, [-1, y_pred.shape[2]]))
        same = _equal(labels, labels)
        # Each text with each other of its class: [pairs, 2].
        pairs = tf.where(same & ~tf.eye(shape[0] * shape[1], dtype=tf.bool))
        to_positive = tf.gather_nd(distances, pairs)
        from_anchor = tf.gather(distances, pairs[:, 0])
        losses = tf.nn.relu(to_positive[:, None] - from_anchor + self.margin)
        losses = tf.where(tf.gather(~same, pairs[:, 0]), losses, 0)
        count = tf.math.count_nonzero(losses, dtype=losses.dtype)
        return tf.math.divide_no_nan(tf.reduce_sum(losses), count)


@keras.saving.register_keras_serializable("bert_tf")
class Distillation(EmbeddingLoss):
    """The mean squared error to the vectors of a teacher (Reimers and Gurevych 2020).

    >>> float(Distillation().call(tf.constant([[1.0, 2.0]]), tf.constant([[[1.0, 0.0]]])))
    2.0
    """

    takes = "vectors"
    short_name = "distillation"

    def call(self, y_true: tf.Tensor, y_pred: tf.Tensor) -> tf.Tensor:
        return tf.reduce_mean(tf.square(y_pred - tf.cast(y_true[:, None], y_pred.dtype)))


@keras.saving.register_keras_serializable("bert_tf")
class Matryoshka(EmbeddingLoss):
    """Another loss on the first numbers of each vector, so that vectors cut to `dims` are useful.

    The sum of weight * loss over `dims`. Cut vectors are normalized again to length 1, and the
    teacher's vectors are cut likewise (Kusupati et al. 2022).

    >>> pairs = tf.constant([[[1.0, 0.0], [1.0, 1.0]]])
    >>> loss = Matryoshka(CosineRegression(), dims=[2, 1])  # the cosines are 0.71 and 1
    >>> round(float(loss.call(tf.constant([1.0]), pairs)), 4)
    0.0858

    Args:
        loss: any other loss of this module.
        dims: widths, at most that of the vectors, which should be among them.
        weights: the weight of each width; None is 1.

    Raises:
        UserError: no or wrong dims, or not one weight for each of them.
    """

    short_name = "matryoshka"

    def __init__(
        self,
        loss: EmbeddingLoss,
        dims: Sequence[int],
        weights: Sequence[float] | None = None,
        name: str | None = None,
    ):
        super().__init__(name)
        if not isinstance(loss, EmbeddingLoss):
            raise UserError(f"Matryoshka wraps another bert_tf loss, not {loss!r}")
        self.loss, self.takes, self.in_batch = loss, loss.takes, loss.in_batch
        self.dims = tuple(dims)
        self.weights = (1.0,) * len(self.dims) if weights is None else tuple(weights)
        if not self.dims or not all(isinstance(dim, int) and dim > 0 for dim in self.dims):
            raise UserError(f"Matryoshka's dims must be whole numbers above 0, not {list(dims)}")
        if len(self.weights) != len(self.dims):
            raise UserError(
                f"Matryoshka has {len(self.dims)} dims, but {len(self.weights)} weights; give one "
                "for each"
            )

    def check(self, targets: np.ndarray) -> None:
        self.loss.check(targets)

    def check_width(self, width: int) -> None:
        self.loss.check_width(width)
        if max(self.dims) > width:
            raise UserError(
                f"Matryoshka's dims contain {max(self.dims)}, but the vectors have only {width} "
                "dimensions; remove it"
            )

    def call(self, y_true: tf.Tensor, y_pred: tf.Tensor) -> tf.Tensor:
        total = tf.zeros([], y_pred.dtype)
        for dim, weight in zip(self.dims, self.weights, strict=True):
            targets = y_true[:, :dim] if self.takes == "vectors" else y_true
            total += weight * self.loss.call(targets, normalized(y_pred[:, :, :dim]))
        return total

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | {
            "loss": keras.saving.serialize_keras_object(self.loss),
            "dims": list(self.dims),
            "weights": list(self.weights),
        }

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> "Matryoshka":
        return cls(**config | {"loss": keras.saving.deserialize_keras_object(config["loss"])})


LOSSES: dict[str, type[EmbeddingLoss]] = {
    each.short_name: each
    for each in (
        MultipleNegativesRanking,
        CoSENT,
        CosineRegression,
        OnlineContrastive,
        BatchAllTriplet,
    )
}


# The loss of rows of each form, unless another is given.
DEFAULTS: dict[Form, type[EmbeddingLoss]] = {
    "texts": MultipleNegativesRanking,
    "scores": CoSENT,
    "labels": BatchAllTriplet,
    "vectors": Distillation,
}
_IN_WORDS: dict[Form, str] = {
    "texts": "texts, or anchors with their positives, without targets",
    "scores": "pairs with scores",
    "labels": "texts with labels",
    "vectors": "texts with the vectors of a teacher",
}


def check_form(loss: EmbeddingLoss, form: Form) -> None:
    """Raises UserError if a loss takes data of another form."""
    if loss.takes != form:
        raise UserError(
            f"the loss {type(loss).__name__} takes {_IN_WORDS[loss.takes]}, but the data are "
            f"{_IN_WORDS[form]}; choose another, such as {DEFAULTS[form].__name__}"
        )


def check_batch(loss: EmbeddingLoss, batch_size: int | None, texts: int) -> None:
    """Raises UserError if a batch of a known size has no negatives; a row has `texts` texts."""
    if loss.in_batch and batch_size == 1 and texts == 2:
        raise UserError(
            f"{type(loss).__name__} takes the negatives of a pair from the other rows of its "
            "batch, but a batch has 1 row; give batches of 2 rows or more"
        )


def _cosines(vectors: tf.Tensor) -> tf.Tensor:
    """[batch, 2, width] -> [batch]: the cosine of both texts of each row."""
    unit = normalized(vectors)
    return tf.reduce_sum(unit[:, 0] * unit[:, 1], axis=1)


def _by_column(values: tf.Tensor) -> tf.Tensor:
    """[batch, texts, ...] -> [texts * batch, ...]: all first texts, then all second ones, …"""
    turned = tf.experimental.numpy.swapaxes(values, 0, 1)
    return tf.reshape(turned, tf.concat([[-1], tf.shape(values)[2:]], axis=0))


def _equal(a: tf.Tensor, b: tf.Tensor) -> tf.Tensor:
    """bool [n, m]: which entries of [n] equal which of [m]."""
    return a[:, None] == b[None, :]


def _cross_entropy(scores: tf.Tensor, hidden: tf.Tensor) -> tf.Tensor:
    """The mean cross-entropy of scores [rows, candidates], where candidate i is right in row i. A
    hidden candidate, bool [rows, candidates], does not count, unless it is the right one.
    """
    rows, candidates = tf.unstack(tf.shape(scores))
    right = tf.eye(rows, candidates, dtype=tf.bool)
    scores = tf.where(right | ~hidden, scores, -np.inf)
    return tf.reduce_mean(tf.reduce_logsumexp(scores, axis=1) - tf.linalg.diag_part(scores))


def _distances(vectors: tf.Tensor) -> tf.Tensor:
    """[n, n]: the Euclidean distances of vectors [n, width]; its gradient is 0 where it is 0."""
    products = tf.matmul(vectors, vectors, transpose_b=True)
    squares = tf.linalg.diag_part(products)
    squared = squares[:, None] - 2 * products + squares[None, :]
    apart = squared > 0
    return tf.where(apart, tf.sqrt(tf.where(apart, squared, 1)), 0)


def _positive(name: str, value: float) -> float:
    if not value > 0:
        raise UserError(f"the {name} of a loss must be above 0, not {value}")
    return float(value)


def _check_each(targets: np.ndarray, is_right: np.ndarray, what: str) -> None:
    wrong = np.flatnonzero(~is_right)
    if len(wrong):
        raise UserError(
            f"{what}, but score {wrong[0]} is {targets[wrong[0]]:g}; rescale the scores"
        )
