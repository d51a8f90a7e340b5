"""A corpus, tokenized once: flat files of token ids that training reads again and again.

A folder of token shards holds

* `<part>-<number>.tokens.npy`: the ids of the shard's documents, end to end (uint16 where the
  vocabulary allows it, else int32);
* `<part>-<number>.sentences.npy`, `….documents.npy`: where sentences start among the tokens and
  documents among the sentences (int32, each with the end as last value);
* `vocab.txt`, the vocabulary that the ids count in;
* `manifest.json`: the number of documents, sentences and tokens, size and SHA-256 of every file.

A shard is closed at the document that fills it, so that shards are stretches of the corpus in its
order, and no document is in two. The same input gives the same bytes.

The held-out part (`dev`) is chosen document by document by a hash of the text, so that copies of a
document land on the same side, and a document does not change sides when the corpus grows.
"""

import dataclasses
import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from bert_tf.data.pairing import Documents
from bert_tf.errors import UserError
from bert_tf.files import atomic_path, read_text
from bert_tf.text import Tokenizer
from bert_tf.text.vocabulary import read_vocabulary

MANIFEST = "manifest.json"
VOCABULARY = "vocab.txt"
FORMAT = "bert_tf token shards 1"
SHARD_TOKENS = 1_000_000
TRAIN, DEV = "train", "dev"

# A line of megabytes would be one sentence, and pairing would only ever show the middle of it. No
# input of BERT is longer than this.
LONGEST_SENTENCE = 512

_ARRAYS = ("tokens", "sentences", "documents")
# So much text goes to the tokenizer in one call.
_BATCH_CHARACTERS = 1 << 20
_HASH_BITS = 64


@dataclasses.dataclass(frozen=True)
class Shard:
    """One entry of the manifest; `files` maps an array's name to its file's bytes and sha256."""

    name: str
    documents: int
    sentences: int
    tokens: int
    files: dict[str, dict[str, int | str]]

    def file(self, array: str) -> str:
        """The name of the file that holds `array`."""
        return f"{self.name}.{array}.npy"


def write_token_shards(
    documents: Iterable[list[str]],
    tokenizer: Tokenizer,
    out: str | os.PathLike,
    dev_fraction: float = 0.0,
    shard_tokens: int = SHARD_TOKENS,
    progress: Callable[[], None] = lambda: None,
) -> "TokenShards":
    """Tokenizes `documents` (lists of sentences) into the folder `out`.

    Args:
        documents: taken one by one; sentences and documents without a token are left out. They are
            gone through a second time if a small corpus has to be divided again.
        tokenizer: for the sentences.
        out: a new or empty folder, or token shards to replace. It appears when all is written.
        dev_fraction: share of the documents to hold out. If that finds fewer than two in a corpus
            of at least four, which is what next sentence prediction takes, it is two.
        shard_tokens: a shard is closed once it has so many tokens.
        progress: called after every document.

    Raises:
        UserError: `out` holds something else or cannot be written; no document has a token.
    """
    out = Path(out)
    if out.exists() and not (out / MANIFEST).is_file() and (out.is_file() or any(out.iterdir())):
        raise UserError(f"{out} exists and holds no token shards; choose another output folder")
    with atomic_path(out) as folder:
        folder.mkdir()
        dtype = np.uint16 if len(tokenizer.vocabulary) <= 1 << 16 else np.int32

        def write(dev_hashes: int) -> tuple[dict[str, list[Shard]], list[int]]:
            """Holds out what hashes below `dev_hashes`; the shards, and the two lowest hashes."""
            parts = {part: _PartWriter(folder, part, dtype, shard_tokens) for part in (TRAIN, DEV)}
            lowest: list[int] = []
            for document in _tokenized(documents, tokenizer):
                parts[DEV if document.hash < dev_hashes else TRAIN].add(document)
                lowest = sorted({*lowest, document.hash})[:2]
                progress()
            return {part: parts[part].close() for part in parts}, lowest

        shards, lowest = write(round(dev_fraction * 2**_HASH_BITS))
        counts = {part: sum(shard.documents for shard in shards[part]) for part in shards}
        if not any(counts.values()):
            raise UserError(
                "no document of the corpus has a token; check data.path and data.format"
            )
        if dev_fraction and counts[DEV] < 2 and counts[TRAIN] + counts[DEV] >= 4:
            for file in folder.iterdir():
                file.unlink()
            shards, _ = write(lowest[-1] + 1)
        vocabulary = "".join(f"{token}\n" for token in tokenizer.vocabulary).encode()
        (folder / VOCABULARY).write_bytes(vocabulary)
        manifest = {
            "format": FORMAT,
            "vocab_size": len(tokenizer.vocabulary),
            "vocab_sha256": hashlib.sha256(vocabulary).hexdigest(),
            "lower_case": tokenizer.lower_case,
            "dev_fraction": dev_fraction,
        } | {part: [dataclasses.asdict(shard) for shard in shards[part]] for part in shards}
        (folder / MANIFEST).write_text(json.dumps(manifest, indent=1) + "\n", encoding="utf-8")
    return TokenShards(out)


