"""BERT's networks as Keras models: the encoder, and its pre-trainer."""

from bert_tf.models.config import EncoderConfig
from bert_tf.models.encoder import Encoder
from bert_tf.models.pretrainer import PreTrainer

__all__ = ["Encoder", "EncoderConfig", "PreTrainer"]
