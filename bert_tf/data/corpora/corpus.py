"""Text files and data sets to documents, one after the other, in their order.

Files have one of four formats (`data.format`), and may be gzipped:

* `sentence_per_line`: one sentence per line, blank lines between documents, as the reference's
  create_pretraining_data.py reads it. The end of a file ends a document too.
* `document_per_file`: running text; one file is one document, cut into sentences by rule.
* `jsonl`: one JSON object per line whose field `text` is a document of running text.
* `wikitext`: the format of WikiText-2 and WikiText-103. After a blank line, ` = Title = ` begins a
  document, and ` = = Section = = ` is a heading in it; any other line is a paragraph. The marks of
  ` @-@ `, ` @,@ ` and ` @.@ ` inside words are removed.

`data.path` is a file, a folder (all files below it that are not hidden), a glob such as
`books/**/*.txt`, or a list of these.

With format `tfds`, `data.path` is a data set's name, such as `wikipedia/20230601.en`, a folder that
TFDS has prepared, or a list of these, and `data.split` is written as in TFDS, such as
`train[:10%]`. Each example is one document of running text: the feature `text`, or the only feature
that is text. Data sets that are not on this machine yet are downloaded to TFDS's own folder.

With format `parquet` and `datasets`, a document is the column `text` of a row, or its only column;
`data.path` is as in fine-tuning, and `data.split` that of the data set.
"""

import codecs
import functools
import glob
import json
import os
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from bert_tf.data import arrow
from bert_tf.data.corpora.sentences import split_sentences
from bert_tf.data.tfds import one_line, read_rows, tfds, tfds_builder
from bert_tf.errors import UserError
from bert_tf.io.files import first_of, lines_of, open_maybe_gzipped
from bert_tf.io.json_files import whole_text
from bert_tf.io.remote import fetched

FORMATS = ("sentence_per_line", "document_per_file", "jsonl", "wikitext")
TFDS = "tfds"
# `data.format` for the files of `bert-tf pretrain-data`, and for other programs' TFRecords.
TOKEN_SHARDS, TFRECORD = "token_shards", "tfrecord"

_ROWS = 10_000  # documents of a part of a table
_BYTE_ORDER_MARK = "\ufeff"
_UTF_16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_HEADING = re.compile(r"((?:= )+)(.+?)((?: =)+)")
_JOINER = re.compile(r" @([-,.])@ ")


class AnyCorpus(ABC):
    """Documents with text, each the list of its sentences; one is in memory at a time."""

    unit: str  # of `size`, for progress bars
    unit_size: int
    parts: list[Any]  # each can be read on its own
    size: int  # of all parts, in bytes or documents
    position = 0  # how much of `size` the current iteration has passed
    # The sources of the parts, and what to check if none of them has text.
    names: list[Any]
    checks = "data.path and data.split"

    def __iter__(self) -> Iterator[list[str]]:
        self.position, has_text = 0, False
        for part in self.parts:
            for document in self.read(part):
                has_text = True
                yield document
        if not has_text:
            raise UserError(f"{first_of(self.names)} contains no text; check {self.checks}")

    @abstractmethod
    def read(self, part: Any) -> Iterator[list[str]]:
        """The documents of one of the `parts`."""


