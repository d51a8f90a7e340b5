"""How well a model finds the passages of a collection."""

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from bert_tf.errors import UserError
from bert_tf.retrieval.collection import Collection
from bert_tf.retrieval.measures import retrieval_metrics
from bert_tf.retrieval.search import exact_search

# Gives vectors, float32 [texts, width], of texts and the name of their prompt.
Embed = Callable[[Sequence[str], str | None], np.ndarray]
# Gives each passage a score for the query; the greater is the better.
Rerank = Callable[[str, Sequence[str]], Sequence[float] | np.ndarray]
# Query -> passage -> score.
Found = dict[str, dict[str, float]]


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
    r"""What was found, as a run of TREC: query, Q0, passage, rank, score and bert_tf.

    >>> trec_run({"q1": {"p1": 0.5, "p2": 0.75}})
    'q1 Q0 p2 1 0.75 bert_tf\nq1 Q0 p1 2 0.5 bert_tf\n'

    Args:
        found: query -> passage -> score, in any order.
    """
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
