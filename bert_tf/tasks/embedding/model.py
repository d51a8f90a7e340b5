"""A vector for each text, from any encoder; it learns from pairs, scores, labels, or a teacher."""

import dataclasses
from collections import UserDict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import keras
import numpy as np
import tensorflow as tf

from bert_tf.asking import Answers, Outputs, Row, encoded, plain
from bert_tf.checkpoints import embedder
from bert_tf.checkpoints.embedder import DEFAULT_SIGNATURE, SIMILARITY_SIGNATURE
from bert_tf.compat import layers_below
from bert_tf.config.arguments import checked, checked_argument
from bert_tf.data.arrow import DataTable
from bert_tf.data.columns import Column, Columns, TextColumn
from bert_tf.distillation.losses import Matched
from bert_tf.encoder.encoder import Encoder
from bert_tf.errors import UserError
from bert_tf.export.litert.form import DeviceForm, StringsForm, output
from bert_tf.export.service import Signature, Tensors, strings
from bert_tf.retrieval.collection import Collection
from bert_tf.retrieval.evaluation import evaluate_retrieval, retrieval_metrics
from bert_tf.tasks import inputs, long_texts
from bert_tf.tasks.embedding import data, similarity, small_vectors
from bert_tf.tasks.embedding.files import of_table
from bert_tf.tasks.embedding.losses import DEFAULTS, EmbeddingLoss, Form, check_batch, check_form
from bert_tf.tasks.embedding.pooling import (
    ACTIVATIONS,
    POOLING_MASK,
    normalized,
    pool,
    without_prompt,
)
from bert_tf.tasks.fitting import check_not_compiled, is_compiled_by_user
from bert_tf.tasks.task_model import Asked, TaskModel, is_on_device
from bert_tf.tasks.texts.metrics import regression_metrics
from bert_tf.text import Tokenizer
from bert_tf.text.parts import as_first, first_equal
from bert_tf.text.rows import splits_of, starts_row
from bert_tf.training.loop import Gradients, accumulated, batch_sums, in_parts

# The number of training texts on which `fit` finds the ranges of int8.
_CALIBRATED = 1000
# How many of the best passages are kept for each query.
_FOUND = 100
_EXAMPLE = {"text": ["What a lovely film."]}
_EXAMPLE_OF_TWO = {"text_a": ["What a lovely film."], "text_b": ["What a wonderful film."]}
# The prefix of signatures that return vectors as the encoder gives them.
_WHOLE = "whole "
# The signatures that are not named after a prompt.
_NO_PROMPTS = (DEFAULT_SIGNATURE, SIMILARITY_SIGNATURE)


