"""A label for a text, or for a pair of texts."""

from bert_tf.checkpoints.heads import Head, Place
from bert_tf.tasks.classification.config import ClassificationRun
from bert_tf.tasks.family import TaskFamily

HEAD = Head(
    layer="classifier",
    places={
        "huggingface": Place("classifier.", "BertForSequenceClassification"),
        "tf1": Place("", "run_classifier.py"),
        "model_garden": Place(
            "sentence_prediction/logits/", "BertClassifier", "classifier/out_proj"
        ),
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
