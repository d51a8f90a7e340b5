"""A tag for each word of a text."""

from bert_tf.checkpoints.heads import Head, Place
from bert_tf.tasks.family import TaskFamily
from bert_tf.tasks.token_classification.config import TokenClassificationRun

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
)
