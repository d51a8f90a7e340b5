"""What many rows and large corpora cost: speed and peak memory by size, on text made here.

    python -m benchmarks.data_size --rows 100000 1000000
    python -m benchmarks.data_size --gigabytes 1

--rows: a classifier's training rows are read, tokenized and batched, in four ways: as JSON lines,
in memory; as Parquet, in memory; as Parquet into the cache that runs use; and from that cache.
Rows a second include reading, checking and tokenizing, and the fingerprint that names the cache.
Memory is the increase since the imports: "own" is anonymous memory (RssAnon), "mapped" is pages of
mapped files, which the system takes back when it needs them.

--gigabytes: a corpus of this size is written and tokenized into shards. A line for each tenth
shows tokens a second, cores used, and the peak of memory so far.

Texts are made-up words of two or three syllables, with frequencies that follow Zipf's law. Every
measurement is a process of its own.
"""

import argparse
import concurrent.futures
import json
import multiprocessing
import os
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.memory import peak_bytes
from bert_tf.cli import command

_SYLLABLES = [a + b for a in "bdfgklmnprst" for b in "aeiou"]
_WAYS = ("jsonl", "parquet", "parquet to cache", "from cache")
# The number of batches that are read after tokenizing, and the rows of each.
_BATCHES, _BATCH = 300, 32
_WRITTEN = 10_000


def main() -> int:
    """Measures and prints; returns the exit code, see `bert_tf.cli.command`."""
    parser = command.module_parser("benchmarks.data_size", __doc__)
    parser.add_argument("--rows", type=int, nargs="*", default=[], help="numbers of rows")
    parser.add_argument("--gigabytes", type=float, help="size of a corpus")
    parser.add_argument("--folder", help="where files are written; by default a temporary folder")
    return command.run("data_size", parser, None, _work, "stopped")


def _work(arguments: argparse.Namespace) -> None:
    with tempfile.TemporaryDirectory(dir=arguments.folder) as place:
        if arguments.gigabytes:
            folder = Path(place) / "corpus"
            folder.mkdir()
            _alone(write_corpus, folder, arguments.gigabytes)
            _alone(tokenize, folder)
        for rows in arguments.rows or ([] if arguments.gigabytes else [100_000, 1_000_000]):
            folder = Path(place) / str(rows)
            folder.mkdir()
            _alone(write_rows, folder, rows)
            print(f"{rows:,} rows")
            print(
                f"{'':18}{'seconds':>9}{'rows/s':>9}{'own MB':>9}{'mapped MB':>11}{'batches/s':>11}"
            )
            for way in _WAYS:
                found = _alone(measure, folder, way)
                print(
                    f"{way:18}{found['seconds']:9.1f}{rows / found['seconds']:9.0f}"
                    f"{found['own'] / 1e6:9.0f}{found['mapped'] / 1e6:11.0f}"
                    f"{_BATCHES / found['batching']:11.0f}",
                    flush=True,
                )


def _alone(function: Any, *arguments: Any) -> Any:
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(1, mp_context=context) as pool:
        return pool.submit(function, *arguments).result()


def words(count: int = 20_000) -> list[str]:
    """Different words, the shortest first."""
    random, found = np.random.default_rng(0), dict.fromkeys(["the"])
    while len(found) < count:
        syllables = random.choice(_SYLLABLES, size=random.integers(2, 4))
        found["".join(syllables)] = None
    return [*found]


def texts(seed: int, lengths: tuple[int, int] = (6, 34)) -> Iterator[str]:
    """Endless texts; `lengths` are the least number of words, and one more than the most."""
    random, known = np.random.default_rng(seed), np.array(words())
    shares = 1 / np.arange(1, len(known) + 1)
    shares /= shares.sum()
    while True:
        sizes = random.integers(*lengths, size=1000)
        drawn = iter(random.choice(known, size=sizes.sum(), p=shares).tolist())
        for size in sizes:
            yield " ".join(next(drawn) for _ in range(size)) + " ."


def _write_vocabulary(folder: Path) -> Path:
    path = folder / "vocab.txt"
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", ".", *words()]
    path.write_text("\n".join(pieces) + "\n", encoding="utf-8")
    return path


def write_rows(folder: Path, rows: int) -> None:
    """Writes the rows as Parquet and as JSON lines, and the vocabulary."""
    import pyarrow as pa
    from pyarrow import parquet

    _write_vocabulary(folder)
    source, number = texts(0), 0
    schema = pa.schema({"text": pa.string(), "label": pa.string()})
    with (
        open(folder / "train.jsonl", "w", encoding="utf-8") as lines,
        parquet.ParquetWriter(folder / "train.parquet", schema) as table,
    ):
        while number < rows:
            some = [next(source) for _ in range(min(_WRITTEN, rows - number))]
            labels = [("bad", "good")[len(text) % 2] for text in some]
            table.write_table(pa.table({"text": some, "label": labels}, schema))
            pairs = zip(some, labels, strict=True)
            lines.writelines(json.dumps({"text": t, "label": n}) + "\n" for t, n in pairs)
            number += len(some)


