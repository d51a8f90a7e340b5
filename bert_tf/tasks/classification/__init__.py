"""A label for a text, or for a pair of texts."""

from bert_tf.tasks.classification.config import ClassificationRun
from bert_tf.tasks.family import TaskFamily

FAMILY = TaskFamily(
    name="classification",
    title="Classification",
    model="bert_tf.tasks.classification.model:TextClassifier",
    pictures="bert_tf.tasks.classification.pictures:ClassificationPictures",
    config=ClassificationRun,
    task="bert_tf.tasks.classification.run:Classification",
    metrics=("accuracy", "f1", "mcc"),
)
