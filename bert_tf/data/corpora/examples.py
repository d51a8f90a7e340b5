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

from bert_tf.data.corpora.joining import join
from bert_tf.data.corpora.order import Order, Part, PoolCache, random_generator
from bert_tf.data.corpora.packing import PackedRows, pack
from bert_tf.data.corpora.pairing import Documents, ExampleRule, Plan, plan, usual_pass
from bert_tf.data.corpora.token_shards import Shard, TokenShards

# Enough tokens to estimate how many examples a token gives.
_SAMPLE_TOKENS = 4_000_000

_PLAN = 2  # the first number of keys; `order` has 0 and 1


class _Planned(NamedTuple):
    tokens: np.ndarray
    plan: Plan


class Examples:
    """The examples that `shards` give under `rule`, numbered from 0 without end.

    >>> from bert_tf.data.corpora.shard_writing import write_token_shards
    >>> from bert_tf.text import Tokenizer
    >>> tokenizer = Tokenizer("[PAD] [UNK] [CLS] [SEP] [MASK] the cat sat".split())
    >>> folder = write_token_shards([["The cat sat", "the cat"]], tokenizer, "shards")
    >>> rule = ExampleRule(max_length=8, short_probability=0.0, next_sentence=False)
    >>> packed, labels = Examples(folder, folder.parts["train"], rule, seed=0).rows(0, 1)
    >>> packed.ids.tolist()
    [[2, 5, 6, 7, 5, 6, 3, 0]]

    Attributes:
        per_epoch: number of examples after which every shard has had its turn.
        random_next: the approximate share of examples with a random next segment.

    Raises:
        UserError: from here and from `rows`, a shard that is missing or has changed.
    """

    def __init__(
        self, folder: TokenShards, shards: tuple[Shard, ...], rule: ExampleRule, seed: int
    ):
        self._folder, self._shards, self._rule, self._seed = folder, shards, rule, seed
        self._special = [folder.vocabulary.index(token) for token in ("[CLS]", "[SEP]", "[PAD]")]
        rate, self.random_next = self._measured()
        counts = np.array([math.ceil(shard.tokens * rate) for shard in shards])
        self._order = Order(counts, seed)
        self.per_epoch = self._order.per_epoch
        self._pools = PoolCache(self._plan)

    def rows(self, start: int, stop: int, step: int = 1) -> tuple[PackedRows, np.ndarray]:
        """Examples start, start + step, … below stop.

        Returns:
            The packed rows, and next_sentence_labels, int32 [rows]: 0 where B follows A, 1 where
            it is random.
        """
        numbers = np.arange(start, stop, step)
        ids = np.empty((len(numbers), self._rule.max_length), np.int32)
        packed = PackedRows(ids, *np.empty((2, len(numbers)), np.int32))
        labels = np.empty(len(numbers), np.int32)
        for part in self._order.find(numbers):
            planned = self._pools.get(part)
            here = planned.plan.take(part.places)
            found = pack(planned.tokens, here, self._rule.max_length, *self._special)
            for column, values in zip(packed, found, strict=True):
                column[part.rows] = values
            labels[part.rows] = here.is_random_next
        return packed, labels

    def _plan(self, part: Part) -> _Planned:
        rng = random_generator(self._seed, _PLAN, *part.pool)
        tokens, documents = self._load(part.units, rng)
        return _Planned(tokens, plan(documents, part.size, self._rule, rng))

    def _load(self, members: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, Documents]:
        """The shards as one: all tokens, and where sentences and documents start in them."""
        tokens, sentences, documents = [], [np.array([0])], [np.array([0])]
        for member in members:
            ids, of_shard = self._folder.load(self._shards[member])
            tokens.append(ids)
            sentences.append(of_shard.sentences[1:] + sentences[-1][-1])
            documents.append(of_shard.documents[1:] + documents[-1][-1])
        everything = np.concatenate(tokens)
        starts = Documents(np.concatenate(sentences), np.concatenate(documents))
        if self._rule.joined:
            _, separator, _ = self._special
            return join(everything, starts, separator, rng)
        return everything, starts

    def _measured(self) -> tuple[float, float]:
        """Examples of a token, and the share of a random next segment among them.

        Measured on shards from all over a large corpus, and on all of a small one.
        """
        number, tokens = len(self._shards), sum(shard.tokens for shard in self._shards)
        share = min(1.0, _SAMPLE_TOKENS / tokens)
        sample = np.linspace(0, number - 1, math.ceil(number * share)).astype(int)
        _, documents = self._load(sample, np.random.default_rng(0))
        counted = sum(self._shards[member].tokens for member in sample)
        made = usual_pass(documents, self._rule)
        return len(made) / counted, float(made.is_random_next.mean())
