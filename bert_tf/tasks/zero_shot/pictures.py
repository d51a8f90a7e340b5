"""Pictures of a model that takes the labels together with the text."""

from collections.abc import Sequence

import numpy as np
import tensorflow as tf
from markupsafe import Markup

from bert_tf.interpret import charts
from bert_tf.interpret.importance import Inputs
from bert_tf.tasks.texts.pictures import GroupPictures


class ZeroShotPictures(GroupPictures):
    """Pictures of a `ZeroShotClassifier`."""

    def answer(self, names: Sequence[str], scores: np.ndarray) -> Markup:
        is_alone = self.subject.model.multi_label or len(names) == 1
        return charts.bars(names, (tf.sigmoid if is_alone else tf.nn.softmax)(scores).numpy())

    def seconds(self, group: Sequence[str]) -> list[str]:
        return [self.subject.model.hypothesis(each) for each in group]

    def _scores(self, pairs: Inputs) -> tf.Tensor:
        model = self.subject.model
        return model.score(model(pairs, training=False), model.multi_label)
