"""Which batching `bert-tf serve` needs: its own queue, TensorFlow's own, or none.

    python -m benchmarks.batching saved_models/reviews --seconds 60

Sixty-four threads of one process send texts of 1 to 200 words to a SavedModel, each one after the
other:

- "queue": through `BatchQueue`, as the server does. It joins rows of similar length.
- "TensorFlow": through `tf.nondifferentiable_batch_function`. It joins rows in the order in which
  they arrive. The number is the most milliseconds for which it waits for more rows.
- "none": each thread calls the signature by itself.

Each way runs in a process of its own, which has the settings of the server and answers for ten
seconds before the measurement. Every twentieth answer must equal the answer to the same text alone,
to within 1e-5.
"""

import argparse
import json
import random
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.memory import peak_bytes
from benchmarks.served_load import check_saved_model, same, texts_of
from bert_tf.cli import command

_CLIENTS, _TEXTS, _WORDS, _ROWS = 64, 512, 200, 32
_WARM_UP = 10.0  # seconds
_WAYS = ("queue", "TensorFlow 0", "TensorFlow 5", "TensorFlow 100", "none")

# The outputs of one text.
Answer = dict[str, np.ndarray]


def main() -> int:
    """Prints a table; returns the exit code, 1 if an answer differed."""
    parser = command.module_parser("benchmarks.batching", __doc__)
    parser.add_argument("saved_model", help="an export with the input text")
    parser.add_argument("--seconds", type=float, default=60.0, help="of each way (%(default)s)")
    parser.add_argument("--rounds", type=int, default=2, help="(%(default)s)")
    parser.add_argument("--ways", nargs="*", default=_WAYS, help="(all)")
    parser.add_argument("--way", help=argparse.SUPPRESS)
    return command.run("batching", parser, None, _work, "stopped")


def _work(arguments: argparse.Namespace) -> None:
    check_saved_model(arguments.saved_model)
    if arguments.way:
        print(json.dumps(_measured(arguments)))
        return
    print(f"{'':15}{'texts/s':>9}{'p50 ms':>9}{'p99 ms':>9}{'peak MiB':>10}{'wrong':>7}")
    wrong = 0
    for _ in range(arguments.rounds):
        for way in arguments.ways:
            options = ["--seconds", str(arguments.seconds), "--way", way]
            module = [sys.executable, "-m", "benchmarks.batching", arguments.saved_model, *options]
            done = subprocess.run(module, check=True, stdout=subprocess.PIPE, text=True)
            found = json.loads(done.stdout.splitlines()[-1])
            print(
                f"{way:15}{found['rate']:9.1f}{found['p50']:9.0f}{found['p99']:9.0f}"
                f"{found['memory']:10.0f}{found['wrong']:7}",
                flush=True,
            )
            wrong += found["wrong"]
    if wrong:
        sys.exit(1)


def _measured(arguments: argparse.Namespace) -> dict[str, float]:
    from bert_tf.dependencies import prepare_to_serve

    prepare_to_serve()
    from bert_tf.asking.saved_model import SavedModel

    model = SavedModel.load(arguments.saved_model)
    kind, _, wait = arguments.way.partition(" ")
    ask = {"queue": _queue, "TensorFlow": _tensorflow, "none": _alone}[kind](model, wait)
    texts = texts_of(_TEXTS, _WORDS)
    alone = _alone(model, "")
    expected = [alone(text) for text in texts]
    _asked(ask, texts, expected, _WARM_UP)
    return _asked(ask, texts, expected, arguments.seconds)


def _alone(model: Any, wait: str) -> Callable[[str], Answer]:
    def ask(text: str) -> Answer:
        outputs = model.ask("serving_default", [{"text": text}])
        return {name: values[0] for name, values in outputs.items()}

    return ask


def _queue(model: Any, wait: str) -> Callable[[str], Answer]:
    from bert_tf.serve.batching import BatchQueue

    def compute(signature: str, columns: Any) -> Any:
        return model.ask(signature, [{"text": text} for text in columns["text"]])

    queue = BatchQueue(compute, {}, _ROWS)

    def ask(text: str) -> Answer:
        future = queue.submit("serving_default", {"text": np.array([text], object)}, [len(text)])
        return {name: values[0] for name, values in future.result().items()}

    return ask


def _tensorflow(model: Any, wait: str) -> Callable[[str], Answer]:
    import tensorflow as tf

    signature = model.loaded.signatures["serving_default"]
    names = sorted(signature.structured_outputs)

    @tf.nondifferentiable_batch_function(
        num_batch_threads=1,
        max_batch_size=_ROWS,
        batch_timeout_micros=int(wait) * 1000,
        max_enqueued_batches=_CLIENTS,
        autograph=False,
    )
    def batched(texts: tf.Tensor) -> list[tf.Tensor]:
        outputs = signature(text=texts)
        return [outputs[name] for name in names]

    @tf.function(input_signature=[tf.TensorSpec([1], tf.string)], autograph=False)
    def answer(texts: tf.Tensor) -> list[tf.Tensor]:
        return batched(texts)

    answer.get_concrete_function()  # or each thread would trace it

    def ask(text: str) -> Answer:
        outputs = answer(tf.constant([text]))
        return {name: each.numpy()[0] for name, each in zip(names, outputs, strict=True)}

    return ask


def _asked(
    ask: Callable[[str], Answer], texts: list[str], expected: list[Answer], seconds: float
) -> dict[str, float]:
    """The rate, latencies, peak memory and number of wrong answers over `seconds` seconds."""
    times: list[float] = []
    wrong: list[int] = []
    start = time.perf_counter()

    def client(number: int) -> None:
        source = random.Random(number)
        while (began := time.perf_counter()) < start + seconds:
            i = source.randrange(len(texts))
            found = ask(texts[i])
            times.append(time.perf_counter() - began)
            if len(times) % 20 == 0 and not same(found, expected[i]):
                wrong.append(i)

    threads = [threading.Thread(target=client, args=(i,)) for i in range(_CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    total = time.perf_counter() - start
    p50, p99 = np.percentile(times, [50, 99]) * 1e3
    found = {"rate": len(times) / total, "p50": p50, "p99": p99}
    return found | {"memory": peak_bytes() / 2**20, "wrong": len(wrong)}


if __name__ == "__main__":
    sys.exit(main())
