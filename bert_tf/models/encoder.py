"""BERT's encoder (Devlin et al. 2019, section 3) as a Keras model."""

import dataclasses
import os
from collections.abc import Callable, Mapping
from typing import Any, Self

import keras
import tensorflow as tf

from bert_tf.compat import Extensible
from bert_tf.errors import UserError
from bert_tf.layers.attention import attention_bias
from bert_tf.layers.embeddings import Embeddings
from bert_tf.layers.layout import PaddedLayout, TokenLayout, UnpaddedLayout
from bert_tf.layers.linear import Linear
from bert_tf.layers.transformer import TransformerBlock
from bert_tf.models.config import EncoderConfig
from bert_tf.models.frozen import freeze, frozen_layers

INPUTS = ("input_word_ids", "input_mask", "input_type_ids")
LAYOUTS: dict[str, Callable[[tf.Tensor], TokenLayout]] = {
    "padded": PaddedLayout,
    "unpadded": UnpaddedLayout,
}


@dataclasses.dataclass(frozen=True)
class Encoded:
    """Tokens inside the encoder, before they are put back into rows.

    Attributes:
        embeddings: [tokens, hidden] before the first block.
        layers: [tokens, hidden] after each block, the last one last.
        layout: where each token stands in its row.
    """

    embeddings: tf.Tensor
    layers: list[tf.Tensor]
    layout: TokenLayout

    def select(self, positions: tf.Tensor) -> tf.Tensor:
        """Last-layer vectors at int32 [batch, n] -> [batch * n, hidden]."""
        return self.layout.select(self.layers[-1], positions)

    def restore(self, layer: int = -1) -> tf.Tensor:
        """One layer as [batch, seq_len, hidden], zero where the mask is 0."""
        return self.layout.restore(self.layers[layer])


