"""Which tokens make up which example: sentence pairs for next sentence prediction, or spans.

A *plan* says for every example where its segments start and end in a flat array of tokens. It
copies no tokens: the plan for a million tokens takes a few hundredths of a second, so every epoch
gets a new plan.

Pairs follow create_instances_from_document of google-research/bert (create_pretraining_data.py).
A document is cut into chunks of whole sentences of about the target length. A is the first part of
a chunk, cut at a random sentence. B is the rest of the chunk, or, half of the time and always where
the chunk is a single sentence, a passage of another document; then the rest of the chunk is put
back. Only the bounds of the chunks depend on earlier chunks: a short Python loop finds them, and
everything else is done for all examples at once.

Two things differ. To find another document, the reference draws up to ten times, and may still end
up with the same one. Here only the other documents are drawn from, so a random B is never from A's
document. And a sentence of more than twice the room in a row, such as a line that is a whole
document, is cut into pieces of half that room. The reference shows only the middle of such a one.

Without next sentence prediction an example is a span of consecutive whole sentences, as many as
fit: of one document, or, where documents are joined, across their ends (FULL-SENTENCES and
DOC-SENTENCES of RoBERTa, arXiv 1907.11692, section 4.2).
"""

import dataclasses
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.random import Generator

SPECIAL_TOKENS_PAIR = 3  # [CLS] A [SEP] B [SEP]
SPECIAL_TOKENS_SINGLE = 2  # [CLS] A [SEP]


@dataclasses.dataclass(frozen=True)
class Documents:
    """The places where sentences and documents start in a flat array of tokens; none is empty.

    Three sentences of 4, 3 and 5 tokens; the first document has two of them:

    >>> documents = Documents(sentences=np.array([0, 4, 7, 12]), documents=np.array([0, 2, 3]))
    """

    sentences: np.ndarray  # int64 [sentences + 1], first tokens, then the number of tokens
    documents: np.ndarray  # int64 [documents + 1], first sentences, then the number of sentences

    def __len__(self) -> int:
        return len(self.documents) - 1


def starts(lengths: np.ndarray | list[int]) -> np.ndarray:
    """Where runs of these lengths start, and where the last one ends: [2, 3] gives [0, 2, 5]."""
    return np.concatenate([[0], np.cumsum(lengths)])


def join(
    tokens: np.ndarray, documents: Documents, separator: int, rng: Generator
) -> tuple[np.ndarray, Documents]:
    """Documents in random order, each with a separator at its end; rows can go on across it."""
    order = rng.permutation(len(documents)).tolist()
    bounds = documents.sentences[documents.documents].tolist()
    end = np.array([separator], tokens.dtype)
    pieces = [piece for d in order for piece in (tokens[bounds[d] : bounds[d + 1]], end)]

    lengths = np.diff(documents.sentences)
    lengths[documents.documents[1:] - 1] += 1
    firsts = documents.documents.tolist()
    sentences = np.concatenate([lengths[firsts[d] : firsts[d + 1]] for d in order])
    counts = np.diff(documents.documents)[order]
    return np.concatenate(pieces), Documents(starts(sentences), starts(counts))


@dataclasses.dataclass(frozen=True)
class Plan:
    """Examples as token ranges, int64 or bool [examples]; ends are exclusive. A segment B without
    tokens (`b_start == b_end`) means a single segment.
    """

    a_start: np.ndarray
    a_end: np.ndarray
    b_start: np.ndarray
    b_end: np.ndarray
    is_random_next: np.ndarray

    def __len__(self) -> int:
        return len(self.a_start)

    def take(self, rows: np.ndarray) -> "Plan":
        """The examples at `rows`, in that order."""
        return Plan(*(getattr(self, field.name)[rows] for field in dataclasses.fields(self)))


@dataclasses.dataclass(frozen=True)
class ExampleRule:
    """The rule that makes examples."""

    max_length: int  # tokens of the longest example, special tokens included
    # The share of the documents (without `next_sentence`, of the examples) that are cut to a random
    # shorter length, so that the model sees short inputs too (the reference's short_seq_prob).
    short_probability: float
    next_sentence: bool  # pairs with a true or random next segment; otherwise single segments
    joined: bool = False  # the documents are joined, and a segment goes on across their ends


