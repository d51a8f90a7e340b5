"""Token shards as an Apache Beam pipeline, for corpora that do not fit on one machine.

The files are the same, byte for byte, as those of `shard_writing`. Documents are tokenized in
batches, on any worker, under a key that gives their place in the corpus. The shard of a document
depends on all documents before it, but only on their numbers of tokens and their hashes. These few
bytes per document are gathered in one place, which lays out the shards. Then the documents of each
shard are brought together and sorted.

Workers read the corpus and write the shards under the paths given here. So these must be addresses
in buckets, or paths that lead to the same files on every machine. bert_tf must be installed there.
"""

import bisect
import contextlib
import functools
import os
import re
import shutil
import tempfile
import traceback
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bert_tf.config.run import PretrainingRun
from bert_tf.data.corpora import shard_writing
from bert_tf.data.corpora.corpus import AnyCorpus
from bert_tf.data.corpora.pretraining_data import open_corpus, say_counts
from bert_tf.data.corpora.shard_writing import SHARD_TOKENS, TokenizedDocument, dev_limit
from bert_tf.data.corpora.token_shards import DEV, MANIFEST, TRAIN, Shard, TokenShards
from bert_tf.dependencies import optional
from bert_tf.errors import UserError, named
from bert_tf.io import locks
from bert_tf.io.atomic import atomic_path
from bert_tf.io.remote import is_file, local_path, remote_of, remove
from bert_tf.io.vocabulary import VOCABULARY_FILE, TokenizerSettings
from bert_tf.text import Tokenizer

# The place of consecutive documents: the part of the corpus, and the batch in the part.
Key = tuple[int, int]
Batch = tuple[Key, list]  # such documents, as text, then tokenized
# The hashes, uint64, and numbers of tokens, int64, of a batch's documents.
Sizes = tuple[Key, np.ndarray, np.ndarray]
# The hash below which documents are held out; and for `train` and `dev`, the first document of each
# shard as its part, its batch, and its number in the batch.
Layout = tuple[int, dict[str, list[tuple[int, int, int]]]]
Place = tuple[str, int]  # which shard: `train` or `dev`, and its number there


def build(
    config: PretrainingRun, tokenizer: Tokenizer, out: str | os.PathLike, flags: Sequence[str] = ()
) -> TokenShards:
    """`pretraining_data.build` as a pipeline with Beam's `flags`, such as --runner=FlinkRunner."""
    options = optional("apache_beam.options.pipeline_options", "beam", "--beam")
    corpus = open_corpus(config)
    shard_writing.check_out(out)
    with _new_folder(out) as folder:
        parsed = options.PipelineOptions(flags)
        run(corpus, tokenizer, folder, config.data.dev_fraction, options=parsed)
        if not is_file(os.path.join(folder, MANIFEST)):
            raise UserError(
                f"the workers of the pipeline wrote nothing to {out}; name a folder that all "
                "workers can write to"
            )
    shards = TokenShards(out)
    say_counts(shards)
    return shards


@contextlib.contextmanager
def _new_folder(out: str | os.PathLike) -> Iterator[str]:
    """The folder that the workers write to: a temporary one, or `out` itself in a bucket."""
    place = local_path(out)
    if remote_of(place) is None:
        with atomic_path(out) as folder:
            folder.mkdir()
            yield str(folder)
    else:
        with locks.held(place):
            remove(place)
            yield named(str(place))


def run(
    corpus: AnyCorpus,
    tokenizer: Tokenizer,
    folder: str | os.PathLike,
    dev_fraction: float = 0.0,
    shard_tokens: int = SHARD_TOKENS,
    options: Any = None,
) -> None:
    """Like `write_token_shards`, into an empty `folder`; the options are a `PipelineOptions`."""
    import apache_beam as beam

    vocabulary = (tokenizer.vocabulary, tokenizer.settings)
    # A worker fetches the files of its parts itself.
    parts = [named(str(part)) if isinstance(part, Path) else part for part in corpus.parts]
    with _explained(), beam.Pipeline(options=options) as pipeline:
        documents = (
            pipeline
            | "Parts" >> beam.Create(list(enumerate(parts)))
            | "SpreadParts" >> beam.Reshuffle()
            | "Read" >> beam.FlatMap(_read, corpus)
            | "SpreadBatches" >> beam.Reshuffle()
            | "Tokenize" >> beam.Map(_tokenize, vocabulary)
        )
        layout = (
            documents
            | "Measure" >> beam.Map(_measure)
            | "GatherSizes" >> beam.combiners.ToList()
            | "LayOut" >> beam.Map(lay_out, dev_fraction, shard_tokens)
        )
        (
            documents
            | "Assign" >> beam.FlatMap(_assign, beam.pvalue.AsSingleton(layout))
            | "GroupByShard" >> beam.GroupByKey()
            | "Write" >> beam.Map(_write, str(folder))
            | "GatherShards" >> beam.combiners.ToList()
            | "Finish" >> beam.Map(_finish, str(folder), vocabulary, dev_fraction)
        )


