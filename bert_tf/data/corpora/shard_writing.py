"""Writing token shards in one process, and functions for other ways of writing them.

The held-out documents are chosen by a hash of the text. So copies of a document are on the same
side, and a document does not change sides when the corpus grows.
"""

import dataclasses
import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from bert_tf.data.corpora.pairing import starts
from bert_tf.data.corpora.token_shards import DEV, FORMAT, MANIFEST, TRAIN, Shard, TokenShards
from bert_tf.errors import UserError
from bert_tf.io.atomic import atomic_path
from bert_tf.io.files import checksum, read_text
from bert_tf.io.refusals import explained
from bert_tf.io.remote import exists, local_path, remote_of
from bert_tf.io.vocabulary import VOCABULARY_FILE, write_beside
from bert_tf.text import Tokenizer

SHARD_TOKENS = 1_000_000
# How many of the lowest hashes `dev_limit` looks at.
LOWEST_HASHES = 3
# The most tokens of a sentence: a line of megabytes would be one. No input of BERT is longer.
LONGEST_SENTENCE = 512
HASH_BITS = 64

_BATCH_CHARACTERS = 1 << 20  # characters that go to the tokenizer in one call


class TokenizedDocument(NamedTuple):
    """A document as token ids."""

    ids: np.ndarray  # uint16 [tokens] where the vocabulary allows it, else int32
    lengths: np.ndarray  # int64 [sentences], the tokens of its sentences
    hash: int  # of its text, below 2 ** HASH_BITS


def write_token_shards(
    documents: Iterable[list[str]],
    tokenizer: Tokenizer,
    out: str | os.PathLike,
    dev_fraction: float = 0.0,
    shard_tokens: int = SHARD_TOKENS,
    progress: Callable[[], None] = lambda: None,
) -> TokenShards:
    """Tokenizes `documents` (lists of sentences) into the folder `out`, which appears when all is
    written. The same input gives the same bytes.

    Sentences and documents without a token are left out. A shard is closed at the document that
    fills it. The documents are read a second time if a small corpus has to be divided
    again. `progress` is called after every document.
    """
    check_out(out)
    with atomic_path(out) as folder:
        folder.mkdir()

        def write(limit: int) -> tuple[dict[str, list[Shard]], list[int]]:
            """Holds out documents with hashes below `limit`; returns shards and lowest hashes."""
            shards: dict[str, list[Shard]] = {TRAIN: [], DEV: []}
            waiting: dict[str, list[TokenizedDocument]] = {TRAIN: [], DEV: []}
            tokens, lowest = dict.fromkeys(shards, 0), list[int]()

            def close(part: str) -> None:
                shards[part].append(write_shard(folder, part, len(shards[part]), waiting[part]))
                waiting[part], tokens[part] = [], 0

            for document in tokenized(documents, tokenizer):
                part = DEV if document.hash < limit else TRAIN
                waiting[part].append(document)
                tokens[part] += len(document.ids)
                if tokens[part] >= shard_tokens:
                    close(part)
                lowest = sorted({*lowest, document.hash})[:LOWEST_HASHES]
                progress()
            for part in filter(waiting.get, shards):
                close(part)
            return shards, lowest

        limit = dev_limit(dev_fraction)
        shards, lowest = write(limit)
        train, dev = (sum(shard.documents for shard in shards[part]) for part in (TRAIN, DEV))
        widened = dev_limit(dev_fraction, train + dev, dev, lowest)
        if widened != limit:
            for file in folder.iterdir():
                file.unlink()
            shards, _ = write(widened)
        write_manifest(folder, tokenizer, dev_fraction, shards)
    return TokenShards(out)


def dev_limit(
    dev_fraction: float, documents: int = 0, held_out: int = 0, lowest: Sequence[int] = ()
) -> int:
    """The hash below which a document is held out.

    Next sentence prediction needs two documents. So if the share holds out fewer (`held_out`) of at
    least four `documents`, the two with the `lowest` hashes are held out, unless others are copies
    of them.
    """
    if dev_fraction and held_out < 2 and documents >= 4 and len(lowest) == LOWEST_HASHES:
        return lowest[1] + 1
    return round(dev_fraction * 2**HASH_BITS)


