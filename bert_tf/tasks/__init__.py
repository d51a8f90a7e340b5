"""Task families: reading, preprocessing, model, loss and metrics of each in one object."""

from bert_tf.tasks.classification import Classification

TASKS = {"classification": Classification}