@keras.saving.register_keras_serializable("bert_tf")
class Encoder(Extensible, keras.Model):
    """Token ids -> a vector for each token and one for the sequence.

    Called with a dict of three integer tensors [batch, seq_len]: `input_word_ids`, `input_mask`
    (1 at tokens, 0 at padding) and `input_type_ids` (0 for the first text, 1 for the second).
    Returns a dict, zero wherever the mask is 0:

    - `sequence_output`: [batch, seq_len, hidden], the last block's output;
    - `pooled_output`: [batch, hidden], tanh of a linear map of the first token, or of what has
      read the whole row where not every token has;
    - `encoder_outputs`: list of [batch, seq_len, hidden], one for each block, and one for the
      BiLSTM if there is one.

    `hidden` is `config.output_size`.

    Args:
        config: the sizes.
        layout: "unpadded" leaves padding out of everything but attention; "padded" keeps it, for
            static shapes (XLA, TPU). The numbers are the same but for the draws of dropout.
        with_pooler: whether there is a `pooled_output`.
    """

    def __init__(
        self,
        config: EncoderConfig,
        layout: str = "unpadded",
        with_pooler: bool = True,
        **kwargs: Any,
    ):
        kwargs.setdefault("name", "encoder")
        trainable = kwargs.pop("trainable", True)
        super().__init__(**kwargs)
        if layout not in LAYOUTS:
            raise UserError(f"unknown layout {layout!r}; choose {' or '.join(LAYOUTS)}")
        self.config = config
        self.layout = layout
        # Tokens between the blocks are multiplied by this: see `bert_tf.models.fused_norms`.
        self.residual_scale = 1.0
        # With a GPU present Keras compiles with XLA by itself, and would do so again for every
        # new number of tokens.
        self.supports_jit = layout == "padded"
        policy = {"dtype": self.dtype_policy}
        self.embeddings = Embeddings(
            vocab_size=config.vocab_size,
            hidden_size=config.hidden_size,
            max_position_embeddings=config.max_position_embeddings,
            type_vocab_size=config.type_vocab_size,
            dropout=config.hidden_dropout_prob,
            initializer_range=config.initializer_range,
            layer_norm_eps=config.layer_norm_eps,
            name="embeddings",
            **policy,
        )
        self.blocks = [self._block(index) for index in range(config.num_hidden_layers)]
        self.pooler: Linear | None = None
        self.right_to_left: Encoder | None = None
        self.bilstm: keras.layers.Layer | None = None
        if with_pooler:
            self.pooler = Linear(
                config.output_size, "tanh", config.initializer_range, name="pooler", **policy
            )
        self.build({name: (None, None) for name in INPUTS})
        # Only now are there layers that it can be passed on to.
        self.trainable = trainable

    def _block(self, index: int) -> Any:
        """A new block; a subclass may have another kind."""
        config = self.config
        return TransformerBlock(
            num_heads=config.num_attention_heads,
            intermediate_size=config.intermediate_size,
            activation=config.hidden_act,
            dropout=config.hidden_dropout_prob,
            attention_dropout=config.attention_probs_dropout_prob,
            initializer_range=config.initializer_range,
            layer_norm_eps=config.layer_norm_eps,
            name=f"layer_{index}",
            dtype=self.dtype_policy,
        )

    def build(self, input_shape: Mapping[str, tuple[int | None, int | None]]) -> None:
        """Creates all weights; their shapes depend on the configuration alone."""
        config = self.config
        self.embeddings.build((None,))
        for block in self.blocks:
            block.build((None, config.hidden_size))
        # These two are made here, so that their weights are named after this encoder.
        if config.attention == "side_by_side":
            other = dataclasses.replace(config, attention="right_to_left", bilstm=False)
            self.right_to_left = Encoder(
                other, self.layout, False, name="right_to_left", dtype=self.dtype_policy
            )
        if config.bilstm:
            units, policy = config.output_size // 2, {"dtype": self.dtype_policy}
            lstm = keras.layers.LSTM(units, return_sequences=True, name="lstm", **policy)
            self.bilstm = keras.layers.Bidirectional(lstm, name="bilstm", **policy)
            self.bilstm.build((None, None, config.output_size))
        if self.pooler is not None:
            self.pooler.build((None, config.output_size))
        self.built = True

    def __call__(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        """Keras's; see `call`."""
        return super().__call__(ids_of(inputs), *args, **kwargs)

    def export(self, *args: Any, **kwargs: Any) -> None:
        """Raises UserError: a SavedModel of an encoder is made of its checkpoint."""
        raise UserError(
            "export a checkpoint of the encoder with bert-tf export CHECKPOINT --out DIR --kind "
            "embedding (strings to vectors) or --kind hub (preprocessor and encoder for TF Hub)"
        )

    @property
    def output_shape(self) -> tuple[int | None, ...]:
        """The shape of `sequence_output`, which `summary` shows where the encoder is a layer."""
        return (None, None, self.config.output_size)

    def call(self, inputs: Mapping[str, tf.Tensor], training: bool = False) -> dict[str, Any]:
        """See the class."""
        encoded = self.encode(inputs, training=training)
        encoder_outputs = [encoded.restore(index) for index in range(len(encoded.layers))]
        outputs = {"sequence_output": encoder_outputs[-1], "encoder_outputs": encoder_outputs}
        if self.pooler is not None:
            mask = inputs["input_mask"]
            outputs["pooled_output"] = self.pool(encoded.select(self.pooled_places(mask)), mask)
        return outputs

    def encode(self, inputs: Mapping[str, tf.Tensor], training: bool = False) -> Encoded:
        """What `call` computes, left flat for a head that needs only some of the tokens."""
        layout, embeddings, bias = self._enter(inputs, training)
        tokens, layers = embeddings, []
        for block in self.blocks:
            tokens = block(tokens, layout=layout, bias=bias, training=training)
            layers.append(tokens)
        if self.residual_scale != 1.0:
            embeddings /= self.residual_scale
            layers[:-1] = [layer / self.residual_scale for layer in layers[:-1]]
        if self.right_to_left is not None:
            other = self.right_to_left.encode(inputs, training=training)
            embeddings = tf.concat([embeddings, other.embeddings], axis=-1)
            layers = [tf.concat(pair, axis=-1) for pair in zip(layers, other.layers, strict=True)]
        if self.bilstm is not None:
            rows = layout.restore(layers[-1])
            mask = tf.not_equal(inputs["input_mask"], 0)
            layers.append(layout.flatten(self.bilstm(rows, mask=mask, training=training)))
        return Encoded(embeddings, layers, layout)

    def encode_at(
        self, inputs: Mapping[str, tf.Tensor], positions: tf.Tensor, training: bool = False
    ) -> tf.Tensor:
        """The last layer at some tokens, and of the last block nothing else.

        Args:
            inputs: as for `call`.
            positions: int32 [batch, n].
            training: whether dropout acts.

        Returns:
            [batch * n, hidden], zero where the mask is 0: `encode(inputs).select(positions)`.
        """
        if self.bilstm is not None:  # it reads every token
            return self.encode(inputs, training=training).select(positions)
        layout, tokens, bias = self._enter(inputs, training)
        *blocks, last = self.blocks
        for block in blocks:
            tokens = block(tokens, layout=layout, bias=bias, training=training)
        bias = attention_bias(layout.key_mask, self._direction, positions)
        found = last(tokens, layout=layout, bias=bias, training=training, positions=positions)
        real = layout.is_real(positions)[:, tf.newaxis]
        found = tf.where(real, found, tf.zeros([], found.dtype))
        if self.right_to_left is None:
            return found
        other = self.right_to_left.encode_at(inputs, positions, training=training)
        return tf.concat([found, other], axis=-1)

    def pooled(self, inputs: Mapping[str, tf.Tensor], training: bool = False) -> tf.Tensor:
        """The `pooled_output` of `call` alone: [batch, hidden]."""
        mask = inputs["input_mask"]
        places = self.pooled_places(mask)
        return self.pool(self.encode_at(inputs, places, training=training), mask)

    def pooled_places(self, input_mask: tf.Tensor) -> tf.Tensor:
        """int32 [batch, 1 or 2]: the tokens that have read the whole of each row between them.

        That is the first one, as in the paper, unless it could see nothing but itself: going from
        left to right it is the last one, and where there are both ways, the last and the first.
        """
        first = tf.zeros([tf.shape(input_mask)[0], 1], tf.int32)
        if self._has_two_ways():
            return tf.concat([_last_places(input_mask), first], axis=1)
        return _last_places(input_mask) if self.config.attention == "left_to_right" else first

    def pool(self, tokens: tf.Tensor, input_mask: tf.Tensor) -> tf.Tensor:
        """[batch, hidden] from the last layer at `pooled_places`; 0 where a row's start is masked.

        Args:
            tokens: [batch * (1 or 2), hidden]; of two tokens each gives the half that went its way.
            input_mask: int [batch, seq_len].
        """
        if self.pooler is None:
            raise UserError("the encoder has no pooler; make it with with_pooler=True")
        if self._has_two_ways():
            half = self.config.output_size // 2
            tokens = tf.concat([tokens[::2, :half], tokens[1::2, half:]], axis=-1)
        pooled = self.pooler(tokens)
        # A batch without rows may come without columns too.
        real = tf.reduce_any(tf.not_equal(input_mask[:, :1], 0), axis=1, keepdims=True)
        return tf.where(real, pooled, tf.zeros([], pooled.dtype))

    @property
    def _direction(self) -> str:
        """Which way this tower's attention goes."""
        return "left_to_right" if self.right_to_left is not None else self.config.attention

    def _enter(
        self, inputs: Mapping[str, tf.Tensor], training: bool
    ) -> tuple[TokenLayout, tf.Tensor, tf.Tensor]:
        """What the first block is given: the layout, [tokens, hidden], and `attention_bias`."""
        word_ids, mask, type_ids = (tf.cast(inputs[name], tf.int32) for name in INPUTS)
        self._check_length(word_ids)
        layout = LAYOUTS[self.layout](mask)
        positions = tf.broadcast_to(tf.range(tf.shape(word_ids)[1]), tf.shape(word_ids))
        tokens = self.embeddings(
            layout.flatten(word_ids),
            layout.flatten(positions),
            layout.flatten(type_ids),
            training=training,
        )
        # This gives TensorFlow's optimizer one number of tokens. The sum of three embeddings has an
        # unknown one for each of them, and the optimizer would not fuse the first LayerNorm.
        tokens = tf.reshape(tokens, [-1, self.config.hidden_size])
        return layout, tokens, attention_bias(layout.key_mask, self._direction)

    def _has_two_ways(self) -> bool:
        """Whether half of each vector has been read from the left, and half from the right."""
        return self.bilstm is not None or self.right_to_left is not None

    def _check_length(self, word_ids: tf.Tensor) -> None:
        """Raises UserError when these are no rows, or rows longer than there are positions."""
        if word_ids.shape.rank not in (None, 2):
            raise UserError(
                f"input_word_ids must be [batch, seq_len], not of shape {word_ids.shape}"
            )
        length, longest = word_ids.shape[1], self.config.max_position_embeddings
        if length is not None and length > longest:
            raise UserError(
                f"sequences of {length} tokens do not fit {longest} positions; "
                f"lower max_length to {longest} or raise max_position_embeddings"
            )

    @classmethod
    def from_checkpoint(cls, path: str | os.PathLike, **options: Any) -> Self:
        """The encoder of a checkpoint; says on standard error what was loaded.

        Args:
            path: a run folder, or a checkpoint of bert_tf, Hugging Face, google-research, Model
                Garden or TF Hub, or "hf://org/name"; the format is detected.
            **options: as for the constructor, such as layout or dtype.

        Raises:
            UserError: there is no checkpoint at `path`, or it is damaged.
        """
        # The formats build on the models, so that they can only be imported here.
        from bert_tf.checkpoints import reading
        from bert_tf.console import logger

        checkpoint = reading.find(path)
        encoder = cls(checkpoint.encoder, **options)
        logger.info(f"{path}: {checkpoint.fill(encoder)}")
        return encoder

    def get_config(self) -> dict[str, Any]:
        """Plain data from which `from_config` builds the same encoder."""
        return super().get_config() | {
            "config": self.config.to_dict(),
            "layout": self.layout,
            "with_pooler": self.pooler is not None,
            "frozen": frozen_layers(self),
        }

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: Any = None) -> Self:
        """The encoder that `get_config` described, with new weights."""
        fields = dict(config)
        frozen = fields.pop("frozen", ())
        encoder = cls(EncoderConfig(**fields.pop("config")), **fields)
        freeze(encoder, frozen)
        return encoder


def ids_of(inputs: Any) -> dict[str, Any]:
    """The inputs of a model as whole numbers.

    Keras would round ids that come as floating-point numbers to the precision that it computes in.

    Raises:
        UserError: they are no dict, or one of `INPUTS` is missing.
    """
    if not isinstance(inputs, Mapping):
        raise UserError(
            f"a model takes a dict of {', '.join(INPUTS)}, as a Preprocessor gives it, not a "
            f"{type(inputs).__name__}"
        )
    missing = [name for name in INPUTS if name not in inputs]
    if missing:
        raise UserError(f"there is no {missing[0]}; a model takes {', '.join(INPUTS)}")
    return {name: _whole(value) for name, value in inputs.items()}


def _whole(value: Any) -> Any:
    kind = keras.backend.standardize_dtype(getattr(value, "dtype", "int32"))
    return value if "int" in kind else keras.ops.cast(value, "int32")


def _last_places(input_mask: tf.Tensor) -> tf.Tensor:
    """int32 [batch, 1]: the last token of each row; 0 where there is none."""
    places = tf.range(tf.shape(input_mask)[1])
    real = tf.where(tf.not_equal(input_mask, 0), places, 0)
    return tf.maximum(tf.reduce_max(real, axis=1, keepdims=True), 0)