class Corpus(AnyCorpus):
    """The documents of text files, in one of `FORMATS`."""

    unit, unit_size = "kB", 1000

    def __init__(self, path: str | os.PathLike | Sequence[str | os.PathLike], format: str):
        if format not in FORMATS:
            known = ", ".join((*FORMATS, *arrow.FORMATS, TFDS, TOKEN_SHARDS, TFRECORD))
            raise UserError(f"unknown data.format {format!r}; choose one of {known}")
        self._format = format
        self.parts = find_files(path)
        sizes = {file: file.stat().st_size for file in self.parts}
        empty = [file for file, size in sizes.items() if not size]
        if empty:
            raise UserError(f"corpus file is empty: {first_of(empty)}; remove the file or add text")
        self.size, self.names = sum(sizes.values()), self.parts
        self.checks = f"the files and data.format ({format})"

    def read(self, part: Path) -> Iterator[list[str]]:
        return filter(None, getattr(self, f"_{self._format}")(part))

    def _sentence_per_line(self, file: Path) -> Iterator[list[str]]:
        document: list[str] = []
        for _, line in self._lines(file):
            sentence = line.strip()
            if sentence:
                document.append(sentence)
            else:
                yield document
                document = []
        yield document

    def _document_per_file(self, file: Path) -> Iterator[list[str]]:
        yield split_sentences("".join(line for _, line in self._lines(file)))

    def _jsonl(self, file: Path) -> Iterator[list[str]]:
        for number, line in self._lines(file):
            if not line.strip():
                continue
            try:
                text = json.loads(line)["text"]
            except (ValueError, KeyError, TypeError, RecursionError):
                text = None
            if not isinstance(text, str):
                raise UserError(
                    f'{file}, line {number}: expected a JSON object with the key "text" and a '
                    "string"
                )
            yield split_sentences(whole_text(text))

    def _wikitext(self, file: Path) -> Iterator[list[str]]:
        document: list[str] = []
        titles, after_blank = 0, True
        for _, line in self._lines(file):
            text = _JOINER.sub(r"\1", line.strip())
            heading = _HEADING.fullmatch(text) if after_blank else None
            if heading and heading[1].count("=") == heading[3].count("="):
                if heading[1] == "= ":
                    titles += 1
                    yield document
                    document = []
                document.append(heading[2])
            else:
                document.extend(split_sentences(text))
            after_blank = not text
        if not titles:
            raise UserError(
                f"{file} has no line like = Title =; check data.format, which is wikitext"
            )
        yield document

    def _lines(self, file: Path) -> Iterator[tuple[int, str]]:
        """The lines of a file, plain or gzipped, with their numbers from 1."""
        before, number = self.position, 0
        try:
            with open_maybe_gzipped(file, "corpus file") as (content, raw):
                for number, line in enumerate(lines_of(content, str(file)), start=1):
                    if number == 1 and line.startswith(_UTF_16_MARKS):
                        raise UserError(
                            f"corpus file is UTF-16, not UTF-8: {file}; convert it to UTF-8"
                        )
                    if b"\0" in line:
                        raise UserError(
                            f"corpus file is binary, not text: {file}, line {number}; remove it "
                            "from data.path"
                        )
                    text = line.decode("utf-8")
                    if number == 1:
                        text = text.removeprefix(_BYTE_ORDER_MARK)
                    if number % 1000 == 0:
                        self.position = before + raw.tell()
                    yield number, text
        except UnicodeDecodeError as error:
            raise UserError(
                f"corpus file is not UTF-8: {file}, line {number}, byte {error.start} of the line "
                f"(0x{error.object[error.start]:02x}); convert it to UTF-8"
            ) from None
        if number == 0:
            raise UserError(f"corpus file is empty: {file}")
        self.position = before + file.stat().st_size


class ArrowCorpus(AnyCorpus):
    """The column of texts of files or a data set; the parts are stretches of 10,000 rows."""

    unit, unit_size = "documents", 1

    def __init__(self, path: str | os.PathLike | Sequence[str | os.PathLike], split: str | None):
        names = [path] if isinstance(path, str | os.PathLike) else path
        self.names = [Path(name) / split if split else Path(name) for name in names]
        self.files = [file for name in self.names for file in arrow.files_of(name)]
        sizes = {name: len(_texts(name)) for name in self.names}
        self.parts = [(name, at) for name in sizes for at in range(0, sizes[name], _ROWS)]
        self.size = sum(sizes.values())

    def read(self, part: tuple[Path, int]) -> Iterator[list[str]]:
        name, start = part
        for text in _texts(name)[start : start + _ROWS]:
            self.position += 1
            if document := split_sentences(text or ""):
                yield document


