"""Calls come one at a time, and a program ends although its datasets are calling into Python."""

import subprocess
import sys
import time
from pathlib import Path

import pytest
import tensorflow as tf

from bert_tf.data.until_exit import map_until_exit

PROGRAM = """
import numpy as np
import tensorflow as tf
from bert_tf.data.until_exit import map_until_exit

iterators = []
for _ in range(4):
    numbers = map_until_exit(tf.data.Dataset.range(10**9), lambda n: [n + 1], [tf.int64])
    iterators.append(iter(numbers.prefetch(10**6)))
    assert [int(next(iterators[-1])[0]) for _ in range(3)] == [1, 2, 3]
"""


def test_one_call_at_a_time_in_order():
    under_way, most, called = 0, 0, []

    def record(number):
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        called.append(int(number))
        time.sleep(0.01)
        under_way -= 1
        return [number]

    numbers = map_until_exit(tf.data.Dataset.range(30), record, [tf.int64])
    # tf.data may use threads for the later steps too.
    shaped = numbers.map(lambda n: tf.ensure_shape(n, [])).prefetch(tf.data.AUTOTUNE)
    assert list(shaped.as_numpy_iterator()) == called == list(range(30))
    assert most == 1


@pytest.mark.slow
def test_a_program_ends_although_its_datasets_read_ahead():
    root = Path(__file__).resolve().parents[2]
    # With a plain numpy_function, the program hangs five times out of six.
    subprocess.run([sys.executable, "-c", PROGRAM], cwd=root, check=True, timeout=120)
