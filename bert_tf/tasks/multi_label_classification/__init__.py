"""Any number of labels for a text, or for a pair of texts."""

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
)
