"""The common base of models that score several texts, each together with the same first text."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, cast

import keras
import numpy as np
import tensorflow as tf

from bert_tf.asking import each_answer, rows_of
from bert_tf.asking.saved_model import tensors_of
from bert_tf.config.arguments import checked
from bert_tf.data.batching import GroupedRows
from bert_tf.data.columns import Columns, GroupColumn, Target, TextColumn
from bert_tf.encoder.encoder import Encoder
from bert_tf.export.litert.form import DeviceForm, StringsForm, of_packed, output
from bert_tf.export.service import Tensors
from bert_tf.models.logits import PADDING_SCORE, hide_padding
from bert_tf.tasks import long_texts
from bert_tf.tasks.task_model import TaskModel, head_dropout
from bert_tf.text import Tokenizer
from bert_tf.text.parts import as_first, first_equal, map_rows


class GroupModel(TaskModel):
    """A linear layer with one output on the pooled output of each text with its first text.

    Called with the encoder's inputs, each [batch, group, seq_len], it returns float32 scores
    [batch, group]. A text whose mask is all 0 is padding, with a score far below all others. A text
    that is read in windows has the best score of its windows.

    On strings, pairs with the same token ids all get the score of the first such pair in the batch.
    Equal scores keep the order of their texts, on every processor.
    """

    # The first text, and the group of others.
    columns: ClassVar[tuple[TextColumn, GroupColumn]]
    # The attribute that holds the linear layer, by which checkpoints name its weights.
    head_name: ClassVar[str]
    call_rank = 3
    # Whether each text of a group has a target, or the whole group.
    targets_of_pairs: ClassVar[bool] = False

    @checked
    def __init__(
        self,
        encoder: Encoder,
        tokenizer: Tokenizer | None,
        max_length: int | None = None,
        dropout: float | None = None,
        **kwargs: Any,
    ):
        super().__init__(encoder, tokenizer, {"dropout": dropout}, max_length, **kwargs)
        if tokenizer is not None:
            self.preprocessor()
        self.dropout = head_dropout(self, dropout)
        setattr(self, self.head_name, self.make_linear(1, self.head_name))
        self.build()

    def build(self, input_shape: Any = None) -> None:
        self.dropout.build((None, self.encoder.config.output_size))
        getattr(self, self.head_name).build((None, self.encoder.config.output_size))
        self.built = True

    def call(self, inputs: Mapping[str, tf.Tensor], training: bool = False) -> tf.Tensor:
        shape = tf.shape(inputs["input_mask"])
        rows = {
            name: tf.reshape(value, tf.concat([[shape[0] * shape[1]], tf.shape(value)[2:]], axis=0))
            for name, value in inputs.items()
        }
        windows, row = long_texts.split(self, rows)
        pooled = self.encoder.pooled(windows, training=training)
        scores = getattr(self, self.head_name)(self.dropout(pooled, training=training))
        scores = tf.cast(scores, tf.float32)[:, 0]
        if self.long_text == long_texts.WINDOWS:
            scores = tf.math.unsorted_segment_max(scores, row, shape[0] * shape[1])
        scores = tf.reshape(scores, shape[:2])
        return hide_padding(scores, tf.reduce_max(inputs["input_mask"], axis=2))

    def examples(
        self, rows: Columns, class_weight: Mapping[int, float] | None = None
    ) -> GroupedRows:
        firsts, others = rows.values
        repeated = [first for first, group in zip(firsts, others, strict=True) for _ in group]
        ends = np.cumsum([*map(len, others)])[:, None]
        pairs = np.arange(max(map(len, others))) + np.vstack([[[0]], ends[:-1]])
        return GroupedRows(
            self.encoded((repeated, [text for group in others for text in group])),
            cast(Target, self.target).numbers(rows),
            rows.weights,
            groups=np.where(pairs < ends, pairs, -1),
            of_texts=self.targets_of_pairs,
        )

    def encode(self, x: Any, y: Any, weights: Any = None) -> tuple:
        # A text "" is padding; where each text has a target, a row may also be one text alone.
        first, others = x
        if isinstance(others, tf.RaggedTensor):
            others = others.to_tensor("")
        if others.shape.rank == 1 and self.targets_of_pairs:
            others = others[:, tf.newaxis]
        shape = tf.shape(others)
        pairs = tf.repeat(first, shape[1]), tf.reshape(others, [-1])
        features = {
            name: tf.reshape(each, [shape[0], shape[1], tf.shape(each)[1]])
            for name, each in self.packed(pairs).items()
        }
        is_there = others != ""
        features["input_mask"] *= tf.cast(is_there, tf.int32)[..., tf.newaxis]
        return keras.utils.pack_x_y_sample_weight(
            features, self.encode_targets(y, is_there), weights
        )

    def encode_targets(self, y: Any, is_there: tf.Tensor) -> tf.Tensor:
        """Targets of a batch of a dataset, in a graph; bool [batch, group] is False at padding."""
        return cast(Target, self.target).encoded(y)

    def infer(
        self, rows: Columns, batch_size: int | None = None, verbose: int | str = "auto"
    ) -> Any:
        groups = rows.values[1]
        return each_answer(
            self,
            "scores",
            rows_of(rows.values, self.input_names),
            lambda outputs, place, row: outputs["scores"][place][: len(groups[row])],
            batch_size,
            verbose,
        )

    def device_form(self) -> DeviceForm:
        """`logit` float32 [1], of one text with its first text."""

        def answer(features: Mapping[str, tf.Tensor]) -> Tensors:
            rows = {name: each[tf.newaxis] for name, each in features.items()}
            return {"logit": self.network()(rows)[0]}

        return DeviceForm(
            {"logit": output()}, answer, lambda outputs, _: outputs["logit"][:, tf.newaxis]
        )

    def strings_form(self) -> StringsForm:
        second = self.input_names[1].removesuffix("s")
        return one_by_one(self, second, str, "logit", lambda logits, _: self.decoded(logits))

    def scores(self, given: Mapping[str, tf.Tensor]) -> tf.Tensor:
        """float32 [batch, group]: the score of each text, and PADDING_SCORE for padding, ""."""
        first, others = (given[name] for name in self.input_names)

        def scores(*pairs: tf.Tensor) -> tf.Tensor:
            windows = self.read(pairs)
            each = map_rows(self._scores_of_rows, windows.features)
            return tf.math.unsorted_segment_max(each, windows.rows, tf.size(windows.counts))

        return in_groups(first, others, scores)

    def scores_of_ids(self, given: Mapping[str, tf.Tensor]) -> tf.Tensor:
        return of_rows(self._scores_of_rows, given)

    def _scores_of_rows(self, rows: Mapping[str, tf.Tensor]) -> tf.Tensor:
        """float32 [rows], of the encoder's inputs [rows, seq_len]."""
        # The score of a text does not depend on the others: each can be a group by itself.
        groups = {name: values[:, tf.newaxis, :] for name, values in rows.items()}
        return self.network()(groups)[:, 0]


