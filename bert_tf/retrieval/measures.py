"""How good a ranking of passages is. The arithmetic is that of ir-measures."""

import math
from collections.abc import Mapping

from bert_tf.dependencies import optional
from bert_tf.errors import UserError

# Our names of the measures, and those of ir-measures.
_MEASURES = {
    "ndcg@10": "nDCG@10",
    "mrr@10": "RR@10",
    "recall@10": "R@10",
    "recall@100": "R@100",
    "map": "AP",
}
# trec_eval computes all of them but the reciprocal rank with a cutoff, which MS MARCO's script has.
_PROVIDERS = ("pytrec_eval", "msmarco")


def retrieval_metrics(
    found: Mapping[str, Mapping[str, float]], relevant: Mapping[str, Mapping[str, int]]
) -> dict[str, float]:
    """Measures of what was found for queries, each the mean over all queries of `relevant`.

    >>> found = {"who sat": {"cat": 0.9, "dog": 0.7}, "who ran": {"cat": 0.8, "dog": 0.3}}
    >>> relevant = {"who sat": {"cat": 1}, "who ran": {"dog": 1}}
    >>> metrics = retrieval_metrics(found, relevant)
    >>> {name: round(value, 3) for name, value in metrics.items()}
    {'ndcg@10': 0.815, 'mrr@10': 0.75, 'recall@10': 1.0, 'recall@100': 1.0, 'map': 0.75}

    Passages are ranked by score. Of equal scores the greater id comes first, compared as UTF-8:
    the rule of trec_eval, by which the published figures of BEIR are computed. It holds for all
    measures here, although the programs that compute them have different rules.

    Args:
        found: query -> passage -> score; the greater is the better.
        relevant: query -> passage -> degree of relevance; 0 is not relevant. `ndcg@10` takes the
            degree as the gain; the other measures count each passage of degree 1 or more.

    Returns:
        `ndcg@10`, `mrr@10`, `recall@10`, `recall@100` and `map`, from 0 to 1. A query that found
        nothing, or that has no relevant passage, counts as 0. Queries that are only in `found`
        do not count.

    Raises:
        UserError: `relevant` is empty, a score is NaN, or ir-measures is not installed.
    """
    ir = optional("ir_measures", "retrieval", "measuring retrieval")
    if not relevant:
        raise UserError("no query has a judged passage; give at least one in `relevant`")
    run = {query: _ranks(query, found[query]) for query in relevant if found.get(query)}
    judged = {query: dict(passages) for query, passages in relevant.items()}
    measures = {name: ir.parse_measure(theirs) for name, theirs in _MEASURES.items()}
    provider = ir.providers.FallbackProvider([ir.providers.registry[each] for each in _PROVIDERS])
    values = provider.calc_aggregate(measures.values(), judged, run)
    return {name: float(values[measure]) for name, measure in measures.items()}


def _ranks(query: str, scores: Mapping[str, float]) -> dict[str, float]:
    """Scores without ties, which rank the passages in the same order."""
    if any(math.isnan(score) for score in scores.values()):
        raise UserError(f"the score of a passage for query {query!r} is NaN; give numbers")
    # Code points sort as their UTF-8 does.
    best_first = sorted(scores, key=lambda passage: (scores[passage], passage), reverse=True)
    return {passage: -float(rank) for rank, passage in enumerate(best_first)}
