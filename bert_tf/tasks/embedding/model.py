"""A vector for a text, of any encoder."""

from collections import UserDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from bert_tf.asking import Answers, Outputs, Row, each_answer
from bert_tf.checkpoints import embedder
from bert_tf.checkpoints.embedder import DEFAULT_SIGNATURE, SIMILARITY_SIGNATURE
from bert_tf.config.arguments import checked
from bert_tf.data.columns import TextColumn
from bert_tf.encoder.encoder import Encoder
from bert_tf.errors import UserError
from bert_tf.export.litert.form import DeviceForm, StringsForm, of_packed, output
from bert_tf.export.service import Signature, Tensors, strings
from bert_tf.tasks import inputs
from bert_tf.tasks.embedding import similarity
from bert_tf.tasks.embedding.pooling import (
    ACTIVATIONS,
    POOLING_MASK,
    normalized,
    pool,
    without_prompt,
)
from bert_tf.tasks.embedding.training import EmbeddingTraining
from bert_tf.text import GroupPreprocessor, Tokenizer
from bert_tf.text.parts import as_first, first_equal, map_rows

_EXAMPLE = {"text": ["What a lovely film."]}
_EXAMPLE_OF_TWO = {"text_a": ["What a lovely film."], "text_b": ["What a wonderful film."]}
# The signatures that are not called after a prompt.
_NO_PROMPTS = (DEFAULT_SIGNATURE, SIMILARITY_SIGNATURE)


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

    The model takes the encoder of any checkpoint, and all of a folder of sentence-transformers:
    pooling, dense layers, normalization, prompts and similarity function. `predict` takes texts,
    and with `prompt` the name of a prompt that is put before each. It returns float32 [texts,
    width], or [width] for one string. Called with the encoder's inputs, and `pooling_mask` where
    not every token counts in pooling, the model returns float32 [batch, width].

    Args:
        encoder: the encoder.
        tokenizer: its tokenizer.
        pooling: "mean" is the mean of the last layer over all tokens of the text, [CLS] and [SEP]
            among them; the others are "cls", "max", "mean_sqrt_len", "weighted_mean" and
            "last_token", see `bert_tf.tasks.embedding.pooling.pool`, and "pooled", the pooler's
            output. Several, in a sequence, are put side by side.
        normalize: whether vectors are divided by their lengths, at the very end.
        dense: layers after the pooling, each a mapping: `units`, the width of its output;
            `activation`, the name of a class of torch such as "Tanh", the default, or "Identity";
            `bias`, whether it has one, by default True.
        prompts: name -> the text that is put before each text.
        default_prompt: the name of the prompt that is used unless another one is named.
        include_prompt: whether the tokens of a prompt count in pooling.
        similarity_function: "cosine", "dot", "euclidean" or "manhattan"; the last two are negative
            distances.
        max_length: most tokens of a text; None is as many as the encoder has positions. Longer
            texts are cut.

    Attributes:
        pooling: the names of the poolings; a name alone is a string.
        prompts: the texts of the prompts by their names.
        width: numbers of a vector.

    Raises:
        UserError: an unknown pooling, activation or similarity function; a pooler that the encoder
            does not have; a dense layer or a prompt that is none; or a default prompt that is not
            among the prompts.
    """

    columns = (TextColumn("text"),)
    answer_names = ("embedding",)
    answer_options = ("prompt",)
    setting_names = (
        "pooling",
        "normalize",
        "prompts",
        "default_prompt",
        "include_prompt",
        "similarity_function",
        "max_length",
    )
    default_max_length = None

    @checked
    def __init__(
        self,
        encoder: Encoder,
        tokenizer: Tokenizer | None,
        pooling: str | Sequence[str] = "mean",
        normalize: bool = False,
        dense: Sequence[Mapping[str, Any]] = (),
        prompts: Mapping[str, str] | None = None,
        default_prompt: str | None = None,
        include_prompt: bool = True,
        similarity_function: str = "cosine",
        max_length: int | None = None,
        **kwargs: Any,
    ):
        modes, layers = embedder.poolings(pooling), embedder.dense_layers(dense)
        if "pooled" in modes and encoder.pooler is None:
            raise UserError("the encoder has no pooler; choose the pooling mean or cls")
        kwargs.setdefault("name", "text_embedder")
        super().__init__(
            encoder,
            tokenizer,
            {"dense": layers} if layers else {},
            max_length=max_length,
            uses_pooler="pooled" in modes,
            **kwargs,
        )
        if tokenizer is not None:
            self.preprocessor()
        self.pooling = modes[0] if len(modes) == 1 else modes
        self.normalize = normalize
        # Keras would track a plain dict.
        self.prompts: UserDict[str, str] = UserDict(embedder.prompts(prompts, default_prompt))
        self.default_prompt = default_prompt
        self.include_prompt = include_prompt
        self.similarity_function = embedder.similarity_function(similarity_function)
        self.dense_layers = [
            keras.layers.Dense(
                layer["units"],
                ACTIVATIONS[layer["activation"]],
                use_bias=layer["bias"],
                name=f"dense_{number}",
                dtype=self.dtype_policy,
            )
            for number, layer in enumerate(layers)
        ]
        self.width = encoder.config.output_size * len(modes)
        self.build()

    def build(self, input_shape: Any = None) -> None:
        """Creates the weights of the dense layers."""
        for layer in self.dense_layers:
            layer.build((None, self.width))
            self.width = layer.units
        self.built = True

    @property
    def settings(self) -> dict[str, Any]:
        modes = embedder.poolings(self.pooling)
        own = {"pooling": modes[0] if len(modes) == 1 else [*modes], "prompts": {**self.prompts}}
        return super().settings | own

    def embed(self, inputs: Mapping[str, tf.Tensor], training: bool = False) -> tf.Tensor:
        vectors = pool(self.encoder, inputs, embedder.poolings(self.pooling), training)
        for layer in self.dense_layers:
            vectors = tf.cast(layer(vectors), tf.float32)
        return normalized(vectors) if self.normalize else vectors

    def signatures(self) -> dict[str, Signature]:
        """`text` -> `embedding` float32 [batch, width]; the same of each prompt, by its name.

        "similarity" is `text_a`, `text_b` -> `similarity` float32 [batch], row by row. Texts with
        the same token ids have the same vector, that of the first of them.
        """
        preprocess = GroupPreprocessor(self.tokenizer, self.max_length)
        default = self._default_text()

        def vectors(texts: tf.Tensor, prompt: str) -> tf.Tensor:
            features = preprocess([tf.strings.join([prompt, texts]) if prompt else texts])
            # All signatures give the network the same inputs, so that a graph holds it once.
            if self.prompts and not self.include_prompt:
                length = self._prompt_length(prompt)
                features[POOLING_MASK] = without_prompt(features["input_mask"], length)
            return map_rows(self.network(), features)

        def answering(prompt: str) -> Signature:
            def answer(given: Mapping[str, tf.Tensor]) -> Tensors:
                return {"embedding": vectors(given["text"], prompt)}

            return Signature(strings("text"), answer, _EXAMPLE)

        def compare(given: Mapping[str, tf.Tensor]) -> Tensors:
            both = vectors(tf.concat([given["text_a"], given["text_b"]], axis=0), default)
            rows = tf.size(given["text_a"])
            found = similarity.pairwise(self.similarity_function, both[:rows], both[rows:])
            pairs = tf.reshape(first_equal(both), [2, rows])
            return {"similarity": as_first(found, tf.transpose(pairs))}

        return {
            DEFAULT_SIGNATURE: answering(default),
            SIMILARITY_SIGNATURE: Signature(strings("text_a", "text_b"), compare, _EXAMPLE_OF_TWO),
            **{name: answering(text) for name, text in self.prompts.items()},
        }

    def device_form(self) -> DeviceForm:
        """`embedding` float32 [1, width].

        Raises:
            UserError: pooling leaves out prompts, for which a device has no input.
        """
        if self.prompts and not self.include_prompt:
            raise UserError(
                "a model that excludes its prompts from pooling cannot be exported to LiteRT; "
                "load it with include_prompt=True, or export a SavedModel"
            )
        return DeviceForm(
            {"embedding": output(self.width)},
            lambda features: {"embedding": self.network()(features)},
            lambda outputs, _: outputs["embedding"],
        )

    def strings_form(self) -> StringsForm:
        """`text` -> `embedding` float32 [1, width].

        Raises:
            UserError: the model puts a prompt before texts; LiteRT cannot join strings.
        """
        if self._default_text():
            raise UserError(
                f"the default prompt {self.default_prompt!r} of this {type(self).__name__} "
                "requires string concatenation, which LiteRT cannot do; export a file that takes "
                "ids"
            )
        form, names = self.device_form(), self.input_names
        answer = of_packed(form, names)
        return StringsForm(
            names, form.outputs, answer, lambda row: [row], lambda outputs, _: outputs
        )

    def training_prompt(self) -> tuple[str, int]:
        prompt = self._default_text()
        return prompt, 0 if self.include_prompt else self._prompt_length(prompt)

    def _default_text(self) -> str:
        """The text of the default prompt; "" without one."""
        return self.prompts.get(self.default_prompt or "", "")

    def _prompt_length(self, prompt: str) -> int:
        """The tokens at the start of each row that a prompt takes, [CLS] included; 0 without one.

        Source: sentence-transformers, `Transformer._get_prompt_length`.
        """
        if not prompt:
            return 0
        with tf.init_scope():
            alone = self.preprocessor()([prompt])["input_mask"]
            return int(tf.reduce_sum(alone)) - 1  # without [SEP]

    def exported_functions(self) -> dict[str, Callable]:
        """`similarity` of vectors, float32 [n, width] and [m, width], to float32 [n, m]."""
        vectors = tf.TensorSpec([None, None], tf.float32)

        def compare(a: tf.Tensor, b: tf.Tensor) -> tf.Tensor:
            return similarity.of_all(self.similarity_function, a, b)

        return {"similarity": tf.function(compare, [vectors, vectors], autograph=False)}

    @classmethod
    def answers(
        cls,
        model: Answers,
        x: Any,
        batch_size: int | None = None,
        verbose: int | str = "auto",
        prompt: str | None = None,
        **options: Any,
    ) -> np.ndarray:
        # An array, not a list. `prompt` is the name of a prompt.
        prompts = sorted({*model.signature_names()} - {*_NO_PROMPTS})
        if prompt is not None and prompt not in prompts:
            raise UserError(f"no prompt {prompt!r}; {embedder.known(prompts)}")
        rows, single = inputs.asked(x, cls.columns)
        if not rows:
            raise UserError("there are no texts; give at least one")
        vectors = each_answer(
            model,
            prompt or DEFAULT_SIGNATURE,
            rows,
            lambda outputs, place, row: cls.answer(outputs, place, rows[row]),
            batch_size,
            verbose,
        )
        return vectors[0] if single else np.stack(vectors)

    @staticmethod
    def answer(outputs: Outputs, place: int, row: Row) -> np.ndarray:
        """The vector of a text."""
        return outputs["embedding"][place]

    @checked
    def similarity(
        self, a: Any, b: Any, batch_size: int | None = None, verbose: int | str = "auto"
    ) -> np.ndarray:
        """How alike each two texts are, by the model's similarity function.

        Args:
            a: texts, one string, or their vectors, float [n, width].
            b: likewise, of m texts.
            batch_size: rows of a batch (32).
            verbose: 0 shows no progress.

        Returns:
            float32 [n, m]. A cosine is from -1 to 1, and 0 for a vector that is all 0. Texts have
            the default prompt. Equal vectors are equally alike to any other, on every processor.

        Raises:
            UserError: something is neither a string nor a vector, or the vectors are of different
                widths.
        """
        # Traced once, as signatures are.
        key = f"similarity of vectors by {self.similarity_function}"
        if key not in self._functions:
            compare: Any = self.exported_functions()["similarity"]
            self._functions[key] = compare.get_concrete_function()
        return self.compared(self, self._functions[key], a, b, batch_size, verbose)

    @classmethod
    def compared(
        cls,
        model: Answers,
        compare: Callable[[tf.Tensor, tf.Tensor], tf.Tensor],
        a: Any,
        b: Any,
        batch_size: int | None = None,
        verbose: int | str = "auto",
    ) -> np.ndarray:
        """`similarity` of a model of this class, or of a SavedModel of one.

        Args:
            model: it.
            compare: its `similarity` of vectors.
            a: see `similarity`.
            b: see `similarity`.
            batch_size: see `similarity`.
            verbose: see `similarity`.
        """

        def vectors(given: Any) -> np.ndarray:
            is_array = isinstance(given, np.ndarray) or tf.is_tensor(given)
            if is_array and np.asarray(given).dtype.kind == "f":
                return np.atleast_2d(np.asarray(given, np.float32))
            if isinstance(given, tf.data.Dataset):
                given, _ = inputs.from_dataset(given, None, "the texts")
            return np.atleast_2d(cls.answers(model, given, batch_size, verbose))

        first, second = vectors(a), vectors(b)
        if first.ndim != 2 or second.ndim != 2 or first.shape[1] != second.shape[1]:
            raise UserError(
                f"vectors of shapes {list(first.shape)} and {list(second.shape)} cannot be "
                "compared; give [n, width] and [m, width], both from one model"
            )
        return np.asarray(compare(tf.constant(first), tf.constant(second)))