@keras.saving.register_keras_serializable("bert_tf")
class TextEmbedder(TaskModel):
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
    width], or [width] for one string. Called with the encoder's inputs, and with `pooling_mask` if
    not every token counts in pooling, the model returns float32 [batch, width]. For inputs
    [batch, texts, seq_len], as in training, it returns float32 [batch, texts, width].

    The loss takes the vectors of a whole batch. So `compile(accumulation_steps=n)` is GradCache,
    and devices that share a batch share their vectors.

    Args:
        encoder, tokenizer: what reads the texts.
        pooling: "mean" is the mean of the last layer over all tokens of the text, [CLS] and [SEP]
            among them; the others are "cls", "max", "mean_sqrt_len", "weighted_mean" and
            "last_token", see `bert_tf.tasks.embedding.pooling.pool`, and "pooled", the pooler's
            output. With a sequence of several, their vectors are concatenated.
        normalize: whether vectors are divided by their lengths, at the very end.
        dense: layers after the pooling, each a mapping: `units`, the width of its output;
            `activation`, the name of a class of torch such as "Tanh", the default, or "Identity";
            `bias`, whether it has a bias, by default True.
        prompts: name -> the text that is put before each text.
        default_prompt: the name of the prompt that is used unless another one is named.
        include_prompt: whether the tokens of a prompt count in pooling.
        similarity_function: "cosine", "dot", "euclidean" or "manhattan"; the last two are negative
            distances.
        max_length: the maximum number of tokens of a text; None is the encoder's positions.
        long_text, window_pooling, stride, max_windows: how longer texts are read, as for
            `TextClassifier`. Windows are pooled before dense layers. The weight of a window in the
            mean is its number of pooled tokens, so with "mean" this is the mean of all tokens.
        truncate_dim, vectors, ranges: how `predict`, `serve` and exports cut and quantize vectors,
            see `bert_tf.tasks.embedding.small_vectors.smaller`. `calibrate` finds the ranges.

    Attributes:
        pooling: the names of the poolings; a name alone is a string.
        prompts: the texts of the prompts by their names.
        width: the number of dimensions of a vector.

    Raises:
        UserError: an unknown pooling, activation or similarity function; a pooler that the encoder
            does not have; an invalid dense layer or prompt; or a default prompt that is not among
            the prompts.
    """

    columns = (TextColumn("text"),)
    answer_options = ("prompt", "truncate_dim", "vectors")
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
    # With negatives of one length, the task would differ from a search.
    group_by_length = False

    loss: Any
    # The form of the rows of the last `fit`.
    _form: Form = "texts"
    _loss_of_fit: EmbeddingLoss | None = None
    # Texts that the last `fit` learned from, on which the ranges of int8 are found.
    _some_texts: tuple[str, ...] = ()

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
        long_text: str = "truncate",
        window_pooling: str | None = None,
        stride: int | None = None,
        max_windows: int | None = None,
        truncate_dim: int | None = None,
        vectors: str = "float32",
        ranges: Sequence[Sequence[float]] | None = None,
        **kwargs: Any,
    ):
        modes, layers = embedder.poolings(pooling), embedder.dense_layers(dense)
        if "pooled" in modes and encoder.pooler is None:
            raise UserError("the encoder has no pooler; choose the pooling mean or cls")
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
        self.width = self.pooled_width = encoder.config.output_size * len(modes)
        long_texts.set_up(self, long_text, window_pooling, stride, max_windows)
        self.build()
        small_vectors.check(self.width, truncate_dim, ranges)
        self.truncate_dim, self.vectors = truncate_dim, vectors
        self._set_ranges(ranges)

    def build(self, input_shape: Any = None) -> None:
        super().build(input_shape)
        for layer in self.dense_layers:
            layer.build((None, self.width))
            self.width = layer.units
        self.built = True

    @property
    def settings(self) -> dict[str, Any]:
        modes = embedder.poolings(self.pooling)
        own = {"pooling": modes[0] if len(modes) == 1 else [*modes], "prompts": {**self.prompts}}
        of_vectors: dict[str, Any] = {
            "truncate_dim": self.truncate_dim,
            "vectors": None if self.vectors == small_vectors.FLOAT32 else self.vectors,
            "ranges": self.ranges and [[*each] for each in self.ranges],
        }
        known = {name: each for name, each in of_vectors.items() if each is not None}
        return super().settings | own | known

    @property
    def given_settings(self) -> dict[str, Any]:
        return {name: each for name, each in self.settings.items() if name != "ranges"}

    @property
    def traced_settings(self) -> dict[str, Any]:
        # The ranges are long, so they are left out: `_set_ranges` clears all graphs instead.
        return self.given_settings

    def remember(self, metrics: Mapping[str, float]) -> None:
        # The ranges of the old weights do not fit the new ones.
        self._set_ranges(None)

    def _set_ranges(self, ranges: Sequence[Sequence[float]] | None) -> None:
        # Keras would track a list.
        self.ranges = ranges and tuple(map(tuple, ranges))
        self._functions.clear()

    @checked
    def calibrate(
        self,
        x: Any = None,
        y: Any = None,
        batch_size: int | None = None,
        verbose: int | str = "auto",
    ) -> dict[str, float]:
        """Finds the ranges of the numbers of vectors, which "int8" requires.

        `fit` on strings in memory does so on up to 1,000 of its texts.

        Args:
            x: texts, as `predict` takes them; a few hundred of the kind that it will get later.
            y: None.
            batch_size, verbose: as for `predict`.

        Returns:
            `lowest` and `highest`, of all numbers.

        Raises:
            UserError: there are targets, or fewer than two texts, or see `predict`.
        """
        if y is not None:
            raise UserError("an embedder is calibrated on texts alone; remove y")
        whole: dict[str, Any] = {"truncate_dim": self.width, "vectors": small_vectors.FLOAT32}
        vectors = np.atleast_2d(self.predict(x, batch_size, verbose, **whole))
        self._set_ranges(small_vectors.ranges_of(vectors))
        return {"lowest": float(vectors.min()), "highest": float(vectors.max())}

    def check_settings(self) -> None:
        small_vectors.check(self.width, self.truncate_dim, self.ranges)

    def given_vectors(self, vectors: tf.Tensor) -> tf.Tensor:
        """Vectors, float32 [batch, width], cut and quantized; a LiteRT file has done so already."""
        if vectors.dtype == tf.int8:
            return vectors
        return small_vectors.smaller(vectors, self.truncate_dim, self.vectors, self.ranges)

    def vectors_of(self, inputs: Mapping[str, tf.Tensor], training: bool = False) -> tf.Tensor:
        return pool(self.encoder, inputs, embedder.poolings(self.pooling), training)

    def outputs_of(self, vectors: tf.Tensor, training: bool = False) -> tf.Tensor:
        vectors = tf.ensure_shape(vectors, [None, self.pooled_width])
        for layer in self.dense_layers:
            vectors = tf.cast(layer(vectors), tf.float32)
        return normalized(vectors) if self.normalize else vectors

    def window_scores(self, inputs: Mapping[str, tf.Tensor]) -> tf.Tensor:
        counted = tf.reduce_sum(inputs.get(POOLING_MASK, inputs["input_mask"]), axis=1)
        # A window in which no token counts weighs hardly anything.
        return tf.math.log(tf.maximum(tf.cast(counted, tf.float32), 1e-6))

    def call(self, inputs: Mapping[str, tf.Tensor], training: bool = False) -> tf.Tensor:
        if inputs["input_mask"].shape.rank == 2:
            return super().call(inputs, training)
        shape = tf.shape(inputs["input_mask"])
        rows = {name: tf.reshape(each, [-1, shape[2]]) for name, each in inputs.items()}
        return tf.reshape(super().call(rows, training), [shape[0], shape[1], self.width])

    def matched(self, outputs: tf.Tensor, y: Any) -> Sequence[Matched]:
        # The vectors, as a mean over the texts of a row.
        shape = tf.shape(outputs)[:2]
        return [Matched("values", outputs, tf.fill(shape, 1.0 / tf.cast(shape[1], tf.float32)))]

    # ---- The loss and its gradient ------------------------------------------------------------

    def compile(
        self, optimizer: Any = "rmsprop", loss: Any = None, *args: Any, **kwargs: Any
    ) -> None:
        """Keras's `compile`, with a loss of vectors; see `EncoderModel`.

        Args:
            optimizer: as in Keras.
            loss: an `EmbeddingLoss`; None is the default loss for the data of the last `fit`, or
                `MultipleNegativesRanking`.
            *args: as in Keras.
            **kwargs: as in Keras. With `accumulation_steps`, a batch is encoded twice in that many
                parts, and the gradient is still that of the loss of the whole batch (GradCache).

        Raises:
            UserError: another loss, or one that does not fit the width of the vectors.
        """
        loss = self._checked(loss or self._loss_of_fit or DEFAULTS[self._form]())
        super().compile(optimizer, None, *args, **kwargs)
        # Keras must not call the loss: it would turn the numbers of texts into float32.
        self.loss = loss

    def get_compile_config(self) -> dict[str, Any] | None:
        config = super().get_compile_config()
        return config and config | {"loss": keras.saving.serialize_keras_object(self.loss)}

    def _checked(self, loss: Any) -> EmbeddingLoss:
        """The loss. Raises UserError if this model cannot learn with it."""
        if not isinstance(loss, EmbeddingLoss):
            raise UserError(
                f"a {type(self).__name__} cannot be trained with the loss {loss!r}; use a loss of "
                "vectors, such as bert_tf.MultipleNegativesRanking()"
            )
        loss.check_width(self.width)
        return loss

    def part_loss(
        self, x: Any, y: Any, y_pred: Any, sample_weight: Any, sums: Mapping[str, tf.Tensor]
    ) -> tf.Tensor:
        """This replica's share of the batch's loss, computed from the vectors of all replicas."""
        if sample_weight is not None:
            raise self._weighted()
        replicas = tf.distribute.get_strategy().num_replicas_in_sync
        context = tf.distribute.get_replica_context()
        if context is not None and replicas > 1:
            y, y_pred = (context.all_gather(each, axis=0) for each in (y, y_pred))
        return self.loss.call(y, y_pred) / replicas

    def accumulated(
        self, gradients_of: Callable[[Any], Gradients], batch: Any, weights: list[tf.Variable]
    ) -> Gradients:
        """The gradients of a batch, and its loss. GradCache computes a batch of several parts.

        All parts are encoded, the loss gives the gradient of each vector, and each part is encoded
        again, with the same dropout, to give the gradients of the weights (Gao et al. 2021, arXiv
        2101.06983). Only one part at a time is kept for its gradient.
        """
        parts, unrolled, teaching = self.accumulation_steps, self.jit_compile, self.teaching
        if parts == 1:
            return gradients_of(batch)
        if teaching is not None and not teaching.hard:
            # No row is compared with another.
            return super().accumulated(gradients_of, batch, weights)
        x, y, sample_weight = batch
        factor = 1.0 if teaching is None else teaching.hard
        # The states that decide the next draws of dropout.
        generators = (getattr(layer, "seed_generator", None) for layer in layers_below(self))
        states = [each.state for each in generators if each is not None]
        before = [(state, tf.identity(state.value)) for state in states]
        shape = [None, None, self.width]
        vectors = in_parts(lambda rows: self(rows, training=True), x, parts, shape, unrolled)
        with tf.GradientTape() as tape:
            tape.watch(vectors)
            loss = factor * self.part_loss(x, y, vectors, sample_weight, {})
            scaled = self.optimizer.scale_loss(loss)
        self.compute_metrics(x, y, vectors)
        for state, value in before:
            state.assign(value)

        def again(rows: Any) -> Gradients:
            inputs, targets, gradient = rows
            if teaching is None:
                with tf.GradientTape() as tape:
                    part = self(inputs, training=True)
                return tape.gradient(part, weights, gradient), tf.constant(0.0)
            taught = teaching.answers(inputs)
            with tf.GradientTape() as tape:
                part, learned = teaching.learn(self, inputs, targets, taught, sums)
                # The gradient of this sum with respect to `part` is `gradient`.
                of_vectors = tf.reduce_sum(gradient * part)
                both = self.optimizer.scale_loss(learned) + of_vectors
            return tape.gradient(both, weights, unconnected_gradients="zero"), learned

        sums = batch_sums(self, y)
        rows = x, y, tape.gradient(scaled, vectors)
        gradients, learned = accumulated(again, rows, parts, weights, unrolled)
        return gradients, loss + learned

    def training_prompt(self) -> tuple[str, int]:
        """The prompt of training texts, and the number of tokens that pooling then leaves out."""
        prompt = self._default_text()
        return prompt, 0 if self.include_prompt else self._prompt_length(prompt)

    def _default_text(self) -> str:
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

    # ---- Training on strings ------------------------------------------------------------------

    def fit(
        self, x: Any = None, y: Any = None, *args: Any, loss: Any = None, **kwargs: Any
    ) -> keras.callbacks.History:
        """Keras's `fit`, on strings or on ids; what is learned depends on the form of the data.

        | `x` | `y` | what is learned | loss |
        |---|---|---|---|
        | (anchors, positives) | none | to find the positive | `MultipleNegativesRanking` |
        | (anchors, positives, negatives, …) | none | the same, among hard negatives | likewise |
        | (texts, texts) | scores | the order of the scores | `CoSENT` |
        | texts | labels | texts of one label are close | `BatchAllTriplet` |
        | texts | vectors | the vectors of a teacher | `Distillation` |
        | texts | none | each text from itself with other dropout (SimCSE) | the first |

        Each of these inputs is a column of strings. A dataset of (x, y), or of x as a dict, has the
        same forms. A batch mixes texts of all lengths, as a search does.

        Args:
            x: the texts.
            y: the targets.
            *args: as for every task model.
            loss: another loss that takes such data, if the model is not compiled.
            **kwargs: as for every task model. `validation_data` is (x, y), where y may be None.

        Returns:
            Keras's history.

        Raises:
            UserError: texts, targets and loss do not fit each other; one sentence with the
                position.
        """
        if loss is not None:
            check_not_compiled(self, "loss", "compile")
            self._checked(loss)
        if kwargs.get("class_weight") is not None:
            raise UserError(
                f"class_weight is for classes, but a {type(self).__name__} has none; remove it"
            )
        self._loss_of_fit = loss
        none: tuple[str, ...] = ()
        self._some_texts = none
        history = super().fit(x, y, *args, **kwargs)
        if len(self._some_texts) > 1:
            self.calibrate([*self._some_texts], batch_size=kwargs.get("batch_size"), verbose=0)
        return history

    @property
    def target(self) -> data.EmbeddingTarget:
        return data.EmbeddingTarget(self.width)

    def columns_of(self, x: Any) -> tuple[Column, ...]:
        count = len(x) if isinstance(x, tuple) else 1
        return tuple(map(TextColumn, x if isinstance(x, Mapping) else data.names_of(count)))

    def named(self, table: DataTable, target: Any = None) -> tuple[Any, Any]:
        # A file and a table have the same columns.
        rows = of_table(table, Path(table.source))
        given = table.column(target) if isinstance(target, str) else target
        x = dict(zip(rows.names, rows.values, strict=True))
        return x, rows.targets if target is None else given

    def given(
        self, x: Any, y: Any = None, sample_weight: Any = None, may_lack_targets: bool = False
    ) -> Columns:
        if sample_weight is not None:
            raise self._weighted()
        if getattr(y, "ndim", 0) == 2:
            y = [*np.asarray(y)]  # rows of an array, not of Python's numbers
        rows = super().given(x, y)
        values = tuple(list(map(plain, column)) for column in rows.values)
        return dataclasses.replace(rows, values=values)

    def learn_from(self, rows: Columns) -> None:
        of_each = _CALIBRATED // len(rows.values)
        texts = (text for column in rows.values for text in column[:of_each])
        self._some_texts = tuple(dict.fromkeys(texts))
        self._take_up(data.form_of(rows))
        if rows.targets is not None:
            self._loss_now().check(self.target.numbers(rows))

    def _take_up(self, form: Form) -> None:
        self._form = form
        check_form(self._loss_now(), form)

    def _loss_now(self) -> EmbeddingLoss:
        """The loss of the training that begins."""
        if is_compiled_by_user(self):
            return self.loss
        return self._loss_of_fit or DEFAULTS[self._form]()

    def examples(
        self, rows: Columns, class_weight: Mapping[int, float] | None = None
    ) -> data.NumberedTexts:
        if rows.weights is not None:
            raise UserError(
                f"a {type(self).__name__} compares the rows of a batch, so either all rows or no "
                "rows may have targets; remove distillation.unlabelled"
            )
        texts, numbers = data.numbered(rows)
        prompt, uncounted = self.training_prompt()
        encoded = self.encoded(([prompt + text for text in texts] if prompt else texts,))
        targets = numbers if rows.targets is None else self.target.numbers(rows)
        return data.NumberedTexts(encoded, targets, groups=numbers, uncounted=uncounted)

    def count_cut(self, columns: Sequence[Sequence[Any]]) -> tuple[int, str]:
        # The texts of a row are read one by one, each after the prompt.
        prompt = encoded(self.training_prompt()[0])
        rows = zip(*columns, strict=True)
        return super().count_cut([[[prompt + encoded(text) for text in row] for row in rows]])

    def _batches(self, examples: Any, batch_size: int, *args: Any) -> tf.data.Dataset:
        check_batch(self._loss_now(), batch_size, examples.groups.shape[1])
        return super()._batches(examples, batch_size, *args)

    def _learn_from_dataset(self, dataset: tf.data.Dataset, steps: int | None) -> None:
        super()._learn_from_dataset(dataset, steps)
        element = dataset.element_spec
        x, *targets = element if isinstance(element, tuple) else (element,)
        if len(targets) > 1:
            raise self._weighted()
        columns = tf.nest.flatten(x)
        form: Form = "texts"
        if targets and targets[0].shape.rank == 2:
            form = "vectors"
            if targets[0].shape[1] not in (None, self.width):
                raise UserError(
                    f"the teacher's vectors in the dataset have {targets[0].shape[1]} dimensions, "
                    f"but the vectors of this model have {self.width}; choose a teacher of that "
                    "width"
                )
        elif targets:
            form = "scores" if len(columns) > 1 else "labels"
        self._take_up(form)
        check_batch(self._loss_now(), columns[0].shape[0], max(2, len(columns)))

    # A dataset may be of inputs alone.
    def encode(self, x: Any, y: Any = None, weights: Any = None) -> tuple:
        # A text has the number of its first place in the batch.
        columns = [*x.values()] if isinstance(x, Mapping) else tf.nest.flatten(x)
        if y is None and len(columns) == 1:
            columns *= 2
        texts = tf.stack(columns, axis=1)
        shape = tf.shape(texts)
        flat = tf.reshape(texts, [-1])
        prompt, uncounted = self.training_prompt()
        features = self.packed([tf.strings.join([prompt, flat]) if prompt else flat])
        if uncounted:
            features[POOLING_MASK] = without_prompt(features["input_mask"], uncounted)
        features = {
            name: tf.reshape(each, [shape[0], shape[1], tf.shape(each)[1]])
            for name, each in features.items()
        }
        if y is None:
            return features, tf.reshape(tf.unique(flat).idx, shape)
        if y.dtype == tf.string:
            y = tf.strings.to_hash_bucket_fast(y, 2**31 - 1)
        return features, tf.cast(y, tf.int64 if self._form == "labels" else tf.float32)

    def _weighted(self) -> UserError:
        return UserError(
            f"the loss of a {type(self).__name__} compares the rows of a batch and cannot weight "
            "them; remove sample_weight"
        )

    # ---- Evaluation ---------------------------------------------------------------------------

    def infer(
        self, rows: Columns | Collection, batch_size: int | None = None, verbose: int | str = "auto"
    ) -> np.ndarray | data.Ranking:
        """The predictions that `official_metrics` scores. Pairs with scores give similarities,
        float32 [rows]. Texts with vectors give vectors, float32 [rows, width]. All others give a
        `Ranking`.
        """

        def vectors(texts: Sequence[str], prompt: str | None = None) -> np.ndarray:
            named: dict[str, Any] = {} if prompt is None else {"prompt": prompt}
            named["vectors"] = small_vectors.FLOAT32
            return np.atleast_2d(self.predict(list(texts), batch_size, verbose, **named))

        if isinstance(rows, Columns):
            form = data.form_of(rows)
            if form == "scores":
                first, second = (tf.constant(vectors(column)) for column in rows.values)
                return similarity.pairwise(self.similarity_function, first, second).numpy()
            if form == "vectors" or len(rows.values) == 1 and form == "texts":
                return vectors(rows.values[0])
            rows = data.collection_of(rows)
        _, found = evaluate_retrieval(
            vectors,
            rows,
            _FOUND,
            query_prompt=self._prompt_of("query"),
            passage_prompt=self._prompt_of("document", "passage", "corpus"),
            cosine=self.similarity_function != "dot",
            skip_same_id=True,
        )
        return data.Ranking(rows, found)

    def _prompt_of(self, *names: str) -> str | None:
        """The first of `names` that is a prompt, as in `encode_query` of sentence-transformers."""
        return next((name for name in names if name in self.prompts), None)

    def official_metrics(
        self, predictions: np.ndarray | data.Ranking, rows: Columns | Collection
    ) -> dict[str, float]:
        """The metrics of the result of `infer`: `spearman` and `pearson` of similarities, `loss` of
        vectors, or `retrieval_metrics`. In the last case, an anchor has to find its positive, and a
        labelled text has to find the other texts of its label.
        """
        if isinstance(predictions, data.Ranking):
            return retrieval_metrics(predictions.found, predictions.collection.relevant)
        if isinstance(rows, Collection) or rows.targets is None or rows.targets[0] is None:
            return {}
        targets = self.target.numbers(rows)
        if data.form_of(rows) == "vectors":
            return {"loss": float(np.mean((predictions - targets) ** 2))}
        metrics = regression_metrics(predictions, targets)
        return {name: metrics[name] for name in ("spearman", "pearson")}

    # ---- Answering ----------------------------------------------------------------------------

    def signatures(self) -> dict[str, Signature]:
        """`text` -> `embedding` float32 [batch, width], with one signature for each prompt, and
        "similarity" of pairs. Texts with the same token ids all get the vector of the first.
        """
        default = self._default_text()

        def vectors(texts: tf.Tensor, prompt: str) -> tf.Tensor:
            texts = tf.strings.join([prompt, texts]) if prompt else texts
            # All signatures give the network the same inputs, so that a graph holds it once.
            windows = self.read([texts])
            if self.prompts and not self.include_prompt:
                begins = starts_row(splits_of(windows.counts))[:, tf.newaxis]
                length = tf.where(begins, self._prompt_length(prompt), 0)
                features = windows.features
                features[POOLING_MASK] = without_prompt(features["input_mask"], length)
            return long_texts.outputs(self, windows)

        def embedding(prompt: str, is_whole: bool = False) -> Signature:
            def answer(given: Mapping[str, tf.Tensor]) -> Tensors:
                found = vectors(given["text"], prompt)
                return {"embedding": found if is_whole else self.given_vectors(found)}

            return Signature(strings("text"), answer, _EXAMPLE, is_inner=is_whole)

        def compare(given: Mapping[str, tf.Tensor]) -> Tensors:
            both = vectors(tf.concat([given["text_a"], given["text_b"]], axis=0), default)
            both = both[:, : self.truncate_dim]
            rows = tf.size(given["text_a"])
            found = similarity.pairwise(self.similarity_function, both[:rows], both[rows:])
            pairs = tf.reshape(first_equal(both), [2, rows])
            return {"similarity": as_first(found, tf.transpose(pairs))}

        prompts = {DEFAULT_SIGNATURE: default, **self.prompts}
        return {
            **{name: embedding(text) for name, text in prompts.items()},
            SIMILARITY_SIGNATURE: Signature(strings("text_a", "text_b"), compare, _EXAMPLE_OF_TWO),
            **{_WHOLE + name: embedding(text, is_whole=True) for name, text in prompts.items()},
        }

    def device_form(self) -> DeviceForm:
        self._check_ids()
        with tf.Graph().as_default():
            given = self.given_vectors(tf.compat.v1.placeholder(tf.float32, [None, self.width]))
        return DeviceForm(
            {"embedding": output(given.shape[1], dtype=given.dtype)},
            lambda features: {"embedding": self.given_vectors(self.network()(features))},
            lambda outputs, _: outputs["embedding"],
        )

    def ids_signatures(self) -> dict[str, Signature]:
        self._check_ids()
        return super().ids_signatures()

    def _check_ids(self) -> None:
        """Raises UserError if ids do not show which tokens are pooled."""
        if self.prompts and not self.include_prompt:
            raise UserError(
                "a model that excludes its prompts from pooling cannot be exported with ids as its "
                "inputs; load it with include_prompt=True, or export a SavedModel of strings"
            )

    def strings_form(self) -> StringsForm:
        if self._default_text():
            raise UserError(
                f"the default prompt {self.default_prompt!r} of this {type(self).__name__} "
                "requires string concatenation, which LiteRT cannot do; export a file that takes "
                "ids"
            )
        return super().strings_form()

    def decode(self, scores: tf.Tensor) -> Tensors:
        return {"embedding": self.given_vectors(scores)}

    def exported_functions(self) -> dict[str, Callable]:
        vectors = tf.TensorSpec([None, None], tf.float32)

        def compare(a: tf.Tensor, b: tf.Tensor) -> tf.Tensor:
            return similarity.of_all(self.similarity_function, a, b)

        return {"similarity": tf.function(compare, [vectors, vectors], autograph=False)}

    @classmethod
    def answers(
        cls,
        model: Answers,
        *args: Any,
        truncate_dim: int | None = None,
        vectors: str | None = None,
        **options: Any,
    ) -> np.ndarray:
        settings = cast(Any, model).settings
        # Only a live model can call its inner signatures of whole vectors; an export cannot.
        is_live = isinstance(model, cls) and not is_on_device(model)
        if is_live and (truncate_dim, vectors) != (None, None):
            options["whole"] = True
        if vectors is not None:
            vectors = checked_argument("vectors", vectors)
        truncate_dim = checked_argument("truncate_dim", truncate_dim)
        if truncate_dim is None:
            truncate_dim = settings.get("truncate_dim")
        found = np.asarray(super().answers(model, *args, **options))
        asked = small_vectors.asked_for(np.atleast_2d(found), settings, truncate_dim, vectors)
        return asked.reshape(*found.shape[:-1], -1)

    @classmethod
    def asked(
        cls, model: Answers, x: Any, prompt: str | None = None, whole: bool = False, **options: Any
    ) -> Asked:
        # `prompt` is the name of a prompt; with `whole`, vectors are as the encoder gives them.
        prompts = sorted({*model.signature_names()} - {*_NO_PROMPTS})
        if prompt is not None and prompt not in prompts:
            raise UserError(f"no prompt {prompt!r}; {embedder.known(prompts)}")
        rows, single = inputs.asked(x, cls.columns)
        if not rows:
            raise UserError("there are no texts; give at least one")
        return Asked(rows, single, (_WHOLE if whole else "") + (prompt or DEFAULT_SIGNATURE))

    @staticmethod
    def answer(outputs: Outputs, place: int, row: Row) -> np.ndarray:
        return outputs["embedding"][place]

    @checked
    def similarity(
        self, a: Any, b: Any, batch_size: int | None = None, verbose: int | str = "auto"
    ) -> np.ndarray:
        """How similar each text of `a` is to each text of `b`, by the model's similarity function.

        Args:
            a: texts, one string, or their vectors, float [n, width].
            b: likewise, of m texts.
            batch_size: rows of a batch (32).
            verbose: 0 shows no progress.

        Returns:
            float32 [n, m]. A cosine is from -1 to 1, and 0 for a vector that is all 0. Texts get
            the default prompt. Equal vectors get equal similarities to others, on every processor.

        Raises:
            UserError: something is neither a string nor a vector, or the vectors are of different
                widths.
        """
        key = f"similarity of vectors by {self.similarity_function}"
        functions: Any = self.exported_functions
        compare = self._once(key, lambda: functions()["similarity"].get_concrete_function())
        return self.compared(self, compare, a, b, batch_size, verbose)

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
        """As `similarity`, for a model of this class, or for an export that has `compare`."""

        def vectors(given: Any) -> np.ndarray:
            is_array = isinstance(given, np.ndarray) or tf.is_tensor(given)
            if is_array and np.asarray(given).dtype.kind == "f":
                return np.atleast_2d(np.asarray(given, np.float32))
            if isinstance(given, tf.data.Dataset):
                given, _ = inputs.from_dataset(given, None, "the texts")
            form = small_vectors.FLOAT32
            return np.atleast_2d(cls.answers(model, given, batch_size, verbose, vectors=form))

        first, second = vectors(a), vectors(b)
        if first.ndim != 2 or second.ndim != 2 or first.shape[1] != second.shape[1]:
            raise UserError(
                f"vectors of shapes {list(first.shape)} and {list(second.shape)} cannot be "
                "compared; give [n, width] and [m, width], both from one model"
            )
        return np.asarray(compare(tf.constant(first), tf.constant(second)))
