"""TFRecords of ready examples to `tf.data` batches for pre-training.

The examples keep the pairs and the masks with which they were written; only their order changes.
"""

import glob
import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import tensorflow as tf

from bert_tf.data.corpora.corpus import find_files
from bert_tf.data.corpora.order import Part, PooledExamples
from bert_tf.data.corpora.steps import DEV_SEED, Elements, StepData, Tensors
from bert_tf.data.corpora.token_shards import MANIFEST
from bert_tf.data.records.files import RecordFile
from bert_tf.data.records.format import LABELS, RECORDS, TOKENS, RecordFormat
from bert_tf.errors import UserError
from bert_tf.io.files import first_of, read_text
from bert_tf.io.remote import local_path
from bert_tf.io.vocabulary import TokenizerSettings, read_beside
from bert_tf.text import Tokenizer

_DEV_PREFIX, _IN_NAME = "dev-", "tfrecord"
_BLOCK = 256  # records that are read at once, and dealt as one unit of the order

Paths = str | os.PathLike | Sequence[str | os.PathLike]


class _Records(PooledExamples):
    """Examples of one format, with ids below `vocab_size`, in blocks that are shuffled in pools."""

    _KEY = 3  # token shards have 2

    def __init__(self, files: list[Path], vocab_size: int, seed: int):
        self._files = [file for file in map(RecordFile, files) if len(file)]
        self.name = first_of(files)
        if not self._files:
            raise UserError(f"{self.name} contains no examples; check data.path")
        self.format = RecordFormat.of(self._files[0])
        self._vocab_size = vocab_size
        blocks = [
            (number, first, min(first + _BLOCK, len(file)))
            for number, file in enumerate(self._files)
            for first in range(0, len(file), _BLOCK)
        ]
        self._blocks = np.array(blocks)
        super().__init__(self._blocks[:, 2] - self._blocks[:, 1], seed)

    def _make(self, part: Part, rng: np.random.Generator) -> list[np.ndarray]:
        """The columns of `format.sizes`, shuffled."""
        blocks = [self._read(*self._blocks[unit].tolist()) for unit in part.units]
        order = rng.permutation(part.size)
        return [np.concatenate([each[name] for each in blocks])[order] for name in blocks[0]]

    def _take(self, made: list[np.ndarray], places: np.ndarray) -> Iterator[np.ndarray]:
        return (column[places] for column in made)

    def _read(self, file: int, first: int, last: int) -> dict[str, np.ndarray]:
        """Parses and checks a block."""
        path = self._files[file].path
        records = self._files[file].read(first, last)
        try:
            block = self.format.parse(records)
        except ValueError:
            wrong = first + self._first_unlike(records)
            raise UserError(
                f"{path}, record {wrong + 1} differs in form from the first one of {self.name}, "
                f"which has {self.format.max_length} tokens and up to "
                f"{self.format.max_predictions} masked ones; use files of the same form"
            ) from None
        pieces, length = f"the vocabulary has {self._vocab_size} pieces", self.format.max_length
        other, damaged = "set tokenizer.vocab to that of the file", "make or copy the file again"
        for name, limit, what, advice in (
            ("input_word_ids", self._vocab_size, pieces, other),
            ("masked_lm_ids", self._vocab_size, pieces, other),
            ("masked_lm_positions", length, f"there are {length} tokens", damaged),
            ("input_type_ids", 2, "there are two segments", damaged),
            ("input_mask", 2, "it is 0 or 1", damaged),
            (LABELS, 2, "it is 0 or 1", damaged),
        ):
            values = block.get(name)
            if values is None:
                continue
            bad = (values < 0) | (values >= limit)
            if np.any(bad):
                row = int(np.argmax(bad.reshape(len(bad), -1).any(axis=1)))
                raise UserError(
                    f"{path}, record {first + row + 1} has {name} {values[bad][0]}, but {what}; "
                    f"{advice}"
                )
        return block

    def _first_unlike(self, records: Sequence[bytes]) -> int:
        for number, record in enumerate(records):
            try:
                self.format.parse([record])
            except ValueError:
                return number
        raise AssertionError("together they fail, one by one they do not")