def in_groups(
    first: tf.Tensor, others: tf.Tensor, scores: Callable[[tf.Tensor, tf.Tensor], tf.Tensor]
) -> tf.Tensor:
    """The scores of each text with its first text, float32 [batch, group, ...].

    `first` is string [batch], and `others` string [batch, group]; "" is padding, whose score is
    PADDING_SCORE. `scores` takes pairs, both texts string [pairs]; it returns float32 [pairs, ...].
    """
    places = tf.where(others != "")
    found = scores(tf.gather(first, places[:, 0]), tf.gather_nd(others, places))
    shape = tf.concat([tf.shape(others), tf.shape(found)[1:]], axis=0)
    return tf.tensor_scatter_nd_update(tf.fill(shape, PADDING_SCORE), places, found)


def of_rows(
    scores: Callable[[Mapping[str, tf.Tensor]], tf.Tensor], given: Mapping[str, tf.Tensor]
) -> tf.Tensor:
    """As `in_groups`, for ids int32 [batch, group, seq_len]; `scores` takes rows [rows, seq_len].
    A text whose mask is all 0 is padding. Equal rows have the same score.
    """
    shape = tf.shape(given["input_mask"])
    flat = tf.stack([shape[0] * shape[1], shape[2]])
    rows = {name: tf.reshape(each, flat) for name, each in given.items()}
    found = map_rows(scores, rows)
    more = found.shape[1:]
    is_there = tf.reduce_any(rows["input_mask"] != 0, axis=1)
    found = tf.where(tf.reshape(is_there, [-1, *[1] * more.rank]), found, PADDING_SCORE)
    found = tf.reshape(found, tf.concat([shape[:2], tf.shape(found)[1:]], axis=0))
    return tf.ensure_shape(found, [None, None, *more])


def one_by_one(
    model: TaskModel,
    second: str,
    text_of: Callable[[Any], str],
    score: str,
    decode: Callable[[tf.Tensor, tf.Tensor], Tensors],
) -> StringsForm:
    """How a model of groups answers strings on a device: each text with its first text.

    `second` names the input of a text, and `score` the output of `device_form` for a pair. `decode`
    takes the scores of all texts, and the groups.
    """
    form, (first, others) = model.device_form(), model.input_names
    names = first, second

    def requests(row: Mapping[str, Any]) -> list[Mapping[str, Any]]:
        return [{first: row[first], second: text_of(text)} for text in row[others] if text]

    def respond(outputs: Mapping[str, np.ndarray], rows: Sequence[Mapping[str, Any]]) -> Tensors:
        given = tensors_of(rows, {first: 1, others: 2})
        found = tf.constant(outputs[score])
        return decode(in_groups(given[first], given[others], lambda *_: found), given[others])

    return StringsForm(names, form.outputs, of_packed(form, names), requests, respond)


def alike_where_equal(values: tf.Tensor, scores: tf.Tensor) -> tf.Tensor:
    """`values` [batch, group], made equal where the `scores` [batch, group] of a row are equal."""
    shape = tf.shape(scores)
    rows = tf.broadcast_to(first_equal(scores)[:, tf.newaxis], shape)
    keys = tf.stack([rows, tf.bitcast(scores, tf.int32)], axis=2)
    flat = as_first(tf.reshape(values, [-1]), tf.reshape(keys, [-1, 2]))
    return tf.reshape(flat, shape)
