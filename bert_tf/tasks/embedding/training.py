"""How an embedder is trained and evaluated: on pairs, scores, labels, or a teacher's vectors."""

import dataclasses
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import keras
import numpy as np
import tensorflow as tf

from bert_tf.asking import plain
from bert_tf.compat import layers_below
from bert_tf.data.batching import TrainingRows
from bert_tf.data.columns import Column, Columns, TextColumn
from bert_tf.distillation.losses import Matched
from bert_tf.errors import UserError
from bert_tf.retrieval.collection import Collection
from bert_tf.retrieval.evaluation import Found, evaluate_retrieval
from bert_tf.retrieval.measures import retrieval_metrics
from bert_tf.tasks.embedding.data import (
    EmbeddingTarget,
    collection_of,
    form_of,
    names_of,
    numbered,
)
from bert_tf.tasks.embedding.losses import (
    BatchAllTriplet,
    CoSENT,
    Distillation,
    EmbeddingLoss,
    Form,
    MultipleNegativesRanking,
)
from bert_tf.tasks.embedding.pooling import POOLING_MASK, without_prompt
from bert_tf.tasks.embedding.similarity import pairwise
from bert_tf.tasks.regression.metrics import regression_metrics
from bert_tf.tasks.task_model import TaskModel
from bert_tf.training.accumulation import Gradients, accumulated, in_parts

# The loss of rows of each form, unless another is given.
DEFAULTS: dict[Form, type[EmbeddingLoss]] = {
    "texts": MultipleNegativesRanking,
    "scores": CoSENT,
    "labels": BatchAllTriplet,
    "vectors": Distillation,
}
_IN_WORDS: dict[Form, str] = {
    "texts": "texts, or anchors with their positives, without targets",
    "scores": "pairs with scores",
    "labels": "texts with labels",
    "vectors": "texts with the vectors of a teacher",
}
# How many of the best are kept for each query.
_FOUND = 100


@dataclasses.dataclass(frozen=True)
class NumberedTexts(TrainingRows):
    """Groups of texts ready for the model; each different text is kept once.

    >>> from bert_tf.data.batching import EncodedRows
    >>> encoded = EncodedRows(np.array([2, 5, 3, 2, 3]), np.zeros(5, int), np.array([0, 3, 5]))
    >>> rows = NumberedTexts(encoded, np.array([[0, 1], [1, 1]]))
    >>> inputs, texts = rows.take(np.array([0]))
    >>> inputs["input_word_ids"].tolist(), texts.tolist()
    ([[[2, 5, 3], [2, 3, 0]]], [[0, 1]])

    Attributes:
        encoded: the different texts.
        texts: int32 [rows, texts], the numbers of the texts of each row.
        targets: [rows, ...]; None if the numbers of the texts are the targets.
        uncounted: tokens at the start of each text that do not count in pooling.
    """

    texts: np.ndarray
    targets: np.ndarray | None = None
    uncounted: int = 0

    @property
    def lengths(self) -> np.ndarray:
        """int64 [rows]: tokens of all texts of each row."""
        return self.encoded.lengths[self.texts].sum(axis=1)

    def take(self, rows: np.ndarray) -> tuple:
        """The inputs of all texts, [batch, texts, seq_len], and the targets."""
        texts = self.texts[rows]
        flat = self.encoded.take(texts.ravel())
        if self.uncounted:
            counted = np.arange(flat["input_mask"].shape[1]) >= self.uncounted
            flat[POOLING_MASK] = flat["input_mask"] * counted.astype(np.int32)
        features = {name: each.reshape(*texts.shape, -1) for name, each in flat.items()}
        return features, texts if self.targets is None else self.targets[rows]


class Ranking(NamedTuple):
    """What was found for each query, in which search.

    Attributes:
        collection: the search.
        found: id of a query -> id of a passage -> score, best first.
    """

    collection: Collection
    found: Found


