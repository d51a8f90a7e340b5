"""Decoding: the label of each word from a tagger's logits, and entities from labels."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from bert_tf.tasks.token_classification.tag_schemes import NO_TAG, parse_tags
from bert_tf.text.packing import Features
from bert_tf.text.parts import as_first, map_rows
from bert_tf.text.rows import positions, ragged, splits_of, starts_row
from bert_tf.text.words import WordPieces, WordPreprocessor, WordWindows, words_of_ids


class Tags(NamedTuple):
    """The most probable labels int32, and their probabilities float32."""

    labels: tf.Tensor | tf.RaggedTensor
    scores: tf.Tensor | tf.RaggedTensor


def best_labels(logits: tf.Tensor) -> Tags:
    """The best label of each token or word; logits are float32 [..., labels]."""
    flat = tf.reshape(logits, [-1, tf.shape(logits)[-1]])
    scores = as_first(tf.reduce_max(tf.nn.softmax(flat), axis=-1), flat)
    labels = tf.argmax(logits, axis=-1, output_type=tf.int32)
    return Tags(labels, tf.reshape(scores, tf.shape(labels)))


def _first(logits: tf.Tensor, words: tf.Tensor, count: tf.Tensor) -> tf.Tensor:
    return tf.scatter_nd(words[:, None], logits, tf.stack([count, tf.shape(logits)[1]]))


def _mean(logits: tf.Tensor, words: tf.Tensor, count: tf.Tensor) -> tf.Tensor:
    mean = tf.math.unsorted_segment_mean(tf.nn.softmax(logits), words, count)
    return tf.math.log(tf.maximum(mean, np.finfo(np.float32).tiny))


def _max(logits: tf.Tensor, words: tf.Tensor, count: tf.Tensor) -> tf.Tensor:
    best = tf.reduce_max(tf.nn.softmax(logits), axis=-1)
    of_word = tf.gather(tf.math.unsorted_segment_max(best, words, count), words)
    last = tf.size(words) - 1  # the place chosen for NaN
    chosen = tf.where(best == of_word, tf.range(tf.size(words)), last)
    return tf.gather(logits, tf.math.unsorted_segment_min(chosen, words, count))


# Logits of pieces [pieces, labels], word of each piece, count -> logits of words [count, labels].
_AGGREGATIONS = {"first": _first, "mean": _mean, "max": _max}


class WordTagger:
    """The labels of the words of texts of any length, in bounded memory, in the graph.

    A text is cut into windows. A word gets the label of its first piece, or of all its pieces, each
    in the window where it has most context; `aggregation` is as in the pipeline of transformers.
    The logits of a word are divided by the temperature. `model` has the inputs and outputs of a
    `TokenClassifier`.
    """

    def __init__(
        self,
        model: Any,
        preprocess: WordPreprocessor,
        aggregation: str = "first",
        temperature: float = 1.0,
    ):
        self._model, self._preprocess, self._aggregation = model, preprocess, aggregation
        self._temperature = temperature

    def __call__(self, pieces: WordPieces) -> Tags:
        """The best label of each word, RaggedTensors [batch, (words)]."""
        return self._best(self.logits(pieces))

    def of_ids(self, features: Features) -> tuple[Tags, tf.RaggedTensor, tf.RaggedTensor]:
        """The best label of each word of rows of ids, and its tokens; see `words_of_ids`."""
        every_piece, tokenizer = self._aggregation != "first", self._preprocess.tokenizer
        windows, starts, ends = words_of_ids(features, tokenizer, every_piece)
        splits = tf.cast(starts.row_splits, tf.int32)
        return self._best(self._of_windows(windows, splits)), starts, ends

    def logits(self, pieces: WordPieces) -> tf.RaggedTensor:
        """RaggedTensor float32 [batch, (words), labels]; with "mean", logs of probabilities."""
        windows = self._preprocess.windows(pieces, every_piece=self._aggregation != "first")
        return self._of_windows(windows, pieces.word_splits)

    @staticmethod
    def _best(logits: tf.RaggedTensor) -> Tags:
        return Tags(*(logits.with_values(each) for each in best_labels(logits.values)))

    def _of_windows(self, windows: WordWindows, splits: tf.Tensor) -> tf.RaggedTensor:
        """The logits of words from windows; `splits` has the number of each row's first word."""
        logits = map_rows(lambda rows: self._model(rows, training=False), windows.features)
        # Each piece that counts is chosen in exactly one window.
        chosen = windows.words >= 0
        words = tf.boolean_mask(tf.gather(splits, windows.rows)[:, None] + windows.words, chosen)
        of_pieces, count = tf.boolean_mask(logits, chosen), splits[-1]
        found = _AGGREGATIONS[self._aggregation](of_pieces, words, count)
        if self._temperature != 1.0:
            found /= self._temperature
        return ragged(tf.ensure_shape(found, [None, logits.shape[2]]), splits)


class Entities(NamedTuple):
    """The entities of a batch of texts, RaggedTensors [batch, (entities)]. `types` are places in
    `EntityTypes.names`, `starts` and `ends` bytes of the text, and `scores` the mean probabilities
    of the labels of their words.
    """

    types: tf.RaggedTensor
    starts: tf.RaggedTensor
    ends: tf.RaggedTensor
    scores: tf.RaggedTensor


class EntityTypes:
    """Reads entities from labels, as seqeval and conlleval do; `names` are their types, sorted."""

    def __init__(self, labels: Sequence[str]):
        tags = [*parse_tags(labels).values()]
        self.names = sorted({tag.type for tag in tags if tag.type})
        self._type = np.array([self.names.index(t.type) if t.type else -1 for t in tags], np.int32)
        # Whether a word begins an entity, by the label of the word before and its own. The last row
        # is for the first word of a text.
        self._begins = np.array([[t.begins(before) for t in tags] for before in (*tags, NO_TAG)])

    def entities(self, tags: Tags, starts: tf.RaggedTensor, ends: tf.RaggedTensor) -> Entities:
        """The entities of words with labels and byte ranges, all RaggedTensors [batch, (words)]."""
        labels = tags.labels.values
        splits = tf.cast(tags.labels.row_splits, tf.int32)
        types = tf.gather(self._type, labels)
        inside = types >= 0
        before = tf.where(starts_row(splits), len(self._type), tf.roll(labels, 1, axis=0))
        begins = tf.gather_nd(self._begins, tf.stack([before, labels], axis=1))
        first = positions(begins)
        entity = tf.cumsum(tf.cast(begins, tf.int32)) - 1
        # Words outside entities go to one extra entity, which is dropped.
        entity = tf.where(inside, entity, tf.size(first))
        segments = tf.size(first) + 1
        last = tf.math.unsorted_segment_max(tf.range(tf.size(labels)), entity, segments)[:-1]
        scores = tf.math.unsorted_segment_mean(tags.scores.values, entity, segments)[:-1]
        of_texts = tf.gather(splits_of(tf.cast(begins, tf.int32)), splits)
        fields = (
            tf.gather(types, first),
            tf.gather(starts.values, first),
            tf.gather(ends.values, last),
            scores,
        )
        return Entities(*(ragged(each, of_texts) for each in fields))
