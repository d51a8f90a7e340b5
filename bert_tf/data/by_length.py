"""Batches of rows of similar length. This module imports no TensorFlow."""

from collections.abc import Iterator

import numpy as np


def batches_by_length(lengths: np.ndarray, batch_size: int) -> Iterator[np.ndarray]:
    """Every row once, the longest first, in batches; for evaluation."""
    order = np.argsort(-lengths, kind="stable")
    for start in range(0, len(order), batch_size):
        yield order[start : start + batch_size]
