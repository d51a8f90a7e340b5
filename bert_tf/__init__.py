"""BERT in TensorFlow 2 and Keras 3, from raw text to a SavedModel that takes strings and answers.

The import is light: TensorFlow and Keras load when a public name that needs them is first used (PEP
562). Then the modules of all public names are imported, since `keras.saving.load_model` knows only
classes that were imported.
"""

import importlib
from typing import TYPE_CHECKING

from bert_tf.checkpoints import heads as _heads
from bert_tf.dependencies import import_keras
from bert_tf.errors import UserError as UserError
from bert_tf.starting import not_collecting, start_faster

if TYPE_CHECKING:
    from bert_tf.checkpoints.heads import Head as Head
    from bert_tf.checkpoints.heads import Place as Place
    from bert_tf.config.data import FinetuningData as FinetuningData
    from bert_tf.config.run import FinetuningRun as FinetuningRun
    from bert_tf.data.columns import Columns as Columns
    from bert_tf.data.columns import GroupColumn as GroupColumn
    from bert_tf.data.columns import Target as Target
    from bert_tf.data.columns import TextColumn as TextColumn
    from bert_tf.encoder.config import EncoderConfig as EncoderConfig
    from bert_tf.encoder.encoder import Encoder as Encoder
    from bert_tf.models.hub_layer import HubLayer as HubLayer
    from bert_tf.models.pretrainer import PreTrainer as PreTrainer
    from bert_tf.optimization import LAMB as LAMB
    from bert_tf.optimization import AdamW as AdamW
    from bert_tf.optimization import WarmupLinearDecay as WarmupLinearDecay
    from bert_tf.tasks.classification.model import TextClassifier as TextClassifier
    from bert_tf.tasks.embedding.losses import BatchAllTriplet as BatchAllTriplet
    from bert_tf.tasks.embedding.losses import CoSENT as CoSENT
    from bert_tf.tasks.embedding.losses import CosineRegression as CosineRegression
    from bert_tf.tasks.embedding.losses import Distillation as Distillation
    from bert_tf.tasks.embedding.losses import Matryoshka as Matryoshka
    from bert_tf.tasks.embedding.losses import MultipleNegativesRanking as MultipleNegativesRanking
    from bert_tf.tasks.embedding.losses import OnlineContrastive as OnlineContrastive
    from bert_tf.tasks.embedding.model import TextEmbedder as TextEmbedder
    from bert_tf.tasks.family import TaskFamily as TaskFamily
    from bert_tf.tasks.loading import load as load
    from bert_tf.tasks.masked_lm.model import MaskedLM as MaskedLM
    from bert_tf.tasks.multiple_choice.model import MultipleChoice as MultipleChoice
    from bert_tf.tasks.next_sentence.model import NextSentence as NextSentence
    from bert_tf.tasks.question_answering.model import QuestionAnswerer as QuestionAnswerer
    from bert_tf.tasks.registry import register as register
    from bert_tf.tasks.regression.model import TextRegressor as TextRegressor
    from bert_tf.tasks.reranking.model import Reranker as Reranker
    from bert_tf.tasks.task import Task as Task
    from bert_tf.tasks.task_model import TaskModel as TaskModel
    from bert_tf.tasks.token_classification.model import TokenClassifier as TokenClassifier
    from bert_tf.tasks.zero_shot.model import ZeroShotClassifier as ZeroShotClassifier
    from bert_tf.text import Preprocessor as Preprocessor
    from bert_tf.text import Tokenizer as Tokenizer

__version__ = "0.2.0"

start_faster()
# Checkpoint formats need the heads of all families, which belong to a higher layer of modules.
_heads.SOURCES.append(lambda: importlib.import_module("bert_tf.tasks.registry").heads_of_models())

# The public names by their modules: those that need no TensorFlow, and the others.
_LIGHT = {
    "bert_tf.checkpoints.heads": "Head Place",
    "bert_tf.config.data": "FinetuningData",
    "bert_tf.config.run": "FinetuningRun",
    "bert_tf.encoder.config": "EncoderConfig",
    "bert_tf.tasks.family": "TaskFamily",
    "bert_tf.tasks.registry": "register",
}
_WITH_KERAS = {
    "bert_tf.data.columns": "Columns GroupColumn Target TextColumn",
    "bert_tf.encoder.encoder": "Encoder",
    "bert_tf.models.hub_layer": "HubLayer",
    "bert_tf.models.pretrainer": "PreTrainer",
    "bert_tf.optimization": "AdamW LAMB WarmupLinearDecay",
    "bert_tf.tasks.classification.model": "TextClassifier",
    "bert_tf.tasks.embedding.losses": (
        "BatchAllTriplet CoSENT CosineRegression Distillation Matryoshka "
        "MultipleNegativesRanking OnlineContrastive"
    ),
    "bert_tf.tasks.embedding.model": "TextEmbedder",
    "bert_tf.tasks.loading": "load",
    "bert_tf.tasks.masked_lm.model": "MaskedLM",
    "bert_tf.tasks.multiple_choice.model": "MultipleChoice",
    "bert_tf.tasks.next_sentence.model": "NextSentence",
    "bert_tf.tasks.question_answering.model": "QuestionAnswerer",
    "bert_tf.tasks.regression.model": "TextRegressor",
    "bert_tf.tasks.reranking.model": "Reranker",
    "bert_tf.tasks.task": "Task",
    "bert_tf.tasks.task_model": "TaskModel",
    "bert_tf.tasks.token_classification.model": "TokenClassifier",
    "bert_tf.tasks.zero_shot.model": "ZeroShotClassifier",
    "bert_tf.text": "Preprocessor Tokenizer",
}
_HOMES = {name: home for home, names in (_LIGHT | _WITH_KERAS).items() for name in names.split()}

__all__ = ["UserError", *_HOMES]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if _HOMES[name] in _WITH_KERAS:
        with not_collecting():
            import_keras()
            for home in _WITH_KERAS:
                importlib.import_module(home)
    value = getattr(importlib.import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
