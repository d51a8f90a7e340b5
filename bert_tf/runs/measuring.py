"""What a form of a model costs: the seconds of a row, taken in turns with other forms."""

import statistics
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from bert_tf.export.litert.conversion import Row, without_padding

# Computes one of the rows that are measured, by its number.
Call = Callable[[int], Any]


def ids_of(model: Any, rows: Any, most: int) -> list[Row]:
    """The encoder's inputs of rows drawn with a fixed seed, int32 [seq_len] without padding."""
    examples = model.examples(rows)
    count = len(examples.lengths)
    chosen = np.random.default_rng(0).permutation(count)[:most]
    given = examples.take(chosen)[0]
    flat = {name: each.reshape(-1, each.shape[-1]) for name, each in given.items()}
    # A row without tokens fills up a group.
    return [row for row in without_padding(flat) if row["input_mask"].size][:most]


def asked_of(model: Any, rows: Any, most: int) -> tuple[str, list[dict[str, Any]]]:
    """A signature of a model, and the first rows of a file as that takes them."""
    part = rows.take(range(min(most, len(rows))))
    names = part.names[: len(model.input_names)]  # an embedder is asked for the first text
    signature = "words" if names == ("words",) else "serving_default"
    return signature, [
        dict(zip(model.input_names, row, strict=False)) for row in zip(*part.values, strict=True)
    ]


def milliseconds(calls: Mapping[str, Call], rows: int, rounds: int = 5) -> dict[str, float]:
    """The median time of a row by each call; the calls take turns, after a first round."""
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    for number in range(rounds + 1):
        for name, call in calls.items():
            for row in range(rows):
                began = time.perf_counter()
                call(row)
                if number:  # the first round warms up
                    seconds[name].append(time.perf_counter() - began)
    return {name: 1e3 * statistics.median(each) for name, each in seconds.items()}


def megabytes(path: Path) -> float:
    """The size of a file, or of all files in a folder."""
    files = [path] if path.is_file() else [each for each in path.rglob("*") if each.is_file()]
    return sum(each.stat().st_size for each in files) / 1e6
