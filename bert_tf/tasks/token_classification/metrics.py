"""Metrics of named entities: those of CoNLL's own script, conlleval, as seqeval computes them."""

from collections.abc import Sequence

Tagged = Sequence[Sequence[str]]


def entity_metrics(gold: Tagged, predicted: Tagged, types: Sequence[str]) -> dict[str, float]:
    """Metrics of entities, which are right if type, first word and last word are right. Tags are in
    IOB2; an I that continues no entity begins one. There is an `f1_PER` and so on for each of
    `types`, and `accuracy` counts words. A ratio with denominator 0 is 0.
    """
    from seqeval.metrics import accuracy_score
    from seqeval.metrics.sequence_labeling import precision_recall_fscore_support

    # seqeval takes lists only.
    gold, predicted = ([list(tags) for tags in tagged] for tagged in (gold, predicted))

    def scores(average: str | None) -> tuple:
        return precision_recall_fscore_support(gold, predicted, average=average, zero_division=0)

    precision, recall, f1, _ = scores("micro")
    there = {tag[2:] for tagged in (gold, predicted) for tags in tagged for tag in tags}
    by_type = dict(zip(sorted(there - {""}), scores(None)[2], strict=True))
    return {
        "f1": float(f1),
        "precision": float(precision),
        "recall": float(recall),
        "accuracy": float(accuracy_score(gold, predicted)),
        **{f"f1_{kind}": float(by_type.get(kind, 0.0)) for kind in types},
    }
