"""Hard negatives: passages that a model ranks high for a query, although they are not answers."""

from collections.abc import Iterator

import numpy as np

from bert_tf.console import Progress
from bert_tf.errors import UserError
from bert_tf.retrieval.collection import Collection
from bert_tf.retrieval.evaluation import Embed, Found
from bert_tf.retrieval.search import exact_search, unit_length

# Texts that are embedded at a time.
_BLOCK = 1024


def mine_negatives(
    embed: Embed,
    collection: Collection,
    negatives: int = 3,
    ranks: tuple[int, int] = (1, 100),
    margin: float | None = None,
    *,
    query_prompt: str | None = None,
    passage_prompt: str | None = None,
    cosine: bool = True,
) -> Found:
    """The hard negatives of each query: passages that rank high and are not relevant to it.

    >>> collection = Collection(
    ...     passages={"p1": "a cat", "p2": "a dog", "p3": "a cat and a dog"},
    ...     queries={"q1": "cat"},
    ...     relevant={"q1": {"p1": 1}},
    ... )
    >>> def embed(texts, prompt):
    ...     return np.array([["cat" in text, "dog" in text] for text in texts], np.float32)
    >>> mine_negatives(embed, collection, negatives=1)
    {'q1': {'p3': 0.7071067690849304}}

    Ranks are counted among the passages that are not relevant to the query: 1 is the one with the
    highest score. All relevant passages of a query are left out, and so is a passage whose text is
    that of a relevant one, or of the query. Spaces aside, passages of the same text are one, which
    has the first of their ids.

    The rules are those of `mine_hard_negatives` of sentence-transformers 6.2.0, but for one: there
    passages within the margin have no rank.

    Args:
        embed: takes texts and the name of a prompt, or None; returns float32 [texts, width].
        collection: the queries, the passages, and which are relevant; those of degree 0 are not.
        negatives: how many passages to take for a query, the highest first.
        ranks: the first and the last rank of passages that are taken. The highest ranks are often
            answers that nobody marked.
        margin: a negative has a score that is at least so much below the lowest score of a relevant
            passage; None takes any.
        query_prompt, passage_prompt: as for `evaluate_retrieval`, with `embed` and `cosine`.
        cosine: whether a score is the cosine of two vectors; otherwise it is their dot product.

    Returns:
        Query -> passage -> score, best first; fewer than `negatives` where no more are left.

    Raises:
        UserError: `negatives` or the ranks are not positive, or the ranks hold fewer passages than
            `negatives`; and as `exact_search`.
    """
    first, last = ranks
    if negatives < 1 or not 1 <= first <= last:
        raise UserError(
            f"{negatives} negatives of the ranks {first} to {last}: each number must be at least 1, "
                "and the last rank not below the first"
        )
    if negatives > last - first + 1:
        raise UserError(
            f"ranks {first} to {last} hold {last - first + 1} passages, fewer than the {negatives} "
            "negatives; widen the range, or lower the number of negatives"
        )
    if not collection.queries:
        raise UserError("there are no queries; give at least one with a relevant passage")
    ids: dict[str, str] = {}
    for name, text in collection.passages.items():
        ids.setdefault(_plain(text), name)
    numbers = {text: number for number, text in enumerate(ids)}
    of_text: dict[str, set[int]] = {}
    for name, query in collection.queries.items():
        judged = collection.relevant[name].items()
        right = {numbers[_plain(collection.passages[p])] for p, degree in judged if degree > 0}
        of_text.setdefault(_plain(query), set()).update(right)
    answers = [sorted(of_text[_plain(query)]) for query in collection.queries.values()]
    names = [*ids.values()]
    texts = [collection.passages[name] for name in names]
    queries = [*collection.queries.values()]
    kept = {number: i for i, number in enumerate(sorted({n for each in answers for n in each}))}
    of_answers: list[np.ndarray] = []

    with Progress("embedding", len(queries) + len(texts), unit="texts") as progress:

        def vectors(rows: list[str], prompt: str | None, done: int) -> Iterator[np.ndarray]:
            for start in range(0, len(rows), _BLOCK):
                part = np.asarray(embed(rows[start : start + _BLOCK], prompt))
                yield unit_length(part) if cosine else part
                progress.update(done + start + len(part), line=True)

        def passages() -> Iterator[np.ndarray]:
            done = 0
            for part in vectors(texts, passage_prompt, len(queries)):
                held = [n - done for n in range(done, done + len(part)) if n in kept]
                of_answers.append(part[held])
                done += len(part)
                yield part

        asked = np.concatenate([*vectors(queries, query_prompt, 0)])
        excluded = max(map(len, answers)) + 1  # the answers of a query, and itself
        places, scores = exact_search(asked, passages(), last + excluded)
    table = np.concatenate(of_answers)
    found: Found = {}
    for row, (name, own) in enumerate(zip(collection.queries, answers, strict=True)):
        left_out = {*own, numbers.get(_plain(queries[row]))}
        lowest = np.min(table[[kept[number] for number in own]] @ asked[row], initial=np.inf)
        highest = np.inf if margin is None else lowest - margin
        ranked = [
            (number, score)
            for number, score in zip(places[row].tolist(), scores[row].tolist(), strict=True)
            if number not in left_out
        ]
        taken = [pair for pair in ranked[first - 1 : last] if pair[1] <= highest][:negatives]
        found[name] = {names[number]: score for number, score in taken}
    return found


def _plain(text: str) -> str:
    """What texts have in common that differ in spaces only."""
    return " ".join(text.split())
