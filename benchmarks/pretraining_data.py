"""Pre-training data: examples per second and memory, compared with google-research's builder.

    python -m benchmarks.pretraining_data --text shared/data/novels --vocab vocab.txt \
        --reference PATH/TO/bert
    python -m benchmarks.pretraining_data --text shared/data/novels --vocab vocab.txt --memory

--text is a file or a folder of running text, one document a file. Every measurement is a process of
its own. Speeds are per second of processor time (user and system, all threads): seconds of one
core. Other programs on the machine hardly change this time. Imports are left out.

* The reference, run as it is, tokenizes once and writes `--dupe-factor` examples of everything.
* "from text" is our way to the same number of examples: token shards are written, and epochs of
  batches read from them; "from token shards" is the reading alone; "to TFRecords" writes the files
  that the reference writes.
* A training step of a mini model (paper sizes, float32, 128 tokens) says how many examples a second
  it consumes.

--memory compares the peak of resident memory on the text and on ten copies of it, for the building
of shards and for the reading of an epoch.
"""

import argparse
import concurrent.futures
import itertools
import multiprocessing
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.arguments import existing
from benchmarks.memory import peak_bytes
from bert_tf.cli import command

_MAX_LENGTH, _PREDICTIONS = 128, 20
_STEPS = 6


def main() -> int:
    """Measures and prints; returns the exit code, see `bert_tf.cli.command`."""
    parser = command.module_parser("benchmarks.pretraining_data", __doc__)
    parser.add_argument("--text", type=existing, required=True, help="file, or folder of files")
    parser.add_argument("--vocab", type=existing, required=True)
    parser.add_argument("--reference", type=existing, help="a copy of google-research/bert")
    parser.add_argument("--dupe-factor", type=int, default=10, help="the reference's default is 10")
    parser.add_argument("--documents", type=int, help="use only so many: the reference is slow")
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--memory", action="store_true", help="compare memory instead of speed")
    return command.run("pretraining_data", parser, None, _work, "stopped")


def _work(arguments: argparse.Namespace) -> None:
    with tempfile.TemporaryDirectory() as place:
        if arguments.memory:
            compare_memory(arguments, Path(place))
        else:
            compare_speed(arguments, Path(place))


def compare_speed(arguments: argparse.Namespace, place: Path) -> None:
    """Prints a table of examples per second of processor time."""
    lines = place / "text.txt"
    fresh(write_lines, arguments.text, arguments.documents, lines)
    vocab, times = arguments.vocab, arguments.dupe_factor
    shards = place / "shards"
    build = fresh(build_shards, lines, vocab, shards)
    read = fresh(read_epochs, shards, arguments.batch_size, times)
    records = fresh(write_records, lines, vocab, place / "records", times)
    rows = [
        ("bert_tf, from text", read["examples"], build["seconds"] + read["seconds"]),
        ("bert_tf, from token shards", read["examples"], read["seconds"]),
        ("bert_tf, text to TFRecords", records["examples"], records["seconds"]),
    ]
    peaks = [max(build["peak"], read["peak"]), read["peak"], records["peak"]]
    if arguments.reference:
        flags = {
            "input_file": lines,
            "output_file": place / "reference.tfrecord",
            "vocab_file": vocab,
            "dupe_factor": times,
            "max_seq_length": _MAX_LENGTH,
            "max_predictions_per_seq": _PREDICTIONS,
        }
        made = fresh(run_reference, arguments.reference, flags)
        rows.append(("google-research, text to TFRecords", made["examples"], made["seconds"]))
        peaks.append(made["peak"])
    print(
        f"{lines.stat().st_size / 1e6:.1f} MB of text, {times} examples of everything, "
        f"{_MAX_LENGTH} tokens, batches of {arguments.batch_size}"
    )
    print(f"{'':36}{'examples':>10}{'CPU s':>9}{'examples/CPU s':>16}{'peak MB':>9}{'ratio':>8}")
    base = rows[-1][1] / rows[-1][2]
    for (name, examples, seconds), peak in zip(rows, peaks, strict=True):
        speed = examples / seconds
        ratio = f"{speed / base:8.1f}" if arguments.reference else ""
        print(f"{name:36}{examples:10,}{seconds:9.1f}{speed:16,.0f}{peak:9.0f}{ratio}")
    step = fresh(train_mini, vocab, shards, arguments.batch_size)
    speed = read["examples"] / read["seconds"]
    print(
        f"a mini model consumes {step:,.0f} examples/CPU s in training: the pipeline from token "
        f"shards gives {speed / step:.0f} times that"
    )


