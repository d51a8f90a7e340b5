"""The pieces that fill the gaps of a text: masked language modelling (paper, section 3.1)."""

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import keras
import numpy as np
import tensorflow as tf

from bert_tf.asking import BATCH, Answers, Outputs, Row, batches_by_length, plain
from bert_tf.asking.saved_model import NETWORK
from bert_tf.config.arguments import checked
from bert_tf.console import Progress
from bert_tf.data.batching import TrainingRows
from bert_tf.data.columns import Columns, TextColumn
from bert_tf.data.corpora.masking import MaskedBatch, Masking, causal_lm_targets
from bert_tf.data.until_exit import counter
from bert_tf.distillation.losses import Matched
from bert_tf.encoder.encoder import Encoder
from bert_tf.errors import UserError
from bert_tf.export.litert.form import DeviceForm, StringsForm
from bert_tf.export.service import Signature, Tensors, ids
from bert_tf.io.json_files import as_json
from bert_tf.models.logits import cross_entropy
from bert_tf.models.pretrainer import masked_lm_head, masked_lm_logits
from bert_tf.models.weighted_loss import Targets, WeightedModel
from bert_tf.tasks import inputs
from bert_tf.tasks.fitting import random_seed
from bert_tf.tasks.masked_lm.filling import GapFiller, device_form
from bert_tf.tasks.task_model import Asked, TaskModel, in_chunks, of_columns, of_ids
from bert_tf.text import Tokenizer, slide
from bert_tf.text.lite_tokenizer import LiteTokenizer
from bert_tf.text.packing import trim

# How many texts are tokenized at a time.
_CHUNK = 1024
# Share of the tokens to predict (paper, section 3.1).
_RATE = 0.15
# The masks of an evaluation are always the same.
_EVALUATION_SEED = 0
_MASK = "[MASK]"


class GapPredictions(NamedTuple):
    """Cross-entropies, float32 [tokens], of hidden tokens, and whether each is predicted right."""

    losses: Any
    right: Any


