"""BERT in TensorFlow 2 and Keras 3, from raw text to a SavedModel that takes strings and answers.

The import is light: TensorFlow and Keras load when a public name that needs them is first used (PEP
562). Then the modules of all public names are imported, since `keras.saving.load_model` knows only
classes that were imported.
"""

import importlib
from typing import TYPE_CHECKING

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
    from bert_tf.text import Preprocessor as Preprocessor
    from bert_tf.text import Tokenizer as Tokenizer

__version__ = "0.2.0"

start_faster()

# The modules of the public names: of those that need no TensorFlow, and of the others.
_LIGHT = {
    "EncoderConfig": "bert_tf.encoder.config",
    "FinetuningData": "bert_tf.config.data",
    "FinetuningRun": "bert_tf.config.run",
    "Head": "bert_tf.checkpoints.heads",
    "Place": "bert_tf.checkpoints.heads",
    "TaskFamily": "bert_tf.tasks.family",
    "register": "bert_tf.tasks.registry",
}
_WITH_KERAS = {
    "AdamW": "bert_tf.optimization",
    "BatchAllTriplet": "bert_tf.tasks.embedding.losses",
    "Columns": "bert_tf.data.columns",
    "CoSENT": "bert_tf.tasks.embedding.losses",
    "CosineRegression": "bert_tf.tasks.embedding.losses",
    "Distillation": "bert_tf.tasks.embedding.losses",
    "Encoder": "bert_tf.encoder.encoder",
    "GroupColumn": "bert_tf.data.columns",
    "LAMB": "bert_tf.optimization",
    "MaskedLM": "bert_tf.tasks.masked_lm.model",
    "Matryoshka": "bert_tf.tasks.embedding.losses",
    "MultipleChoice": "bert_tf.tasks.multiple_choice.model",
    "MultipleNegativesRanking": "bert_tf.tasks.embedding.losses",
    "NextSentence": "bert_tf.tasks.next_sentence.model",
    "OnlineContrastive": "bert_tf.tasks.embedding.losses",
    "PreTrainer": "bert_tf.models.pretrainer",
    "Preprocessor": "bert_tf.text",
    "QuestionAnswerer": "bert_tf.tasks.question_answering.model",
    "Reranker": "bert_tf.tasks.reranking.model",
    "Target": "bert_tf.data.columns",
    "Task": "bert_tf.tasks.task",
    "TaskModel": "bert_tf.tasks.task_model",
    "TextClassifier": "bert_tf.tasks.classification.model",
    "TextColumn": "bert_tf.data.columns",
    "TextEmbedder": "bert_tf.tasks.embedding.model",
    "TextRegressor": "bert_tf.tasks.regression.model",
    "TokenClassifier": "bert_tf.tasks.token_classification.model",
    "Tokenizer": "bert_tf.text",
    "WarmupLinearDecay": "bert_tf.optimization",
    "load": "bert_tf.tasks.loading",
}

__all__ = ["UserError", *_LIGHT, *_WITH_KERAS]


def __getattr__(name: str) -> object:
    if name in _WITH_KERAS:
        with not_collecting():
            import_keras()
            for home in sorted({*_WITH_KERAS.values()}):
                importlib.import_module(home)
    elif name not in _LIGHT:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module((_LIGHT | _WITH_KERAS)[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
