"""Losses in which every prediction has a weight, divided by the weights of the global batch.

Masked language modelling and tagging predict only at some places. Their loss is the sum of weighted
losses divided by the sum of weights. Both sums include all replicas and all accumulated parts. In a
mean over replicas, the weight of a prediction would depend on the other ones on its replica.
"""

import inspect
from collections.abc import Mapping
from typing import Any, NamedTuple

import keras
import tensorflow as tf

from bert_tf.encoder.encoder import Encoder
from bert_tf.errors import UserError
from bert_tf.models.encoder_model import EncoderModel
from bert_tf.models.logits import cross_entropy

# Added to the denominator, so that a batch without predictions gives 0; google-research's value.
_EPSILON = 1e-5
_COMPILE_ARGUMENTS = tuple(inspect.signature(keras.Model.compile).parameters)[1:]


class Targets(NamedTuple):
    """The targets of one head."""

    labels: tf.Tensor  # int32 [...]
    weights: tf.Tensor  # float32 [...], 0 where nothing is predicted


class WeightedModel(EncoderModel):
    """A model whose loss and metrics are built in: `compile(optimizer)` is enough.

    Each head's loss is sum(weight * cross-entropy) / (sum(weight) + 1e-5); the losses are added.
    For each head there are two metrics, the mean loss and the accuracy.
    """

    def __init__(
        self,
        encoder: Encoder,
        head: dict[str, Any],
        metric_prefixes: Mapping[str, str],
        **kwargs: Any,
    ):
        super().__init__(encoder, head, **kwargs)
        self._head_losses = {
            name: keras.metrics.Mean(name=f"{prefix}loss")
            for name, prefix in metric_prefixes.items()
            if prefix  # a single head's loss is the model's own
        }
        self._head_accuracies = {
            name: keras.metrics.Mean(name=f"{prefix}accuracy")
            for name, prefix in metric_prefixes.items()
        }

    def compile(self, *args: Any, **kwargs: Any) -> None:
        given = dict(zip(_COMPILE_ARGUMENTS, args, strict=False)) | kwargs
        if any(given.get(name) is not None for name in ("loss", "metrics", "weighted_metrics")):
            raise UserError(
                f"a {type(self).__name__} has its loss and metrics built in; call compile without "
                "a loss and metrics"
            )
        super().compile(*args, **kwargs)

    def loss_targets(self, y: Any) -> Mapping[str, Targets]:
        """The targets of each head, from the targets of `fit`; a subclass implements this."""
        raise NotImplementedError

    def logits(self, y_pred: Any) -> Mapping[str, tf.Tensor]:
        """The float32 logits [..., classes] of each head, from the outputs of `call`; likewise."""
        raise NotImplementedError

    def replica_sums(self, y: Any) -> dict[str, tf.Tensor]:
        return super().replica_sums(y) | {
            name: tf.reduce_sum(target.weights) for name, target in self.loss_targets(y).items()
        }

    def part_loss(
        self, x: Any, y: Any, y_pred: Any, sample_weight: Any, sums: Mapping[str, tf.Tensor]
    ) -> tf.Tensor:
        """The weighted losses of some rows over the weights of the whole batch."""
        logits, heads = self.logits(y_pred), []
        for name, (labels, weights) in self.loss_targets(y).items():
            losses = cross_entropy(labels, logits[name])
            if sample_weight is not None:  # as in Keras, the divisor does not change
                losses *= _for_each(sample_weight, losses)
            if name in self._head_losses:
                self._head_losses[name].update_state(losses, sample_weight=weights)
            heads.append(tf.reduce_sum(weights * losses) / (sums[name] + _EPSILON))
        # Losses that layers have added are weighted by rows.
        share = super().replica_sums(y)["rows"] / sums["rows"]
        return tf.add_n([*heads, *(share * tf.reduce_sum(added) for added in self.losses)])

    def compute_metrics(
        self, x: Any, y: Any, y_pred: Any, sample_weight: None = None
    ) -> dict[str, tf.Tensor]:
        logits = self.logits(y_pred)
        for name, (labels, weights) in self.loss_targets(y).items():
            best = tf.argmax(logits[name], axis=-1, output_type=labels.dtype)
            right = tf.equal(best, labels)
            self._head_accuracies[name].update_state(right, sample_weight=weights)
        return self.get_metrics_result()


def _for_each(sample_weight: tf.Tensor, losses: tf.Tensor) -> tf.Tensor:
    """Weights [batch, ...] with as many axes as the losses [batch, ..., predictions] have."""
    weights = tf.cast(sample_weight, losses.dtype)
    for _ in range(losses.shape.rank - weights.shape.rank):
        weights = weights[..., tf.newaxis]
    return weights
