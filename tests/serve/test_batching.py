"""Rows of many requests are computed together, and each request is answered as if it were alone."""

import threading
import time
from concurrent.futures import CancelledError, ThreadPoolExecutor

import numpy as np
import pytest

from bert_tf.asking.saved_model import tensors_of
from bert_tf.serve.batching import BatchQueue, QueueClosed, QueueFull


class Work:
    """The computation of a queue: doubles each number, can be held up, and records the batches."""

    def __init__(self):
        self.batches, self.go, self.begun = [], threading.Event(), threading.Event()

    def __call__(self, signature, columns):
        self.begun.set()
        assert self.go.wait(30)
        values = columns["x"]
        self.batches.append([signature, *values.ravel().tolist()])
        if -1 in values:
            raise ValueError("minus one")
        return {"twice": 2 * values}

    def queue(self, lists=None, **limits):
        """A queue that computes its first batch, and holds the others back until `go` is set."""
        queue = BatchQueue(self, {} if lists is None else lists, **limits)
        first = queue.submit("s", {"x": np.array([0])}, [1])
        assert self.begun.wait(30)
        return queue, first


def ask(queue, *values, length=1, signature="s"):
    return queue.submit(signature, {"x": np.array(values)}, [length] * len(values))


def twice(future):
    return future.result(30)["twice"].tolist()


def test_what_waits_is_one_batch():
    work, sizes = Work(), []
    queue, first = work.queue(computed=sizes.append)
    futures = [ask(queue, i, i + 10) for i in range(5)] + [ask(queue, 99, signature="t")]
    assert queue.waiting == 11
    work.go.set()
    assert [twice(each) for each in futures[:5]] == [[2 * i, 2 * i + 20] for i in range(5)]
    assert (twice(first), twice(futures[5])) == ([0], [198])
    assert [len(each) - 1 for each in work.batches] == sizes == [1, 10, 1]
    queue.close()


def test_rows_of_about_the_same_length_are_joined_and_the_oldest_is_always_there():
    work = Work()
    queue, _ = work.queue(most_rows=4)
    ask(queue, 1, length=1000)
    short = [ask(queue, 100 + i, length=i) for i in range(10)]
    middle, late = ask(queue, 2, length=501), ask(queue, 3, length=1000)
    work.go.set()
    assert (twice(middle), twice(late)) == ([4], [6])
    assert [twice(each) for each in short] == [[200 + 2 * i] for i in range(10)]
    assert work.batches[1][1:] == [1, 3, 2]
    waited = [100 + i for i in range(10)]
    for _, *rows in work.batches[2:]:
        assert waited[0] in rows
        waited = [each for each in waited if each not in rows]
    assert not waited
    queue.close()


def test_an_error_is_that_of_its_request_alone():
    work = Work()
    queue, _ = work.queue(most_rows=4)
    good, bad, other = ask(queue, 1, 2), ask(queue, 3, -1, 4, 5, 6), ask(queue, 7)
    work.go.set()
    assert (twice(good), twice(other)) == ([2, 4], [14])
    with pytest.raises(ValueError, match="minus one"):
        bad.result(30)
    assert twice(ask(queue, 8)) == [16]
    queue.close()


def test_what_is_cancelled_is_not_computed():
    work = Work()
    queue, first = work.queue()
    kept, left = ask(queue, 1), ask(queue, 2, 3)
    assert left.cancel()
    work.go.set()
    assert (twice(kept), twice(first)) == ([2], [0])
    assert work.batches == [["s", 0], ["s", 1]]
    with pytest.raises(CancelledError):
        left.result(1)
    queue.close()


def test_a_full_queue_refuses_but_takes_any_request_that_finds_it_empty():
    work = Work()
    queue, first = work.queue(most_waiting=3)
    large = ask(queue, *range(8))
    with pytest.raises(QueueFull):
        ask(queue, 1)
    work.go.set()
    assert twice(large) == [2 * i for i in range(8)]
    assert twice(ask(queue, 1)) == [2]
    queue.close()


def test_a_queue_answers_what_waits_before_it_closes():
    work = Work()
    queue, _ = work.queue()
    waiting = [ask(queue, i) for i in range(5)]
    closing = threading.Thread(target=queue.close)
    closing.start()
    while not queue._closed:
        time.sleep(0.001)
    with pytest.raises(QueueClosed):
        ask(queue, 1)
    work.go.set()
    closing.join(30)
    assert [twice(each) for each in waiting] == [[2 * i] for i in range(5)]


def test_without_lists_each_request_is_computed_by_itself():
    queue = BatchQueue(lambda _, columns: {"size": np.full(len(columns["x"]), len(columns["x"]))})
    with ThreadPoolExecutor(8) as pool:
        sizes = [*pool.map(lambda size: ask(queue, *range(size)).result(30)["size"], range(1, 9))]
    assert [each.tolist() for each in sizes] == [[size] * size for size in range(1, 9)]
    queue.close()


@pytest.mark.end_to_end
def test_answers_do_not_depend_on_what_is_computed_together(server, families):
    for name, each in families.items():
        servable = server.models.find(name)
        random, asked = np.random.default_rng(5), []
        for signature in servable.signature_names():
            rows, takes = each.rows, servable.ranks(signature)
            if takes.keys() != rows[0].keys():  # words, or two texts to compare
                rows = [
                    {n: row["text"].split() if n == "words" else row["text"] for n in takes}
                    for row in rows
                ]
            for _ in range(40 // len(servable.signature_names())):
                chosen = [rows[i] for i in random.integers(len(rows), size=random.integers(1, 4))]
                tensors = tensors_of(chosen, takes)
                asked.append((signature, {n: each.numpy() for n, each in tensors.items()}))
        alone = [servable.submit(*question).result(60) for question in asked]
        sizes = []
        servable.queue._computed, before = sizes.append, servable.queue._computed
        futures = [servable.submit(*question) for question in asked]
        together = [future.result(60) for future in futures]
        servable.queue._computed = before
        assert sum(sizes) == sum(len(next(iter(each.values()))) for _, each in asked)
        assert max(sizes) > 3
        for (signature, columns), one, other in zip(asked, alone, together, strict=True):
            assert one.keys() == other.keys()
            for output, values in one.items():
                where = (name, signature, output, columns)
                assert other[output].shape == values.shape, where
                assert other[output].dtype == values.dtype, where
                if values.dtype.kind == "f":
                    np.testing.assert_allclose(other[output], values, atol=1e-5, err_msg=str(where))
                else:
                    np.testing.assert_array_equal(other[output], values, err_msg=str(where))