def plan(documents: Documents, count: int, rule: ExampleRule, rng: Generator) -> Plan:
    """Exactly `count` examples, shuffled. Pairs require at least two documents.

    A pass takes the documents in random order, and each from its first sentence to its last. If the
    first pass makes too many examples, some are dropped at random; if it makes too few, the rest
    come from another pass.
    """
    passes: list[Plan] = []
    missing = count
    while missing:
        made = _pass(documents, missing if passes else None, rule, rng)
        passes.append(made.take(rng.permutation(len(made))[:missing]))
        missing -= len(passes[-1])
    columns = zip(*(dataclasses.astuple(each) for each in passes), strict=True)
    everything = Plan(*map(np.concatenate, columns))
    return everything.take(rng.permutation(count))


def usual_pass(documents: Documents, rule: ExampleRule) -> Plan:
    """The larger of two passes, since `plan` then repeats a few examples and drops none."""
    rng = np.random.default_rng(0)
    return max((_pass(documents, None, rule, rng) for _ in range(2)), key=len)


def _pass(documents: Documents, enough: int | None, rule: ExampleRule, rng: Generator) -> Plan:
    """One pass over the documents, cut short once there are `enough` examples."""
    return (_pairs if rule.next_sentence else _spans)(documents, enough, rule, rng)


def _targets(number: int, longest: int, short_probability: float, rng: Generator) -> np.ndarray:
    """`number` target lengths: `longest`, or sometimes a random length from 2 to `longest`."""
    short = 2 + np.floor(rng.random(number) * (longest - 1)).astype(np.int64)
    return np.where(rng.random(number) < short_probability, short, longest)


def _pairs(documents: Documents, enough: int | None, rule: ExampleRule, rng: Generator) -> Plan:
    """One pass of pairs, cut short once there are `enough`."""
    longest = rule.max_length - SPECIAL_TOKENS_PAIR
    documents = _cut_long_sentences(documents, longest)
    targets = _targets(len(documents), longest, rule.short_probability, rng)
    order = rng.permutation(len(documents))
    document, start, a_stop, stop, random_next = _chunks(documents, order, targets, enough, rng)
    is_random_next = random_next.astype(bool)

    sentences = documents.sentences
    a_start, a_end = sentences[start], sentences[a_stop]
    b_start, b_end = sentences[a_stop], sentences[stop]
    if len(documents) > 1:
        room = np.maximum(targets[document] - (a_end - a_start), 1)
        random_start, random_end = _random_passages(documents, document, room, rng)
        b_start = np.where(is_random_next, random_start, b_start)
        b_end = np.where(is_random_next, random_end, b_end)

    a_length, b_length = _truncated(a_end - a_start, b_end - b_start, longest)
    # Each cut token is removed at the front or at the back, at random.
    a_start = a_start + rng.binomial(a_end - a_start - a_length, 0.5)
    b_start = b_start + rng.binomial(b_end - b_start - b_length, 0.5)
    return Plan(a_start, a_start + a_length, b_start, b_start + b_length, is_random_next)


