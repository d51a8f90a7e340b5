"""Pictures of a star rater."""

from collections.abc import Sequence

import tensorflow as tf
from markupsafe import Markup

from bert_tf.interpret import sections
from bert_tf.tasks.texts.pictures import DevRows, TextPictures
from bert_tf.templates import macros


class StarPictures(TextPictures):
    """Pictures of a `StarRater`."""

    def answer(self, inputs: dict, output: tf.Tensor) -> tuple[Markup, list]:
        at_least = tf.sigmoid(output)[0].numpy()
        stars = 1 + int((at_least > 0.5).sum())
        steps = [(f"{n} stars or more", each) for n, each in enumerate(at_least.tolist(), start=2)]
        page = macros("star_ratings/stars.html")
        return page.answer(self.subject.read_back(inputs), stars, steps), []

    def of_dev(self, rows: DevRows, marks: Sequence) -> list:
        found, given = ((each > 0).sum(axis=1) for each in (rows.outputs, rows.targets))
        names = [f"{n}" for n in range(1, self.subject.model.most_stars + 1)]
        return [sections.confusions(names, given, found, f"{len(given)} reviews.")]
