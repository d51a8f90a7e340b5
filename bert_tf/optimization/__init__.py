"""BERT's optimizers and learning-rate schedule."""

from bert_tf.optimization.adamw import AdamW
from bert_tf.optimization.lamb import LAMB
from bert_tf.optimization.recipe import make_optimizer
from bert_tf.optimization.schedule import WarmupLinearDecay

__all__ = ["LAMB", "AdamW", "WarmupLinearDecay", "make_optimizer"]
