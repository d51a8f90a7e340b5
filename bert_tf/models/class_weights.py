"""Classes that count more than others in a classifier's loss."""

from collections.abc import Mapping, Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from bert_tf.errors import UserError


def class_weights(
    setting: str | Mapping[str, float], labels: Sequence[str], counts: np.ndarray
) -> tuple[float, ...]:
    """The weight of each class, such that rows weigh 1 on average.

    The loss is then still a mean over rows, and its gradient as large as without weights.

    Args:
        setting: "balanced", which gives every class the same total weight, or weights for some
            labels; other labels have weight 1.
        labels: names of the classes.
        counts: int [classes], rows of each in the training data.

    Raises:
        UserError: a weight is given for a name that is not a label.
    """
    if isinstance(setting, str):
        weights = 1 / np.maximum(counts, 1)
    else:
        for name in setting:
            if name not in labels:
                raise UserError(
                    f"data.class_weights has {name!r}, which is not a label; the labels are "
                    f"{', '.join(labels)}"
                )
        weights = np.array([setting.get(name, 1.0) for name in labels])
    return tuple((weights * counts.sum() / (weights * counts).sum()).tolist())


@keras.saving.register_keras_serializable("bert_tf")
class WeightedCrossEntropy(keras.losses.Loss):
    """The mean over rows of cross-entropy times the weight of the row's class.

    Args:
        weights: the weight of each class; see `class_weights`.
    """

    def __init__(
        self, weights: Sequence[float], name: str = "weighted_cross_entropy", **kwargs: Any
    ):
        super().__init__(name=name, **kwargs)
        self._weights = tuple(weights)

    def call(self, y_true: tf.Tensor, y_pred: tf.Tensor) -> tf.Tensor:
        """int [batch] and float32 logits [batch, classes] -> float32 [batch]."""
        labels = tf.cast(tf.reshape(y_true, [-1]), tf.int32)
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, y_pred)
        return losses * tf.gather(tf.constant(self._weights, losses.dtype), labels)

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | {"weights": self._weights}
