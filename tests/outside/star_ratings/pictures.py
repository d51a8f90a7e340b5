"""Pictures of a star rater."""

from collections.abc import Sequence

import numpy as np
import tensorflow as tf

from bert_tf.asking.row_files import Row, text_of
from bert_tf.interpret import sections
from bert_tf.interpret.looks import Look, Mark, Section
from bert_tf.interpret.pictures import Pictures
from bert_tf.interpret.projection import pooled
from bert_tf.templates import macros

_TEMPLATE = macros("star_ratings/stars.html")


class StarPictures(Pictures):
    """Pictures of a `StarRater`."""

    accepted = (("review",),)

    def look(self, row: Row) -> Look:
        """See `Pictures`."""
        subject, text = self.subject, text_of(row, "review")
        model = subject.model
        inputs = model.preprocessor()(tf.constant([text]))
        at_least = tf.sigmoid(model(inputs, training=False))[0].numpy()
        names = [f"{n} stars or more" for n in range(2, model.most_stars + 1)]
        encoded = subject.encoder.encode(inputs, training=False)
        vector = pooled(subject.encoder, encoded, inputs["input_mask"])[0].numpy()
        stars = 1 + int((at_least > 0.5).sum())
        answer = _TEMPLATE.answer(text, stars, [*zip(names, at_least.tolist(), strict=True)])
        return Look((text,), answer, (subject.seen("", inputs),), (Mark(text, vector),))

    def dev(self, rows: int, marks: Sequence[Mark]) -> list[Section]:
        """See `Pictures`: given and predicted stars."""
        reviews = self.subject.read_dev()
        found = (self.subject.model.infer(reviews) > 0).sum(axis=1)
        names = [f"{n}" for n in range(1, self.subject.model.most_stars + 1)]
        given = np.array(reviews.targets) - 1
        return [sections.confusions(names, given, found, f"{len(reviews)} reviews.")]
