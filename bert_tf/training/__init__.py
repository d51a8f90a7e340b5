"""Runs: configuration in, trained model and metrics out."""

from bert_tf.training.finetuning import finetune
from bert_tf.training.pretraining import pretrain
from bert_tf.training.scoring import evaluate

__all__ = ["evaluate", "finetune", "pretrain"]