def lay_out(sizes: Iterable[Sizes], dev_fraction: float, shard_tokens: int) -> Layout:
    """Lays out the shards: each is closed at the document that fills it."""
    ordered = sorted(sizes, key=lambda batch: batch[0])
    if not any(len(tokens) for _, _, tokens in ordered):
        raise UserError("the corpus has no tokens; check data.path and data.format")
    keys, *columns = zip(*ordered, strict=True)
    hashes, tokens = map(np.concatenate, columns)
    counts = np.array(list(map(len, columns[0])))
    batch_of = np.repeat(np.arange(len(keys)), counts)
    place_of = np.arange(len(hashes)) - np.repeat(np.cumsum(counts) - counts, counts)

    held_out = int(np.count_nonzero(hashes < dev_limit(dev_fraction)))
    lowest = np.unique(hashes)[: shard_writing.LOWEST_HASHES].tolist()
    limit = dev_limit(dev_fraction, len(hashes), held_out, lowest)
    starts: dict[str, list[tuple[int, int, int]]] = {TRAIN: [], DEV: []}
    for part, members in ((TRAIN, hashes >= limit), (DEV, hashes < limit)):
        documents = np.flatnonzero(members)
        ends = np.cumsum(tokens[documents])
        first = 0
        while first < len(documents):
            document = documents[first]
            starts[part].append((*keys[batch_of[document]], int(place_of[document])))
            filled = (ends[first - 1] if first else 0) + shard_tokens
            first = int(np.searchsorted(ends, filled)) + 1
    return limit, starts


def _read(part: tuple[int, Any], corpus: AnyCorpus) -> Iterator[Batch]:
    number, place = part
    found = local_path(place) if isinstance(place, str) else place
    for n, documents in enumerate(shard_writing.batches(corpus.read(found))):
        yield (number, n), documents


def _tokenize(batch: Batch, vocabulary: tuple[tuple[str, ...], TokenizerSettings]) -> Batch:
    key, documents = batch
    return key, list(shard_writing.tokenized(documents, _tokenizer(*vocabulary)))


@functools.lru_cache(maxsize=1)
def _tokenizer(vocabulary: tuple[str, ...], settings: TokenizerSettings) -> Tokenizer:
    """Makes one tokenizer in each worker process, since tokenizers cannot be sent there."""
    return Tokenizer.of(vocabulary, settings)


def _measure(batch: Batch) -> Sizes:
    key, documents = batch
    hashes = np.array([document.hash for document in documents], np.uint64)
    return key, hashes, np.array([len(document.ids) for document in documents], np.int64)


def _assign(batch: Batch, layout: Layout) -> Iterator[tuple[Place, Batch]]:
    """The documents of the batch, grouped by their shards."""
    (key, documents), (limit, starts) = batch, layout
    shards: dict[Place, list[TokenizedDocument]] = {}
    for n, document in enumerate(documents):
        part = DEV if document.hash < limit else TRAIN
        shard = part, bisect.bisect_right(starts[part], (*key, n)) - 1
        shards.setdefault(shard, []).append(document)
    for shard, members in shards.items():
        yield shard, (key, members)


def _write(shard: tuple[Place, Iterable[Batch]], folder: str) -> tuple[Place, Shard]:
    place, found = shard
    ordered = sorted(found, key=lambda batch: batch[0])
    documents = [document for _, members in ordered for document in members]
    # Runners may do the same work twice, even at once, so each writes to a place of its own first.
    with tempfile.TemporaryDirectory() as own:
        written = shard_writing.write_shard(Path(own), *place, documents)
        _move([Path(own) / written.file(array) for array in written.files], folder)
    return place, written


def _move(files: Iterable[Path], folder: str) -> None:
    """Moves files into a folder, each of them atomically."""
    for file in files:
        with atomic_path(os.path.join(folder, file.name), is_file=True) as new:
            shutil.move(file, new)


def _finish(
    shards: list[tuple[Place, Shard]],
    folder: str,
    vocabulary: tuple[tuple[str, ...], TokenizerSettings],
    dev_fraction: float,
) -> None:
    ordered = sorted(shards, key=lambda shard: shard[0])
    parts = {part: [shard for (p, _), shard in ordered if p == part] for part in (TRAIN, DEV)}
    with tempfile.TemporaryDirectory() as own:
        shard_writing.write_manifest(Path(own), _tokenizer(*vocabulary), dev_fraction, parts)
        _move([Path(own) / name for name in (VOCABULARY_FILE, MANIFEST)], folder)


@contextlib.contextmanager
def _explained() -> Iterator[None]:
    """Raises the `UserError` of a worker again; runners pass it on as text."""
    try:
        yield
    except Exception as error:
        text = "".join(traceback.format_exception(error))
        found = re.findall(r"UserError: (.+)", text)
        if not found:
            raise
        raise UserError(found[-1].split(" [while running")[0]) from error
