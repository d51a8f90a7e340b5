"""The order of examples. It has no end, reading can start anywhere, and workers can share it.

The data are *units* (shards of tokens, blocks of records) that give a known number of examples
each. An epoch deals them, in random order, to *lanes*. A few units of a lane at a time make a
*pool*, whose examples are shuffled; pool follows pool. The lanes take turns, one example each.

So where example i comes from is found by arithmetic. The order knows nothing of workers, and still
worker w of n, who has every n-th example, stays in the lanes w, w + n, … and reads only their
units, if n divides the number of lanes. Lanes have slightly different lengths: the rest of
the longer ones is shuffled and ends the epoch, for all workers.
"""

import functools
import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

# Each number of lanes allows the numbers of workers that divide it. `_LANE_UNITS` is the least
# number of units in a lane.
_LANES, _LANE_UNITS = (24, 12, 8, 4, 2), 8
# The least number of units that a batch mixes, if there are enough. They are far from each other in
# the data.
_MIXED_UNITS = 8

_UNITS, _REST = range(2)


class Pool(NamedTuple):
    """A few units whose examples are shuffled together: pool `number` of a lane in an epoch."""

    epoch: int
    lane: int
    number: int


class Part(NamedTuple):
    """Some examples of one pool."""

    pool: Pool
    units: np.ndarray  # of the pool
    size: int  # examples of the pool
    rows: np.ndarray  # int64 [examples], their positions in the numbers given to `Order.find`
    places: np.ndarray  # int64 [examples], their numbers in the pool


class Order:
    """The order of the examples that units with these `counts`, int [units], give."""

    def __init__(self, counts: np.ndarray, seed: int):
        self._counts, self.seed = counts, seed
        self.per_epoch = int(counts.sum())  # examples after which every unit has had its turn
        self.lanes = next((n for n in _LANES if n * _LANE_UNITS <= len(counts)), 1)
        # Two epochs: a batch may hold the end of one and the beginning of the next.
        self._epoch = functools.lru_cache(maxsize=2)(self._draw)

    def find(self, numbers: np.ndarray) -> Iterator[Part]:
        """Finds the pools of the examples with these ascending numbers, int64 [examples]. For each
        lane the parts come in the order of its pools.
        """
        epochs, place_of = np.divmod(numbers, self.per_epoch)
        for epoch in np.unique(epochs).tolist():
            rows = np.flatnonzero(epochs == epoch)
            lane, place = self._epoch(epoch).locate(place_of[rows])
            for one in np.unique(lane).tolist():
                mine = lane == one
                pools = self._epoch(epoch).lanes[one]
                number = np.searchsorted(pools.ends, place[mine], side="right")
                for n in np.unique(number).tolist():
                    here = number == n
                    units, count = pools.units[n], int(self._counts[pools.units[n]].sum())
                    places = place[mine][here] - (int(pools.ends[n]) - count)
                    yield Part(Pool(epoch, one, n), units, count, rows[mine][here], places)

    def _draw(self, epoch: int) -> "_Epoch":
        order = _random_generator(self.seed, _UNITS, epoch).permutation(len(self._counts))
        lanes = [self._pools(units) for units in self._deal(order)]
        counts = [int(lane.ends[-1]) for lane in lanes]
        shared = min(counts)
        rest = [(n, np.arange(shared, count)) for n, count in enumerate(counts)]
        lane = np.concatenate([np.full(len(places), n) for n, places in rest])
        place = np.concatenate([places for _, places in rest])
        shuffled = _random_generator(self.seed, _REST, epoch).permutation(len(lane))
        return _Epoch(lanes, shared, lane[shuffled], place[shuffled])

    def _deal(self, order: np.ndarray) -> list[np.ndarray]:
        """The units of each lane: one per round; the smallest lane gets the round's largest."""
        dealt: list[list[int]] = [[] for _ in range(self.lanes)]
        sizes = np.zeros(self.lanes, np.int64)
        for start in range(0, len(order), self.lanes):
            units = order[start : start + self.lanes]
            units = units[np.argsort(-self._counts[units], kind="stable")]
            lanes = np.argsort(sizes, kind="stable")[: len(units)]
            sizes[lanes] += self._counts[units]
            for lane, unit in zip(lanes.tolist(), units.tolist(), strict=True):
                dealt[lane].append(unit)
        return [np.array(units) for units in dealt]

    def _pools(self, units: np.ndarray) -> "_Lane":
        pool_size = max(2, _MIXED_UNITS // self.lanes)
        # If there are two units or more, no pool has only one: a unit may hold a single document.
        number = max(1, min(math.ceil(len(units) / pool_size), len(units) // 2))
        pools = np.array_split(units, number)
        return _Lane(pools, np.cumsum([self._counts[pool].sum() for pool in pools]))


class PooledExamples(Order, ABC):
    """Examples numbered from 0 without end; the seed also decides all that is random in a pool."""

    # The first number of the keys of its random numbers; `Order` uses 0 and 1.
    _KEY = 2

    def __init__(self, counts: np.ndarray, seed: int):
        super().__init__(counts, seed)
        # By lane: the pool that it has reached, and what `_make` made of that pool.
        self._made: dict[int, tuple[Pool, Any]] = {}

    @abstractmethod
    def _make(self, part: Part, rng: np.random.Generator) -> Any:
        """The data of a pool from which `_take` reads examples; `part` is any part of the pool."""

    @abstractmethod
    def _take(self, made: Any, places: np.ndarray) -> Iterable[np.ndarray]:
        """The columns, each [examples, …], of the examples with these numbers in the pool."""

    def rows(self, start: int, stop: int, step: int = 1) -> Sequence[np.ndarray]:
        """The columns of the examples start, start + step, … below stop."""
        numbers = np.arange(start, stop, step)
        columns: list[np.ndarray] = []
        for part in self.find(numbers):
            pool, made = self._made.get(part.pool.lane, (None, None))
            if pool != part.pool:
                made = self._make(part, _random_generator(self.seed, self._KEY, *part.pool))
                # Workers have other lanes in every epoch; the pools of the last epoch are dropped.
                epoch = part.pool.epoch
                kept = {n: held for n, held in self._made.items() if held[0].epoch == epoch}
                self._made = kept | {part.pool.lane: (part.pool, made)}
            found = tuple(self._take(made, part.places))
            columns = columns or [np.empty((len(numbers), *v.shape[1:]), v.dtype) for v in found]
            for column, values in zip(columns, found, strict=True):
                column[part.rows] = values
        return columns


def _random_generator(*key: int) -> np.random.Generator:
    """Random numbers that follow from `key` on every machine."""
    return np.random.Generator(np.random.Philox(np.random.SeedSequence(key)))


class _Lane(NamedTuple):
    """The units of each of a lane's pools, and where the pools' examples end among the lane's."""

    units: list[np.ndarray]
    ends: np.ndarray


class _Epoch(NamedTuple):
    """The lanes, how many examples each gives in turn, and lane and place of all later examples."""

    lanes: list[_Lane]
    shared: int
    rest_lane: np.ndarray
    rest_place: np.ndarray

    def locate(self, places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Lane, and place in the lane, of the examples at these places of the epoch."""
        place, lane = np.divmod(places, len(self.lanes))
        rest = places - self.shared * len(self.lanes)
        late = rest >= 0
        lane[late], place[late] = self.rest_lane[rest[late]], self.rest_place[rest[late]]
        return lane, place