class TokenShards:
    """A folder of token shards, to read.

    Attributes:
        vocabulary: the tokens in the order of their ids.
        lower_case: whether the tokenizer lower-cased.
        parts: the shards of `train` and of `dev`, in the order of the corpus.

    Raises:
        UserError: no such folder, a manifest that cannot be used, a file that is missing or whose
            size has changed. The contents are checked when a shard is loaded.
    """

    def __init__(self, folder: str | os.PathLike):
        self.folder = Path(folder)
        path = self.folder / MANIFEST
        if not path.is_file():
            raise UserError(
                f"no token shards in {self.folder}; make them with `bert-tf pretrain-data`"
            )
        try:
            manifest = json.loads(read_text(path, "manifest of token shards"))
            if manifest["format"] != FORMAT:
                raise UserError(
                    f"{path} has the format {manifest['format']!r}, not {FORMAT!r}; "
                    "make it again with `bert-tf pretrain-data`"
                )
            self.lower_case = bool(manifest["lower_case"])
            self.parts = {
                part: tuple(Shard(**entry) for entry in manifest[part]) for part in (TRAIN, DEV)
            }
            for shard in self.parts[TRAIN] + self.parts[DEV]:
                for array in _ARRAYS:
                    self._check_size(shard, array)
            self.vocabulary = self._read_vocabulary(manifest["vocab_sha256"])
        except (ValueError, KeyError, TypeError) as error:
            raise UserError(
                f"{path} is damaged ({error!r}); make it again with `bert-tf pretrain-data`"
            ) from None

    def load(self, shard: Shard) -> tuple[np.ndarray, Documents]:
        """A shard's ids (uint16 or int32 [tokens], mapped from the file) and where things start.

        Raises:
            UserError: a file is missing or has changed since it was written.
        """
        tokens, sentences, documents = (self._load(shard, array) for array in _ARRAYS)
        return tokens, Documents(sentences.astype(np.int64), documents.astype(np.int64))

    def _load(self, shard: Shard, array: str) -> np.ndarray:
        self._check_size(shard, array)
        path = self.folder / shard.file(array)
        with open(path, "rb") as handle:
            digest = hashlib.file_digest(handle, "sha256").hexdigest()
        if digest != shard.files[array]["sha256"]:
            raise _changed(path, "its SHA-256 differs")
        return np.load(path, mmap_mode="r")

    def _check_size(self, shard: Shard, array: str) -> None:
        path = self.folder / shard.file(array)
        expected = shard.files[array]["bytes"]
        try:
            size = path.stat().st_size
        except OSError:
            raise UserError(
                f"token shard is missing: {path}; make them again with `bert-tf pretrain-data`"
            ) from None
        if size != expected:
            raise _changed(path, f"{size} bytes instead of {expected}")

    def _read_vocabulary(self, sha256: str) -> tuple[str, ...]:
        path = self.folder / VOCABULARY
        text = read_text(path, "vocabulary of the token shards")
        if hashlib.sha256(text.encode()).hexdigest() != sha256:
            raise _changed(path, "its SHA-256 differs")
        return read_vocabulary(path)


