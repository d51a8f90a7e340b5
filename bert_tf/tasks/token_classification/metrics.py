"""Metrics of named entities: those of CoNLL's own script, conlleval, as seqeval computes them."""

from collections.abc import Sequence

Tagged = Sequence[Sequence[str]]


def entity_metrics(gold: Tagged, predicted: Tagged, types: Sequence[str]) -> dict[str, float]:
    """Metrics of entities. An entity is right if its type, first word and last word are right.

    >>> gold = [["B-PER", "I-PER", "O", "B-LOC"]]
    >>> metrics = entity_metrics(gold, [["B-PER", "I-PER", "O", "O"]], ["LOC", "PER"])
    >>> {name: round(value, 2) for name, value in metrics.items()}
    {'f1': 0.67, 'precision': 1.0, 'recall': 0.5, 'accuracy': 0.75, 'f1_LOC': 0.0, 'f1_PER': 1.0}

    Args:
        gold: the tags of each sentence, in IOB2.
        predicted: likewise; a word with I that continues no entity begins one.
        types: the types to report the F1 of.

    Returns:
        `f1`, `precision` and `recall` over all entities; `accuracy`, the share of words with the
        right tag; and the F1 of each type, as `f1_PER`. A ratio of nothing is 0.
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
