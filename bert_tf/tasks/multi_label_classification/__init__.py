"""Any number of labels for a text, or for a pair of texts."""

import dataclasses

from bert_tf.tasks import classification
from bert_tf.tasks.family import TaskFamily
from bert_tf.tasks.multi_label_classification.config import MultiLabelRun

FAMILY = TaskFamily(
    name="multi_label_classification",
    title="Multi-label classification",
    model="bert_tf.tasks.multi_label_classification.model:MultiLabelClassifier",
    pictures="bert_tf.tasks.multi_label_classification.pictures:MultiLabelPictures",
    config=MultiLabelRun,
    task="bert_tf.tasks.multi_label_classification.run:MultiLabelClassification",
    metrics=("micro_f1", "macro_f1", "map", "lrap"),
    head=dataclasses.replace(
        classification.HEAD, problem="multi_label_classification", takes=("TextClassifier",)
    ),
)