class EmbeddingTraining(TaskModel):
    """The training of a model that gives each text a vector; a subclass defines `embed`.

    The model takes ids [batch, seq_len] and returns float32 [batch, width]; of ids
    [batch, texts, seq_len], as it is trained with, it returns float32 [batch, texts, width].

    Its loss takes the vectors of a whole batch. So `compile(accumulation_steps=n)` is GradCache,
    and devices that share a batch share their vectors.

    Attributes:
        width: numbers of a vector; a subclass sets it.
    """

    # Negatives of one length would be another task than those that a search has.
    group_by_length = False

    width: int
    loss: Any
    # The form of the rows of the last `fit`.
    _form: Form = "texts"
    _loss_of_fit: EmbeddingLoss | None = None

    # How two vectors are compared, and the prompts by name: a subclass sets them.
    similarity_function: str
    prompts: Mapping[str, str]

    @abstractmethod
    def training_prompt(self) -> tuple[str, int]:
        """What is put before each text that is trained on, as `predict` does.

        Returns:
            The text, and how many tokens at the start of a row do not count in pooling.
        """

    @abstractmethod
    def embed(self, inputs: Mapping[str, tf.Tensor], training: bool = False) -> tf.Tensor:
        """The vectors of texts: the encoder's inputs [batch, seq_len] -> float32 [batch, width]."""

    def call(self, inputs: Mapping[str, tf.Tensor], training: bool = False) -> tf.Tensor:
        """See the class."""
        if inputs["input_mask"].shape.rank == 2:
            return self.embed(inputs, training)
        shape = tf.shape(inputs["input_mask"])
        rows = {name: tf.reshape(each, [-1, shape[2]]) for name, each in inputs.items()}
        return tf.reshape(self.embed(rows, training), [shape[0], shape[1], self.width])

    def matched(self, outputs: tf.Tensor, y: Any) -> Sequence[Matched]:
        # The vectors, as a mean over the texts of a row.
        shape = tf.shape(outputs)[:2]
        return [Matched("values", outputs, tf.fill(shape, 1.0 / tf.cast(shape[1], tf.float32)))]

    def is_labelled(self, rows: Columns) -> bool:
        # An anchor has its positive.
        return rows.targets is not None or len(rows.values) > 1

    # ---- The loss and its gradient ------------------------------------------------------------

    def compile(self, *args: Any, loss: Any = None, **kwargs: Any) -> None:
        """Keras's `compile`, with a loss of vectors; see `EncoderModel`.

        Args:
            *args: as in Keras.
            loss: an `EmbeddingLoss`; None is the one of the data of the last `fit`, or
                `MultipleNegativesRanking`.
            **kwargs: as in Keras. With `accumulation_steps`, a batch is encoded in so many parts,
                twice, and the gradient is still that of the loss of the whole batch (GradCache).

        Raises:
            UserError: another loss, or one that does not fit the width of the vectors.
        """
        optimizer, second, others = args[:1], args[1:2], args[2:]
        loss = loss or (second and second[0]) or self._loss_of_fit or DEFAULTS[self._form]()
        loss = self._checked(loss)
        super().compile(*optimizer, *(None for _ in second), *others, **kwargs)
        # Not Keras's to call: it would turn the numbers of texts into float32.
        self.loss = loss

    def get_compile_config(self) -> dict[str, Any] | None:
        """What `compile` was called with, as plain data."""
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
        """This replica's share of the loss of the batch, which it computes from all vectors."""
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
        """The gradients of a batch and its loss, where there are parts by GradCache.

        All parts are encoded, the loss gives the gradient of each vector, and each part is encoded
        again, with the same draws of dropout, to give the gradients of the weights (Gao et al.
        2021, arXiv 2101.06983). Only one part at a time is kept for its gradient.
        """
        parts, unrolled, teaching = self.accumulation_steps, self.jit_compile, self.teaching
        if parts == 1:
            return gradients_of(batch)
        if teaching is not None and not teaching.hard:
            # No row is compared with another.
            return super().accumulated(gradients_of, batch, weights)
        x, y, sample_weight = batch
        factor = 1.0 if teaching is None else teaching.hard
        before = [(state, tf.identity(state.value)) for state in self._states_of_dropout()]
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
                # Its gradient by the vectors is theirs.
                of_vectors = tf.reduce_sum(gradient * part)
                both = self.optimizer.scale_loss(learned) + of_vectors
            return tape.gradient(both, weights, unconnected_gradients="zero"), learned

        sums = self.batch_sums(y)
        rows = x, y, tape.gradient(scaled, vectors)
        gradients, learned = accumulated(again, rows, parts, weights, unrolled)
        return gradients, loss + learned

    def _states_of_dropout(self) -> list[keras.Variable]:
        """The variables that decide the next draws of all layers."""
        generators = (getattr(layer, "seed_generator", None) for layer in layers_below(self))
        return [each.state for each in generators if each is not None]

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

        Each is a column of strings. A dataset of (x, y), or of x as a dict, has the same forms.
        Rows of a batch are drawn whatever their length, as the texts of a search are.

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
            self.check_not_compiled("loss", "compile")
            self._checked(loss)
        if kwargs.get("class_weight") is not None:
            raise UserError(
                f"class_weight is for classes, but a {type(self).__name__} has none; remove it"
            )
        self._loss_of_fit = loss
        return super().fit(x, y, *args, **kwargs)

    @property
    def target(self) -> EmbeddingTarget:
        return EmbeddingTarget(self.width)

    def columns_of(self, x: Any) -> tuple[Column, ...]:
        names = (
            tuple(x) if isinstance(x, Mapping) else names_of(len(x) if isinstance(x, tuple) else 1)
        )
        return tuple(map(TextColumn, names))

    def given(
        self, x: Any, y: Any = None, sample_weight: Any = None, may_lack_targets: bool = False
    ) -> Columns:
        if sample_weight is not None:
            raise self._weighted()
        if getattr(y, "ndim", 0) == 2:
            # Rows of an array, not of Python's numbers.
            y = [*np.asarray(y)]
        rows = super().given(x, y)
        values = tuple(list(map(plain, column)) for column in rows.values)
        return dataclasses.replace(rows, values=values)

    def learn_from(self, rows: Columns) -> None:
        # Sets the form of the data, and checks that the loss fits them.
        self._take_up(form_of(rows))
        if rows.targets is not None:
            self._loss_now().check(self.target.numbers(rows))

    def _take_up(self, form: Form) -> None:
        """Sets the form of the data. Raises UserError if the loss takes another."""
        self._form = form
        check_form(self._loss_now(), form)

    def _loss_now(self) -> EmbeddingLoss:
        """The loss of the training that begins."""
        if self.is_compiled_by_user():
            return self.loss
        return self._loss_of_fit or DEFAULTS[self._form]()

    def examples(
        self, rows: Columns, class_weight: Mapping[int, float] | None = None
    ) -> NumberedTexts:
        # Each different text is tokenized once.
        if rows.weights is not None:
            raise UserError(
                f"a {type(self).__name__} compares the rows of a batch, so either all rows or no "
                "rows may have targets; remove distillation.unlabelled"
            )
        texts, numbers = numbered(rows)
        prompt, uncounted = self.training_prompt()
        encoded = self.encoded(([prompt + text for text in texts] if prompt else texts,))
        targets = None if rows.targets is None else self.target.numbers(rows)
        return NumberedTexts(encoded, numbers, targets, uncounted)

    def _batches(self, examples: Any, batch_size: int, *args: Any) -> tf.data.Dataset:
        check_batch(self._loss_now(), batch_size, examples.texts.shape[1])
        return super()._batches(examples, batch_size, *args)

    def _learn_from_dataset(self, dataset: tf.data.Dataset, steps: int | None) -> None:
        super()._learn_from_dataset(dataset, steps)
        element = dataset.element_spec
        x, *targets = element if isinstance(element, tuple) else (element,)
        if len(targets) > 1:
            raise self._weighted()
        columns = tf.nest.flatten(x)
        form: Form = "texts"
        if targets:
            form = "scores" if len(columns) > 1 else "labels"
            if targets[0].shape.rank == 2:
                form = "vectors"
                if targets[0].shape[1] not in (None, self.width):
                    raise UserError(
                        f"the teacher's vectors in the dataset have {targets[0].shape[1]} "
                        f"dimensions, but the vectors of this model have {self.width}; choose a "
                        "teacher of that width"
                    )
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
        flat_features = self.preprocessor()(tf.strings.join([prompt, flat]) if prompt else flat)
        if uncounted:
            mask = without_prompt(flat_features["input_mask"], uncounted)
            flat_features[POOLING_MASK] = mask
        features = {
            name: tf.reshape(each, [shape[0], shape[1], tf.shape(each)[1]])
            for name, each in flat_features.items()
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
        self,
        rows: Columns | Collection,
        batch_size: int | None = None,
        verbose: int | str = "auto",
    ) -> np.ndarray | Ranking:
        """What `official_metrics` is computed from.

        Returns:
            Of pairs with scores, float32 [rows]: their similarities. Of texts with vectors, float32
            [rows, width]: those of this model. Otherwise what was found for each query, where
            queries have the prompt "query", and passages "document", "passage" or "corpus", if the
            model has it.
        """

        def vectors(texts: Sequence[str], prompt: str | None = None) -> np.ndarray:
            named: dict[str, Any] = {} if prompt is None else {"prompt": prompt}
            return np.atleast_2d(self.predict(list(texts), batch_size, verbose, **named))

        if isinstance(rows, Columns):
            form = form_of(rows)
            if form == "scores":
                first, second = (tf.constant(vectors(column)) for column in rows.values)
                return pairwise(self.similarity_function, first, second).numpy()
            if form == "vectors" or len(rows.values) == 1 and form == "texts":
                return vectors(rows.values[0])
            rows = collection_of(rows)
        _, found = evaluate_retrieval(
            vectors,
            rows,
            _FOUND,
            query_prompt=self._prompt_of("query"),
            passage_prompt=self._prompt_of("document", "passage", "corpus"),
            cosine=self.similarity_function != "dot",
            skip_same_id=True,
        )
        return Ranking(rows, found)

    def _prompt_of(self, *names: str) -> str | None:
        """The first of `names` that is a prompt, as in `encode_query` of sentence-transformers."""
        return next((name for name in names if name in self.prompts), None)

    def official_metrics(
        self, predictions: np.ndarray | Ranking, rows: Columns | Collection
    ) -> dict[str, float]:
        """The metrics of what `infer` returned.

        Returns:
            Of pairs with scores `spearman` and `pearson`, the correlations with the similarities.
            Of texts with vectors `loss`, the mean squared error. Of others, those of
            `retrieval_metrics`: an anchor has to find its positive among all texts that are not
            anchors, a labelled text the others of its label. Of single texts alone, {}.
        """
        if isinstance(predictions, Ranking):
            return retrieval_metrics(predictions.found, predictions.collection.relevant)
        if isinstance(rows, Collection) or rows.targets is None or rows.targets[0] is None:
            return {}
        targets = self.target.numbers(rows)
        if form_of(rows) == "vectors":
            return {"loss": float(np.mean((predictions - targets) ** 2))}
        metrics = regression_metrics(predictions, targets)
        return {name: metrics[name] for name in ("spearman", "pearson")}


