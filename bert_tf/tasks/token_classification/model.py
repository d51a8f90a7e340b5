"""A tag for each word, as for named entities (paper, section 5.3): fine-tuned or feature-based.

The first piece of each word is classified, in the window where the word has most context.
"""

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, cast, get_args

import keras
import numpy as np
import tensorflow as tf

from bert_tf.asking import Answers, Changed, Outputs, Row, Text, characters, each_answer, plain
from bert_tf.config.arguments import checked, checked_argument
from bert_tf.console import logger
from bert_tf.data.batching import EncodedRows, flat
from bert_tf.data.columns import Column, Columns, GroupColumn, TextColumn, as_list, is_text
from bert_tf.data.mapped import joined
from bert_tf.distillation.losses import Matched
from bert_tf.encoder.encoder import Encoded, Encoder
from bert_tf.encoder.layers import Linear
from bert_tf.errors import UserError
from bert_tf.export.litert.form import DeviceForm, StringsForm, of_scores
from bert_tf.export.service import Signature, Tensors, strings
from bert_tf.io.json_files import as_json
from bert_tf.models.weighted_loss import Targets, WeightedModel
from bert_tf.tasks import fitting, inputs
from bert_tf.tasks.task_model import Asked, TaskModel, head_dropout, of_ids, request_of
from bert_tf.tasks.token_classification import Features
from bert_tf.tasks.token_classification.decoding import EntityTypes, Tags, WordTagger, best_labels
from bert_tf.tasks.token_classification.metrics import entity_metrics
from bert_tf.tasks.token_classification.spans import TEXT, SpannedWords, are_texts, in_words
from bert_tf.tasks.token_classification.tag_schemes import OUTSIDE, parse_tags
from bert_tf.tasks.token_classification.tagged_sentences import (
    IGNORED,
    WORDS,
    TaggedWindows,
    WordTags,
    ragged_words,
    texts_of,
)
from bert_tf.tasks.uncertainty import Draw
from bert_tf.text import Tokenizer, WordPreprocessor, tokenize_words, without_padding
from bert_tf.text.rows import joined_starts
from bert_tf.text.windows import at_tokens
from bert_tf.text.words import WordPieces, cut, split_words

FEATURES: tuple[str, ...] = get_args(Features)
# The number of layers that each requires, and its values, [tokens, hidden or 4 * hidden].
_ACTIVATIONS: dict[str, tuple[int, Callable[[Encoded], tf.Tensor]]] = {
    "embeddings": (1, lambda encoded: encoded.embeddings),
    "second_to_last": (2, lambda encoded: encoded.layers[-2]),
    "last": (1, lambda encoded: encoded.layers[-1]),
    "sum_last_four": (4, lambda encoded: tf.add_n(encoded.layers[-4:])),
    "concat_last_four": (4, lambda encoded: tf.concat(encoded.layers[-4:], axis=-1)),
    "sum_all": (1, lambda encoded: tf.add_n(encoded.layers)),
}
# How many texts are cut into windows at a time.
_CHUNK = 256
# `predict` takes texts without words, but `fit` does not.
_ASKED_WORDS = GroupColumn("words", fewest=0, may_be_empty=True)
# The padding of outputs that are not strings; the padding of strings is "".
_PADDING = {"starts": -1, "ends": -1, "scores": 0.0}
_WORDS_SPEC = {"words": tf.TensorSpec([None, None], tf.string, "words")}


