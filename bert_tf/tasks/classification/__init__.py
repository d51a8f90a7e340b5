"""A label for a text, or for a pair of texts."""

from typing import Annotated, Literal

from pydantic import Field

from bert_tf.checkpoints.heads import Head, Place
from bert_tf.config.section import Positive
from bert_tf.tasks.family import TaskFamily
from bert_tf.tasks.texts.config import TextData, TextRun

Weights = Annotated[dict[str, Positive], Field(min_length=1)]


class ClassificationData(TextData):
    """Texts as in `TextData`, and the weights of their classes."""

    class_weights: Literal["balanced"] | Weights | None = None
    """How much the rows of a class count in the loss. `balanced` gives each class the same total
    weight, however many rows it has. A mapping such as `{good: 2}` gives weights to some labels;
    the others have 1. Only the proportions matter: the mean weight of a row is 1.
    """


class ClassificationRun(TextRun):
    """A label for a text or a pair of texts."""

    task: Literal["classification"]
    data: ClassificationData
    """One text, or a pair of texts, with a label."""


HEAD = Head(
    layer="classifier",
    places={
        "huggingface": Place("classifier.", "BertForSequenceClassification"),
        "tf1": Place("", "run_classifier.py"),
        "model_garden": Place(
            "sentence_prediction/logits/", "BertClassifier", "classifier/out_proj"
        ),
        "keras_hub": Place("logits/", "BertTextClassifier"),
    },
    arguments=("num_classes", "dropout"),
    pools=True,
)
FAMILY = TaskFamily(
    name="classification",
    title="Classification",
    model="bert_tf.tasks.classification.model:TextClassifier",
    pictures="bert_tf.tasks.classification.pictures:ClassificationPictures",
    config=ClassificationRun,
    task="bert_tf.tasks.classification.run:Classification",
    metrics=("accuracy", "f1", "mcc"),
    head=HEAD,
)
