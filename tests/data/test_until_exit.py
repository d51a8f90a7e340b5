"""A program ends although its datasets are calling into Python."""

import subprocess
import sys
from pathlib import Path

import pytest

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


@pytest.mark.slow
def test_a_program_ends_although_its_datasets_read_ahead():
    root = Path(__file__).resolve().parents[2]
    # With a plain numpy_function this waits for ever, five times out of six.
    subprocess.run([sys.executable, "-c", PROGRAM], cwd=root, check=True, timeout=120)