def check_out(out: str | os.PathLike, format: str = FORMAT, what: str = "token shards") -> None:
    """Raises UserError if `out` holds anything but `what`, by the `format` in its manifest."""
    out = local_path(out)
    with explained(out):
        is_empty = remote_of(out) is None and out.is_dir() and not any(out.iterdir())
        if not exists(out) or is_empty:
            return
    try:
        manifest = json.loads(read_text(out / MANIFEST))
    except (UserError, ValueError, RecursionError):
        manifest = None
    if not isinstance(manifest, dict) or manifest.get("format") != format:
        raise UserError(
            f"{out} exists and does not contain {what}, so it is not replaced; choose another "
            "output folder"
        )


def write_shard(
    folder: Path, part: str, number: int, documents: Sequence[TokenizedDocument]
) -> Shard:
    """Writes the files of the shard `number` of a part."""
    lengths = [document.lengths for document in documents]
    arrays = {
        "tokens": np.concatenate([document.ids for document in documents]),
        "sentences": starts(np.concatenate(lengths)).astype(np.int32),
        "documents": starts(list(map(len, lengths))).astype(np.int32),
    }
    sentences, tokens = len(arrays["sentences"]) - 1, len(arrays["tokens"])
    shard = Shard(f"{part}-{number:05d}", len(documents), sentences, tokens, files={})
    for array, values in arrays.items():
        path = folder / shard.file(array)
        np.save(path, values)
        shard.files[array] = {"bytes": path.stat().st_size, "sha256": checksum(path)}
    return shard


def write_manifest(
    folder: Path, tokenizer: Tokenizer, dev_fraction: float, shards: Mapping[str, Sequence[Shard]]
) -> None:
    """Writes vocabulary and manifest, which make a folder of shards complete."""
    if not any(shards.values()):
        raise UserError("the corpus has no tokens; check data.path and data.format")
    write_beside(folder, tokenizer.vocabulary)
    manifest = {
        "format": FORMAT,
        "vocab_size": tokenizer.vocab_size,
        "vocab_sha256": checksum(folder / VOCABULARY_FILE),
        "lower_case": tokenizer.lower_case,
        "tokenizer": tokenizer.settings.besides_casing,
        "dev_fraction": dev_fraction,
    } | {part: [dataclasses.asdict(shard) for shard in shards[part]] for part in (TRAIN, DEV)}
    (folder / MANIFEST).write_text(json.dumps(manifest, indent=1) + "\n", encoding="utf-8")


def tokenized(documents: Iterable[list[str]], tokenizer: Tokenizer) -> Iterator[TokenizedDocument]:
    """Tokenizes documents, which are lists of sentences, and leaves out those without tokens."""
    dtype = np.uint16 if tokenizer.vocab_size <= 1 << 16 else np.int32
    for batch in batches(documents):
        rows = tokenizer.tokenize([sentence for document in batch for sentence in document])
        ids, splits = rows.values.numpy(), rows.row_splits.numpy()
        first = 0
        for document in batch:
            bounds = splits[first : first + len(document) + 1]
            first += len(document)
            if bounds[0] < bounds[-1]:
                lengths = _cut_long_sentences(np.diff(bounds))
                # A copy: a view would hold on to the ids of the whole batch.
                own = ids[bounds[0] : bounds[-1]].astype(dtype)
                text = "\n".join(document).encode()
                digest = hashlib.blake2b(text, digest_size=HASH_BITS // 8, key=b"dev").digest()
                yield TokenizedDocument(own, lengths, int.from_bytes(digest, "big"))


def batches(documents: Iterable[list[str]]) -> Iterator[list[list[str]]]:
    """Groups documents so that each call of the tokenizer has enough text."""
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
