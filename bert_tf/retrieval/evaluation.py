"""How well a model finds the passages of a collection. The arithmetic is that of ir-measures."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from bert_tf.dependencies import optional
from bert_tf.errors import UserError
from bert_tf.retrieval.collection import Collection
from bert_tf.retrieval.search import exact_search

# Takes texts and the name of their prompt; returns their vectors, float32 [texts, width].
Embed = Callable[[Sequence[str], str | None], np.ndarray]
# Gives each passage a score for the query; the greater is the better.
Rerank = Callable[[str, Sequence[str]], Sequence[float] | np.ndarray]
# Query -> passage -> score.
Found = dict[str, dict[str, float]]

# Our names of the measures, and those of ir-measures.
_MEASURES = {
    "ndcg@10": "nDCG@10",
    "mrr@10": "RR@10",
    "recall@10": "R@10",
    "recall@100": "R@100",
    "map": "AP",
}
# trec_eval computes all but the reciprocal rank with a cutoff, which MS MARCO's script computes.
_PROVIDERS = ("pytrec_eval", "msmarco")


def evaluate_retrieval(
    embed: Embed,
    collection: Collection,
    k: int = 100,
    *,
    query_prompt: str | None = None,
    passage_prompt: str | None = None,
    cosine: bool = True,
    skip_same_id: bool = False,
    block: int = 16_384,
    rerank: Rerank | None = None,
    candidates: int = 100,
) -> tuple[dict[str, float], Found]:
    """Searches a collection for all of its queries, and measures what is found.

    >>> collection = Collection(
    ...     passages={"p1": "cat", "p2": "dog"},
    ...     queries={"q1": "a cat", "q2": "a dog"},
    ...     relevant={"q1": {"p1": 1}, "q2": {"p2": 1}},
    ... )
    >>> def embed(texts, prompt):
    ...     return np.array([["cat" in text, "dog" in text] for text in texts], np.float32)
    >>> metrics, found = evaluate_retrieval(embed, collection)
    >>> metrics["mrr@10"]
    1.0
    >>> found["q1"]
    {'p1': 1.0, 'p2': 0.0}

    The vectors of passages are computed and compared block by block, so that no more than one block
    of them is in memory.

    Args:
        embed: takes texts and the name of a prompt, or None; returns float32 [texts, width].
        collection: where to search.
        k: how many passages to find for a query. `recall@100` and `map` count no others.
        query_prompt: the prompt of queries.
        passage_prompt: the prompt of passages.
        cosine: whether a score is the cosine of two vectors; otherwise it is their dot product.
        skip_same_id: whether to leave out the passage that has the id of the query, as BEIR does;
            in ArguAna and Quora it is the query itself.
        block: passages that are embedded and compared at a time.
        rerank: a second stage: takes a query and passages; returns their scores, [passages].
        candidates: how many of the passages that were found the second stage takes. The others
            follow behind them in their order.

    Returns:
        The measures of `retrieval_metrics`, and query -> passage -> score, best first.

    Raises:
        UserError: as `exact_search` and `retrieval_metrics`; `rerank` returns another number of
            scores.
    """
    ids, texts = list(collection.passages), list(collection.passages.values())

    def vectors() -> Iterator[np.ndarray]:
        for start in range(0, len(texts), block):
            yield embed(texts[start : start + block], passage_prompt)

    queries = embed(list(collection.queries.values()), query_prompt)
    numbers, scores = exact_search(queries, vectors(), k + skip_same_id, block, cosine)
    found: Found = {}
    for query, row, values in zip(collection.queries, numbers, scores.tolist(), strict=True):
        scored = {ids[i]: value for i, value in zip(row, values, strict=True)}
        if skip_same_id:
            scored.pop(query, None)
        found[query] = dict(list(scored.items())[:k])
        if rerank is not None:
            found[query] = _reranked(rerank, collection, query, found[query], candidates)
    return retrieval_metrics(found, collection.relevant), found


def trec_run(found: Mapping[str, Mapping[str, float]]) -> str:
    """The passages found, in any order, as a TREC run."""
    lines = [
        f"{query} Q0 {passage} {rank} {scores[passage]:.6g} bert_tf\n"
        for query, scores in found.items()
        for rank, passage in enumerate(sorted(scores, key=lambda p: -scores[p]), start=1)
    ]
    return "".join(lines)


def _reranked(
    rerank: Rerank, collection: Collection, query: str, found: dict[str, float], candidates: int
) -> dict[str, float]:
    """The passages of one query with the scores of the second stage, best first."""
    first, rest = list(found)[:candidates], list(found)[candidates:]
    given = rerank(collection.queries[query], [collection.passages[each] for each in first])
    scores = np.asarray(given, np.float64)
    if scores.shape != (len(first),):
        raise UserError(
            f"rerank returned scores of shape {list(scores.shape)} for {len(first)} passages; "
            "return one score for each passage"
        )
    order = np.argsort(-scores, kind="stable")
    reranked = {first[i]: float(scores[i]) for i in order}
    lowest = min(reranked.values(), default=0.0)
    return reranked | {passage: lowest - place for place, passage in enumerate(rest, start=1)}


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