class _Sampled(threading.Thread):
    """The greatest own and mapped memory of this process while the block runs."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.most = {"RssAnon": 0, "RssFile": 0}
        self._done = threading.Event()
        self._before = self._now()

    def __enter__(self) -> "_Sampled":
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._done.set()
        self.join()

    def run(self) -> None:
        while not self._done.wait(0.02):
            now = self._now()
            for name, before in self._before.items():
                self.most[name] = max(self.most[name], now[name] - before)

    def _now(self) -> dict[str, int]:
        status = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
        lines = dict(line.split(":", 1) for line in status)
        return {name: int(lines[name].split()[0]) << 10 for name in ("RssAnon", "RssFile")}


def measure(folder: Path, way: str) -> dict[str, float]:
    """Seconds until the rows are tokenized, seconds to read the batches, and bytes of memory."""
    os.environ["HF_HOME"] = str(folder / "hf")
    os.environ["BERT_TF_CACHE"] = str(folder / "cache")
    import bert_tf
    from bert_tf.data.batching import training_batches
    from bert_tf.runs.finetuning import cache_of
    from bert_tf.tasks import registry
    from bert_tf.tasks.classification import ClassificationRun

    form = "jsonl" if way == "jsonl" else "parquet"
    tokenizer = bert_tf.Tokenizer(folder / "vocab.txt")
    sizes = bert_tf.EncoderConfig(tokenizer.vocab_size, 8, 1, 2, 8)
    config = ClassificationRun.model_validate(
        {
            "task": "classification",
            "data": {"path": str(folder), "format": form},
            "tokenizer": {"vocab": str(folder / "vocab.txt")},
            "model": {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2},
            "train": {"steps": 1, "max_length": 64},
        }
    )
    task = registry.family("classification").task_class()(config)
    tokenizer.tokenize(["once"])  # traces the function
    with _Sampled() as memory:
        began = time.monotonic()
        rows = task.training_rows()
        model = task.model(bert_tf.Encoder(sizes), tokenizer)
        if "cache" in way:
            model.tokens = cache_of(model, rows, None)
        examples = model.examples(rows)
        del rows
        seconds = time.monotonic() - began
        batches = training_batches(examples, _BATCH, seed=0, start=0).as_numpy_iterator()
        next(batches)
        began = time.monotonic()
        for _ in range(_BATCHES):
            next(batches)
        batching = time.monotonic() - began
    own, mapped = memory.most.values()
    return {"seconds": seconds, "batching": batching, "own": own, "mapped": mapped}


def write_corpus(folder: Path, gigabytes: float) -> None:
    """Writes ten files, each a tenth of the corpus, with one sentence a line."""
    _write_vocabulary(folder.parent)
    source = texts(0)
    for number in range(10):
        size = 0
        with open(folder / f"{number}.txt", "w", encoding="utf-8") as file:
            while size < gigabytes * 1e8:
                document = "\n".join(next(source) for _ in range(30)) + "\n\n"
                size += file.write(document)


def tokenize(folder: Path) -> None:
    """Tokenizes a corpus into shards, and prints what each tenth takes."""
    import bert_tf
    from bert_tf.data.corpora.corpus import Corpus
    from bert_tf.data.corpora.shard_writing import write_token_shards

    tokenizer = bert_tf.Tokenizer(folder.parent / "vocab.txt")
    tokenizer.tokenize(["once"])
    corpus = Corpus(folder, "sentence_per_line")
    print(f"{corpus.size / 1e9:.2f} GB of text")
    print(f"{'GB':>6}{'seconds':>9}{'MB/s':>7}{'cores':>7}{'peak MB':>9}")
    then = began = (time.monotonic(), time.process_time(), 0)

    def update(share: float = 0.1) -> None:
        nonlocal then
        now = (time.monotonic(), time.process_time(), corpus.position)
        seconds, busy, size = (a - b for a, b in zip(now, then, strict=True))
        if size > corpus.size * share:
            print(
                f"{corpus.position / 1e9:6.2f}{seconds:9.1f}{size / 1e6 / seconds:7.1f}"
                f"{busy / seconds:7.2f}{peak_bytes() / 1e6:9.0f}",
                flush=True,
            )
            then = now

    shards = write_token_shards(corpus, tokenizer, folder.parent / "tokens", progress=update)
    update(0.0)
    tokens = sum(shard.tokens for part in shards.parts.values() for shard in part)
    seconds = time.monotonic() - began[0]
    busy = time.process_time() - began[1]
    print(
        f"{tokens:,} tokens in {seconds:.1f} s: {tokens / seconds:,.0f} a second, on "
        f"{busy / seconds:.2f} cores; peak {peak_bytes() / 1e6:.0f} MB"
    )


if __name__ == "__main__":
    sys.exit(main())
