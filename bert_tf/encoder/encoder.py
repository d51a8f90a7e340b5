"""BERT's encoder (Devlin et al. 2019, section 3): embeddings, blocks and a pooler."""

import dataclasses
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self

import keras
import tensorflow as tf

from bert_tf.checkpoints import reading
from bert_tf.checkpoints.checkpoint import Checkpoint
from bert_tf.checkpoints.growth import with_tokens
from bert_tf.compat import extensible
from bert_tf.console import logger
from bert_tf.encoder.attention import SelfAttention, padding_bias
from bert_tf.encoder.config import POOLERS, EncoderConfig
from bert_tf.encoder.layers import Dropout, LayerNorm, Linear, truncated_normal
from bert_tf.encoder.layout import PaddedLayout, TokenLayout, UnpaddedLayout
from bert_tf.encoder.rematerialized import rematerialized
from bert_tf.encoder.saving import freeze, frozen_layers, registered, registered_name
from bert_tf.errors import UserError

INPUTS = ("input_word_ids", "input_mask", "input_type_ids")
# The tensors of `INPUTS` by name.
Inputs = Mapping[str, tf.Tensor]
# The arguments of an `Encoder` that make its layers.
FACTORIES = ("embeddings", "block")
LAYOUTS: dict[str, type[PaddedLayout]] = {"padded": PaddedLayout, "unpadded": UnpaddedLayout}


@keras.saving.register_keras_serializable("bert_tf")
class Embeddings(keras.layers.Layer):
    """Token ids -> vectors: word + position + segment, normalized, with dropout (paper, figure 2).

    ELECTRA's embeddings are narrower than its blocks, and a linear layer projects them.
    """

    def __init__(self, config: EncoderConfig, **kwargs: Any):
        kwargs.setdefault("name", "embeddings")
        super().__init__(**kwargs)
        self.config = config
        policy = {"dtype": self.dtype_policy}
        self.layer_norm = LayerNorm(config.layer_norm_eps, name="layer_norm", **policy)
        self.dropout = Dropout(config.hidden_dropout_prob, name="dropout", **policy)
        self.projection = None
        if config.embedding_width != config.hidden_size:
            self.projection = Linear(
                config.hidden_size, None, config.initializer_range, name="projection", **policy
            )

    def build(self, input_shape: tuple[int | None, ...]) -> None:
        width = self.config.embedding_width

        def table(name: str, rows: int) -> keras.Variable:
            return self.add_weight(
                name=name,
                shape=(rows, width),
                initializer=truncated_normal(self.config.initializer_range),
                autocast=False,
            )

        self.word_embeddings = table("word_embeddings", self.config.vocab_size)
        self.position_embeddings = table("position_embeddings", self.config.max_position_embeddings)
        self.token_type_embeddings = None
        if self.config.type_vocab_size:
            self.token_type_embeddings = table("token_type_embeddings", self.config.type_vocab_size)
        self.layer_norm.build((None, width))
        if self.projection is not None:
            self.projection.build((None, width))

    def call(
        self, word_ids: tf.Tensor, positions: tf.Tensor, type_ids: tf.Tensor, training: bool = False
    ) -> tf.Tensor:
        """Three int32 [tokens] -> [tokens, hidden]; rows are added up in float32."""
        # The rows are gathered from a tensor. After a gather from the variable itself, TensorFlow
        # would copy the whole table on every other read.
        tables = self.word_embeddings, self.position_embeddings, self.token_type_embeddings
        word, position, *token_type = (
            tf.cast(tf.gather(tf.convert_to_tensor(table), ids), tf.float32)
            for table, ids in zip(tables, (word_ids, positions, type_ids), strict=True)
            if table is not None
        )
        vectors = self.layer_norm(sum(token_type, word + position))
        vectors = self.dropout(vectors, training=training)
        return vectors if self.projection is None else self.projection(vectors)

    def compute_output_shape(self, input_shape: tuple[int | None, ...]) -> tuple[int | None, ...]:
        return (*input_shape, self.config.hidden_size)

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | {"config": self.config.to_dict()}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> "Embeddings":
        return cls(**config | {"config": EncoderConfig(**config["config"])})


