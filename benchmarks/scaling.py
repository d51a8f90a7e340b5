"""What the input pipeline costs 1 to 1,024 workers on a corpus of the paper's size, by simulation.

    python -m benchmarks.scaling
    python -m benchmarks.scaling --words 800e6 --workers 1 8 64

No text is read: shards have the sizes that `bert-tf pretrain-data` gives them, and `order`, the
code that training uses, deals their examples. For each number of workers, the script follows
some of them through an epoch. It counts what each would load, how evenly, what a start in the
middle costs, and what a worker holds in memory.
"""

import argparse
import dataclasses
import sys
import time
from collections.abc import Iterator

import numpy as np

from bert_tf.cli import command
from bert_tf.data.corpora.order import Order, Part
from bert_tf.data.corpora.shard_writing import SHARD_TOKENS

TOKEN_BYTES = 2  # of a vocabulary below 65,536 pieces
BLOCK = 1 << 18  # examples that are followed at a time


@dataclasses.dataclass(frozen=True)
class Corpus:
    """Shards as `order` sees them.

    Attributes:
        tokens: int64 [shards].
        examples: int64 [shards].
    """

    tokens: np.ndarray
    examples: np.ndarray

    @classmethod
    def of(cls, words: float, pieces_per_word: float, example_tokens: float) -> "Corpus":
        """Shards are filled up with whole documents, so that most are a little too long."""
        count = max(1, round(words * pieces_per_word / SHARD_TOKENS))
        over = np.random.default_rng(0).exponential(600.0, count)
        tokens = (SHARD_TOKENS + over).astype(np.int64)
        return cls(tokens, np.ceil(tokens / example_tokens).astype(np.int64))

    def megabytes(self, shards: np.ndarray) -> float:
        """Size of some shards."""
        return float(self.tokens[shards].sum()) * TOKEN_BYTES / 1e6


@dataclasses.dataclass
class Reader:
    """A worker that holds one pool of each lane, as `PoolCache` does.

    Attributes:
        loaded: megabytes loaded so far.
        held: megabytes of the pools that it holds, by lane.
        most: the most megabytes it held at a time.
    """

    corpus: Corpus
    loaded: float = 0.0
    most: float = 0.0
    held: dict[int, float] = dataclasses.field(default_factory=dict)
    pools: dict[int, tuple] = dataclasses.field(default_factory=dict)

    def take(self, part: Part) -> None:
        """Loads the part's pool unless it is held."""
        lane = part.pool.lane
        if self.pools.get(lane) == part.pool:
            return
        size = self.corpus.megabytes(part.units)
        self.pools[lane], self.held[lane] = part.pool, size
        self.loaded += size
        self.most = max(self.most, sum(self.held.values()))


def main() -> int:
    """Prints the tables; returns the exit code, see `bert_tf.cli.command`."""
    parser = command.module_parser("benchmarks.scaling", __doc__)
    parser.add_argument("--words", type=float, default=3.3e9, help="(%(default)g, the paper's)")
    parser.add_argument("--pieces-per-word", type=float, default=1.3)
    parser.add_argument(
        "--example-tokens", type=float, default=115.0, help="of text, in an example"
    )
    parser.add_argument("--batch", type=int, default=8192, help="rows of the global batch")
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 8, 24, 64, 256, 1024])
    parser.add_argument("--followed", type=int, default=4, help="workers that are followed")
    return command.run("scaling", parser, None, _work, "stopped")


def _work(arguments: argparse.Namespace) -> None:
    corpus = Corpus.of(arguments.words, arguments.pieces_per_word, arguments.example_tokens)
    order = Order(corpus.examples, seed=0)
    everything = corpus.megabytes(np.arange(len(corpus.tokens)))
    print(
        f"{arguments.words:,.0f} words: {len(corpus.tokens):,} shards, {everything / 1e3:.1f} GB, "
        f"{order.per_epoch:,} examples, {order.lanes} lanes"
    )
    print_mixing(order, corpus, arguments.batch)
    columns = "workers|MB a worker loads|of the corpus|most to least|MB held at most"
    columns += "|MB before the first batch|s to find a batch"
    print(f"| {' | '.join(columns.split('|'))} |\n|{'---|' * 7}")
    for workers in arguments.workers:
        print(row(order, corpus, workers, arguments.batch, arguments.followed, everything))


def row(
    order: Order, corpus: Corpus, workers: int, batch: int, followed: int, everything: float
) -> str:
    """A line of the table for a number of workers."""
    chosen = np.unique(np.linspace(0, workers - 1, followed).astype(int)).tolist()
    readers = [follow(order, corpus, worker, workers) for worker in chosen]
    loaded = [each.loaded for each in readers]
    begun = time.perf_counter()
    fresh, first = Order(corpus.examples, seed=0), Reader(corpus)
    step = 7 * order.per_epoch // (2 * batch)  # in the middle of the fourth epoch
    for part in fresh.find(np.arange(step * batch + chosen[-1], (step + 1) * batch, workers)):
        first.take(part)
    seconds = time.perf_counter() - begun
    cells = (
        f"{workers:,}",
        f"{np.mean(loaded):,.0f}",
        f"{np.mean(loaded) / everything:.1%}",
        f"{max(loaded) / min(loaded):.2f}",
        f"{max(each.most for each in readers):,.0f}",
        f"{first.loaded:,.0f}",
        f"{seconds:.2f}",
    )
    return f"| {' | '.join(cells)} |"


def follow(order: Order, corpus: Corpus, worker: int, workers: int) -> Reader:
    """Follows a worker through the second epoch: it takes one of every `workers` examples."""
    reader = Reader(corpus)
    for numbers in blocks(order.per_epoch + worker, 2 * order.per_epoch, workers):
        # Lane after lane, each in its own order: a reader keeps one pool of each.
        for part in order.find(numbers):
            reader.take(part)
    return reader


def blocks(start: int, stop: int, step: int) -> Iterator[np.ndarray]:
    """The numbers start, start + step, … below stop, a part at a time."""
    for first in range(start, stop, BLOCK * step):
        yield np.arange(first, min(stop, first + BLOCK * step), step)


def print_mixing(order: Order, corpus: Corpus, batch: int) -> None:
    """How well an epoch is shuffled."""
    shards = [
        np.unique(np.concatenate([part.units for part in order.find(np.arange(n, n + batch))]))
        for n in np.linspace(0, order.per_epoch - batch, 20).astype(int)
    ]
    distinct = [len(each) for each in shards]
    gaps = [np.diff(each).mean() if len(each) > 1 else 0.0 for each in shards]
    even = len(corpus.tokens) / np.mean(distinct)
    print(
        f"A batch of {batch:,} mixes {min(distinct)} to {max(distinct)} shards, on average "
        f"{np.mean(gaps):,.0f} apart ({even:,.0f} if they lay evenly over the corpus).\n"
    )


if __name__ == "__main__":
    sys.exit(main())
