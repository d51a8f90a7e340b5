"""Writing a corpus as TFRecords of examples, which google-research's and Model Garden's code read.

The folder holds `train-….tfrecord` and `dev-….tfrecord`, the vocabulary, and `manifest.json`, which
describes the examples. The same configuration gives the same bytes.
"""

import contextlib
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import tensorflow as tf

from bert_tf.config.run import PretrainingRun
from bert_tf.console import Progress, logger
from bert_tf.data.corpora.pretraining_data import open_shards
from bert_tf.data.corpora.shard_writing import check_out
from bert_tf.data.corpora.token_shards import DEV, MANIFEST, TRAIN
from bert_tf.data.records.format import LABELS, RECORDS, RecordFormat
from bert_tf.io.atomic import atomic_path
from bert_tf.io.vocabulary import write_beside
from bert_tf.text import Tokenizer

_FILE_EXAMPLES = 100_000  # about a hundred megabytes at 128 tokens
_BATCH = 256


def write_records(
    config: PretrainingRun, tokenizer: Tokenizer, out: str | os.PathLike, naming: str = "google"
) -> None:
    """Writes `data.dupe_factor` epochs of the corpus that `config` names into the folder `out`.
    Held-out documents are used once. Without next_sentence all labels are 0: the readers of these
    files require the feature. The folder appears when everything is written.
    """
    check_out(out, RECORDS, "TFRecords")
    with atomic_path(out) as folder:
        folder.mkdir()
        tokens = folder / "tokens"
        examples = open_shards(config, tokens, tokenizer, batch_size=1).examples
        batch = min(_BATCH, examples[TRAIN])
        data = open_shards(config, tokens, tokenizer, batch_size=batch)
        record = RecordFormat(naming, config.train.max_length, data.max_predictions, True)
        counts = {TRAIN: config.data.dupe_factor * examples[TRAIN], DEV: examples[DEV]}
        for part, count in counts.items():
            steps = -(-count // batch)
            dataset = data.dataset() if part == TRAIN else data.dev_dataset(steps)
            if count and dataset is not None:
                with data.explained_errors():
                    _write(folder, part, _rows(dataset.take(steps)), count, record)
        shutil.rmtree(tokens, ignore_errors=True)
        write_beside(folder, tokenizer.vocabulary)
        manifest = {
            "format": RECORDS,
            "naming": naming,
            "max_length": record.max_length,
            "max_predictions": record.max_predictions,
            "lower_case": tokenizer.lower_case,
            "tokenizer": tokenizer.settings.besides_casing,
        } | counts
        (folder / MANIFEST).write_text(json.dumps(manifest, indent=1) + "\n", encoding="utf-8")
    for part, count in counts.items():
        logger.info(f"{out}: {part} {count:,} examples of {record.max_length} tokens")


def _rows(dataset: tf.data.Dataset) -> Iterator[dict[str, np.ndarray]]:
    for inputs, targets in dataset.as_numpy_iterator():
        batch = inputs | targets
        batch.setdefault(LABELS, np.zeros(len(inputs["input_mask"]), np.int32))
        for row in range(len(inputs["input_mask"])):
            yield {name: values[row] for name, values in batch.items()}


def _write(
    folder: Path, part: str, rows: Iterator[dict[str, np.ndarray]], count: int, record: RecordFormat
) -> None:
    """Deals the first `count` rows to the part's files; each file gets some of every epoch."""
    files = -(-count // _FILE_EXAMPLES)
    names = [f"{part}-{number:05d}-of-{files:05d}.tfrecord" for number in range(files)]
    with contextlib.ExitStack() as stack:
        progress = stack.enter_context(Progress(f"writing {part} examples", count, unit="examples"))
        writers = [stack.enter_context(tf.io.TFRecordWriter(str(folder / name))) for name in names]
        for number, row in zip(range(count), rows, strict=False):
            writers[number % files].write(record.encode(row))
            progress.update(number + 1, line=True)