@functools.lru_cache(maxsize=8)
def _texts(path: Path) -> arrow.ArrowRows:
    table = arrow.read(path)
    name = table.names[0] if len(table.names) == 1 else "text"
    table.check_texts([name])
    return table.column(name)


class TfdsCorpus(AnyCorpus):
    """The texts of data sets of TFDS; a part is the stretch of one file, as TFDS describes it."""

    unit, unit_size = "documents", 1

    def __init__(self, path: str | os.PathLike | Sequence[str | os.PathLike], split: str):
        self.names = [*map(str, [path] if isinstance(path, str | os.PathLike) else path)]
        self.parts, self.size = [], 0
        for name in self.names:
            builder = tfds_builder(name)
            _text_feature(name, builder)
            try:
                chosen = builder.info.splits[split]
            except (KeyError, ValueError) as error:
                raise UserError(f"{name} has no data.split {split!r} ({one_line(error)})") from None
            if not chosen.num_examples:
                raise UserError(f"data.split {split!r} of {name} is empty; choose a larger part")
            pieces = tfds().even_splits(split, len(chosen.file_instructions))
            self.parts += [(name, piece) for piece in pieces]
            self.size += chosen.num_examples

    def read(self, part: tuple[str, Any]) -> Iterator[list[str]]:
        name, stretch = part
        builder = tfds_builder(name)
        feature = _text_feature(name, builder)
        dataset = builder.as_dataset(
            split=stretch,
            shuffle_files=False,
            decoders=tfds().decode.PartialDecoding({feature: True}),
            # One file after the other, for an order that is always the same.
            read_config=tfds().ReadConfig(interleave_cycle_length=1),
        )
        for example in read_rows(dataset.as_numpy_iterator(), f"TFDS {name}"):
            self.position += 1
            if document := split_sentences(example[feature].decode("utf-8", "replace")):
                yield document


def _text_feature(name: str, builder: Any) -> str:
    features = builder.info.features
    texts = [key for key in features if isinstance(features[key], tfds().features.Text)]
    if "text" in texts:
        return "text"
    if len(texts) == 1:
        return texts[0]
    kind = "several text features, none of them named text" if texts else "no text feature"
    raise UserError(
        f"{name} has {kind} (its features are {', '.join(sorted(features))}); choose another "
        "data set"
    )


def find_files(path: str | os.PathLike | Sequence[str | os.PathLike]) -> list[Path]:
    """The files that a path, a folder, a glob or a list of these names, each file once."""
    paths = [path] if isinstance(path, str | os.PathLike) else path
    try:
        return list(dict.fromkeys(file for one in paths for file in _files_of(str(one))))
    except PermissionError as error:
        raise UserError(f"corpus cannot be read: {error.filename} ({error.strerror})") from None


def _files_of(path: str) -> list[Path]:
    place = fetched(path)
    if place.is_file():
        return [place]
    if place.is_dir():
        files = [file for file in sorted(_below(place)) if file.is_file()]
        if not files:
            raise UserError(f"corpus folder contains no files: {path}")
        return files
    matches = map(Path, sorted(glob.glob(str(place), recursive=True)))
    files = [file for file in matches if file.is_file()]
    if not files:
        what = "no file matches" if glob.has_magic(path) else "corpus not found:"
        raise UserError(f"{what} {path}; check the path")
    return files


def _below(folder: Path, above: frozenset[Path] = frozenset()) -> Iterator[Path]:
    """All files that are not hidden; links are followed, but not to a folder that they are in."""
    above |= {folder.resolve()}
    for path in folder.iterdir():
        if path.name.startswith("."):
            continue
        if not path.is_dir():
            yield path
        elif path.resolve() not in above:
            yield from _below(path, above)
