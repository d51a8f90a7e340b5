"""The endless sequence of pre-training examples, in which reading can start anywhere.

The documents of a pool of shards make one `Plan`, in which pairs are drawn and examples shuffled.
The number of examples that a shard adds to its pool depends on its number of tokens alone. So
`Order` finds example i by arithmetic, and a start in the middle costs only the plans of a few
pools, however large the corpus is. Nothing depends on what was read before: the pools follow from
(seed, epoch), the plan from (seed, pool).
"""

import math
from typing import NamedTuple

import numpy as np

from bert_tf.data.corpora.order import Part, PooledExamples
from bert_tf.data.corpora.pairing import Documents, ExampleRule, Plan, join, plan, usual_pass
from bert_tf.data.corpora.token_shards import Shard, TokenShards
from bert_tf.io.vocabulary import ids_of

_SAMPLE_TOKENS = 4_000_000  # enough tokens to estimate how many examples a token gives


class PackedRows(NamedTuple):
    """Rows of ids, `[CLS] A [SEP] B [SEP]` or `[CLS] A [SEP]`, and the bounds of their segments."""

    ids: np.ndarray  # int32 [rows, max_length], padded with the padding id
    first_length: np.ndarray  # int32 [rows], tokens of `[CLS] A [SEP]`, which have type 0
    length: np.ndarray  # int32 [rows], all tokens; those after `first_length` have type 1
    next_sentence_labels: np.ndarray  # int32 [rows], 0 where B follows A, 1 where it is random


class Examples(PooledExamples):
    """The examples that `shards` give under `rule`, numbered from 0 without end."""

    def __init__(
        self, folder: TokenShards, shards: tuple[Shard, ...], rule: ExampleRule, seed: int
    ):
        self._folder, self._shards, self._rule = folder, shards, rule
        self._special = [ids_of(folder.vocabulary)[token] for token in ("[CLS]", "[SEP]", "[PAD]")]
        # The number of examples per token is measured on shards from all over a large corpus, and
        # on all shards of a small one.
        share = min(1.0, _SAMPLE_TOKENS / sum(shard.tokens for shard in shards))
        number = math.ceil(len(shards) * share)
        sample = np.linspace(0, len(shards) - 1, number).astype(int)
        _, documents = self._load(sample, np.random.default_rng(0))
        made = usual_pass(documents, rule)
        # The approximate share of examples with a random next segment.
        self.random_next = float(made.is_random_next.mean())
        rate = len(made) / sum(shards[member].tokens for member in sample)
        super().__init__(np.array([math.ceil(shard.tokens * rate) for shard in shards]), seed)

    def rows(self, start: int, stop: int, step: int = 1) -> PackedRows:
        return PackedRows(*super().rows(start, stop, step))

    def _make(self, part: Part, rng: np.random.Generator) -> tuple[np.ndarray, Plan]:
        """The tokens of a pool, and the plan of its examples."""
        tokens, documents = self._load(part.units, rng)
        return tokens, plan(documents, part.size, self._rule, rng)

    def _take(self, made: tuple[np.ndarray, Plan], places: np.ndarray) -> PackedRows:
        tokens, planned = made
        return pack(tokens, planned.take(places), self._rule.max_length, *self._special)

    def _load(self, members: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, Documents]:
        """The shards as one: all tokens, and where sentences and documents start in them."""
        tokens, sentences, documents = [], [np.array([0])], [np.array([0])]
        for member in members:
            ids, of_shard = self._folder.load(self._shards[member])
            tokens.append(ids)
            sentences.append(of_shard.sentences[1:] + sentences[-1][-1])
            documents.append(of_shard.documents[1:] + documents[-1][-1])
        found = np.concatenate(tokens), Documents(*map(np.concatenate, (sentences, documents)))
        _, separator, _ = self._special
        return join(*found, separator, rng) if self._rule.joined else found


def pack(
    tokens: np.ndarray, plan: Plan, max_length: int, cls_id: int, sep_id: int, pad_id: int
) -> PackedRows:
    """Copies the planned ranges of `tokens` ([tokens], any integer) into rows of `max_length`."""
    a_length = plan.a_end - plan.a_start
    b_length = plan.b_end - plan.b_start
    first_length = a_length + 2
    length = first_length + np.where(b_length > 0, b_length + 1, 0)

    position = np.arange(max_length)[None, :]
    in_a = (position >= 1) & (position < first_length[:, None] - 1)
    in_b = (position >= first_length[:, None]) & (position < length[:, None] - 1)
    in_text = in_a | in_b
    shift = np.where(in_a, (plan.a_start - 1)[:, None], (plan.b_start - first_length)[:, None])
    source = position + shift
    ids = np.full(in_text.shape, pad_id, np.int32)
    ids[in_text] = tokens[source[in_text]]
    ids[:, 0] = cls_id
    for ends in (first_length, length):
        ids[np.arange(len(ids)), ends - 1] = sep_id
    columns = (first_length, length, plan.is_random_next)
    return PackedRows(ids, *(column.astype(np.int32) for column in columns))
