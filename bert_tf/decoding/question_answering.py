"""Questions and contexts to answers, as evaluation and SavedModels have it."""

import keras
import tensorflow as tf

from bert_tf.decoding.chunks import map_in_chunks
from bert_tf.decoding.spans import Answers, SpanRules, decode
from bert_tf.text import WindowPreprocessor


class QuestionAnswerer:
    """Windows, model and decoding in one; to be called inside a graph.

    >>> answerer = QuestionAnswerer(model, WindowPreprocessor(tokenizer), SpanRules())
    >>> answers = tf.function(answerer)(questions, contexts)

    Args:
        model: a `SpanClassifier`, or any model of its inputs and outputs.
        windows: cuts the contexts.
        rules: how answers are chosen.
    """

    def __init__(self, model: keras.Model, windows: WindowPreprocessor, rules: SpanRules):
        self._model, self._windows, self._rules = model, windows, rules

    def __call__(self, questions: tf.Tensor, contexts: tf.Tensor) -> Answers:
        """Answers a batch.

        Args:
            questions, contexts: string [batch]; contexts may be of any length.
        """
        windows = self._windows((questions, contexts))
        logits = map_in_chunks(
            lambda features: self._model(features, training=False), windows.features
        )
        return decode(logits["start"], logits["end"], windows, contexts, self._rules)
