"""A corpus, tokenized once: flat files of token ids that training reads again and again.

A folder of token shards holds

* `<part>-<number>.tokens.npy`: the ids of the shard's documents, end to end (uint16 where the
  vocabulary allows it, else int32);
* `<part>-<number>.sentences.npy`, `….documents.npy`: where sentences start among the tokens and
  documents among the sentences (int32, each with the end as last value);
* `vocab.txt`, the vocabulary that the ids refer to;
* `manifest.json`: the number of documents, sentences and tokens, size and SHA-256 of every file.

Shards are stretches of the corpus in its order, and no document is in two. Those of the part `dev`
are held out. `shard_writing` makes such a folder; `beam_shards` makes the same on many machines.
"""

import dataclasses
import hashlib
import json
import os
from pathlib import Path

import numpy as np

from bert_tf.data.corpora.pairing import Documents
from bert_tf.errors import UserError
from bert_tf.io.files import checksum, read_text
from bert_tf.io.remote import fetched
from bert_tf.io.vocabulary import VOCABULARY_FILE, TokenizerSettings, read_vocabulary

MANIFEST = "manifest.json"
FORMAT = "bert_tf token shards 1"
TRAIN, DEV = "train", "dev"
ARRAYS = ("tokens", "sentences", "documents")


@dataclasses.dataclass(frozen=True)
class Shard:
    """One entry of the manifest."""

    name: str
    documents: int
    sentences: int
    tokens: int
    files: dict[str, dict[str, int | str]]  # bytes and sha256 of the file of each array

    @classmethod
    def read(cls, entry: dict) -> "Shard":
        """An entry of unknown origin; if it is damaged, a KeyError, TypeError or ValueError."""
        shard = cls(**entry)
        counts = (shard.documents, shard.sentences, shard.tokens)
        sums = [(shard.files[array]["bytes"], shard.files[array]["sha256"]) for array in ARRAYS]
        if not all(type(count) is int for count in (*counts, *(size for size, _ in sums))):
            raise TypeError("a number is not a whole number")
        if not all(isinstance(text, str) for text in (shard.name, *(sha256 for _, sha256 in sums))):
            raise TypeError("a name or a checksum is not a text")
        if shard.name != os.path.basename(shard.name) or "\0" in shard.name:
            raise ValueError(f"{shard.name!r} is not the name of a file")
        return shard

    def file(self, array: str) -> str:
        """The name of the file that holds `array`."""
        return f"{self.name}.{array}.npy"


class TokenShards:
    """A folder of token shards, to read. The contents of a file are checked when it is loaded."""

    def __init__(self, folder: str | os.PathLike):
        self.folder = fetched(folder)
        path = self.folder / MANIFEST
        if not path.is_file():
            raise UserError(
                f"no token shards in {self.folder}; make them with `bert-tf pretrain-data`"
            )
        try:
            manifest = json.loads(read_text(path, "manifest of token shards"))
            if manifest["format"] != FORMAT:
                raise UserError(
                    f"{path} has the format {manifest['format']!r}, not {FORMAT!r}; write it "
                    "again with `bert-tf pretrain-data`"
                )
            self.tokenizer = TokenizerSettings.from_parts(
                bool(manifest["lower_case"]), manifest.get("tokenizer", {}), str(path)
            )
            self.dev_fraction = float(manifest["dev_fraction"])
            self.parts = {
                part: tuple(Shard.read(entry) for entry in manifest[part]) for part in (TRAIN, DEV)
            }
            for shard in self.parts[TRAIN] + self.parts[DEV]:
                for array in ARRAYS:
                    self._check_size(shard, array)
            vocabulary = self.folder / VOCABULARY_FILE
            text = read_text(vocabulary, "vocabulary of the token shards")
            if hashlib.sha256(text.encode()).hexdigest() != manifest["vocab_sha256"]:
                raise _changed(vocabulary, "its SHA-256 differs")
            self.vocabulary = read_vocabulary(vocabulary, of_model=True)
        except UserError:
            raise
        except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
            raise UserError(
                f"{path} is damaged ({error!r}); write it again with `bert-tf pretrain-data`"
            ) from None

    def load(self, shard: Shard) -> tuple[np.ndarray, Documents]:
        """A shard's ids (uint16 or int32 [tokens], memory-mapped) and its `Documents`."""
        tokens = self._load(shard, "tokens")
        sentences, documents = (
            self._load(shard, array).astype(np.int64) for array in ("sentences", "documents")
        )
        for array, firsts, end in (
            ("sentences", sentences, len(tokens)),
            ("documents", documents, len(sentences) - 1),
        ):
            # No sentence and no document is empty.
            ends_fit = firsts.size and (firsts[0], firsts[-1]) == (0, end)
            if not ends_fit or (np.diff(firsts) <= 0).any():
                raise _changed(self.folder / shard.file(array), "its positions do not fit")
        if tokens.size and not 0 <= tokens.min() <= tokens.max() < len(self.vocabulary):
            path = self.folder / shard.file("tokens")
            raise _changed(path, f"an id is not below {len(self.vocabulary)}")
        return tokens, Documents(sentences, documents)

    def _load(self, shard: Shard, array: str) -> np.ndarray:
        self._check_size(shard, array)
        path = self.folder / shard.file(array)
        if checksum(path) != shard.files[array]["sha256"]:
            raise _changed(path, "its SHA-256 differs")
        try:
            found = np.load(path, mmap_mode="r")
        except Exception as error:  # NumPy's parser of headers has many kinds of errors
            raise _changed(path, f"not an array: {error}") from None
        if found.ndim != 1 or found.dtype.kind not in "iu":
            raise _changed(path, f"{found.ndim} axes of {found.dtype}")
        return found

    def _check_size(self, shard: Shard, array: str) -> None:
        path = self.folder / shard.file(array)
        expected = shard.files[array]["bytes"]
        try:
            size = path.stat().st_size
        except OSError:
            raise UserError(
                f"token shard is missing: {path}; write the shards again with `bert-tf "
                "pretrain-data`"
            ) from None
        if size != expected:
            raise _changed(path, f"{size} bytes instead of {expected}")


def _changed(path: Path, how: str) -> UserError:
    return UserError(
        f"{path} has changed since it was written ({how}); write the shards again with `bert-tf "
        "pretrain-data`"
    )