def check_form(loss: EmbeddingLoss, form: Form) -> None:
    """Raises UserError if a loss takes data of another form.

    >>> check_form(CoSENT(), "labels")
    Traceback (most recent call last):
        ...
    bert_tf.errors.UserError: the loss CoSENT takes pairs with scores, but the data are texts...
    """
    if loss.takes != form:
        raise UserError(
            f"the loss {type(loss).__name__} takes {_IN_WORDS[loss.takes]}, but the data are "
            f"{_IN_WORDS[form]}; choose another, such as {DEFAULTS[form].__name__}"
        )


def check_batch(loss: EmbeddingLoss, batch_size: int | None, texts: int) -> None:
    """Raises UserError if a batch has no negatives.

    >>> check_batch(MultipleNegativesRanking(), 1, texts=2)
    Traceback (most recent call last):
        ...
    bert_tf.errors.UserError: MultipleNegativesRanking takes the negatives of a pair from...

    Args:
        loss: the loss.
        batch_size: rows of a batch; None if it is not known.
        texts: how many texts a row has.
    """
    if loss.in_batch and batch_size == 1 and texts == 2:
        raise UserError(
            f"{type(loss).__name__} takes the negatives of a pair from the other rows of its "
            "batch, but a batch has 1 row; give batches of 2 rows or more"
        )
