"""Writing token shards: in one process here, and the parts that other ways are made of.

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
# A line of megabytes would be one sentence. No input of BERT is longer than this.
LONGEST_SENTENCE = 512
HASH_BITS = 64

# Characters that go to the tokenizer in one call.
_BATCH_CHARACTERS = 1 << 20


class TokenizedDocument(NamedTuple):
    """A document as token ids.

    ids: uint16 [tokens] where the vocabulary allows it, else int32.
    lengths: int64 [sentences], the tokens of its sentences.
    hash: of its text, below 2 ** HASH_BITS.
    """

    ids: np.ndarray
    lengths: np.ndarray
    hash: int


def write_token_shards(
    documents: Iterable[list[str]],
    tokenizer: Tokenizer,
    out: str | os.PathLike,
    dev_fraction: float = 0.0,
    shard_tokens: int = SHARD_TOKENS,
    progress: Callable[[], None] = lambda: None,
) -> TokenShards:
    """Tokenizes `documents` (lists of sentences) into the folder `out`.

    A shard is closed at the document that fills it. The same input gives the same bytes.

    >>> tokenizer = Tokenizer("[PAD] [UNK] [CLS] [SEP] [MASK] the cat sat".split())
    >>> shards = write_token_shards([["The cat", "sat"], ["the cat"]], tokenizer, "shards")
    >>> (shard,) = shards.parts["train"]
    >>> shard.name, shard.documents, shard.sentences, shard.tokens
    ('train-00000', 2, 3, 5)
    >>> for file in sorted(Path("shards").iterdir()):
    ...     print(file.name)
    manifest.json
    train-00000.documents.npy
    train-00000.sentences.npy
    train-00000.tokens.npy
    vocab.txt

    Args:
        documents: taken one by one; sentences and documents without a token are left out. They are
            gone through a second time if a small corpus has to be divided again.
        out: a new or empty folder, or token shards to replace. It appears when all is written.
        dev_fraction: share of the documents to hold out, see `dev_limit`.
        shard_tokens: a shard is closed once it has so many tokens.
        progress: called after every document.

    Raises:
        UserError: `out` holds something else or cannot be written; no document has a token.
    """
    check_out(out)
    with atomic_path(out) as folder:
        folder.mkdir()

        def write(limit: int) -> tuple[dict[str, list[Shard]], list[int]]:
            """Holds out documents with a hash below `limit`.

            Returns the shards and the three lowest hashes.
            """
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

    >>> dev_limit(0.5) / 2**HASH_BITS
    0.5

    Args:
        dev_fraction: share of the documents to hold out.
        documents, held_out, lowest: the number of documents, the number that the share holds
            out, and the three lowest hashes. Next sentence prediction needs two documents. So if
            the share holds out fewer than two of at least four, two are held out, unless the
            others are copies of these.
    """
    if dev_fraction and held_out < 2 and documents >= 4 and len(lowest) == LOWEST_HASHES:
        return lowest[1] + 1
    return round(dev_fraction * 2**HASH_BITS)


def check_out(out: str | os.PathLike, format: str = FORMAT, what: str = "token shards") -> None:
    """Raises a `UserError` if there is something at `out` that must not be replaced.

    >>> check_out("new")  # nothing is there
    >>> Path("notes").mkdir()
    >>> _ = Path("notes", "todo.txt").write_text("buy milk")
    >>> check_out("notes")
    Traceback (most recent call last):
        ...
    bert_tf.errors.UserError: notes exists and does not contain token shards, so it is ...

    A folder may be replaced that has this `format` in its manifest; `what` is what it then holds.
    """
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
    """Writes the files of the shard `number` of a part.

    >>> document = TokenizedDocument(np.array([5, 6, 7]), lengths=np.array([2, 1]), hash=0)
    >>> shard = write_shard(Path(), "train", 0, [document])
    >>> shard.name, shard.tokens, shard.sentences, np.load(shard.file("tokens")).tolist()
    ('train-00000', 3, 2, [5, 6, 7])
    """
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
    """Writes vocabulary and manifest, which make a folder of shards complete.

    >>> document = TokenizedDocument(np.array([5]), lengths=np.array([1]), hash=0)
    >>> Path("whole").mkdir()
    >>> shard = write_shard(Path("whole"), "train", 0, [document])
    >>> tokenizer = Tokenizer("[PAD] [UNK] [CLS] [SEP] [MASK] cat".split())
    >>> write_manifest(Path("whole"), tokenizer, 0.0, {"train": [shard], "dev": []})
    >>> TokenShards("whole").vocabulary[-1]
    'cat'

    Raises:
        UserError: there are no shards.
    """
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
    """The documents, lists of sentences, that have tokens.

    >>> tokenizer = Tokenizer("[PAD] [UNK] [CLS] [SEP] [MASK] the cat sat".split())
    >>> (document,) = tokenized([["The cat", "sat"], [""]], tokenizer)
    >>> document.ids.tolist(), document.lengths.tolist()
    ([5, 6, 7], [2, 1])
    """
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
                yield TokenizedDocument(own, lengths, _hash(document))


def batches(documents: Iterable[list[str]]) -> Iterator[list[list[str]]]:
    """Groups documents so that each call of the tokenizer has enough text.

    >>> [len(batch) for batch in batches([["The cat", "sat"], ["The dog"]])]
    [2]
    """
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
    digest = hashlib.blake2b(text, digest_size=HASH_BITS // 8, key=b"dev").digest()
    return int.from_bytes(digest, "big")
