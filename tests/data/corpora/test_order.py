"""The order of examples: each once an epoch, from any start; workers keep to their lanes."""

import numpy as np
import pytest

from bert_tf.data.corpora.order import Order

# Units of very different sizes, so that lanes end at different times.
COUNTS = np.random.default_rng(0).integers(1, 30, 50)


def found(order, numbers) -> list[tuple]:
    """(epoch, lane, pool, place, units) of each example."""
    rows = [None] * len(numbers)
    for part in order.find(np.asarray(numbers)):
        for row, place in zip(part.rows.tolist(), part.places.tolist(), strict=True):
            assert 0 <= place < part.size
            rows[row] = (*part.pool, place, tuple(part.units.tolist()))
    return rows


@pytest.mark.parametrize("units", [1, 2, 3, 9, 15, 16, 50, 200])
def test_an_epoch_has_every_example_of_every_unit_once(units):
    counts = np.resize(COUNTS, units)
    order = Order(counts, seed=3)
    assert order.per_epoch == counts.sum()
    for epoch in (0, 1):
        rows = found(order, np.arange(order.per_epoch) + epoch * order.per_epoch)
        assert len(set(rows)) == order.per_epoch
        pools = {row[:3]: row[4] for row in rows}
        assert sorted(unit for members in pools.values() for unit in members) == list(range(units))
        for pool, members in pools.items():
            places = sorted(row[3] for row in rows if row[:3] == pool)
            assert places == list(range(counts[list(members)].sum()))


def test_every_pool_has_two_units_if_there_are_two():
    for units in range(2, 60):
        order = Order(np.full(units, 5), seed=0)
        assert min(len(part.units) for part in order.find(np.arange(order.per_epoch))) >= 2


def test_an_example_is_found_alone_as_among_others():
    order = Order(COUNTS, seed=1)
    numbers = np.arange(order.per_epoch - 40, order.per_epoch + 40)
    together = found(order, numbers)
    for row, number in zip(together, numbers, strict=True):
        assert found(Order(COUNTS, seed=1), [number]) == [row]


def test_lanes_take_turns():
    order = Order(np.full(64, 7), seed=0)
    assert order.lanes == 8
    rows = found(order, range(80))
    assert [row[1] for row in rows] == [*range(8)] * 10


def test_workers_keep_to_their_lanes_until_the_shorter_ones_end():
    order = Order(np.resize(COUNTS, 100), seed=0)
    assert order.lanes == 12
    epoch = 2
    lanes = order._epoch(epoch)
    shared = np.arange(lanes.shared * 12) + epoch * order.per_epoch
    for workers in (2, 3, 4, 6, 12):
        units = []
        for worker in range(workers):
            rows = found(order, shared[worker::workers])
            assert {row[1] % workers for row in rows} == {worker}
            units.append({unit for row in rows for unit in row[4]})
        assert sum(map(len, units)) == len(set.union(*units))
    # The examples that are left are fewer than a unit of each lane.
    assert order.per_epoch - len(shared) < 12 * 30


def test_epochs_and_seeds_differ():
    order, other = Order(COUNTS, seed=0), Order(COUNTS, seed=1)
    numbers = np.arange(order.per_epoch)
    first = found(order, numbers)
    assert [row[1:] for row in found(order, numbers + order.per_epoch)] != [r[1:] for r in first]
    assert found(other, numbers) != first