@keras.saving.register_keras_serializable("bert_tf")
class TransformerBlock(keras.layers.Layer):
    """LN(x + dropout(attention(x))), then LN(x + dropout(feed_forward(x)))."""

    def __init__(self, config: EncoderConfig, index: int = 0, **kwargs: Any):
        kwargs.setdefault("name", f"layer_{index}")
        super().__init__(autocast=False, **kwargs)  # `bias` stays in float32
        self.config = config
        self.index = index
        policy = {"dtype": self.dtype_policy}
        dropout, epsilon = config.hidden_dropout_prob, config.layer_norm_eps
        deviation = config.initializer_range
        self.attention = SelfAttention(
            config.num_attention_heads,
            config.attention_probs_dropout_prob,
            deviation,
            name="attention",
            **policy,
        )
        self.attention_dropout = Dropout(dropout, name="attention_dropout", **policy)
        self.attention_layer_norm = LayerNorm(epsilon, name="attention_layer_norm", **policy)
        self.intermediate = Linear(
            config.intermediate_size, config.hidden_act, deviation, name="intermediate", **policy
        )
        self.output_projection = Linear(
            config.hidden_size, None, deviation, name="output", **policy
        )
        self.output_dropout = Dropout(dropout, name="output_dropout", **policy)
        self.output_layer_norm = LayerNorm(epsilon, name="output_layer_norm", **policy)

    def build(self, input_shape: tuple[int | None, int]) -> None:
        norms = self.attention_layer_norm, self.output_layer_norm
        for layer in (self.attention, self.intermediate, *norms):
            layer.build((None, input_shape[-1]))
        self.output_projection.build((None, self.config.intermediate_size))

    def call(
        self,
        tokens: tf.Tensor,
        layout: TokenLayout,
        bias: tf.Tensor,
        training: bool = False,
        positions: tf.Tensor | None = None,
    ) -> tuple[tf.Tensor, dict[str, tf.Tensor]]:
        """Arguments and results as of `SelfAttention.call`, including the intermediates."""
        mixed, intermediates = self.attention(
            tokens, layout=layout, bias=bias, training=training, positions=positions
        )
        if positions is not None:
            tokens = layout.select(tokens, positions)
        drawn = self.attention_dropout.draw(tf.shape(mixed), training)
        tokens = self.attention_layer_norm(mixed, tokens, drawn=drawn, training=training)
        expanded = self.intermediate(tokens, training=training)
        expanded = self.output_projection(expanded, training=training)
        drawn = self.output_dropout.draw(tf.shape(expanded), training)
        tokens = self.output_layer_norm(expanded, tokens, drawn=drawn, training=training)
        return tokens, intermediates

    def compute_output_shape(self, input_shape: tuple[int | None, ...]) -> tuple[int | None, ...]:
        return input_shape

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | {"config": self.config.to_dict(), "index": self.index}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> "TransformerBlock":
        return cls(**config | {"config": EncoderConfig(**config["config"])})


@dataclasses.dataclass(frozen=True)
class Encoded:
    """The outputs of an encoder for a batch. Tokens are flat: [tokens, hidden]."""

    embeddings: tf.Tensor
    layers: list[tf.Tensor]
    layout: TokenLayout
    # The intermediates of each block, if `encode` was called `with_intermediates`.
    intermediates: list[dict[str, tf.Tensor]] = dataclasses.field(default_factory=list)

    def select(self, positions: tf.Tensor) -> tf.Tensor:
        """Last-layer vectors at int32 [batch, n] -> [batch * n, hidden]."""
        return self.layout.select(self.layers[-1], positions)

    def restore(self, layer: int = -1) -> tf.Tensor:
        """One layer as [batch, seq_len, hidden], zero where the mask is 0."""
        return self.layout.restore(self.layers[layer])