class RecordData(StepData):
    """Batches of the examples in TFRecord files with google-research's or Model Garden's naming.

    `path` is a file, a glob, a folder or a list of these. A folder gives the files with "tfrecord"
    in their names. The files of `dev_path` are held out, even if `path` names them too. By default,
    files of folders and globs in `path` are held out if their names begin with "dev-". `max_length`
    must be the records' own.
    """

    def __init__(
        self,
        path: Paths,
        batch_size: int,
        max_length: int,
        tokenizer: Tokenizer,
        seed: int = 0,
        next_sentence: bool = True,
        dev_path: Paths | None = None,
    ):
        train, dev = _files(path, dev_path)
        self.files = [*train, *dev]
        for folder in dict.fromkeys(file.parent for file in self.files):
            _check_tokenizer(folder, tokenizer)
        self._next_sentence = next_sentence
        examples = _Records(train, tokenizer.vocab_size, seed)
        self._dev = _Records(dev, tokenizer.vocab_size, DEV_SEED) if dev else None
        for records in filter(None, (examples, self._dev)):
            found = records.format
            if found.max_length != max_length:
                raise UserError(
                    f"the examples in {records.name} have {found.max_length} tokens, but "
                    f"train.max_length is {max_length}; set it to {found.max_length}"
                )
            if next_sentence and not found.has_labels:
                raise UserError(
                    f"the examples in {records.name} have no {LABELS}; set data.next_sentence to "
                    "false"
                )
        self.max_predictions = examples.format.max_predictions
        size = f"{examples.name} holds {examples.per_epoch} examples"
        super().__init__(examples, batch_size, size)

    def _held_out(self) -> _Records | None:
        return self._dev

    def _elements(
        self,
        examples: _Records,
        stretch: tf.Tensor,
        columns: Tensors,
        worker: int,
        workers: int,
    ) -> Elements:
        found = dict(zip(examples.format.sizes(), columns, strict=True))
        inputs = {name: found[name] for name in (*TOKENS, "masked_lm_positions")}
        targets = {name: found[name] for name in ("masked_lm_ids", "masked_lm_weights")}
        if self._next_sentence:
            targets[LABELS] = found[LABELS]
        return inputs, targets


def _files(path: Paths, dev_path: Paths | None) -> tuple[list[Path], list[Path]]:
    """The files to train on, and those held out."""
    found, dev_named = _records(path)
    held_out = dev_named if dev_path is None else _records(dev_path)[0]
    # Two names may lead to one file.
    not_trained_on = {file.resolve() for file in (*dev_named, *held_out)}
    train = [file for file in found if file.resolve() not in not_trained_on]
    if not train:
        raise UserError(
            f"no file is left to train on: all files of data.path, such as {found[0]}, are held "
            "out; add files to data.path, or name other files in data.dev_path"
        )
    return train, held_out


def _records(path: Paths) -> tuple[list[Path], list[Path]]:
    """The files of records, and those from folders or globs whose names mark them as held out."""
    found, dev_named = [], []
    for one in [path] if isinstance(path, str | os.PathLike) else path:
        files, is_folder = find_files(one), local_path(one).is_dir()
        if is_folder:
            files = [file for file in files if _IN_NAME in file.name]
            if not files:
                raise UserError(
                    f'{one} contains no files with "{_IN_NAME}" in their names; name the files by '
                    "a glob pattern"
                )
        if is_folder or glob.has_magic(str(one)):
            dev_named += [file for file in files if file.name.startswith(_DEV_PREFIX)]
        found += files
    return list(dict.fromkeys(found)), dev_named


def _check_tokenizer(folder: Path, tokenizer: Tokenizer) -> None:
    """Compares the tokenizer with the one that `write_records` recorded in `folder`, if any."""
    try:
        manifest = json.loads(read_text(folder / MANIFEST))
        written = str(manifest["format"])
    except (UserError, ValueError, KeyError, TypeError, RecursionError):
        return
    if written != RECORDS:
        if written.startswith(RECORDS.rstrip("1")):
            raise UserError(
                f"{folder / MANIFEST} has the format {written!r}, not {RECORDS!r}; write the "
                "TFRecords again with `bert-tf pretrain-data`"
            )
        return
    if "lower_case" not in manifest:
        raise UserError(
            f"{folder / MANIFEST} is damaged (lower_case is missing); write the TFRecords again "
            "with `bert-tf pretrain-data`"
        )
    if read_beside(folder) != tokenizer.vocabulary:
        raise UserError(
            f"the examples in {folder} were made with a different vocabulary; set tokenizer.vocab "
            "to theirs, or write them again with `bert-tf pretrain-data`"
        )
    theirs = TokenizerSettings.from_parts(
        manifest["lower_case"], manifest.get("tokenizer", {}), str(folder / MANIFEST)
    )
    if wrong := tokenizer.settings.first_difference(theirs):
        raise UserError(
            f"the examples in {folder} were made without tokenizer.{wrong} "
            f"{json.dumps(getattr(tokenizer.settings, wrong))}; change that key, or write them "
            "again with `bert-tf pretrain-data`"
        )
