"""Pre-training: masked language model and next sentence prediction (paper, section 3.1)."""

from collections.abc import Mapping
from typing import Any

import keras
import tensorflow as tf

from bert_tf.encoder.encoder import Encoder
from bert_tf.encoder.layers import LayerNorm, Linear
from bert_tf.errors import UserError
from bert_tf.models.weighted_loss import Targets, WeightedModel


@keras.saving.register_keras_serializable("bert_tf")
class MaskedLMHead(keras.layers.Layer):
    """LN(activation(x W + b)) E^T + output_bias, E being the encoder's word embeddings.

    Source: `get_masked_lm_output` in google-research/bert `run_pretraining.py`.
    """

    def __init__(
        self, activation: str, initializer_range: float, layer_norm_eps: float, **kwargs: Any
    ):
        super().__init__(**kwargs)
        self._arguments: dict[str, Any] = {
            "activation": activation,
            "initializer_range": initializer_range,
            "layer_norm_eps": layer_norm_eps,
        }
        self.layer_norm = LayerNorm(layer_norm_eps, name="layer_norm", dtype=self.dtype_policy)

    def build(self, tokens_shape: tuple[int | None, int], table_shape: tuple[int, int]) -> None:
        """Creates the weights for tokens [n, hidden] and a table of [vocab_size, width]."""
        vocab_size, width = table_shape
        self.transform = Linear(
            width,
            self._arguments["activation"],
            self._arguments["initializer_range"],
            name="transform",
            dtype=self.dtype_policy,
        )
        self.transform.build(tokens_shape)
        self.layer_norm.build((None, width))
        self.output_bias = self.add_weight(
            name="output_bias", shape=(vocab_size,), initializer="zeros"
        )

    def call(self, tokens: tf.Tensor, table: tf.Tensor, training: bool = False) -> tf.Tensor:
        """Tokens [n, hidden] and table [vocab_size, width] -> float32 logits [n, vocab_size]."""
        tokens = self.layer_norm(self.transform(tokens, training=training))
        scores = tf.matmul(tokens, tf.cast(table, tokens.dtype), transpose_b=True)
        return tf.cast(tf.nn.bias_add(scores, self.output_bias), tf.float32)

    def compute_output_shape(
        self, tokens_shape: tuple[int | None, int], table_shape: tuple[int, int]
    ) -> tuple[int | None, int]:
        return (tokens_shape[0], table_shape[0])

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | self._arguments