@keras.saving.register_keras_serializable("bert_tf")
class TokenClassifier(TaskModel, WeightedModel):
    """Tags the words of a text, for example with the entities that they are part of.

    `TokenClassifier.from_checkpoint("google-bert/bert-base-cased")` starts from pre-trained
    weights. Here the encoder is tiny and has random weights, so the tags are random too:

    >>> from bert_tf import EncoderConfig
    >>> tokenizer = Tokenizer("[PAD] [UNK] [CLS] [SEP] [MASK] ada met babbage .".split())
    >>> config = EncoderConfig(9, hidden_size=8, num_hidden_layers=1, num_attention_heads=2)
    >>> tagger = TokenClassifier(Encoder(config), tokenizer, labels=["O", "B-PER", "I-PER"])
    >>> tags = tagger.predict(words=["Ada", "met", "Babbage", "."])
    >>> len(tags), set(tags) <= {"O", "B-PER", "I-PER"}
    (4, True)

    `fit` takes lists of words with lists of tags in IOB1, IOB2, BIOES or BILOU, which become IOB2;
    or tags in any other form, which stay as they are: PER, B_PER, b-per, or parts of speech. Or it
    takes texts with the spans of their entities, lists of dicts such as
    `{'start': 0, 'end': 3, 'label': 'PER'}`, in characters. For a text instead of words, `predict`
    returns its entities, each a dict such as
    `{'text': 'Ada', 'type': 'PER', 'start': 0, 'end': 3, 'score': 0.99}`, in which the end is
    exclusive. Adjacent words with the same tag without a prefix are one entity.
    `predict(texts, min_score=0.9)` leaves out entities with a lower score, and
    `predict(x, aggregation="mean")` overrides the model's aggregation. Called with the
    encoder's inputs, the model returns float32 logits [batch, seq_len, classes], zero at padding.
    The loss is built in: `fit` on ids takes labels int32 [batch, seq_len], -1 where a token is not
    classified.

    Args:
        encoder, tokenizer: what reads the texts.
        labels: names of the tags in the order of the logits; None takes those of the first `fit`.
        max_length: the maximum number of tokens of a window (128).
        stride: pieces from the start of a window to that of the next; None is half of `max_length`.
        dropout: rate on the vectors; None takes the encoder's.
        features: None fine-tunes the encoder. One of `FEATURES` freezes it, and a BiLSTM of two
            layers reads the named activations (paper, section 5.3, table 7).
        lstm_units: width of the BiLSTM in each direction.
        split_punctuation: whether the words of a text end at every punctuation mark, as BERT's own
            words do; else "U.S." and "AL-AIN" are one word. None is false until `fit` is given a
            span that begins or ends inside a word.
        aggregation: what decides the tag and the score of a word of several pieces: its "first"
            piece, on which the model is trained; the "mean" of the pieces' probabilities; or
            "max", the piece with the highest probability.
        temperature: as for a `TextClassifier`.

    Raises:
        UserError: labels that are not names, unknown features, or an encoder that lacks them.
    """

    has_labels = calibrates = True
    columns = (WORDS,)
    setting_names = ("max_length", "stride", "split_punctuation", "aggregation")
    answer_options = ("min_score", "aggregation")
    cuts_texts = False

    @checked
    def __init__(
        self,
        encoder: Encoder,
        tokenizer: Tokenizer | None,
        labels: Sequence[Any] | None = None,
        max_length: int | None = None,
        stride: int | None = None,
        dropout: float | None = None,
        features: str | None = None,
        lstm_units: int = 768,
        split_punctuation: bool | None = None,
        aggregation: str = "first",
        temperature: float = 1.0,
        **kwargs: Any,
    ):
        head: dict[str, Any] = {"num_classes": None, "dropout": dropout}
        if features is not None:
            _check_features(encoder, features)
            head |= {"features": features, "lstm_units": lstm_units}
        super().__init__(
            encoder,
            tokenizer,
            head,
            max_length=max_length,
            uses_pooler=False,
            metric_prefixes={"tokens": ""},
            **kwargs,
        )
        self.stride, self.split_punctuation = stride, split_punctuation
        self.aggregation, self.temperature = aggregation, temperature
        self.features = features
        self.feature_classifier: Linear | None = None
        self.lstms: list[keras.layers.Layer] = []
        if features is None:
            self.dropout = head_dropout(self, dropout)
        else:
            # Formats of other programs have a place only for a classifier on the encoder itself.
            self._of_classes = "feature_classifier"
            encoder.trainable = False
            policy = {"dtype": self.dtype_policy}
            for name in ("lstm_0", "lstm_1"):
                lstm = keras.layers.LSTM(lstm_units, return_sequences=True, name="lstm", **policy)
                self.lstms.append(keras.layers.Bidirectional(lstm, name=name, **policy))
        if tokenizer is not None:
            self.windows()
        self.build()
        if labels is not None and len(labels):
            self.name_classes(labels)

    def build(self, input_shape: Any = None) -> None:
        width = self.encoder.config.output_size
        if self.dropout is not None and not self.dropout.weights:
            self.dropout.build((None, width))
        if self.lstms:
            width = 4 * width if self.features == "concat_last_four" else width
            for lstm in self.lstms:
                if not lstm.built:
                    lstm.build((None, None, width))
                width = 2 * self.head["lstm_units"]
        head = self.classifier or self.feature_classifier
        if head is not None and not head.weights:
            head.build((None, width))
        self.built = True

    def call(self, inputs: Mapping[str, tf.Tensor], training: bool = False) -> tf.Tensor:
        fitting.check_ready(self)
        head: Any = self.classifier or self.feature_classifier
        if self.features is None:
            encoded = self.encoder.encode(inputs, training=training)
            tokens = self.dropout(encoded.layers[-1], training=training)
        else:
            encoded = self.encoder.encode(inputs, training=False)
            _, activations = _ACTIVATIONS[self.features]
            rows = encoded.layout.restore(activations(encoded))
            mask = tf.not_equal(inputs["input_mask"], 0)
            for lstm in self.lstms:
                rows = lstm(rows, mask=mask, training=training)
            tokens = encoded.layout.flatten(rows)
        return encoded.layout.restore(tf.cast(head(tokens), tf.float32))

    def loss_targets(self, y: tf.Tensor) -> dict[str, Targets]:
        labels = tf.cast(y, tf.int32)
        counted = tf.not_equal(labels, IGNORED)
        return {"tokens": Targets(tf.where(counted, labels, 0), tf.cast(counted, tf.float32))}

    def logits(self, y_pred: tf.Tensor) -> dict[str, tf.Tensor]:
        return {"tokens": y_pred}

    def matched(self, outputs: tf.Tensor, y: tf.Tensor) -> Sequence[Matched]:
        weights = self.loss_targets(y)["tokens"].weights
        return [Matched("classes", outputs, weights, per="tokens")]

    def windows(self) -> WordPreprocessor:
        return WordPreprocessor(self.tokenizer, self.max_length, self.stride)

    def split(self, texts: tf.Tensor) -> tuple[WordPieces, tf.RaggedTensor, tf.RaggedTensor]:
        return split_words(texts, self.tokenizer, bool(self.split_punctuation))

    def tagger(self) -> WordTagger:
        return WordTagger(self.network(), self.windows(), self.aggregation, self.temperature)

    @property
    def target(self) -> WordTags:
        return WordTags(self.labels)

    def columns_of(self, x: Any) -> tuple[Column, ...]:
        if isinstance(x, tf.TypeSpec) and x.shape.rank == 1:
            raise UserError("a dataset cannot have texts with spans; give texts and spans as lists")
        values = x.get("text") if isinstance(x, Mapping) else x
        first = next(iter(values), None) if isinstance(values, Iterable) else None
        return (TEXT,) if is_text(first) else self.columns

    def given(self, *args: Any, **kwargs: Any) -> Columns:
        rows = super().given(*args, **kwargs)
        (column,) = rows.values
        texts = [plain(each) if is_text(each) else list(map(plain, each)) for each in column]
        return dataclasses.replace(rows, values=(texts,))

    def learn_from(self, rows: Columns) -> None:
        if self.split_punctuation is None and are_texts(rows):
            words = in_words(rows, self.tokenizer, split_punctuation=False)
            if words.cut:
                self.split_punctuation = True
                logger.info(
                    "the model reads words that end at every punctuation mark (split_punctuation), "
                    f"instead of {words.cut_words()}"
                )
        super().learn_from(rows)

    def in_words(self, rows: Columns) -> Columns:
        """Rows of texts, perhaps with spans, as rows of words; others as they are."""
        if not are_texts(rows):
            return rows
        return in_words(rows, self.tokenizer, bool(self.split_punctuation))

    def calibration_targets(self, rows: Columns) -> np.ndarray:
        return self.target.numbers(self.in_words(rows))

    def examples(
        self, rows: Columns, class_weight: Mapping[int, float] | None = None
    ) -> TaggedWindows:
        rows = self.in_words(rows)
        if isinstance(rows, SpannedWords) and rows.cut:
            logger.info(f"not trained on: {rows.cut_words()}")
        texts, labels = texts_of(rows), self.target.numbers(rows)
        weights = None
        if rows.weights is not None or class_weight is not None:
            of_rows = np.ones(len(rows), np.float32) if rows.weights is None else rows.weights
            weights = np.repeat(of_rows, [len(words) for words in rows.column("words")])
            if class_weight is not None:
                weights *= [class_weight.get(label, 1.0) for label in labels.tolist()]
        known = [("labels", labels, IGNORED), ("weights", weights, 0.0)]

        def windows(first: int) -> Iterator[Mapping[str, np.ndarray]]:
            preprocess, place = self.windows(), sum(map(len, texts[: first * _CHUNK]))
            for start in range(first * _CHUNK, len(texts), _CHUNK):
                words = ragged_words(texts[start : start + _CHUNK])
                cut, end = preprocess(words), place + len(words.values)
                for name, each, missing in known:
                    if each is not None:
                        of_words = words.with_values(each[place:end])
                        cut.features[name] = at_tokens(of_words, cut.rows, cut.words, missing)
                yield flat(cut.features)
                place = end

        return TaggedWindows(EncodedRows.of_arrays(joined(windows, self.tokens)))

    def encode(self, x: Any, y: Any, weights: Any = None) -> tuple:
        # Words and tags are ragged, or [batch, words] padded with "".
        (words,) = x
        words = words if isinstance(words, tf.RaggedTensor) else without_padding(words)
        tags = y if isinstance(y, tf.RaggedTensor) else without_padding(y)
        said = "in the dataset, a row has a different number of tags than of words"
        same = tf.reduce_all(tags.row_lengths() == words.row_lengths())
        with tf.control_dependencies([tf.debugging.Assert(same, [said])]):
            labels = self.target.encoded(tags)
        windows = self.windows()(words)
        more = () if weights is None else (tf.gather(weights, windows.rows),)
        return windows.features, at_tokens(labels, windows.rows, windows.words, IGNORED), *more

    def infer(
        self, rows: Columns, batch_size: int | None = None, verbose: int | str = "auto"
    ) -> np.ndarray:
        """float32 [words, labels]: the logits of every word, in their order."""
        texts = texts_of(self.in_words(rows))

        def logits(outputs: Outputs, place: int, row: int) -> np.ndarray:
            return outputs["logits"][place, : len(texts[row])]

        asked = [{"words": _askable(text)} for text in texts]
        answers = each_answer(self, "logits", asked, logits, batch_size, verbose, "tagging")
        return np.concatenate(answers)

    def official_metrics(self, predictions: np.ndarray, rows: Columns) -> dict[str, float]:
        """The `entity_metrics`, and `loss`, the mean cross-entropy of words. Labels such as parts
        of speech count for each word, so that their F1 is the accuracy. A span that does not
        consist of whole words counts as an entity that was not found.
        """
        rows = self.in_words(rows)
        target, labels = self.target, self.target.numbers(rows)
        types = sorted({tag.type for tag in parse_tags(self.labels).values()} - {""})
        tagged = target.entities(self.predicted(predictions, rows))
        gold = target.entities(rows.known_targets())
        if isinstance(rows, SpannedWords):
            # A missed span counts as a sentence of one word.
            gold = [*rows.entities, *[(f"B-{label}",) for label in rows.missed]]
            tagged += [(OUTSIDE,)] * len(rows.missed)
        counted = labels != IGNORED
        if not counted.any():
            raise UserError(f"{rows.source} has no words to score; give some")
        metrics = entity_metrics(gold, tagged, types)
        labels, predictions = labels[counted], predictions[counted]
        loss = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, predictions)
        of_words = {"accuracy": np.mean(predictions.argmax(axis=1) == labels), "loss": loss}
        return metrics | {name: float(np.mean(each)) for name, each in of_words.items()}

    def resampled(self, predictions: Any, rows: Any, draw: Draw) -> tuple[Any, Any]:
        ends = np.cumsum([len(words) for words in self.in_words(rows).column("words")])
        by_row = np.split(predictions, ends[:-1])
        taken, drawn = super().resampled(by_row, rows, draw)
        return np.concatenate(taken), drawn

    def predicted(self, logits: np.ndarray, rows: Columns) -> list[list[str]]:
        best = iter(best_labels(logits).labels.numpy())
        return [[self.labels[next(best)] for _ in words] for words in rows.column("words")]

    def signatures(self) -> dict[str, Signature]:
        """`text` or `words` -> `words`, `labels`, `starts`, `ends`, `scores`; `text` -> entities.
        Outputs are [batch, words or entities], padded with "", -1 and 0. Offsets are bytes; for the
        input `words`, they refer to the words joined by single spaces.
        """
        tagger = self.tagger()

        # Both signatures of texts call this function, so the graph holds it once.
        @tf.function(input_signature=[tf.TensorSpec([None], tf.string)], autograph=False)
        def tag(texts: tf.Tensor) -> tuple[Tags, tf.RaggedTensor, tf.RaggedTensor]:
            pieces, starts, ends = self.split(texts)
            return tagger(pieces), starts, ends

        def of_text(given: Mapping[str, tf.Tensor]) -> Tensors:
            tags, *bounds = tag(given["text"])
            return _padded({"words": cut(given["text"], *bounds), **self._labelled(tags, *bounds)})

        def of_words(given: Mapping[str, tf.Tensor]) -> Tensors:
            # "" after the last word is padding.
            words = without_padding(given["words"])
            tags = tagger(tokenize_words(words, self.tokenizer))
            sizes = tf.strings.length(words.values)
            starts = joined_starts(sizes, tf.cast(words.row_splits, tf.int32))
            bounds = (words.with_values(each) for each in (starts, starts + sizes))
            outputs = {"words": words, **self._labelled(tags, *bounds)}
            return _padded(outputs, tf.shape(given["words"])[1])

        def entities(given: Mapping[str, tf.Tensor]) -> Tensors:
            found = self._entities(*tag(given["text"]))
            texts = cut(given["text"], found["starts"], found["ends"])
            return _padded({"entities": texts, **found})

        def logits(given: Mapping[str, tf.Tensor]) -> Tensors:
            words = without_padding(given["words"])
            return {"logits": tagger.logits(tokenize_words(words, self.tokenizer)).to_tensor(0.0)}

        text, words = request_of([TEXT]), request_of([WORDS])
        return {
            "serving_default": Signature(strings("text"), of_text, text),
            "words": Signature(_WORDS_SPEC, of_words, words),
            "entities": Signature(strings("text"), entities, text),
            "logits": Signature(_WORDS_SPEC, logits, words, is_inner=True),
        }

    def ids_signatures(self) -> dict[str, Signature]:
        """As `signatures`, for the words of `words_of_ids`; starts and ends are token positions."""
        tag = self.tagger().of_ids

        def labelled(given: Mapping[str, tf.Tensor]) -> Tensors:
            return _padded(self._labelled(*tag(dict(given))))

        def entities(given: Mapping[str, tf.Tensor]) -> Tensors:
            return _padded(self._entities(*tag(dict(given))))

        own = {"serving_default": of_ids(self, labelled), "entities": of_ids(self, entities)}
        return super().ids_signatures() | own

    def _labelled(self, tags: Tags, starts: tf.RaggedTensor, ends: tf.RaggedTensor) -> dict:
        labels = tf.gather(tf.constant(self.labels), tags.labels)
        return {"labels": labels, "starts": starts, "ends": ends, "scores": tags.scores}

    def _entities(self, tags: Tags, starts: tf.RaggedTensor, ends: tf.RaggedTensor) -> dict:
        # A score is the mean over the words of an entity.
        types = EntityTypes(self.labels)
        found = types.entities(tags, starts, ends)
        names = tf.gather(tf.constant(types.names, tf.string), found.types)
        return found._asdict() | {"types": names}

    def decode(self, scores: tf.Tensor) -> Tensors:
        return {"probabilities": tf.nn.softmax(self.calibrated(scores))}

    def device_form(self) -> DeviceForm:
        """`probabilities` and `scores`, the logits, both float32 [1, seq_len, classes]."""
        return of_scores(self, None, len(self.labels))

    def strings_form(self) -> StringsForm:
        raise UserError(
            f"LiteRT lacks operations that a {type(self).__name__} requires to read strings; "
            "export a file that takes ids"
        )

    @classmethod
    def asked(cls, model: Answers, x: Any) -> Asked:
        # The entities of texts, or the tags of `words`.
        if isinstance(x, Mapping) and "words" in x:
            words = as_list(x["words"], "words")
            single = GroupColumn("words").is_single(words)
            asked = Columns(("words",), ([words] if single else words,))
            lists = _ASKED_WORDS.checked(asked.values[0], asked)
            return Asked([{"words": _askable(each)} for each in lists], single, "words")
        # Exports of bert_tf 0.2.0 have no entities if their labels are not like B-PER.
        has_entities = "entities" in model.signature_names()
        signature = "entities" if has_entities else "serving_default"
        return Asked(*inputs.asked(x, (TextColumn("text"),)), signature)

    @classmethod
    def with_options(cls, model: Any, options: Mapping[str, Any]) -> Any:
        model = super().with_options(model, {**options, "min_score": None})
        least = checked_argument("min_score", options.get("min_score") or 0.0)

        def change(signature: str, outputs: Outputs) -> Outputs:
            if signature != "entities" and (signature == "words" or "entities" in known):
                raise UserError("min_score requires texts and the signature entities; remove it")
            # Entities that are left out go to the end, as padding.
            kept = outputs["scores"] >= least
            order = np.argsort(~kept, axis=1, kind="stable")
            kept = np.take_along_axis(kept, order, axis=1)
            ordered = {n: np.take_along_axis(each, order, axis=1) for n, each in outputs.items()}
            return {n: np.where(kept, each, _PADDING.get(n, b"")) for n, each in ordered.items()}

        known = model.signature_names() if least else ()
        return Changed(model, change) if least else model

    @staticmethod
    def answer(outputs: Outputs, place: int, row: Row) -> list[Any]:
        if "words" in row:
            return as_json(outputs["labels"][place][: len(row["words"])])
        of, kind = ("entities", "types") if "entities" in outputs else ("words", "labels")
        character = characters(cast(Text, row["text"]))
        starts = outputs["starts"][place]
        return [
            {
                "text": as_json(outputs[of][place][i]),
                "type": as_json(outputs[kind][place][i]),
                "start": character(int(starts[i])),
                "end": character(int(outputs["ends"][place][i])),
                "score": as_json(outputs["scores"][place][i]),
            }
            for i in np.flatnonzero(starts >= 0)
        ]


def _askable(words: Sequence[Text]) -> list[Text]:
    """The words with " " instead of "", because a signature would take "" for padding."""
    return [word or " " for word in words]


def _check_features(encoder: Encoder, features: str) -> None:
    """Raises UserError if an encoder has no such activations."""
    if features not in FEATURES:
        raise UserError(f"unknown features {features!r}; choose one of {', '.join(FEATURES)}")
    layers = encoder.config.num_hidden_layers
    needed, _ = _ACTIVATIONS[features]
    if layers < needed:
        raise UserError(
            f"features {features} require {needed} layers, but the encoder has {layers}"
        )
    if encoder.config.bilstm:
        raise UserError("features have a BiLSTM of their own; remove model.bilstm")


def _padded(outputs: Mapping[str, tf.RaggedTensor], width: tf.Tensor | None = None) -> Tensors:
    """Outputs by name, each [batch, width], padded to `width` or else to the longest text."""
    shape = None if width is None else tf.stack([-1, width])
    return {
        name: each.to_tensor(_PADDING.get(name, ""), shape=shape) for name, each in outputs.items()
    }
