"""Text files -> documents, one after the other, in the order of the files and of their lines.

Three formats (`data.format`), each also gzipped:

* `sentence_per_line`: one sentence per line, blank lines between documents, as the reference's
  create_pretraining_data.py reads it. The end of a file ends a document too.
* `document_per_file`: running text; one file is one document, cut into sentences by rule.
* `jsonl`: one JSON object per line whose field `text` is a document of running text.

`data.path` is a file, a folder (all files below it), a glob such as `books/**/*.txt`, or a list of
these.
"""

import glob
import gzip
import json
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path

from bert_tf.data.sentences import split_sentences
from bert_tf.errors import UserError

FORMATS = ("sentence_per_line", "document_per_file", "jsonl")

_BYTE_ORDER_MARK = "\ufeff"
_GZIP_MAGIC = b"\x1f\x8b"


class Corpus:
    """The documents of text files, to go through as often as one likes.

    Iteration yields every document that has text, as the list of its sentences (str). One document
    is in memory at a time.

    Args:
        path: `data.path`.
        format: one of `FORMATS`.

    Attributes:
        files: each file once, within a folder or a glob in the order of names.
        size: bytes of all files.
        position: how many of these the iteration under way has come past.

    Raises:
        UserError: an unknown format, a path that does not exist, a folder without files, a glob
            without matches. While iterating: a file that is empty, unreadable, binary, not UTF-8 or
            not as `jsonl` says, with the line; no document with text in all of the files.
    """

    def __init__(self, path: str | Path | Sequence[str | Path], format: str):
        readers = (self._sentence_per_line, self._document_per_file, self._jsonl)
        if format not in FORMATS:
            raise UserError(f"unknown data.format {format!r}; choose one of {', '.join(FORMATS)}")
        self._format = format
        self._read = dict(zip(FORMATS, readers, strict=True))[format]
        paths = [path] if isinstance(path, str | Path) else path
        found = [file for one in paths for file in _files_of(str(one))]
        self.files = list(dict.fromkeys(found))
        self.size = sum(file.stat().st_size for file in self.files)
        self.position = 0

    def __iter__(self) -> Iterator[list[str]]:
        self.position = 0
        has_text = False
        for file in self.files:
            before = self.position
            for document in self._read(file):
                if document:
                    has_text = True
                    yield document
            self.position = before + file.stat().st_size
        if not has_text:
            others = f" and {len(self.files) - 1} more" if len(self.files) > 1 else ""
            raise UserError(
                f"no document with text in {self.files[0]}{others}; "
                f"check data.path and data.format ({self._format})"
            )

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
                raise UserError(f'{file}, line {number}: not a JSON object with a string "text"')
            yield split_sentences(text)

    def _lines(self, file: Path) -> Iterator[tuple[int, str]]:
        """The lines of a file, plain or gzipped, with their numbers from 1."""
        before, number = self.position, 0
        try:
            with open(file, "rb") as raw:
                is_gzip = raw.read(2) == _GZIP_MAGIC
                raw.seek(0)
                lines = gzip.GzipFile(fileobj=raw) if is_gzip else raw
                for number, line in enumerate(lines, start=1):
                    if b"\0" in line:
                        raise UserError(f"corpus file is binary, not text: {file}, line {number}")
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
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise UserError(f"corpus file is broken gzip: {file} ({error})") from None
        except OSError as error:
            raise UserError(f"corpus file cannot be read: {file} ({error.strerror})") from None
        if number == 0:
            raise UserError(f"corpus file is empty: {file}")


def _files_of(path: str) -> list[Path]:
    place = Path(path)
    if place.is_file():
        return [place]
    if place.is_dir():
        files = [file for file in sorted(place.rglob("*")) if file.is_file()]
        files = [file for file in files if not file.name.startswith(".")]
        if not files:
            raise UserError(f"corpus folder holds no files: {path}")
        return files
    files = [Path(match) for match in sorted(glob.glob(path, recursive=True))]
    files = [file for file in files if file.is_file()]
    if not files:
        what = "no file matches" if glob.has_magic(path) else "corpus not found:"
        raise UserError(f"{what} {path}; check data.path")
    return files
