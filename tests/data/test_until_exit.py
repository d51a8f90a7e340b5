"""A program ends although a dataset is calling into Python."""

import subprocess
import sys
from pathlib import Path

PROGRAM = """
import time
import numpy as np
import tensorflow as tf
from bert_tf.data.until_exit import until_exit

def slow(step):
    time.sleep(0.3)
    return np.int64(step)

dataset = tf.data.Dataset.counter().map(
    lambda step: tf.numpy_function(until_exit(slow), [step], tf.int64)
)
iterator = iter(dataset.prefetch(100))
next(iterator)
"""


def test_a_program_ends_although_a_dataset_reads_ahead():
    root = Path(__file__).resolve().parents[2]
    # Without until_exit this waits for ever.
    subprocess.run([sys.executable, "-c", PROGRAM], cwd=root, check=True, timeout=120)
