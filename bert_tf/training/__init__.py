"""Runs: configuration in, trained model and metrics out."""

from bert_tf.training.finetuning import evaluate, finetune
from bert_tf.training.pretraining import pretrain

__all__ = ["evaluate", "finetune", "pretrain"]
