"""Runs: configuration in, trained model and metrics out."""

from bert_tf.runs.finetuning import finetune
from bert_tf.runs.pretraining import pretrain
from bert_tf.runs.scoring import evaluate

__all__ = ["evaluate", "finetune", "pretrain"]
