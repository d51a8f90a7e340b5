"""Labels that are named only in a call of `predict`."""

import dataclasses

from bert_tf.tasks import classification
from bert_tf.tasks.family import TaskFamily

FAMILY = TaskFamily(
    name="zero_shot",
    title="Zero-shot classification",
    model="bert_tf.tasks.zero_shot.model:ZeroShotClassifier",
    pictures="bert_tf.tasks.zero_shot.pictures:ZeroShotPictures",
    head=dataclasses.replace(classification.HEAD, takes=("TextClassifier",)),
    outputs=("label", "probabilities"),
    ids_outputs=("choice", "probabilities"),
    lists=(("probabilities",),),
)
