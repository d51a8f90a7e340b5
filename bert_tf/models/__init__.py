"""BERT as Keras models: the encoder, its pre-trainer, and a model for each task family."""

from bert_tf.models.config import EncoderConfig
from bert_tf.models.encoder import Encoder
from bert_tf.models.feature_tagger import FeatureTagger
from bert_tf.models.multiple_choice import MultipleChoice
from bert_tf.models.pretrainer import PreTrainer
from bert_tf.models.sequence_classifier import SequenceClassifier
from bert_tf.models.span_classifier import SpanClassifier
from bert_tf.models.token_classifier import TokenClassifier

__all__ = [
    "Encoder",
    "EncoderConfig",
    "FeatureTagger",
    "MultipleChoice",
    "PreTrainer",
    "SequenceClassifier",
    "SpanClassifier",
    "TokenClassifier",
]
