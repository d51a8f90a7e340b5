"""Speed of the tokenizer on real text compared with its peers, all in one run.

    python -m benchmarks.tokenizer --vocab vocab.txt --text FOLDER_OR_FILE

The texts are the lines, and go to each tokenizer in the same batches. Every contender has two
threads: `tokenizers` in `encode_batch`, the others in two parallel calls of a `tf.data` map. They
take turns, and the best of the rounds counts, so that other work on the machine disturbs all
alike. A peer that is not installed is left out with a message.
"""

import argparse
import importlib.util
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import tensorflow as tf
import tensorflow_text as tf_text

from benchmarks.arguments import existing
from bert_tf.cli import command
from bert_tf.text import Tokenizer

_THREADS = 2
_BATCH = 1024


def main() -> int:
    """Measures all contenders and prints a table; gives the exit code (`bert_tf.cli.command`)."""
    parser = command.module_parser("benchmarks.tokenizer", __doc__)
    parser.add_argument("--vocab", type=existing, required=True)
    parser.add_argument("--text", type=existing, required=True, help="file, or folder of files")
    parser.add_argument("--cased", action="store_true", help="do not lower-case")
    parser.add_argument("--rounds", type=int, default=5)
    return command.run("tokenizer", parser, None, _work, "stopped")


def _work(arguments: argparse.Namespace) -> None:
    texts = _lines(arguments.text)
    megabytes = sum(len(text.encode()) for text in texts) / 1e6
    contenders = {
        **_tensorflow_tokenizers(arguments.vocab, not arguments.cased, texts),
        **_hugging_face(arguments.vocab, not arguments.cased, texts),
    }
    seconds = dict.fromkeys(contenders, float("inf"))
    cpu_seconds = dict.fromkeys(contenders, float("inf"))
    pieces = {}
    for _ in range(arguments.rounds):
        for name, run in contenders.items():
            started, cpu_started = time.perf_counter(), time.process_time()
            pieces[name] = run()
            seconds[name] = min(seconds[name], time.perf_counter() - started)
            cpu_seconds[name] = min(cpu_seconds[name], time.process_time() - cpu_started)
    print(f"{megabytes:.1f} MB, {len(texts)} lines, {_THREADS} threads, batches of {_BATCH}")
    print(f"{'':35} {'MB/s':>8} {'MB per CPU s':>14} {'pieces':>10}")
    for name in contenders:
        speed, cpu_speed = megabytes / seconds[name], megabytes / cpu_seconds[name]
        print(f"{name:35} {speed:8.1f} {cpu_speed:14.1f} {pieces[name]:10}")


def _lines(path: Path) -> list[str]:
    files = sorted(path.iterdir()) if path.is_dir() else [path]
    lines = (line for file in files for line in file.read_text(encoding="utf-8").split("\n"))
    return [line for line in lines if line]


def _tensorflow_tokenizers(
    vocab: Path, lower_case: bool, texts: list[str]
) -> dict[str, Callable[[], int]]:
    pieces = vocab.read_text(encoding="utf-8").removesuffix("\n").split("\n")
    ours = Tokenizer(vocab, lower_case)
    # The settings for a folder of transformers.
    folders = ours.with_settings(special_tokens="whole", longest_word=100)
    bert = tf_text.BertTokenizer(str(vocab), lower_case=lower_case, token_out_type=tf.int32)
    fast = tf_text.FastBertTokenizer(
        pieces, lower_case_nfd_strip_accents=lower_case, token_out_type=tf.int32
    )
    return {
        "bert_tf, ids": _in_dataset(ours.tokenize, texts),
        "bert_tf, ids, as transformers": _in_dataset(folders.tokenize, texts),
        "bert_tf, ids and offsets": _in_dataset(ours.tokenize_with_offsets, texts),
        "tf_text.BertTokenizer, ids": _in_dataset(bert.tokenize, texts),
        "tf_text.FastBertTokenizer, ids": _in_dataset(fast.tokenize, texts),
    }


def _in_dataset(tokenize: Callable, texts: list[str]) -> Callable[[], int]:
    """A run of `tokenize` over all texts in two threads, which gives the number of pieces."""
    everything = tf.constant(texts)

    def batch(number: tf.Tensor) -> tf.RaggedTensor:
        found = tokenize(everything[number * _BATCH : (number + 1) * _BATCH])
        # The whole result is computed; only its size leaves the pipeline. `tokenizers`, too, keeps
        # its result inside until a caller reads it.
        parts = found if isinstance(found, tuple) else (found,)
        return tf.reduce_max([tf.size(part.flat_values) for part in parts])

    batches = tf.data.Dataset.range(-(-len(texts) // _BATCH))
    dataset = batches.map(batch, num_parallel_calls=_THREADS)
    options = tf.data.Options()
    options.threading.private_threadpool_size = _THREADS
    options.threading.max_intra_op_parallelism = 1
    dataset = dataset.with_options(options)
    return lambda: sum(int(size) for size in dataset)


def _hugging_face(vocab: Path, lower_case: bool, texts: list[str]) -> dict[str, Callable[[], int]]:
    if importlib.util.find_spec("tokenizers") is None:
        print("Hugging Face tokenizers is not installed and left out: pip install tokenizers")
        return {}
    os.environ["RAYON_NUM_THREADS"] = str(_THREADS)
    os.environ["TOKENIZERS_PARALLELISM"] = "true"
    from tokenizers import BertWordPieceTokenizer

    peer = BertWordPieceTokenizer(str(vocab), lowercase=lower_case)
    batches = [texts[start : start + _BATCH] for start in range(0, len(texts), _BATCH)]

    def run(encode: Callable) -> int:
        return sum(len(row) for each in batches for row in encode(each, add_special_tokens=False))

    return {
        "Hugging Face encode_batch": lambda: run(peer._tokenizer.encode_batch),
        "Hugging Face encode_batch_fast": lambda: run(peer._tokenizer.encode_batch_fast),
    }


if __name__ == "__main__":
    sys.exit(main())