def _changed(path: Path, how: str) -> UserError:
    return UserError(
        f"{path} has changed since it was written ({how}); "
        "make the shards again with `bert-tf pretrain-data`"
    )


class _PartWriter:
    """Collects documents and writes a shard whenever there is enough for one."""

    def __init__(self, folder: Path, part: str, dtype: type, shard_tokens: int):
        self._folder, self._part, self._dtype = folder, part, dtype
        self._shard_tokens = shard_tokens
        self._shards: list[Shard] = []
        self._begin()

    def add(self, document: "_Document") -> None:
        """Adds one document."""
        self._ids.append(document.ids.astype(self._dtype))
        self._lengths.append(document.lengths)
        self._tokens += len(document.ids)
        if self._tokens >= self._shard_tokens:
            self._write()

    def close(self) -> list[Shard]:
        """Writes what is left; all shards of the part."""
        if self._ids:
            self._write()
        return self._shards

    def _begin(self) -> None:
        self._ids: list[np.ndarray] = []
        self._lengths: list[np.ndarray] = []
        self._tokens = 0

    def _write(self) -> None:
        arrays = {
            "tokens": np.concatenate(self._ids),
            "sentences": _starts(np.concatenate(self._lengths)),
            "documents": _starts([len(lengths) for lengths in self._lengths]),
        }
        shard = Shard(
            name=f"{self._part}-{len(self._shards):05d}",
            documents=len(self._lengths),
            sentences=len(arrays["sentences"]) - 1,
            tokens=self._tokens,
            files={},
        )
        for array, values in arrays.items():
            path = self._folder / shard.file(array)
            np.save(path, values)
            with open(path, "rb") as handle:
                digest = hashlib.file_digest(handle, "sha256").hexdigest()
            shard.files[array] = {"bytes": path.stat().st_size, "sha256": digest}
        self._shards.append(shard)
        self._begin()


def _starts(lengths: np.ndarray | list[int]) -> np.ndarray:
    """Where runs of these lengths start, and where the last one ends."""
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)


class _Document(NamedTuple):
    """A document's ids ([tokens]), its sentences' lengths ([sentences]), and a hash of its text."""

    ids: np.ndarray
    lengths: np.ndarray
    hash: int


def _tokenized(documents: Iterable[list[str]], tokenizer: Tokenizer) -> Iterator[_Document]:
    """The documents that have tokens."""
    for batch in _batches(documents):
        rows = tokenizer.tokenize([sentence for document in batch for sentence in document])
        ids, splits = rows.values.numpy(), rows.row_splits.numpy()
        first = 0
        for document in batch:
            bounds = splits[first : first + len(document) + 1]
            first += len(document)
            if bounds[0] < bounds[-1]:
                lengths = _cut_long_sentences(np.diff(bounds))
                yield _Document(ids[bounds[0] : bounds[-1]], lengths, _hash(document))


def _batches(documents: Iterable[list[str]]) -> Iterator[list[list[str]]]:
    """Groups documents so that a call of the tokenizer has enough to do."""
    batch: list[list[str]] = []
    characters = 0
    for document in documents:
        batch.append(document)
        characters += sum(map(len, document))
        if characters >= _BATCH_CHARACTERS:
            yield batch
            batch, characters = [], 0
    if batch:
        yield batch


def _cut_long_sentences(lengths: np.ndarray) -> np.ndarray:
    """Drops empty sentences, and cuts those over `LONGEST_SENTENCE` into several."""
    lengths = lengths[lengths > 0]
    pieces = -(-lengths // LONGEST_SENTENCE)
    cut = np.full(pieces.sum(), LONGEST_SENTENCE)
    cut[np.cumsum(pieces) - 1] = lengths - (pieces - 1) * LONGEST_SENTENCE
    return cut


def _hash(document: list[str]) -> int:
    text = "\n".join(document).encode()
    digest = hashlib.blake2b(text, digest_size=_HASH_BITS // 8, key=b"dev").digest()
    return int.from_bytes(digest, "big")
