"""Fingerprints of data: sixteen hexadecimal digits, which differ if the data differ."""

import hashlib
import itertools
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from bert_tf.checkpoints.names import weight_names
from bert_tf.config.run import PretrainingRun
from bert_tf.data.batching import TrainingRows
from bert_tf.data.columns import Columns
from bert_tf.data.corpora.corpus import Corpus
from bert_tf.data.corpora.pretraining_data import open_corpus
from bert_tf.errors import UserError, named
from bert_tf.io.files import checksum
from bert_tf.io.remote import is_file
from bert_tf.text import Tokenizer

_CHUNK = 1024  # rows that are stacked and padded at a time
_LENGTH = 16  # characters, enough as long as nobody makes data collide on purpose


def fingerprint(examples: TrainingRows) -> str:
    """The fingerprint of training rows: their inputs, their targets and their order."""
    digest = hashlib.sha256()
    count = len(examples.lengths)
    for start in range(0, count, _CHUNK):
        rows = examples.take(np.arange(start, min(start + _CHUNK, count)))
        for array in tf.nest.flatten(rows):
            digest.update(f"{array.dtype}{array.shape}".encode())
            digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()[:_LENGTH]


def of_rows(rows: Columns, settings: Any) -> str:
    """The fingerprint of texts and targets, and of what decides how they are tokenized."""
    weights = None if rows.weights is None else rows.weights.tolist()
    digest = hashlib.sha256(repr([settings, weights]).encode())
    targets = rows.targets or itertools.repeat(None)
    for row in zip(*rows.values, targets, strict=False):
        digest.update(repr(row).encode())
    return digest.hexdigest()[:_LENGTH]


def of_weights(model: keras.Model) -> str:
    """The fingerprint of the weights of a model."""
    digest = hashlib.sha256()
    for name, weight in weight_names(model).items():
        digest.update(name.encode())
        digest.update(np.ascontiguousarray(weight.numpy()).data)
    return digest.hexdigest()[:_LENGTH]


def of_files(paths: Iterable[Path]) -> str:
    """The fingerprint of files by content, and of others, such as a split of TFDS, by name."""
    contents = []
    for path in paths:
        try:
            contents.append(checksum(path) if is_file(path) else named(str(path)))
        except OSError as error:
            raise UserError(f"file cannot be read: {path} ({error.strerror})") from None
    return _of(contents)


def of_sizes(files: Iterable[Path]) -> str:
    """The fingerprint of large files by their names and sizes; their contents are not read."""
    return _of([(file.name, file.stat().st_size) for file in files])


def of_corpus(config: PretrainingRun, tokenizer: Tokenizer) -> str:
    """The fingerprint of a corpus and its tokenizer; files count by name, size and last change."""
    data, corpus = config.data, open_corpus(config)
    files = corpus.parts if isinstance(corpus, Corpus) else getattr(corpus, "files", ())
    text: list[object] = [] if files else [data.path, data.split, corpus.size]
    for file in files:
        known = file.stat()
        text.append((named(str(file)), known.st_size, known.st_mtime_ns))
    how = [data.format, data.dev_fraction, tokenizer.settings.to_dict(), tokenizer.vocabulary]
    return _of([text, how])


def _of(facts: list) -> str:
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:_LENGTH]
