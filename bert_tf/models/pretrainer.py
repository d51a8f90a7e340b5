"""Pre-training: masked language model and next sentence prediction (paper, section 3.1)."""

from collections.abc import Mapping
from typing import Any

import keras
import tensorflow as tf

from bert_tf.layers.linear import Linear
from bert_tf.layers.masked_lm_head import MaskedLMHead
from bert_tf.models.encoder import Encoder
from bert_tf.models.encoder_model import EncoderModel

# In the denominator of the masked-LM loss, so that a batch without a masked token gives 0.
_EPSILON = 1e-5


@keras.saving.register_keras_serializable("bert_tf")
class PreTrainer(EncoderModel):
    """The encoder with the two heads it is pre-trained with.

    Called with the encoder's inputs and `masked_lm_positions`, int32 [batch, predictions]; returns
    a dict of float32 logits: `masked_lm` [batch, predictions, vocab_size], computed at those
    positions only, and `next_sentence` [batch, 2] (class 0: the second text follows the first).

    The loss is built in; `compile(optimizer)` is enough. `fit` takes (inputs, targets), where
    targets is a dict of `masked_lm_ids` int32 [batch, predictions], `masked_lm_weights` float32
    [batch, predictions] (0 at unused places) and `next_sentence_labels` int32 [batch].

    Args:
        encoder: the encoder.
        next_sentence: whether there is a next sentence head.
    """

    def __init__(self, encoder: Encoder, next_sentence: bool = True, **kwargs: Any):
        kwargs.setdefault("name", "pretrainer")
        super().__init__(encoder, {"next_sentence": next_sentence}, **kwargs)
        config = encoder.config
        policy = {"dtype": self.dtype_policy}
        self.masked_lm = MaskedLMHead(
            config.hidden_act,
            config.initializer_range,
            config.layer_norm_eps,
            name="masked_lm",
            **policy,
        )
        self.next_sentence = None
        if next_sentence:
            self.next_sentence = Linear(
                2, None, config.initializer_range, name="next_sentence", **policy
            )
        self._head_losses = {
            name: keras.metrics.Mean(name=f"{name}_loss") for name in self._head_names()
        }
        self._head_accuracies = {
            name: keras.metrics.Mean(name=f"{name}_accuracy") for name in self._head_names()
        }
        self.build()

    def build(self, input_shape: Any = None) -> None:
        """Creates the heads' weights."""
        config = self.encoder.config
        self.masked_lm.build((config.vocab_size, config.hidden_size))
        if self.next_sentence is not None:
            self.next_sentence.build((None, config.hidden_size))
        self.built = True

    def call(self, inputs: Mapping[str, tf.Tensor], training: bool = False) -> dict[str, tf.Tensor]:
        """See the class."""
        encoded = self.encoder.encode(inputs, training=training)
        positions = tf.cast(inputs["masked_lm_positions"], tf.int32)
        logits = self.masked_lm(
            encoded.select(positions), self.encoder.embeddings.word_embeddings.value
        )
        shape = tf.concat([tf.shape(positions), [self.encoder.config.vocab_size]], 0)
        outputs = {"masked_lm": tf.reshape(logits, shape)}
        if self.next_sentence is not None:
            pooled = self.encoder.pool(encoded, inputs["input_mask"])
            outputs["next_sentence"] = tf.cast(self.next_sentence(pooled), tf.float32)
        return outputs

    def compute_loss(
        self,
        x: Mapping[str, tf.Tensor] | None = None,
        y: Mapping[str, tf.Tensor] | None = None,
        y_pred: Mapping[str, tf.Tensor] | None = None,
        sample_weight: None = None,
        training: bool = True,
    ) -> tf.Tensor:
        """sum(weight * nll) / (sum(weight) + 1e-5) of masked tokens, plus the mean NSP loss."""
        total = tf.constant(0.0)
        for name, (labels, weights) in self._targets(y).items():
            nll = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, y_pred[name])
            denominator = tf.reduce_sum(weights) + (_EPSILON if name == "masked_lm" else 0.0)
            total += tf.reduce_sum(weights * nll) / denominator
        return total

    def compute_metrics(
        self,
        x: Mapping[str, tf.Tensor],
        y: Mapping[str, tf.Tensor],
        y_pred: Mapping[str, tf.Tensor],
        sample_weight: None = None,
    ) -> dict[str, tf.Tensor]:
        """Updates each head's mean loss and accuracy, weighted by its targets."""
        for name, (labels, weights) in self._targets(y).items():
            nll = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, y_pred[name])
            best = tf.argmax(y_pred[name], axis=-1, output_type=labels.dtype)
            self._head_losses[name].update_state(nll, sample_weight=weights)
            self._head_accuracies[name].update_state(tf.equal(best, labels), sample_weight=weights)
        return self.get_metrics_result()

    def _targets(self, y: Mapping[str, tf.Tensor]) -> dict[str, tuple[tf.Tensor, tf.Tensor]]:
        """Labels and float32 weights of each head."""
        targets = {"masked_lm": (y["masked_lm_ids"], y["masked_lm_weights"])}
        if self.next_sentence is not None:
            labels = y["next_sentence_labels"]
            targets["next_sentence"] = (labels, tf.ones_like(labels, tf.float32))
        return targets

    def _head_names(self) -> list[str]:
        return ["masked_lm"] + ["next_sentence"] * (self.next_sentence is not None)
