"""A tag for each word of a text."""

from typing import Literal, Self

from pydantic import model_validator

from bert_tf.checkpoints.heads import Head, Place
from bert_tf.config.data import FinetuningData
from bert_tf.config.model import ModelConfig
from bert_tf.config.run import CalibratedRun
from bert_tf.config.section import Count
from bert_tf.tasks.family import TaskFamily

# Activations that a tagger on a frozen encoder can read: the rows of the paper's table 7.
Features = Literal[
    "embeddings", "second_to_last", "last", "sum_last_four", "concat_last_four", "sum_all"
]


class TaggerModel(ModelConfig):
    """Sizes as in `ModelConfig`, and the settings of the tagger."""

    features: Features | None = None
    """null fine-tunes the encoder. Otherwise the encoder is frozen, and a BiLSTM of two layers
    reads these activations (paper, section 5.3, table 7).
    """
    lstm_units: Count = 768
    """Width of that BiLSTM in each direction. The default is the paper's."""
    aggregation: Literal["first", "mean", "max"] = "first"
    """What decides the tag and the score of a word of several pieces: its first piece, the mean of
    the pieces' probabilities, or the piece with the highest probability.
    """

    @model_validator(mode="after")
    def _units_have_a_use(self) -> Self:
        if self.features is None and not self.is_default("lstm_units"):
            raise ValueError(
                "model.lstm_units requires model.features; set model.features, or remove "
                "model.lstm_units"
            )
        return self


class TokenClassificationData(FinetuningData):
    """Words with tags: see `bert_tf.tasks.token_classification`."""

    format: str
    """`conll`: columns of words and tags; `spans`: texts with the characters of entities as
    doccano, Label Studio, Prodigy and spaCy write them (`train.jsonl`, or a file that is named);
    `parquet` or `datasets`, with `tokens` and `ner_tags` or with `text` and `spans`; or `tfds`.
    With tfds, the names of files are names of splits: by default `train` and `dev`, as in
    conll2003, and a test split only if it is named. A test file may have the words or texts alone.
    """
    word_column: int = 0
    """Column of the words, counted from 0; -1 is the last column, -2 the one before it."""
    tag_column: int = -1
    """Column of the tags, counted likewise."""
    lenient_tags: bool = False
    """Treat a tag that continues no entity as the beginning of one, as conlleval does. false
    refuses a file with such tags.
    """
    document_context: bool = False
    """Read whole documents, which lines with -DOCSTART- separate. A word then sees the sentences
    around its own, as many as fit into train.max_length (the paper's "maximal document context").
    """
    stride: Count | None = None
    """A long sentence is read in windows that start this many pieces apart; null is half of
    train.max_length.
    """
    split_punctuation: bool | None = None
    """Whether the words of a text end at every punctuation mark, as BERT's own words do. null: only
    if a span of the training file begins or ends inside a word.
    """

    @model_validator(mode="after")
    def _spans_have_no_columns(self) -> Self:
        for key in ("word_column", "tag_column", "lenient_tags", "document_context"):
            if self.format == "spans" and not self.is_default(key):
                raise ValueError(f"data.{key} is not for data.format spans; remove data.{key}")
        return self


class TokenClassificationRun(CalibratedRun):
    """A tag for each word."""

    task: Literal["token_classification"]
    data: TokenClassificationData
    """Sentences of words, each with a tag."""
    model: TaggerModel = TaggerModel()
    """The sizes of the encoder, and the settings of the tagger."""

    @model_validator(mode="after")
    def _frozen_has_no_layers_to_train(self) -> Self:
        for key in ("frozen_layers", "layer_decay"):
            if self.model.features and not self.train.is_default(key):
                raise ValueError(
                    f"train.{key} is for fine-tuning, but model.features freezes the encoder; "
                    f"remove train.{key}"
                )
        return self


FAMILY = TaskFamily(
    name="token_classification",
    title="Token classification",
    model="bert_tf.tasks.token_classification.model:TokenClassifier",
    pictures="bert_tf.tasks.token_classification.pictures:TagPictures",
    config=TokenClassificationRun,
    task="bert_tf.tasks.token_classification.run:TokenClassification",
    metrics=("f1", "precision", "recall"),
    head=Head(
        layer="classifier",
        places={
            "huggingface": Place("classifier.", "BertForTokenClassification"),
            # google-research has no such task; repositories built on it use this name.
            "tf1": Place(""),
            "model_garden": Place("token_classifier/logits/", "BertTokenClassifier", "classifier"),
        },
        arguments=("num_classes", "dropout"),
        label_layers=("classifier", "feature_classifier"),
    ),
    outputs=("words", "labels", "starts", "ends", "scores"),
    ids_outputs=("labels", "starts", "ends", "scores"),
    lists=(
        ("words", "labels", "starts", "ends", "scores"),
        ("entities", "types", "starts", "ends", "scores"),
    ),
)
