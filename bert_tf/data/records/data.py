"""TFRecords of ready examples to `tf.data` batches for pre-training.

The examples keep the pairs and the masks with which they were written; only their order changes
from epoch to epoch. As with token shards, batch k follows from (seed, files, k) alone.
"""

import glob
import json
import os
from collections.abc import Sequence
from pathlib import Path

import tensorflow as tf

from bert_tf.data.corpora.corpus import find_files
from bert_tf.data.corpora.steps import Elements, StepData
from bert_tf.data.corpora.token_shards import MANIFEST
from bert_tf.data.records.examples import RecordExamples
from bert_tf.data.records.format import LABELS, RECORDS, TOKENS
from bert_tf.errors import UserError
from bert_tf.io.files import read_text
from bert_tf.io.vocabulary import VOCABULARY_FILE, read_vocabulary
from bert_tf.text import Tokenizer

_DEV_PREFIX, _IN_NAME = "dev-", "tfrecord"

Paths = str | os.PathLike | Sequence[str | os.PathLike]


class RecordData(StepData):
    """Batches of the examples in TFRecord files, of google-research's or Model Garden's naming.

    >>> import numpy as np
    >>> from bert_tf.data.records.format import PREDICTIONS, RecordFormat
    >>> record = RecordFormat("google", max_length=4, max_predictions=1, has_labels=False)
    >>> ones = np.ones(4, int)
    >>> with tf.io.TFRecordWriter("train.tfrecord") as file:
    ...     for word in (5, 6):
    ...         example = {"input_word_ids": np.array([2, word, word, 3])}
    ...         example |= {"input_mask": ones, "input_type_ids": 0 * ones}
    ...         example |= dict.fromkeys(PREDICTIONS, ones[:1])
    ...         file.write(record.encode(example))
    >>> tokenizer = Tokenizer("[PAD] [UNK] [CLS] [SEP] [MASK] cat dog".split())
    >>> data = RecordData("train.tfrecord", 2, 4, tokenizer, next_sentence=False)
    >>> inputs, targets = next(iter(data.dataset()))
    >>> sorted(inputs["input_word_ids"].numpy().tolist())
    [[2, 5, 5, 3], [2, 6, 6, 3]]

    Args:
        path: a file, a glob, a folder, or a list of these. A folder gives the files with "tfrecord"
            in their names.
        batch_size: rows of the global batch.
        max_length: tokens of a row, which must be the records' own.
        tokenizer: whose ids the examples hold.
        seed: decides the order of the training batches.
        next_sentence: give the label of the pairs.
        dev_path: files of held-out examples, which are never trained on, even if `path` names them
            too. By default those of folders and globs in `path` whose names begin with "dev-".

    Attributes:
        files: those to train on, then those held out.
        steps_per_epoch: batches after which every record has had its turn.
        max_predictions: columns for masked tokens.

    Raises:
        UserError: files that are missing, damaged, of different formats or no pre-training
            examples; a max_length that is not theirs; ids beyond the tokenizer's, or, if `bert-tf
            pretrain-data` wrote them, another vocabulary or casing; no labels where `next_sentence`
            needs them; a batch larger than the data.
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
        examples = RecordExamples(train, tokenizer.vocab_size, seed)
        # Held-out batches are the same for every seed of training, so that their losses compare.
        self._dev = RecordExamples(dev, tokenizer.vocab_size, seed=0) if dev else None
        for records in filter(None, (examples, self._dev)):
            records.check(max_length, next_sentence)
        self.max_predictions = examples.format.max_predictions
        super().__init__(
            examples, batch_size, f"{examples.name} holds {examples.per_epoch} examples"
        )

    def _held_out(self) -> RecordExamples | None:
        return self._dev

    def _elements(
        self,
        examples: RecordExamples,
        stretch: tf.Tensor,
        columns: list[tf.Tensor],
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
            f"no file is left to train on: all files of data.path, {found[0]} first, are held "
            "out; add files to data.path, or name other files in data.dev_path"
        )
    return train, held_out


def _records(path: Paths) -> tuple[list[Path], list[Path]]:
    """The files of records, and those among them that a folder or a glob has for held-out ones."""
    found, dev_named = [], []
    for one in [path] if isinstance(path, str | os.PathLike) else path:
        files, is_folder = find_files(one), Path(one).is_dir()
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
    """Compares the tokenizer with the one that `write_records` recorded in `folder`, if it did."""
    try:
        manifest = json.loads(read_text(folder / MANIFEST))
        if manifest["format"] != RECORDS:
            return
    except (UserError, ValueError, KeyError, TypeError, RecursionError):
        return
    if "lower_case" not in manifest:
        raise UserError(
            f"{folder / MANIFEST} is damaged (lower_case is missing); write the TFRecords again "
            "with `bert-tf pretrain-data`"
        )
    if read_vocabulary(folder / VOCABULARY_FILE) != tokenizer.vocabulary:
        raise UserError(
            f"the examples in {folder} were made with a different vocabulary; set tokenizer.vocab "
            "to theirs, or write them again with `bert-tf pretrain-data`"
        )
    if manifest["lower_case"] != tokenizer.lower_case:
        raise UserError(
            f"the examples in {folder} were made without tokenizer.lower_case "
            f"{str(tokenizer.lower_case).lower()}; change that key, or write them again with "
            "`bert-tf pretrain-data`"
        )
