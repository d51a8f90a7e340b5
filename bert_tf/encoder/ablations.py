"""The encoders of the paper's ablations (section 5.1), built on the encoder of `encoder.py`.

A left-to-right model, like OpenAI's GPT; a right-to-left model; both side by side, as in ELMo; and
a bidirectional LSTM on top of any of these.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any

import keras
import tensorflow as tf

from bert_tf.encoder.attention import bias_of
from bert_tf.encoder.config import EncoderConfig
from bert_tf.encoder.encoder import Encoded, Encoder, Inputs
from bert_tf.encoder.layout import TokenLayout
from bert_tf.errors import UserError


def encoder_for(config: EncoderConfig, *args: Any, **options: Any) -> Encoder:
    """The encoder that a configuration describes, with the other arguments of `Encoder`."""
    return _class_for(config)(config, *args, **options)


def _class_for(config: EncoderConfig) -> type[Encoder]:
    return BiLSTMEncoder if config.bilstm else _BY_ATTENTION[config.attention]


def one_way_bias(
    key_mask: tf.Tensor, direction: str, positions: tf.Tensor | None = None
) -> tf.Tensor:
    """The bias on attention scores with which a token sees only one of its sides.

    float32 [batch, 1, row_len or n, row_len]. `key_mask` is bool [batch, row_len]; the queries are
    at `positions`, int32 [batch, n], by default all tokens. A token always sees itself.
    """
    keys = tf.range(tf.shape(key_mask)[1])
    queries = keys[tf.newaxis] if positions is None else positions
    queries = queries[:, tf.newaxis, :, tf.newaxis]
    seen = keys <= queries if direction == "left_to_right" else keys >= queries
    return bias_of(tf.logical_and(key_mask[:, tf.newaxis, tf.newaxis, :], seen))


class AblationEncoder(Encoder):
    """The base of the ablations' encoders, which checks their configuration."""

    def _check_class(self, config: EncoderConfig) -> None:
        fitting = _class_for(config)
        if fitting is Encoder or not isinstance(self, fitting):
            raise UserError(
                f"a {type(self).__name__} does not support this configuration; create the encoder "
                "with encoder_for of bert_tf.encoder.ablations"
            )


@keras.saving.register_keras_serializable("bert_tf")
class OneWayEncoder(AblationEncoder):
    """An encoder in which a token sees only one side: `config.attention` is its direction."""

    def attention_bias(self, layout: TokenLayout, positions: tf.Tensor | None = None) -> tf.Tensor:
        return one_way_bias(layout.key_mask, self.config.attention, positions)

    def pooled_positions(self, input_mask: tf.Tensor) -> tf.Tensor:
        """int32 [batch, 1]: the one token that has seen the whole row, unless `pools_first`."""
        if self.config.attention == "left_to_right" and not self.config.pools_first:
            return _last_positions(input_mask)
        return super().pooled_positions(input_mask)


class TwoWayEncoder(AblationEncoder):
    """An encoder that wraps others: half of each vector comes from each reading direction."""

    def _inner(self, name: str, **changes: Any) -> Encoder:
        """An encoder without a pooler, with some fields of the configuration changed."""
        options: dict[str, Any] = {"name": name, "dtype": self.dtype_policy, **self.factories}
        config = dataclasses.replace(self.config, **changes)
        return encoder_for(config, self.layout, with_pooler=False, **options)

    def pooled_positions(self, input_mask: tf.Tensor) -> tf.Tensor:
        """int32 [batch, 2]: the tokens at which each half has read the whole row."""
        last, first = _last_positions(input_mask), super().pooled_positions(input_mask)
        return tf.concat([last, first], axis=1)

    def pool(self, tokens: tf.Tensor, input_mask: tf.Tensor) -> tf.Tensor:
        # `tokens` has two rows for each text. Each row gives the half that has read the whole text.
        half = self.config.output_size // 2
        joined = tf.concat([tokens[::2, :half], tokens[1::2, half:]], axis=-1)
        return super().pool(joined, input_mask)