@keras.saving.register_keras_serializable("bert_tf")
@extensible
class Encoder(keras.Model):
    """Token ids -> a vector for each token and one for the sequence.

    Called with a dict of three integer tensors [batch, seq_len]: `input_word_ids`, `input_mask`
    (1 at tokens, 0 at padding) and `input_type_ids` (0 for the first text, 1 for the second).
    Returns a dict, zero wherever the mask is 0:

    - `sequence_output`: [batch, seq_len, hidden], the last block's output;
    - `pooled_output`: [batch, hidden], tanh of a linear map of the first token (for left-to-right
      models: of the last token, the only one that has seen the whole row);
    - `encoder_outputs`: list of [batch, seq_len, hidden], one for each block, and one for the
      BiLSTM if there is one.

    `hidden` is `config.output_size`.

    For another architecture, give other layers. `embeddings` and `block` are called with the
    configuration and `dtype`, a block also with its index. They must return layers with the `call`
    of `Embeddings` and of `TransformerBlock`. A pre-norm stack normalizes in its last block.

    Args:
        config: the sizes. The ablations of the paper are classes of their own, in
            `bert_tf.encoder.ablations`; `encoder_for` there chooses the class.
        layout: "unpadded" leaves padding out of everything but attention; "padded" keeps it, for
            static shapes (XLA, TPU). Both give the same numbers, except for the draws of dropout.
        with_pooler: whether there is a `pooled_output`.
        embeddings: makes the embedding layer.
        block: makes a block. To save a model, register both with
            `keras.saving.register_keras_serializable`.

    Attributes:
        rematerialize: whether training computes the intermediates of a block again for its
            gradient; see `EncoderModel.compile`.

    Raises:
        UserError: an unknown layout, or a configuration of another class.

    >>> config = EncoderConfig(
    ...     vocab_size=30, hidden_size=8, num_hidden_layers=2, num_attention_heads=2,
    ...     intermediate_size=16,
    ... )
    >>> ids = tf.constant([[2, 7, 9, 3, 0]])
    >>> mask = tf.constant([[1, 1, 1, 1, 0]])
    >>> outputs = Encoder(config)(
    ...     {"input_word_ids": ids, "input_mask": mask, "input_type_ids": tf.zeros_like(ids)}
    ... )
    >>> print(outputs["sequence_output"].shape, outputs["pooled_output"].shape)
    (1, 5, 8) (1, 8)
    """

    def __init__(
        self,
        config: EncoderConfig,
        layout: str = "unpadded",
        with_pooler: bool = True,
        embeddings: Callable[..., keras.layers.Layer] = Embeddings,
        block: Callable[..., keras.layers.Layer] = TransformerBlock,
        **kwargs: Any,
    ):
        kwargs.setdefault("name", "encoder")
        trainable = kwargs.pop("trainable", True)
        super().__init__(**kwargs)
        if layout not in LAYOUTS:
            raise UserError(f"unknown layout {layout!r}; choose {' or '.join(LAYOUTS)}")
        self._check_class(config)
        self.config = config
        self.layout = layout
        self.factories = {"embeddings": embeddings, "block": block}
        self.rematerialize = False
        # On a GPU, Keras uses XLA by default. XLA would compile again for every new number of
        # tokens.
        self.supports_jit = layout == "padded"
        self._make_layers()
        self.pooler: Linear | None = None
        if with_pooler:
            self.pooler = Linear(
                config.output_size,
                POOLERS[config.model_type],
                config.initializer_range,
                name="pooler",
                dtype=self.dtype_policy,
            )
        self.build({name: (None, None) for name in INPUTS})
        # Keras passes this on to the layers, which exist only now.
        self.trainable = trainable

    def _check_class(self, config: EncoderConfig) -> None:
        """Raises UserError if an encoder of this class does not compute what `config` describes."""
        if config.attention != "bidirectional" or config.bilstm:
            raise UserError(
                "an Encoder is bidirectional and has no BiLSTM; for attention: "
                f"{config.attention}, bilstm: {str(config.bilstm).lower()}, use encoder_for or a "
                "class of bert_tf.encoder.ablations"
            )

    def _make_layers(self) -> None:
        config, policy = self.config, {"dtype": self.dtype_policy}
        make_block = self.factories["block"]
        self.embeddings = self.factories["embeddings"](config, **policy)
        self.blocks = [make_block(config, i, **policy) for i in range(config.num_hidden_layers)]

    def build(self, input_shape: Mapping[str, tuple[int | None, int | None]]) -> None:
        self.embeddings.build((None,))
        for block in self.blocks:
            block.build((None, self.config.hidden_size))
        self._build_pooler()

    def _build_pooler(self) -> None:
        if self.pooler is not None:
            self.pooler.build((None, self.config.output_size))
        self.built = True

    def __call__(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        return super().__call__(ids_of(inputs), *args, **kwargs)

    def call(self, inputs: Inputs, training: bool = False) -> dict[str, Any]:
        encoded = self.encode(inputs, training=training)
        encoder_outputs = [encoded.restore(index) for index in range(len(encoded.layers))]
        outputs = {"sequence_output": encoder_outputs[-1], "encoder_outputs": encoder_outputs}
        if self.pooler is not None:
            mask = inputs["input_mask"]
            outputs["pooled_output"] = self.pool(encoded.select(self.pooled_positions(mask)), mask)
        return outputs

    def encode(
        self, inputs: Inputs, training: bool = False, with_intermediates: bool = False
    ) -> Encoded:
        """The outputs of `call`, left flat for a head that needs only some of the tokens."""
        layout = self.layout_of(inputs)
        embedded = self.embed(inputs, layout, training)
        bias = self.attention_bias(layout)
        tokens, layers, intermediates = embedded, [], []
        # Intermediates that are returned are kept for the gradient even if `rematerialize` is set.
        for block in self._blocks(training and not with_intermediates):
            tokens, of_block = block(tokens, layout=layout, bias=bias, training=training)
            layers.append(tokens)
            if with_intermediates:
                intermediates.append(of_block)
        return Encoded(embedded, layers, layout, intermediates)

    def encode_at(self, inputs: Inputs, positions: tf.Tensor, training: bool = False) -> tf.Tensor:
        """`encode(inputs).select(positions)`; the last block computes nothing for other tokens."""
        layout = self.layout_of(inputs)
        tokens = self.embed(inputs, layout, training)
        bias = self.attention_bias(layout)
        *blocks, last = self._blocks(training)
        for block in blocks:
            tokens, _ = block(tokens, layout=layout, bias=bias, training=training)
        bias = self.attention_bias(layout, positions)
        tokens, _ = last(tokens, layout=layout, bias=bias, training=training, positions=positions)
        real = layout.is_real(positions)[:, tf.newaxis]
        return tf.where(real, tokens, tf.zeros([], tokens.dtype))

    def _blocks(self, training: bool) -> list[Callable[..., Any]]:
        """The blocks; in training, if `rematerialize` is set, in their rematerialized form."""
        again = training and self.rematerialize
        return [rematerialized(block) for block in self.blocks] if again else self.blocks

    def layout_of(self, inputs: Inputs) -> TokenLayout:
        """The layout of the tokens of a batch in memory."""
        shape = tf.convert_to_tensor(inputs["input_word_ids"]).shape
        if shape.rank not in (None, 2):
            raise UserError(f"input_word_ids must have shape [batch, seq_len], not {shape}")
        length, longest = shape[1], self.config.max_position_embeddings
        if length is not None and length > longest:
            raise UserError(
                f"sequences of {length} tokens do not fit into {longest} positions; lower "
                f"max_length to {longest} or raise max_position_embeddings"
            )
        return LAYOUTS[self.layout](tf.cast(inputs["input_mask"], tf.int32))

    def embed(self, inputs: Inputs, layout: TokenLayout, training: bool = False) -> tf.Tensor:
        """The tokens of a batch before the first block, [tokens, hidden]."""
        word_ids, type_ids = (
            tf.cast(inputs[name], tf.int32) for name in ("input_word_ids", "input_type_ids")
        )
        positions = tf.broadcast_to(tf.range(tf.shape(word_ids)[1]), tf.shape(word_ids))
        tokens = self.embeddings(
            layout.flatten(word_ids),
            layout.flatten(positions),
            layout.flatten(type_ids),
            training=training,
        )
        # To TensorFlow's optimizer, each of the three embeddings has an unknown number of tokens of
        # its own. The reshape leaves one, so that the optimizer fuses the first LayerNorm.
        return tf.reshape(tokens, [-1, self.config.hidden_size])

    def attention_bias(self, layout: TokenLayout, positions: tf.Tensor | None = None) -> tf.Tensor:
        """The bias on attention scores: here every query sees all real tokens of its row.

        float32, broadcastable to [batch, heads, n or row_len, row_len]. The queries are at
        `positions`, int32 [batch, n]; None is all tokens.
        """
        return padding_bias(layout.key_mask)

    def pooled(self, inputs: Inputs, training: bool = False) -> tf.Tensor:
        """The `pooled_output` of `call` alone: [batch, hidden]."""
        mask = inputs["input_mask"]
        positions = self.pooled_positions(mask)
        return self.pool(self.encode_at(inputs, positions, training=training), mask)

    def pooled_positions(self, input_mask: tf.Tensor) -> tf.Tensor:
        """int32 [batch, 1 or 2]: the tokens that `pool` reads; here the first, as in the paper."""
        return tf.zeros([tf.shape(input_mask)[0], 1], tf.int32)

    def pool(self, tokens: tf.Tensor, input_mask: tf.Tensor) -> tf.Tensor:
        """[batch, hidden] from [batch * (1 or 2), hidden]; 0 where a row's start is masked."""
        if self.pooler is None:
            raise UserError("the encoder has no pooler; make it with with_pooler=True")
        pooled = self.pooler(tokens)
        # A batch without rows may have no columns either.
        real = tf.reduce_any(tf.not_equal(input_mask[:, :1], 0), axis=1, keepdims=True)
        return tf.where(real, pooled, tf.zeros([], pooled.dtype))

    def towers(self) -> dict[str, "Encoder"]:
        """The stacks of blocks, by the path of their weights: this encoder, or those it wraps."""
        return {self.name: self}

    @classmethod
    def from_checkpoint(
        cls, path: str | os.PathLike | Checkpoint, add_tokens: Sequence[str] = (), **options: Any
    ) -> Self:
        """The encoder of a checkpoint; logs what was loaded.

        Args:
            path: a run folder, a checkpoint of bert_tf, Hugging Face, google-research, Model Garden
                or TF Hub, "hf://org/name", or an open checkpoint; the format is detected.
            add_tokens: texts that get rows of their own, as for `TextClassifier.from_checkpoint`;
                give them to `Tokenizer.from_checkpoint` too.
            **options: as for the constructor, such as layout or dtype.

        Raises:
            UserError: the checkpoint is missing or damaged; or as for `Tokenizer.with_tokens`.
        """
        checkpoint = path if isinstance(path, Checkpoint) else reading.find(path)
        checkpoint = with_tokens(checkpoint, add_tokens)
        encoder = cls(checkpoint.encoder, **options)
        logger.info(f"{checkpoint.folder}: {checkpoint.fill(encoder)}")
        return encoder

    def export(self, *args: Any, **kwargs: Any) -> None:
        """Raises UserError: an encoder is exported from its checkpoint, not from here."""
        raise UserError(
            "an Encoder is exported from a checkpoint; run bert-tf export CHECKPOINT --out DIR "
            "--kind embedding (strings to vectors) or --kind hub (preprocessor and encoder for "
            "TF Hub)"
        )

    @property
    def output_shape(self) -> tuple[int | None, ...]:
        """The shape of `sequence_output`, which `summary` shows if the encoder is a layer."""
        return (None, None, self.config.output_size)

    def copied(self, **changes: Any) -> "Encoder":
        """An encoder of the same class with new weights; `changes` are arguments that differ."""
        options: dict[str, Any] = {
            "config": self.config,
            "layout": self.layout,
            "with_pooler": self.pooler is not None,
            "dtype": self.dtype_policy,
            "name": self.name,
            **self.factories,
        }
        return type(self)(**options | changes)

    def get_config(self) -> dict[str, Any]:
        return (
            super().get_config()
            | {name: registered_name(each) for name, each in self.factories.items()}
            | {
                "config": self.config.to_dict(),
                "layout": self.layout,
                "with_pooler": self.pooler is not None,
                "frozen": frozen_layers(self),
            }
        )

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: Any = None) -> Self:
        fields = dict(config)
        frozen = fields.pop("frozen", ())
        for name in FACTORIES:
            if name in fields:
                fields[name] = registered(fields[name], custom_objects)
        encoder = cls(EncoderConfig(**fields.pop("config")), **fields)
        freeze(encoder, frozen)
        return encoder


def ids_of(inputs: Any) -> dict[str, Any]:
    """The inputs of a model as whole numbers."""
    if not isinstance(inputs, Mapping):
        raise UserError(
            f"a model takes a dict of {', '.join(INPUTS)}, as a Preprocessor returns it, but its "
            f"type is {type(inputs).__name__}"
        )
    missing = [name for name in INPUTS if name not in inputs]
    if missing:
        raise UserError(f"the input {missing[0]} is missing; a model takes {', '.join(INPUTS)}")
    whole = {}  # Keras would round floating-point ids to its compute precision
    for name, value in inputs.items():
        kind = keras.backend.standardize_dtype(getattr(value, "dtype", "int32"))
        whole[name] = value if "int" in kind else keras.ops.cast(value, "int32")
    return whole
