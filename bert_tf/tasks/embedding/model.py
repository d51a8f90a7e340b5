"""A vector for a text, of any encoder."""

from collections.abc import Mapping
from typing import Any, Literal, get_args

import keras
import numpy as np
import tensorflow as tf

from bert_tf.asking import Answers, each_answer
from bert_tf.encoder.encoder import Encoder
from bert_tf.errors import UserError
from bert_tf.export.service import Signature, Tensors, strings
from bert_tf.tasks import inputs
from bert_tf.tasks.embedding.training import EmbeddingTraining
from bert_tf.tasks.interface import Network
from bert_tf.text import GroupPreprocessor, Tokenizer
from bert_tf.text.parts import map_in_chunks

Pooling = Literal["cls", "mean", "pooled"]
POOLINGS: tuple[str, ...] = get_args(Pooling)
# A vector that is shorter than this is left as it is (PyTorch's `normalize`).
_SHORTEST = 1e-12
_EXAMPLE = {"text": ["What a lovely film."]}


@keras.saving.register_keras_serializable("bert_tf")
class TextEmbedder(EmbeddingTraining):
    """Gives each text a vector. Texts of similar meaning have vectors of similar direction.

    `TextEmbedder.from_checkpoint("sentence-transformers/all-MiniLM-L6-v2")` gives useful vectors.
    Here the encoder is tiny and has random weights:

    >>> from bert_tf import EncoderConfig
    >>> tokenizer = Tokenizer("[PAD] [UNK] [CLS] [SEP] [MASK] the cat sat".split())
    >>> config = EncoderConfig(8, hidden_size=4, num_hidden_layers=1, num_attention_heads=2)
    >>> embedder = TextEmbedder(Encoder(config), tokenizer)
    >>> embedder.predict(["The cat sat", "The cat"]).shape
    (2, 4)
    >>> embedder.similarity("The cat", ["The cat", "sat"]).shape
    (1, 2)
    >>> round(float(embedder.similarity("The cat", "the cat")[0, 0]), 3)
    1.0

    The model takes the encoder of any checkpoint. `predict` takes texts and returns float32
    [texts, hidden], or [hidden] for one string. Called with the encoder's inputs, the model returns
    float32 [batch, hidden].

    Args:
        encoder: the encoder.
        tokenizer: its tokenizer.
        pooling: "mean" is the mean of the last layer over all tokens of the text, [CLS] and [SEP]
            among them; "cls" is the last layer at [CLS]; "pooled" is the pooler's output.
        normalize: whether vectors are divided by their lengths.
        max_length: most tokens of a text; None is as many as the encoder has positions. Longer
            texts are cut.

    Raises:
        UserError: an unknown pooling, or that of a pooler which the encoder does not have.
    """

    input_names = ("text",)
    answer_names = ("embedding",)
    setting_names = ("pooling", "normalize", "max_length")
    default_max_length = None

    def __init__(
        self,
        encoder: Encoder,
        tokenizer: Tokenizer | None,
        pooling: str = "mean",
        normalize: bool = False,
        max_length: int | None = None,
        **kwargs: Any,
    ):
        if pooling not in POOLINGS:
            raise UserError(f"unknown pooling {pooling!r}; choose one of {', '.join(POOLINGS)}")
        if pooling == "pooled" and encoder.pooler is None:
            raise UserError("the encoder has no pooler; choose the pooling mean or cls")
        kwargs.setdefault("name", "text_embedder")
        super().__init__(
            encoder,
            tokenizer,
            {},
            max_length=max_length,
            uses_pooler=pooling == "pooled",
            **kwargs,
        )
        if tokenizer is not None:
            self.preprocessor()
        self.pooling = pooling
        self.normalize = normalize
        self.width = encoder.config.output_size
        self.build()

    def build(self, input_shape: Any = None) -> None:
        """Creates nothing: there is no head."""
        self.built = True

    def embed(self, inputs: Mapping[str, tf.Tensor], training: bool = False) -> tf.Tensor:
        """See `EmbeddingTraining`."""
        vectors = tf.cast(self._pool(inputs, training), tf.float32)
        if not self.normalize:
            return vectors
        return vectors / tf.maximum(tf.norm(vectors, axis=1, keepdims=True), _SHORTEST)

    def _pool(self, inputs: Mapping[str, tf.Tensor], training: bool) -> tf.Tensor:
        """[batch, hidden]."""
        if self.pooling == "pooled":
            return self.encoder.pooled(inputs, training=training)
        if self.pooling == "cls":
            first = tf.zeros_like(inputs["input_mask"][:, :1])
            return self.encoder.encode_at(inputs, first, training=training)
        encoded = self.encoder.encode(inputs, training=training)
        tokens = tf.reduce_sum(tf.cast(inputs["input_mask"], tf.float32), axis=1, keepdims=True)
        # The layer is 0 at padding.
        total = tf.reduce_sum(tf.cast(encoded.restore(), tf.float32), axis=1)
        return tf.math.divide_no_nan(total, tokens)

    def signatures(self, network: Network | None = None) -> dict[str, Signature]:
        """`text` -> `embedding` float32 [batch, hidden]."""
        network = network or self
        preprocess = GroupPreprocessor(self.tokenizer, self.max_length)

        def answer(given: Mapping[str, tf.Tensor]) -> Tensors:
            return {"embedding": map_in_chunks(network, preprocess([given["text"]]))}

        return {"serving_default": Signature(strings("text"), answer, _EXAMPLE)}

    @classmethod
    def answers(
        cls, model: Answers, x: Any, batch_size: int | None = None, verbose: int | str = "auto"
    ) -> np.ndarray:
        """See `TaskModel`; an array, not a list."""
        x, single = inputs.as_batch(x)
        (column,) = inputs.columns_of(x, cls.input_names)
        texts = inputs.texts_of(column, "text")
        if not texts:
            raise UserError("there are no texts; give at least one")
        vectors = each_answer(
            model,
            "serving_default",
            [{"text": text} for text in texts],
            lambda outputs, place, _: outputs["embedding"][place],
            batch_size,
            verbose,
        )
        return vectors[0] if single else np.stack(vectors)

    def similarity(
        self, a: Any, b: Any, batch_size: int | None = None, verbose: int | str = "auto"
    ) -> np.ndarray:
        """The cosine of the angle between the vectors of each two texts.

        Args:
            a: texts, one string, or their vectors, float [n, hidden].
            b: likewise, of m texts.
            batch_size: rows of a batch (32).
            verbose: 0 shows no progress.

        Returns:
            float32 [n, m], from -1 to 1; 0 for a vector that is all 0.

        Raises:
            UserError: something is neither a string nor a vector.
        """
        first, second = (_unit(self._vectors(each, batch_size, verbose)) for each in (a, b))
        return np.clip(first @ second.T, -1, 1)

    def _vectors(self, given: Any, batch_size: int | None, verbose: int | str) -> np.ndarray:
        """float32 [rows, hidden] of texts, or of vectors that were given."""
        is_array = isinstance(given, np.ndarray) or tf.is_tensor(given)
        if is_array and np.asarray(given).dtype.kind == "f":
            vectors = np.atleast_2d(np.asarray(given, np.float32))
            if vectors.shape[1:] != (self.encoder.config.output_size,):
                raise UserError(
                    f"vectors of shape {list(vectors.shape)} are not of this model, whose width is "
                    f"{self.encoder.config.output_size}"
                )
            return vectors
        return np.atleast_2d(self.predict(given, batch_size, verbose))


def _unit(vectors: np.ndarray) -> np.ndarray:
    """Vectors of length 1."""
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), _SHORTEST)
