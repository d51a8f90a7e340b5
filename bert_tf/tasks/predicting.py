"""A model's outputs for all rows of a file."""

from collections.abc import Callable, Mapping

import keras
import numpy as np

from bert_tf.data.batching import batches_by_length
from bert_tf.progress import Progress


def predict_rows(
    model: keras.Model,
    inputs_of: Callable[[np.ndarray], Mapping[str, np.ndarray]],
    lengths: np.ndarray,
    batch_size: int,
) -> np.ndarray:
    """float32 [rows, ...]: the output for every row, in their order.

    Args:
        model: gives one tensor [batch, ...].
        inputs_of: the model's inputs for some rows.
        lengths: int [rows]; rows of similar length share a batch.
        batch_size: rows of a batch.
    """
    outputs, order = [], []
    with Progress("predicting", len(lengths), unit="rows") as progress:
        for chosen in batches_by_length(lengths, batch_size):
            outputs.append(model.predict_on_batch(inputs_of(chosen)))
            order.append(chosen)
            progress.update(sum(map(len, order)), line=True)
    return np.concatenate(outputs)[np.argsort(np.concatenate(order))]
