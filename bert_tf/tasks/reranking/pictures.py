"""Pictures of a model that ranks passages."""

from collections.abc import Sequence

import numpy as np
from markupsafe import Markup

from bert_tf.interpret import charts, sections
from bert_tf.interpret.looks import Mark, PageSection
from bert_tf.tasks.reranking.candidates import ranking_metrics
from bert_tf.tasks.reranking.losses import ACTIVATIONS
from bert_tf.tasks.texts.pictures import DevRows, GroupPictures
from bert_tf.templates import figures

_NOTE = (
    "Each point is a query of the dev data with one of its passages: the vector that the head "
    "scores."
)


class RankingPictures(GroupPictures):
    """Pictures of a `Reranker`."""

    def answer(self, names: Sequence[str], scores: np.ndarray) -> Markup:
        best_first = np.argsort(-scores, kind="stable").tolist()
        values = self._activated(scores).tolist()
        return charts.table(("", "score"), [(names[i], [values[i]]) for i in best_first])

    def of_dev(self, rows: DevRows, marks: Sequence[Mark]) -> list[PageSection]:
        found = ranking_metrics(rows.outputs, rows.data)
        given = rows.targets[~np.isnan(rows.targets)]
        metrics = ", ".join(f"{n} {figures(value)}" for n, value in found.items() if n != "loss")
        return sections.by_number(
            rows.vectors,
            rows.texts,
            given,
            self._activated(np.concatenate(rows.outputs)),
            marks,
            _NOTE,
            f"{len(given)} passages of {len(rows.data)} rows: {metrics}.",
        )

    def _activated(self, logits: np.ndarray) -> np.ndarray:
        return ACTIVATIONS[self.subject.model.activation](logits).numpy()
