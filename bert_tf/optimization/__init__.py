"""BERT's optimizer and learning-rate schedule."""

from bert_tf.optimization.adamw import AdamW
from bert_tf.optimization.schedule import WarmupLinearDecay

__all__ = ["AdamW", "WarmupLinearDecay"]
