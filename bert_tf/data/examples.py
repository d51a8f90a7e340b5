"""The endless sequence of pre-training examples, in which one can start anywhere.

An epoch takes the shards in a random order, in pools of a few shards; the documents of a pool make
one `Plan`, in which pairs are drawn and examples shuffled. A shard adds to its pool a number of
examples that is known from its number of tokens alone. So example i is found by arithmetic (epoch,
pool, place in the pool's plan), and what a start in the middle costs is the plan of one pool,
however large the corpus. Nothing depends on what was read before: the order of the shards follows
from (seed, epoch), the plan from (seed, epoch, pool).
"""

import dataclasses
import functools
import math

import numpy as np

from bert_tf.data.packing import PackedRows, pack
from bert_tf.data.pairing import Documents, Plan, examples_in_a_pass, plan
from bert_tf.data.token_shards import Shard, TokenShards

# Pools mix parts of the corpus that are far from each other; eight shards of a million tokens are
# 16 MB and some 100,000 examples of 128 tokens, planned in a fraction of a second.
POOL_SHARDS = 8
# Enough to tell how many examples a token gives.
_SAMPLE_TOKENS = 4_000_000

_SHARD_ORDER, _PLAN = range(2)


@dataclasses.dataclass(frozen=True)
class ExampleRule:
    """What an example is; see `pairing.plan` for the fields."""

    max_length: int
    short_probability: float
    next_sentence: bool


@dataclasses.dataclass(frozen=True)
class _Pool:
    tokens: np.ndarray
    plan: Plan


class Examples:
    """The examples that `shards` give under `rule`, numbered from 0 without end.

    Attributes:
        per_epoch: number of examples after which every shard has had its turn.

    Raises:
        UserError: from here and from `rows`, a shard that is missing or has changed.
    """

    def __init__(
        self, folder: TokenShards, shards: tuple[Shard, ...], rule: ExampleRule, seed: int
    ):
        self._folder, self._shards, self._rule, self._seed = folder, shards, rule, seed
        self._special = [folder.vocabulary.index(token) for token in ("[CLS]", "[SEP]", "[PAD]")]
        rate = self._examples_per_token()
        self._counts = np.array([math.ceil(shard.tokens * rate) for shard in shards])
        self.per_epoch = int(self._counts.sum())
        # Two of each: a batch may hold the end of one and the beginning of the next.
        self._pools = functools.lru_cache(maxsize=2)(self._draw_pools)
        self._pool = functools.lru_cache(maxsize=2)(self._make_pool)

    def rows(self, start: int, stop: int, step: int = 1) -> tuple[PackedRows, np.ndarray]:
        """Examples start, start + step, … below stop.

        Returns:
            The packed rows, and next_sentence_labels, int32 [rows]: 0 where B follows A, 1 where
            it is random.
        """
        wanted = np.arange(start, stop, step)
        parts = []
        while len(wanted):
            epoch, place = divmod(int(wanted[0]), self.per_epoch)
            _, ends = self._pools(epoch)
            number = int(np.searchsorted(ends, place, side="right"))
            pool = self._pool(epoch, number)
            places = wanted - epoch * self.per_epoch - int(ends[number]) + len(pool.plan)
            here = pool.plan.take(places[places < len(pool.plan)])
            packed = pack(pool.tokens, here, self._rule.max_length, *self._special)
            parts.append((*packed, here.is_random_next.astype(np.int32)))
            wanted = wanted[len(here) :]
        ids, first_length, length, labels = map(np.concatenate, zip(*parts, strict=True))
        return PackedRows(ids, first_length, length), labels

    def _draw_pools(self, epoch: int) -> tuple[list[np.ndarray], np.ndarray]:
        """The numbers of each pool's shards, and where the pools' examples end in the epoch."""
        order = self._rng(_SHARD_ORDER, epoch).permutation(len(self._shards))
        pools = np.array_split(order, math.ceil(len(order) / POOL_SHARDS))
        return pools, np.cumsum([self._counts[pool].sum() for pool in pools])

    def _make_pool(self, epoch: int, number: int) -> _Pool:
        members = self._pools(epoch)[0][number]
        tokens, documents = self._load(members)
        made = plan(
            documents,
            int(self._counts[members].sum()),
            rng=self._rng(_PLAN, epoch, number),
            **dataclasses.asdict(self._rule),
        )
        return _Pool(tokens, made)

    def _load(self, members: np.ndarray) -> tuple[np.ndarray, Documents]:
        """The shards as one: all tokens, and where sentences and documents start in them."""
        tokens, sentences, documents = [], [np.array([0])], [np.array([0])]
        for member in members:
            ids, starts = self._folder.load(self._shards[member])
            tokens.append(ids)
            sentences.append(starts.sentences[1:] + sentences[-1][-1])
            documents.append(starts.documents[1:] + documents[-1][-1])
        return np.concatenate(tokens), Documents(
            np.concatenate(sentences), np.concatenate(documents)
        )

    def _examples_per_token(self) -> float:
        """Measured on shards from all over a large corpus, and on all of a small one."""
        number = len(self._shards)
        share = min(1.0, _SAMPLE_TOKENS / sum(shard.tokens for shard in self._shards))
        sample = np.linspace(0, number - 1, math.ceil(number * share)).astype(int)
        tokens, documents = self._load(sample)
        return examples_in_a_pass(documents, **dataclasses.asdict(self._rule)) / len(tokens)

    def _rng(self, *key: int) -> np.random.Generator:
        return np.random.Generator(np.random.Philox(np.random.SeedSequence((self._seed, *key))))