def compare_memory(arguments: argparse.Namespace, place: Path) -> None:
    """Prints peaks of resident memory on the text and on ten copies of it."""
    text = arguments.text.resolve()
    files = sorted(text.iterdir()) if text.is_dir() else [text]
    print(f"{'peak of resident memory, MB':36}{'text':>10}{'10 copies':>12}{'more':>8}")
    peaks: dict[str, list[float]] = {"building token shards": [], "reading an epoch of batches": []}
    for copies in (1, 10):
        folder = place / f"{copies}"
        for copy in range(copies):
            (folder / f"{copy}").mkdir(parents=True)
            for file in files:
                (folder / f"{copy}" / file.name).symlink_to(file)
        shards = place / f"shards{copies}"
        build = fresh(build_shards, folder, arguments.vocab, shards, "document_per_file")
        read = fresh(read_epochs, shards, arguments.batch_size, 1)
        for name, each in zip(peaks, (build, read), strict=True):
            peaks[name].append(each["peak"])
    for name, (once, ten) in peaks.items():
        print(f"{name:36}{once:10.0f}{ten:12.0f}{ten / once - 1:8.1%}")


def fresh(function: Callable, *arguments: Any) -> dict | float | None:
    """What `function` returns in a new process."""
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(1, mp_context=context) as process:
        return process.submit(function, *arguments).result()


def write_lines(text: Path, documents: int | None, out: Path) -> None:
    """Writes one sentence a line and a blank line between documents."""
    from bert_tf.data.corpora.corpus import Corpus

    corpus = itertools.islice(Corpus(text, "document_per_file"), documents)
    out.write_text("\n\n".join("\n".join(document) for document in corpus) + "\n", encoding="utf-8")


def build_shards(
    text: Path, vocab: Path, out: Path, format: str = "sentence_per_line"
) -> dict[str, float]:
    """Text to token shards."""
    from bert_tf.data.corpora.corpus import Corpus
    from bert_tf.data.corpora.shard_writing import write_token_shards
    from bert_tf.text import Tokenizer

    started = time.process_time()
    write_token_shards(Corpus(text, format), Tokenizer(vocab), out)
    return {"seconds": time.process_time() - started, "peak": peak_bytes() / 1e6}


def read_epochs(shards: Path, batch_size: int, epochs: int) -> dict[str, float]:
    """Token shards to batches."""
    import numpy as np

    from bert_tf.data.corpora.shard_data import ShardData

    started = time.process_time()
    data = ShardData(shards, batch_size, _MAX_LENGTH, _PREDICTIONS)
    steps = data.steps_per_epoch * epochs
    # TensorFlow counts the batches, as `fit` also takes them in a graph.
    data.dataset().take(steps).reduce(np.int64(0), lambda count, _: count + 1)
    return {
        "examples": steps * batch_size,
        "seconds": time.process_time() - started,
        "peak": peak_bytes() / 1e6,
    }


def write_records(text: Path, vocab: Path, out: Path, times: int) -> dict[str, float]:
    """Text to TFRecords."""
    import json

    from bert_tf.config.reading import load_config
    from bert_tf.data.records import writing as record_writing
    from bert_tf.text import Tokenizer

    path = out.with_suffix(".yaml")
    path.write_text(
        "task: pretraining\n"
        f"data: {{path: {text}, format: sentence_per_line, dupe_factor: {times},\n"
        "  dev_fraction: 0}\n"
        f"tokenizer: {{vocab: {vocab}}}\n"
        "model: {preset: bert-mini-uncased}\n"
        f"train: {{steps: 1, max_length: {_MAX_LENGTH}}}\n"
    )
    config = load_config(path)
    started = time.process_time()
    record_writing.write_records(config, Tokenizer(vocab), out)
    return {
        "examples": json.loads((out / "manifest.json").read_text())["train"],
        "seconds": time.process_time() - started,
        "peak": peak_bytes() / 1e6,
    }


def run_reference(folder: Path, flags: dict[str, object]) -> dict[str, float]:
    """The reference's text to TFRecords."""
    from benchmarks import reference_builder

    sys.argv = ["", str(folder), *(f"--{name}={value}" for name, value in flags.items())]
    import tensorflow as tf

    started = time.process_time()
    try:
        reference_builder.main()
    except SystemExit as end:
        if end.code:
            raise RuntimeError(f"the reference failed: {end.code}") from end
    seconds, peak = time.process_time() - started, peak_bytes() / 1e6
    records = tf.compat.v1.io.tf_record_iterator(str(flags["output_file"]))
    return {"examples": sum(1 for _ in records), "seconds": seconds, "peak": peak}


def train_mini(vocab: Path, shards: Path, batch_size: int) -> float:
    """Examples per second of processor time that the training of a mini model takes."""
    import bert_tf
    from bert_tf.data.corpora.shard_data import ShardData

    tokenizer = bert_tf.Tokenizer(vocab)
    sizes = bert_tf.EncoderConfig.preset("bert-mini-uncased", vocab_size=tokenizer.vocab_size)
    model = bert_tf.PreTrainer(bert_tf.Encoder(sizes))
    model.compile(bert_tf.AdamW(bert_tf.WarmupLinearDecay(1e-4, 1000, 100)))
    data = ShardData(shards, batch_size, _MAX_LENGTH, _PREDICTIONS)
    batches = list(data.dataset().take(_STEPS))
    model.train_on_batch(*batches[0])
    started = time.process_time()
    for inputs, targets in batches[1:]:
        model.train_on_batch(inputs, targets)
    return (_STEPS - 1) * batch_size / (time.process_time() - started)


if __name__ == "__main__":
    sys.exit(main())
