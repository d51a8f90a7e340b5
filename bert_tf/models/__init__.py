"""BERT as Keras models: the encoder, its pre-trainer, and a model for each task family."""

from bert_tf.models.config import EncoderConfig
from bert_tf.models.encoder import Encoder
from bert_tf.models.pretrainer import PreTrainer
from bert_tf.models.sequence_classifier import SequenceClassifier

__all__ = ["Encoder", "EncoderConfig", "PreTrainer", "SequenceClassifier"]