@keras.saving.register_keras_serializable("bert_tf")
class MaskedLM(TaskModel, WeightedModel):
    """Fills the gaps of texts, and can be pre-trained further on texts.

    `MaskedLM.from_checkpoint("google-bert/bert-base-uncased")` starts from pre-trained weights.
    Here the encoder is tiny and has random weights:

    >>> from bert_tf import EncoderConfig
    >>> tokenizer = Tokenizer("[PAD] [UNK] [CLS] [SEP] [MASK] the cat sat".split())
    >>> config = EncoderConfig(8, hidden_size=8, num_hidden_layers=1, num_attention_heads=2)
    >>> model = MaskedLM(Encoder(config), tokenizer, top_k=2)
    >>> (gap,) = model.predict("The [MASK] sat")
    >>> [list(each) for each in gap]  # the two most probable pieces
    [['token', 'probability'], ['token', 'probability']]
    >>> [round(each["probability"], 1) for each in gap]  # untrained: 1 of 8 pieces
    [0.1, 0.1]

    `predict` takes texts that hold [MASK]. It returns a list for each text, with an entry for each
    [MASK]: a list of dicts with `token` and `probability`, the most probable first.
    `predict(texts, top_k=3)` overrides the model's number of pieces.

    `fit` takes texts alone. In each epoch it hides a new 15 % of the tokens, as in the paper, and
    learns to predict them. A text that is longer than `max_length` is cut into windows. A model
    that reads in one direction learns to predict every next token instead. Called with the
    encoder's inputs and `masked_lm_positions`, int32 [batch, predictions], the model returns
    float32 logits [batch, predictions, vocab_size]. The loss is built in: `fit` on ids takes a dict
    of `masked_lm_ids` int32 and `masked_lm_weights` float32, both [batch, predictions].

    Args:
        encoder, tokenizer: what reads the texts.
        max_length: the maximum number of tokens of a window; None is the encoder's positions.
        top_k: how many of the most probable pieces to return for each gap.

    Raises:
        UserError: a window has no room for a token, `top_k` is not from 1 to the size of the
            vocabulary, or the encoder has layers that are only added after pre-training.
    """

    columns = (TextColumn("text", may_be_empty=False, example="The cat sat on the [MASK]."),)
    target = None
    setting_names = ("max_length", "top_k")
    answer_options = ("top_k",)
    default_max_length = None
    cuts_texts = False

    @checked
    def __init__(
        self,
        encoder: Encoder,
        tokenizer: Tokenizer | None,
        max_length: int | None = None,
        top_k: int = 5,
        **kwargs: Any,
    ):
        super().__init__(
            encoder,
            tokenizer,
            {},
            max_length=max_length,
            uses_pooler=False,
            metric_prefixes={"masked_lm": ""},
            **kwargs,
        )
        if self.max_length < 3:
            raise UserError(
                f"max_length is {self.max_length}; it must be 3 or more, for [CLS] [MASK] [SEP]"
            )
        self.top_k = top_k
        self.check_settings()
        self.masked_lm = masked_lm_head(encoder)
        self.build()

    def build(self, input_shape: Any = None) -> None:
        config = self.encoder.config
        self.masked_lm.build(
            (None, config.hidden_size), (config.vocab_size, config.embedding_width)
        )
        self.built = True

    def call(self, inputs: Mapping[str, tf.Tensor], training: bool = False) -> tf.Tensor:
        positions = tf.cast(inputs["masked_lm_positions"], tf.int32)
        tokens = self.encoder.encode_at(inputs, positions, training=training)
        return masked_lm_logits(self, tokens, tf.shape(positions), training)

    def loss_targets(self, y: Mapping[str, tf.Tensor]) -> dict[str, Targets]:
        return {"masked_lm": Targets(y["masked_lm_ids"], y["masked_lm_weights"])}

    def logits(self, y_pred: tf.Tensor) -> dict[str, tf.Tensor]:
        return {"masked_lm": y_pred}

    def matched(self, outputs: tf.Tensor, y: Mapping[str, tf.Tensor]) -> Sequence[Matched]:
        return [Matched("classes", outputs, y["masked_lm_weights"], per="masked_lm")]

    def examples(
        self, rows: Columns, class_weight: Mapping[int, float] | None = None
    ) -> TrainingRows:
        # The tokens to predict are chosen later, again in each epoch.
        def windows(first: int) -> Iterator[tuple]:
            for number, (texts,) in enumerate(in_chunks(rows.values, _CHUNK, first), start=first):
                features, owners = self._windows(texts)
                others = {}
                if rows.weights is not None:
                    others["weights"] = rows.weights[number * _CHUNK + owners]
                yield features, others

        return TrainingRows.gather(windows, self.tokens)

    def encode(self, x: Any, y: Any = None, weights: Any = None) -> tuple:
        features, owners = self._windows(x[0])
        seed = tf.random.uniform([2], maxval=tf.int32.max, dtype=tf.int32)
        more = () if weights is None else (tf.gather(weights, owners),)
        return *self._hidden(features, seed), *more

    def _windows(self, texts: tf.Tensor) -> tuple[Tensors, tf.Tensor]:
        """Texts, string [batch], cut into windows that do not overlap, and the text of each."""
        pieces = self.tokenizer.tokenize(texts)
        windows = slide(pieces, self.tokenizer, self.max_length, self.max_length - 2)
        return trim(windows.features), windows.rows

    def _hidden(self, features: Tensors, seed: tf.Tensor) -> tuple[Tensors, Tensors]:
        """Inputs and targets of a batch of windows; `seed` decides which tokens are hidden."""
        ids, mask = features["input_word_ids"], features["input_mask"]
        batch: MaskedBatch
        direction = self.encoder.config.attention
        if direction == "bidirectional":
            width = ids.shape[1] or tf.shape(ids)[1]
            columns = tf.minimum(max(1, round(_RATE * self.max_length)), width)
            batch = Masking(self.tokenizer.vocabulary, columns, _RATE)(ids, mask, seed)
        else:
            batch = causal_lm_targets(ids, mask, reversed=direction == "right_to_left")
        model_inputs = features | {
            "input_word_ids": batch.input_word_ids,
            "masked_lm_positions": batch.positions,
        }
        return model_inputs, {"masked_lm_ids": batch.ids, "masked_lm_weights": batch.weights}

    def _batches(
        self, examples: TrainingRows, batch_size: int, seed: int | None, first: int, shuffle: bool
    ) -> tf.data.Dataset:
        seed = random_seed() if seed is None else seed
        windows = super()._batches(examples, batch_size, seed, first, shuffle)

        def hide(step: tf.Tensor, batch: tuple) -> tuple:
            features, *weights = batch
            return *self._hidden(features, tf.stack([tf.cast(seed, tf.int64), step])), *weights

        return tf.data.Dataset.zip(counter(first), windows).map(hide)

    def infer(
        self, rows: Columns, batch_size: int | None = None, verbose: int | str = "auto"
    ) -> GapPredictions:
        """Predictions for hidden tokens; the same rows always have the same hidden tokens."""

        def traced(compute: Callable) -> Callable:
            graph = tf.function(compute, autograph=False, reduce_retracing=True)
            return self._once(compute.__name__, lambda: graph)

        examples, found, done = self.examples(rows), [], 0
        hide, judge = traced(self._hidden), traced(self._judge)
        windows = len(examples.lengths)
        batch_size = min(batch_size or BATCH, BATCH)
        shown = verbose != 0 and windows > batch_size
        with Progress("predicting", windows, unit="windows", shown=shown) as progress:
            # The choice of hidden tokens does not depend on the size of the batches.
            for number, chosen in enumerate(batches_by_length(examples.lengths, BATCH)):
                features, *_ = examples.take(chosen)
                features = {name: tf.constant(each) for name, each in features.items()}
                hidden = hide(features, tf.constant([_EVALUATION_SEED, number]))
                for start in range(0, len(chosen), batch_size):
                    rows_of = operator.itemgetter(slice(start, start + batch_size))
                    found.append(judge(*tf.nest.map_structure(rows_of, hidden)))
                done += len(chosen)
                progress.update(done, line=True)
        losses, right = (np.concatenate(each) for each in zip(*found, strict=True))
        return GapPredictions(losses, right)

    def _judge(self, model_inputs: Tensors, targets: Tensors) -> GapPredictions:
        logits = self(model_inputs, training=False)
        labels = targets["masked_lm_ids"]
        is_used = targets["masked_lm_weights"] > 0
        is_right = tf.argmax(logits, axis=-1, output_type=labels.dtype) == labels
        losses = cross_entropy(labels, logits)
        return GapPredictions(tf.boolean_mask(losses, is_used), tf.boolean_mask(is_right, is_used))

    def official_metrics(self, predictions: GapPredictions, rows: Columns) -> dict[str, float]:
        loss = float(np.mean(predictions.losses))
        return {
            "accuracy": float(np.mean(predictions.right)),
            "loss": loss,
            "perplexity": float(np.exp(loss)),
        }

    def signatures(self) -> dict[str, Signature]:
        return {"serving_default": of_columns(self, GapFiller(self))}

    def ids_signatures(self) -> dict[str, Signature]:
        filler = GapFiller(self)
        positions = tf.TensorSpec([None, None], tf.int32, "positions")
        inputs = ids() | {positions.name: positions}
        return {
            "serving_default": of_ids(self, filler.of_ids),
            NETWORK: Signature(inputs, filler.fill, {}, is_inner=True),
        }

    def device_form(self) -> DeviceForm:
        return device_form(self)

    def strings_form(self) -> StringsForm:
        """As `device_form`, for a `text`; only its first window is read."""
        form = self.device_form()
        own = self.tokenizer
        # In plain text "[MASK]" is several pieces.
        whole = LiteTokenizer(own.with_settings(special_tokens="whole"))

        def answer(given: Mapping[str, tf.Tensor], _: Any, length: int) -> Tensors:
            return form.answer(whole.packed([given["text"]], length))

        def respond(outputs: Mapping[str, np.ndarray], _: Any) -> dict[str, np.ndarray]:
            pieces = outputs["pieces"]
            most = int((pieces >= 0).any(axis=(0, 2)).sum())
            tokens = np.array([each.encode() for each in own.vocabulary], object)[pieces]
            tokens[pieces < 0] = b""
            return {"tokens": tokens[:, :most], "probabilities": outputs["probabilities"][:, :most]}

        return StringsForm(self.input_names, form.outputs, answer, lambda row: [row], respond)

    def check_settings(self) -> None:
        most = (self._tokenizer or self.encoder.config).vocab_size
        if not 1 <= self.top_k <= most:
            raise UserError(
                f"top_k is {self.top_k}; it must be from 1 to {most}, the size of the vocabulary"
            )

    @classmethod
    def asked(cls, model: Answers, x: Any) -> Asked:
        # A text for `predict` must have a [MASK].
        rows, single = inputs.asked(x, (TextColumn("text"),))
        for number, row in enumerate(rows):
            if _MASK not in plain(row["text"]):
                raise UserError(
                    f"text {number} has no [MASK]; write [MASK] where a word is missing"
                )
        return Asked(rows, single)

    @staticmethod
    def answer(outputs: Outputs, place: int, row: Row) -> list[list[dict[str, Any]]]:
        gaps = zip(outputs["tokens"][place], outputs["probabilities"][place], strict=True)
        return [
            [
                {"token": as_json(token), "probability": as_json(probability)}
                for token, probability in zip(*of_gap, strict=True)
            ]
            for of_gap in gaps
            if of_gap[0][0]  # "" is padding
        ]
