"""What is computed: the same tokens and texts for every contestant."""

from pathlib import Path

import numpy as np

# Lengths of MRPC's pairs in tokens: mean 53, as the texts of its training set have.
_MEAN_LENGTH, _SPREAD, _SHORTEST, _LONGEST = 53, 13, 20, 104


def full_batch(batch: int, length: int, vocabulary: int) -> dict[str, np.ndarray]:
    """int32 [batch, length] inputs without padding, under the encoder's names."""
    random = np.random.default_rng(0)
    ids = random.integers(1000, vocabulary, (batch, length)).astype(np.int32)
    return {
        "input_word_ids": ids,
        "input_mask": np.ones_like(ids),
        "input_type_ids": np.zeros_like(ids),
    }


def lengths(rows: int, seed: int = 0) -> np.ndarray:
    """int [rows]: numbers of tokens like those of MRPC's pairs."""
    drawn = np.random.default_rng(seed).normal(_MEAN_LENGTH, _SPREAD, rows).round()
    return drawn.clip(_SHORTEST, _LONGEST).astype(int)


def padded_batch(batch: int, vocabulary: int, seed: int) -> dict[str, np.ndarray]:
    """Inputs of such lengths, padded to the longest, and `labels` int32 [batch], 0 or 1."""
    random = np.random.default_rng([1, seed])
    row_lengths = lengths(batch, seed)
    mask = (np.arange(row_lengths.max()) < row_lengths[:, None]).astype(np.int32)
    ids = random.integers(1000, vocabulary, mask.shape).astype(np.int32) * mask
    return {
        "input_word_ids": ids,
        "input_mask": mask,
        "input_type_ids": np.zeros_like(ids),
        "labels": random.integers(0, 2, batch).astype(np.int32),
    }


def pretraining_batch(batch: int, length: int, vocabulary: int, seed: int) -> dict[str, np.ndarray]:
    """Full inputs with 15 % of the positions to predict, and next-sentence labels."""
    random = np.random.default_rng([2, seed])
    inputs = full_batch(batch, length, vocabulary)
    predictions = round(0.15 * length)
    positions = np.stack([random.permutation(length)[:predictions] for _ in range(batch)])
    return inputs | {
        "masked_lm_positions": np.sort(positions, axis=1).astype(np.int32),
        "masked_lm_ids": random.integers(1000, vocabulary, positions.shape).astype(np.int32),
        "masked_lm_weights": np.ones(positions.shape, np.float32),
        "next_sentence_labels": random.integers(0, 2, batch).astype(np.int32),
    }


def texts(vocabulary: str | Path, rows: int, seed: int = 0) -> list[str]:
    """Texts of one-piece words, with as many tokens as pairs of MRPC have (see `lengths`)."""
    pieces = Path(vocabulary).read_text(encoding="utf-8").splitlines()
    words = [piece for piece in pieces if piece.isascii() and piece.isalpha()]
    random = np.random.default_rng([3, seed])
    return [" ".join(random.choice(words, size=n - 2)) for n in lengths(rows, seed)]
