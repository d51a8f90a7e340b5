"""Hard negatives: passages that a model ranks high for a query although they are not answers."""

import numpy as np

from bert_tf.config.arguments import checked
from bert_tf.errors import UserError
from bert_tf.retrieval.collection import Collection
from bert_tf.retrieval.evaluation import Found
from bert_tf.retrieval.search import exact_search, unit_vectors


@checked
def check_settings(
    negatives: int, ranks: tuple[int, int] = (1, 100), margin: float | None = None
) -> None:
    """Raises UserError for settings that `mine_negatives` does not take."""
    first, last = ranks
    if not 1 <= first <= last or not 1 <= negatives <= last - first + 1:
        raise UserError(
            f"ranks {first} to {last} cannot give {negatives} negatives; give ascending ranks from "
            "1 up, a range of at least as many ranks as negatives, and 1 or more negatives"
        )


def mine_negatives(
    collection: Collection,
    queries: np.ndarray,
    passages: np.ndarray,
    negatives: int = 3,
    ranks: tuple[int, int] = (1, 100),
    margin: float | None = None,
    cosine: bool = True,
) -> Found:
    """The hard negatives of each query: passages that rank high and are not relevant to it.

    >>> texts = {"p1": "a cat", "p2": "a dog", "p3": "a cat and a dog"}
    >>> collection = Collection(texts, {"q1": "cat"}, relevant={"q1": {"p1": 1}})
    >>> vectors = np.array([[1.0, 0.0], [0.0, 1.0], [0.6, 0.8]])
    >>> mine_negatives(collection, vectors[:1], vectors, negatives=1)
    {'q1': {'p3': 0.6000000238418579}}

    Ranks are counted among the passages that are not relevant. Texts are compared without regard to
    spaces: of equal passages only the first counts, equal queries have the same relevant passages,
    and a query is relevant to itself. The rules are those of `mine_hard_negatives` of
    sentence-transformers 6.2.0, with one exception: there passages within the margin have no rank.

    Args:
        collection: the queries, the passages, and which are relevant; those of degree 0 are not.
        queries, passages: float [rows, width], the vectors of these texts, in their order.
        negatives: how many passages to take for a query, the highest first.
        ranks: the first and the last rank, from 1, of passages that are taken.
        margin: the least distance of a negative's score below those of all relevant passages.
        cosine: whether a score is the cosine of two vectors; otherwise it is their dot product.

    Returns:
        Query -> passage -> score, best first; fewer than `negatives` where no more are left.

    Raises:
        UserError: a number is not positive, or the ranks hold fewer passages than `negatives`; and
            as `exact_search`.
    """
    check_settings(negatives, ranks, margin)
    first, last = ranks
    firsts: dict[str, int] = {}
    for row, text in enumerate(collection.passages.values()):
        firsts.setdefault(_plain(text), row)
    number = {text: n for n, text in enumerate(firsts)}
    answers: dict[str, set[int]] = {}
    for name, query in collection.queries.items():
        judged = collection.relevant[name].items()
        right = {number[_plain(collection.passages[p])] for p, degree in judged if degree > 0}
        answers.setdefault(_plain(query), set()).update(right)
    asked, table = (np.asarray(v, np.float32) for v in (queries, passages[[*firsts.values()]]))
    if cosine:
        asked, table = unit_vectors(asked), unit_vectors(table)
    # The answers and the query itself may be among the passages; they are not negatives.
    most = last + max(map(len, answers.values()), default=0) + 1
    places, scores = exact_search(asked, table, most)
    ids, found = [[*collection.passages][row] for row in firsts.values()], Found()
    for row, (name, query) in enumerate(collection.queries.items()):
        own = answers[_plain(query)]
        lowest = np.min(table[[*own]] @ asked[row], initial=np.inf)
        ranked = [
            (n, score)
            for n, score in zip(places[row].tolist(), scores[row].tolist(), strict=True)
            if n not in own and n != number.get(_plain(query))
        ]
        kept = [
            (n, s) for n, s in ranked[first - 1 : last] if margin is None or s <= lowest - margin
        ]
        found[name] = {ids[n]: score for n, score in kept[:negatives]}
    return found


def _plain(text: str) -> str:
    """The text with single spaces; texts that differ in spaces only become equal."""
    return " ".join(text.split())