def _cut_long_sentences(documents: Documents, longest: int) -> Documents:
    """The documents, with sentences over twice `longest` tokens cut into pieces of half of it."""
    lengths, piece = np.diff(documents.sentences), (longest + 1) // 2
    pieces = np.where(lengths > 2 * longest, -(-lengths // piece), 1)
    firsts = starts(pieces)
    place = np.arange(firsts[-1]) - np.repeat(firsts[:-1], pieces)
    sentences = np.repeat(documents.sentences[:-1], pieces) + place * piece
    return Documents(np.append(sentences, documents.sentences[-1]), firsts[documents.documents])


def _chunks(
    documents: Documents, order: np.ndarray, targets: np.ndarray, enough: int | None, rng: Generator
) -> np.ndarray:
    """Walks through the documents in `order`; int64 [5, chunks].

    The rows are the document, the chunk's first sentence, the first after A, the first after the
    chunk, and whether B is random. Plain Python over plain lists: a step of this loop takes about a
    microsecond, where NumPy's scalars would take ten.
    """
    sentences = documents.sentences.tolist()
    firsts = documents.documents.tolist()
    target_of = targets.tolist()
    chunks: list[tuple[int, int, int, int, bool]] = []
    draws = _endless(lambda: rng.random((4096, 2)))
    for document in order.tolist():
        start, last = firsts[document], firsts[document + 1]
        target = target_of[document]
        while start < last:
            stop = bisect_left(sentences, sentences[start] + target, start + 1, last)
            where, whether = next(draws)
            size = stop - start
            a_stop = start + 1 + (int(where * (size - 1)) if size > 1 else 0)
            is_random_next = size == 1 or whether < 0.5
            chunks.append((document, start, a_stop, stop, is_random_next))
            start = a_stop if is_random_next else stop
        if enough is not None and len(chunks) >= enough:
            break
    return np.array(chunks, np.int64).T


def _random_passages(
    documents: Documents, document: np.ndarray, length: np.ndarray, rng: Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Draws for each row a passage of whole sentences from a document other than `document`. It
    starts at a random sentence, and goes on until it has `length` tokens or the document ends.
    """
    firsts, sentences = documents.documents, documents.sentences
    others = len(documents) - 1
    step = 1 + np.floor(rng.random(len(document)) * others).astype(np.int64)
    other = (document + step) % len(documents)
    first, last = firsts[other], firsts[other + 1]
    start = first + np.floor(rng.random(len(document)) * (last - first)).astype(np.int64)
    stop = np.searchsorted(sentences, sentences[start] + length)
    return sentences[start], sentences[np.minimum(stop, last)]


def _truncated(
    a_length: np.ndarray, b_length: np.ndarray, longest: int
) -> tuple[np.ndarray, np.ndarray]:
    """The lengths that remain when the longer side (B where equal) loses tokens one by one. A side
    of at most half of the room stays as it is, and the other takes the rest. If both are longer,
    they share the room, and A takes the odd token.
    """
    a_half = (longest + 1) // 2
    b_half = longest - a_half
    a_kept = np.minimum(a_length, np.maximum(a_half, longest - b_length))
    b_kept = np.minimum(b_length, np.maximum(b_half, longest - a_length))
    return a_kept, b_kept


def _spans(documents: Documents, enough: int | None, rule: ExampleRule, rng: Generator) -> Plan:
    """One pass of single segments: as many whole sentences as fit, then the next. A sentence longer
    than the target is cut into pieces. Only separators are lost: none begins or ends a segment.
    """
    longest = rule.max_length - SPECIAL_TOKENS_SINGLE
    sentences = documents.sentences.tolist()
    bounds = documents.sentences[documents.documents]
    stretches = np.stack([bounds[:-1], bounds[1:]], axis=1)[rng.permutation(len(documents))]
    separators: set[int] = set()
    if rule.joined:
        stretches, separators = bounds[None, [0, -1]], set((bounds[1:] - 1).tolist())
    targets = _endless(lambda: _targets(4096, longest, rule.short_probability, rng))
    spans: list[tuple[int, int]] = []
    for start, last in stretches.tolist():
        while start < last:
            if start in separators:
                start += 1
                continue
            limit = min(start + next(targets), last)
            whole = sentences[bisect_right(sentences, limit) - 1]
            end = whole if whole > start else limit
            spans.append((start, end))
            start = end
        if enough is not None and len(spans) >= enough:
            break
    start, end = np.array(spans, np.int64).T
    if rule.joined:
        end = end - np.isin(end, bounds)
    return Plan(start, end, end, end, np.zeros(len(start), bool))


def _endless(draw: Callable[[], np.ndarray]) -> Iterator[Any]:
    """The values that `draw` returns, one by one."""
    while True:
        yield from draw().tolist()
