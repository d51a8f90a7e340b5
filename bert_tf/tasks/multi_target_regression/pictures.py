"""Pictures of a regression with several targets."""

import tensorflow as tf
from markupsafe import Markup

from bert_tf.interpret import charts
from bert_tf.interpret.importance import Importances, Inputs
from bert_tf.tasks.regression.pictures import RegressionPictures


class MultiTargetPictures(RegressionPictures):
    """Pictures of a `MultiTargetRegressor`."""

    def answer(self, inputs: Inputs, output: tf.Tensor) -> tuple[Markup, list[Importances]]:
        subject, names = self.subject, self.subject.model.targets
        explained = subject.explain(
            [f"the number {name}" for name in names],
            inputs,
            lambda rows: subject.model(rows, training=False),
        )
        numbers = output[0].numpy().tolist()
        rows = [(name, [number]) for name, number in zip(names, numbers, strict=True)]
        return charts.table(("", "number"), rows), explained