@keras.saving.register_keras_serializable("bert_tf")
class PreTrainer(WeightedModel):
    """The encoder with the two heads it is pre-trained with.

    Called with the encoder's inputs and `masked_lm_positions`, integers [batch, predictions];
    returns a dict of float32 logits: `masked_lm` [batch, predictions, vocab_size], computed at
    those positions only, and `next_sentence` [batch, 2] (class 0: the second text follows the
    first). A left-to-right language model (paper, section 5.1) is the same model: its encoder's
    attention is "left_to_right", and every position predicts the token after it.

    The loss is built in; `compile(optimizer)` is enough. `fit` takes (inputs, targets), where
    targets is a dict of `masked_lm_ids` int32 [batch, predictions], `masked_lm_weights` float32
    [batch, predictions] (0 at unused places) and `next_sentence_labels` int32 [batch].

    Args:
        encoder: the encoder.
        next_sentence: whether there is a next sentence head.

    Raises:
        UserError: the encoder has parts that are added only after pre-training.

    >>> import bert_tf
    >>> config = bert_tf.EncoderConfig(
    ...     vocab_size=30, hidden_size=8, num_hidden_layers=2, num_attention_heads=2,
    ...     intermediate_size=16,
    ... )
    >>> model = PreTrainer(bert_tf.Encoder(config))
    >>> ids = tf.constant([[2, 4, 9, 3]])
    >>> inputs = {
    ...     "input_word_ids": ids, "input_mask": tf.ones_like(ids),
    ...     "input_type_ids": tf.zeros_like(ids), "masked_lm_positions": tf.constant([[1]]),
    ... }
    >>> {name: tuple(logits.shape) for name, logits in model(inputs).items()}
    {'masked_lm': (1, 1, 30), 'next_sentence': (1, 2)}
    """

    def __init__(self, encoder: Encoder, next_sentence: bool = True, **kwargs: Any):
        kwargs.setdefault("name", "pretrainer")
        heads = ["masked_lm"] + ["next_sentence"] * next_sentence
        prefixes = {name: f"{name}_" for name in heads}
        head = {"next_sentence": next_sentence}
        super().__init__(encoder, head, prefixes, uses_pooler=next_sentence, **kwargs)
        self.masked_lm = masked_lm_head(encoder)
        self.next_sentence = None
        if next_sentence:
            self.next_sentence = Linear(
                2,
                None,
                encoder.config.initializer_range,
                name="next_sentence",
                dtype=self.dtype_policy,
            )
        self.build()

    def build(self, input_shape: Any = None) -> None:
        config = self.encoder.config
        table = (config.vocab_size, config.embedding_width)
        self.masked_lm.build((None, config.hidden_size), table)
        if self.next_sentence is not None:
            self.next_sentence.build((None, config.hidden_size))
        self.built = True

    def call(self, inputs: Mapping[str, tf.Tensor], training: bool = False) -> dict[str, tf.Tensor]:
        masked = tf.cast(inputs["masked_lm_positions"], tf.int32)
        if self.next_sentence is None:
            tokens = self.encoder.encode_at(inputs, masked, training=training)
            return {"masked_lm": masked_lm_logits(self, tokens, tf.shape(masked), training)}
        # Both heads' tokens at once, so that the last block computes nothing else.
        mask = inputs["input_mask"]
        summary = self.encoder.pooled_positions(mask)
        positions = tf.concat([summary, masked], axis=1)
        tokens = self.encoder.encode_at(inputs, positions, training=training)
        hidden = tokens.shape[-1]
        rows = tf.reshape(tokens, tf.concat([tf.shape(positions), [hidden]], axis=0))
        parts = rows[:, : summary.shape[1]], rows[:, summary.shape[1] :]
        for_pooler, for_masked = (tf.reshape(part, [-1, hidden]) for part in parts)
        pooled = self.encoder.pool(for_pooler, mask)
        return {
            "masked_lm": masked_lm_logits(self, for_masked, tf.shape(masked), training),
            "next_sentence": tf.cast(self.next_sentence(pooled), tf.float32),
        }

    def loss_targets(self, y: Mapping[str, tf.Tensor]) -> dict[str, Targets]:
        """Tokens at the masked positions with their weights; pairs all weigh 1."""
        targets = {"masked_lm": Targets(y["masked_lm_ids"], y["masked_lm_weights"])}
        if self.next_sentence is not None:
            labels = y["next_sentence_labels"]
            targets["next_sentence"] = Targets(labels, tf.ones_like(labels, tf.float32))
        return targets

    def logits(self, y_pred: Mapping[str, tf.Tensor]) -> Mapping[str, tf.Tensor]:
        return y_pred


def masked_lm_head(encoder: Encoder) -> MaskedLMHead:
    """A head of masked language modelling for an encoder, without weights yet."""
    config = encoder.config
    if config.bilstm or config.attention == "side_by_side":
        raise UserError(
            "pre-training supports neither a BiLSTM nor side-by-side encoders; remove "
            "model.bilstm, and pre-train each direction separately"
        )
    of_keras_hub = config.masked_lm_head == "keras_hub"
    return MaskedLMHead(
        "gelu" if of_keras_hub or config.model_type == "electra" else config.hidden_act,
        config.initializer_range,
        1e-5 if of_keras_hub else config.layer_norm_eps,
        name="masked_lm",
        dtype=encoder.dtype_policy,
    )


def masked_lm_logits(model: Any, tokens: tf.Tensor, shape: tf.Tensor, training: bool) -> tf.Tensor:
    """The scores of the vocabulary, float32 [*shape, vocab_size], at tokens of the last layer."""
    table = model.encoder.embeddings.word_embeddings.value
    logits = model.masked_lm(tokens, table, training=training)
    return tf.reshape(logits, tf.concat([shape, [model.encoder.config.vocab_size]], axis=0))