@keras.saving.register_keras_serializable("bert_tf")
class SideBySideEncoder(TwoWayEncoder):
    """Two encoders, from left to right and from right to left, whose vectors are concatenated."""

    def _make_layers(self) -> None:
        # The left-to-right weights have the names of a single encoder's: "encoder/layer_0/...".
        self.left_to_right = self._inner(self.name, attention="left_to_right")
        with keras.name_scope(self.name):
            self.right_to_left = self._inner("right_to_left", attention="right_to_left")

    def build(self, input_shape: Mapping[str, tuple[int | None, int | None]]) -> None:
        """Creates the pooler's weights; the towers already have theirs."""
        self._build_pooler()

    def encode(
        self, inputs: Inputs, training: bool = False, with_intermediates: bool = False
    ) -> Encoded:
        """The vectors of both towers, concatenated; the intermediates of one, then of the other."""
        towers = self.towers().values()
        left, right = (tower.encode(inputs, training, with_intermediates) for tower in towers)
        return Encoded(
            _joined(left.embeddings, right.embeddings),
            [_joined(*pair) for pair in zip(left.layers, right.layers, strict=True)],
            left.layout,
            left.intermediates + right.intermediates,
        )

    def encode_at(self, inputs: Inputs, positions: tf.Tensor, training: bool = False) -> tf.Tensor:
        towers = self.towers().values()
        return _joined(*(tower.encode_at(inputs, positions, training) for tower in towers))

    def towers(self) -> dict[str, Encoder]:
        return {
            self.name: self.left_to_right,
            f"{self.name}/{self.right_to_left.name}": self.right_to_left,
        }


@keras.saving.register_keras_serializable("bert_tf")
class BiLSTMEncoder(TwoWayEncoder):
    """Another encoder, and a bidirectional LSTM of the same width on its last layer."""

    def _make_layers(self) -> None:
        # The weights below have the same names as without a BiLSTM: "encoder/layer_0/...".
        self.below = self._inner(self.name, bilstm=False)
        units, policy = self.config.output_size // 2, {"dtype": self.dtype_policy}
        lstm = keras.layers.LSTM(units, return_sequences=True, name="lstm", **policy)
        self.bilstm = keras.layers.Bidirectional(lstm, name="bilstm", **policy)

    def build(self, input_shape: Mapping[str, tuple[int | None, int | None]]) -> None:
        """Creates the weights of the LSTM and the pooler; the encoder below has its own."""
        self.bilstm.build((None, None, self.config.output_size))
        self._build_pooler()

    def encode(
        self, inputs: Inputs, training: bool = False, with_intermediates: bool = False
    ) -> Encoded:
        """The layers of the encoder below, and the BiLSTM's."""
        encoded = self.below.encode(inputs, training, with_intermediates)
        mask = tf.not_equal(inputs["input_mask"], 0)
        rows = self.bilstm(encoded.restore(), mask=mask, training=training)
        last = encoded.layout.flatten(rows)
        return dataclasses.replace(encoded, layers=[*encoded.layers, last])

    def encode_at(self, inputs: Inputs, positions: tf.Tensor, training: bool = False) -> tf.Tensor:
        # An LSTM reads every token.
        return self.encode(inputs, training).select(positions)

    def towers(self) -> dict[str, Encoder]:
        return self.below.towers()


_BY_ATTENTION: dict[str, type[Encoder]] = {
    "bidirectional": Encoder,
    "left_to_right": OneWayEncoder,
    "right_to_left": OneWayEncoder,
    "side_by_side": SideBySideEncoder,
}


def _joined(left: tf.Tensor, right: tf.Tensor) -> tf.Tensor:
    return tf.concat([left, right], axis=-1)


def _last_positions(input_mask: tf.Tensor) -> tf.Tensor:
    """int32 [batch, 1]: the last token of each row; 0 if a row has none."""
    positions = tf.range(tf.shape(input_mask)[1])
    real = tf.where(tf.not_equal(input_mask, 0), positions, 0)
    return tf.maximum(tf.reduce_max(real, axis=1, keepdims=True), 0)
