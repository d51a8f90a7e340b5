"""A cross-encoder: query and passage are read together, and get one score (paper, section 4.1)."""

from collections.abc import Mapping, Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from bert_tf.asking import Outputs, Row
from bert_tf.config.arguments import checked
from bert_tf.data.columns import Columns, TextColumn, as_list, is_text
from bert_tf.distillation.losses import Matched
from bert_tf.encoder.encoder import Encoder
from bert_tf.export.litert.form import DeviceForm, output
from bert_tf.export.service import Tensors
from bert_tf.io.json_files import as_json
from bert_tf.models.logits import PADDING_SCORE
from bert_tf.tasks import long_texts
from bert_tf.tasks.fitting import check_not_compiled, is_compiled_by_user
from bert_tf.tasks.reranking import candidates
from bert_tf.tasks.reranking.losses import ACTIVATIONS, BinaryCrossEntropyLoss, RankingLoss, loss_of
from bert_tf.tasks.texts.groups import GroupModel, alike_where_equal
from bert_tf.text import Tokenizer


@keras.saving.register_keras_serializable("bert_tf")
class Reranker(GroupModel):
    """Ranks passages by how well they answer a query.

    `Reranker.from_checkpoint("cross-encoder/ms-marco-MiniLM-L6-v2")` ranks well as it is. Here the
    encoder is tiny and has random weights:

    >>> from bert_tf import EncoderConfig
    >>> tokenizer = Tokenizer("[PAD] [UNK] [CLS] [SEP] [MASK] who sat cat ran".split())
    >>> config = EncoderConfig(9, hidden_size=8, num_hidden_layers=1, num_attention_heads=2)
    >>> model = Reranker(Encoder(config), tokenizer)
    >>> answer = model.predict("Who sat", ["cat sat", "cat ran"])
    >>> sorted(answer["order"]), [round(each, 1) for each in answer["scores"]]
    ([0, 1], [0.5, 0.5])

    `fit` takes (queries, passages) with the relevance: one passage and one number for each query,
    or a list of passages and a list of numbers. Lists may have different lengths. `predict` returns
    for each query a dict of `order`, the numbers of its passages from best to worst, counted from
    0, and `scores`, in the order of the passages given. Equal passages have the same score, and
    keep the order in which they were given. Called with the encoder's inputs, each
    [batch, passages, seq_len], the model returns float32 logits [batch, passages]. A passage whose
    mask is all 0 is padding.

    Args:
        encoder, tokenizer: what reads the texts.
        activation: the function from logits to scores: "sigmoid" or "identity".
        max_length: the maximum number of tokens of a query with a passage; None is as many as the
            encoder has positions.
        dropout: rate on the pooled output; None takes the encoder's.
        long_text, stride, max_windows: how longer texts are read, as pairs by `TextClassifier`. The
            score of a passage is the best score of its windows.

    Raises:
        UserError: an unknown activation, or settings of windows without windows.
    """

    columns = candidates.COLUMNS
    setting_names = ("activation", "max_length")
    default_max_length = None
    head_name = "classifier"
    targets_of_pairs = True

    @checked
    def __init__(
        self,
        encoder: Encoder,
        tokenizer: Tokenizer | None,
        activation: str = "sigmoid",
        max_length: int | None = None,
        dropout: float | None = None,
        long_text: str = "truncate",
        stride: int | None = None,
        max_windows: int | None = None,
        **kwargs: Any,
    ):
        super().__init__(encoder, tokenizer, max_length, dropout, **kwargs)
        long_texts.set_up(self, long_text, None, stride, max_windows)
        self.activation = activation
        # The default loss of the next `compile`.
        self._next_loss: Any = None

    def fit(self, *args: Any, loss: Any = None, **kwargs: Any) -> keras.callbacks.History:
        """Keras's `fit`, on strings or on ids; see `TaskModel`.

        Args:
            *args: as for `TaskModel`.
            loss: the loss, if the model is not compiled: a `keras.losses.Loss` or a name.
                "binary_cross_entropy" is for a relevance from 0 to 1, and the default for single
                passages; "list_net" is the default for lists; "lambda_loss" is for lists, too;
                "mean_squared_error" is for any numbers, such as the logits of a teacher.
            **kwargs: as for `TaskModel`.

        Raises:
            UserError: as for `TaskModel`; or a relevance that does not fit the loss.
        """
        if loss is not None:
            check_not_compiled(self, "loss", "compile")
        self._next_loss = None if loss is None else loss_of(loss)
        try:
            return super().fit(*args, **kwargs)
        finally:
            self._next_loss = None

    def own_losses(self) -> dict[str, Any]:
        return {"loss": self._next_loss or BinaryCrossEntropyLoss()}

    def _loss_to_learn(self) -> Any:
        return self.loss if is_compiled_by_user(self) else self.own_losses()["loss"]

    def _decide_loss(self, are_lists: bool) -> Any:
        """`_loss_to_learn`, where `fit` takes the default unless it was given another one."""
        self._next_loss = self._next_loss or candidates.default_loss(are_lists)
        return self._loss_to_learn()

    def matched(self, outputs: tf.Tensor, y: tf.Tensor) -> Sequence[Matched]:
        # The logits of the passages, as a mean over those of each query.
        is_there = tf.cast(~tf.math.is_nan(y), tf.float32)
        share = tf.math.divide_no_nan(is_there, tf.reduce_sum(is_there, axis=1, keepdims=True))
        logits = tf.where(is_there > 0, outputs, 0.0)
        return [Matched("values", logits[..., tf.newaxis], share)]

    def replica_sums(self, y: Any) -> dict[str, tf.Tensor]:
        sums = super().replica_sums(y)
        if isinstance(self.loss, RankingLoss):
            sums["counted"] = tf.reduce_sum(self.loss.counts(y))
        return sums

    def part_loss(
        self, x: Any, y: Any, y_pred: Any, sample_weight: Any, sums: Mapping[str, tf.Tensor]
    ) -> tf.Tensor:
        # A `RankingLoss` is divided by its count over the whole batch.
        if not isinstance(self.loss, RankingLoss):
            return super().part_loss(x, y, y_pred, sample_weight, sums)
        losses = self.loss.sums(y, y_pred)
        if sample_weight is not None:
            losses *= tf.cast(tf.reshape(sample_weight, [-1]), losses.dtype)
        # Losses that layers have added are weighted by rows.
        share = super().replica_sums(y)["rows"] / sums["rows"]
        own = tf.reduce_sum(losses) / tf.maximum(sums["counted"], 1.0)
        return tf.add_n([own, *(share * tf.reduce_sum(added) for added in self.losses)])

    @property
    def target(self) -> candidates.Relevance:
        return candidates.Relevance()

    def given(self, x: Any, y: Any = None, *args: Any, **kwargs: Any) -> Columns:
        # A passage may be one string, and strings "" at the end of a list are padding.
        names, columns = self.input_names, x
        if isinstance(x, Mapping):
            columns = tuple(x[name] for name in names if name in x)
        if isinstance(columns, tuple) and len(columns) == 2:
            groups = as_list(columns[1], names[1])
            given = y if y is None else as_list(y, "relevance")
            if groups and is_text(groups[0]):
                TextColumn("passage").checked(groups, Columns(names, (groups,)))
                y = None if given is None else [[each] for each in given]
                groups = [[each] for each in groups]
            else:
                y = None if given is None else _without_padding(given, groups)
                groups = list(map(_padding_removed, groups))
            x = columns[0], groups
        return super().given(x, y, *args, **kwargs)

    def learn_from(self, rows: Columns) -> None:
        candidates.check_loss(rows, self._decide_loss(candidates.has_lists(rows)))

    def _learn_from_dataset(self, dataset: tf.data.Dataset, steps: int | None) -> None:
        super()._learn_from_dataset(dataset, steps)
        x = dataset.element_spec[0]
        are_lists = (x["passages"] if isinstance(x, Mapping) else x[1]).shape.rank == 2
        candidates.check_has_lists(self._decide_loss(are_lists), are_lists)

    def encode_targets(self, y: Any, is_there: tf.Tensor) -> tf.Tensor:
        if isinstance(y, tf.RaggedTensor):
            y = tf.cast(y, tf.float32).to_tensor()
        relevance = tf.reshape(tf.cast(y, tf.float32), tf.shape(is_there))
        if isinstance(self._loss_to_learn(), BinaryCrossEntropyLoss):
            fits = ~is_there | (relevance >= 0) & (relevance <= 1)
            said = f"in the dataset, a relevance {candidates.OUTSIDE}"
            with tf.control_dependencies([tf.debugging.Assert(tf.reduce_all(fits), [said])]):
                relevance = tf.identity(relevance)
        return tf.where(is_there, relevance, np.nan)

    def official_metrics(
        self, predictions: Sequence[np.ndarray], rows: Columns
    ) -> dict[str, float]:
        # The loss is that of the training, if it is one of bert_tf.
        loss = self.loss if self.compiled and isinstance(self.loss, RankingLoss) else None
        return candidates.ranking_metrics(predictions, rows, loss)

    def decode(self, scores: tf.Tensor) -> Tensors:
        """`order` int32 and `scores` float32, both [batch, passages]; see the class. A passage ""
        is padding: its score is 0, and `order` ends with -1 for it. The order follows the logits,
        because a sigmoid may give two different logits the same score.
        """
        is_there = scores > PADDING_SCORE
        hidden = tf.where(is_there, scores, -float("inf"))
        order = tf.argsort(hidden, direction="DESCENDING", stable=True)
        count = tf.reduce_sum(tf.cast(is_there, tf.int32), axis=1, keepdims=True)
        place = tf.range(tf.shape(scores)[1])
        activated = ACTIVATIONS[self.activation](scores)
        return {
            "order": tf.where(place < count, order, -1),
            "scores": tf.where(is_there, alike_where_equal(activated, scores), 0.0),
        }

    def device_form(self) -> DeviceForm:
        of_logits = super().device_form()

        def answer(features: Mapping[str, tf.Tensor]) -> Tensors:
            found = of_logits.answer(features)
            return found | {"score": ACTIVATIONS[self.activation](found["logit"])}

        return DeviceForm({**of_logits.outputs, "score": output()}, answer, of_logits.restore)

    @staticmethod
    def answer(outputs: Outputs, place: int, row: Row) -> dict[str, Any]:
        size = len(row["passages"])
        return {name: as_json(outputs[name][place][:size]) for name in ("order", "scores")}


def _padding_removed(passages: Any) -> Any:
    """A list of passages without the strings "" at its end; anything else as it is."""
    if is_text(passages) or not isinstance(passages, list | tuple | np.ndarray):
        return passages
    kept = list(passages)
    while kept and isinstance(kept[-1], str | bytes) and not kept[-1]:
        kept.pop()
    return kept


def _without_padding(relevance: Sequence[Any], groups: Sequence[Any]) -> list[Any]:
    """The relevance of each row, without the entries of padding passages."""
    found = list(relevance)
    for row, (values, passages) in enumerate(zip(relevance, groups, strict=False)):
        is_list = isinstance(values, list | tuple | np.ndarray)
        if is_list and hasattr(passages, "__len__") and len(values) == len(passages):
            found[row] = values[: len(_padding_removed(passages))]
    return found
