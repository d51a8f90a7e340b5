"""An export under many threads at once: answers as alone, flat memory, requests a second.

    python -m benchmarks.load saved_models/reviews --minutes 10 --threads 16

First each request is answered alone. Then the threads send them in random order, and every answer
is compared with the first one. The exit code is 1 if one differs. Needs only what a server needs:
`tensorflow` and `tensorflow_text`.
"""

import argparse
import random
import sys
import threading
import time
from collections.abc import Callable, Mapping

import numpy as np
import tensorflow as tf
import tensorflow_text  # noqa: F401  its ops

from benchmarks.memory import resident_bytes
from bert_tf.cli import command
from bert_tf.errors import UserError

WORDS = (
    "the film was a lovely two hours of nothing but rain and old songs in Paris where she met him "
    "before winter came over sea ?! naïve 東京 ünlü don't e-mail 1,234.5 [MASK]"
).split()
SAMPLES = 20  # of memory

Answers = Mapping[str, np.ndarray]


def main() -> int:
    """Prints what was found.

    Returns:
        The exit code, see `bert_tf.cli.command`; 1 if an answer differed.
    """
    parser = command.module_parser("benchmarks.load", __doc__)
    parser.add_argument("saved_model", help="a folder made by an export")
    parser.add_argument("--minutes", type=float, default=10.0, help="(%(default)s)")
    parser.add_argument("--threads", type=int, default=16, help="(%(default)s)")
    parser.add_argument("--requests", type=int, default=200, help="different ones (%(default)s)")
    parser.add_argument("--rows", type=int, default=8, help="at most so many in one (%(default)s)")
    parser.add_argument("--words", type=int, default=60, help="at most so many in a row")
    parser.add_argument("--tolerance", type=float, default=1e-6, help="of numbers (%(default)g)")
    return command.run("load", parser, None, _work, "stopped")


def _work(arguments: argparse.Namespace) -> None:
    if not tf.saved_model.contains_saved_model(arguments.saved_model):
        raise UserError(
            f"{arguments.saved_model} is no SavedModel; name a folder made by an export"
        )
    model = tf.saved_model.load(arguments.saved_model)
    ask = model.signatures["serving_default"]
    requests = make_requests(ask, arguments.requests, arguments.rows, arguments.words)
    alone = [answer(ask, each) for each in requests]
    asked, wrong, memory = bombard(ask, requests, alone, arguments)
    rows = sum(len(next(iter(requests[i].values()))) for i in asked)
    seconds = arguments.minutes * 60
    quarter = max(1, len(memory) // 4)
    print(
        f"{len(asked):,} requests of {rows:,} rows by {arguments.threads} threads in {seconds:.0f} "
        f"s: {len(asked) / seconds:,.1f} requests/s, {rows / seconds:,.1f} rows/s\n"
        f"answers that differ by more than {arguments.tolerance:g}: {wrong}\n"
        f"memory in MB, over time: {' '.join(f'{each:.0f}' for each in memory)}\n"
        f"mean of the second quarter {np.mean(memory[quarter : 2 * quarter]):.0f}, "
        f"of the last {np.mean(memory[-quarter:]):.0f}"
    )
    if wrong:
        sys.exit(1)


def make_requests(ask: Callable, count: int, rows: int, words: int) -> list[dict[str, tf.Tensor]]:
    """Random texts for every input of a signature; all inputs take strings."""
    source = random.Random(0)
    _, inputs = ask.structured_input_signature

    def text() -> str:
        return " ".join(source.choices(WORDS, k=source.randint(1, words)))

    def strings(spec: tf.TensorSpec, number: int) -> tf.Tensor:
        columns = [3] * (spec.shape.rank - 1)
        return tf.constant(
            np.array([text() for _ in range(number * int(np.prod(columns)))], object).reshape(
                [number, *columns]
            )
        )

    numbers = [source.randint(1, rows) for _ in range(count)]
    return [{name: strings(spec, n) for name, spec in inputs.items()} for n in numbers]


def answer(ask: Callable, request: Mapping[str, tf.Tensor]) -> Answers:
    """All outputs for a request."""
    return {name: value.numpy() for name, value in ask(**request).items()}


def bombard(
    ask: Callable,
    requests: list[dict[str, tf.Tensor]],
    alone: list[Answers],
    arguments: argparse.Namespace,
) -> tuple[list[int], int, list[float]]:
    """The numbers of the requests that were sent, how many answers differ, memory over time."""
    end = time.monotonic() + arguments.minutes * 60
    asked: list[list[int]] = [[] for _ in range(arguments.threads)]
    wrong = [0] * arguments.threads

    def work(thread: int) -> None:
        source = random.Random(thread)
        while time.monotonic() < end:
            number = source.randrange(len(requests))
            found = answer(ask, requests[number])
            wrong[thread] += not same(found, alone[number], arguments.tolerance)
            asked[thread].append(number)

    threads = [threading.Thread(target=work, args=[n]) for n in range(arguments.threads)]
    for each in threads:
        each.start()
    memory = []
    while any(each.is_alive() for each in threads):
        memory.append(resident_bytes() / 1e6)
        time.sleep(arguments.minutes * 60 / SAMPLES)
    return [number for each in asked for number in each], sum(wrong), memory


def same(found: Answers, expected: Answers, tolerance: float) -> bool:
    """Whether texts are equal and numbers close."""
    return found.keys() == expected.keys() and all(
        np.allclose(value, expected[name], rtol=0, atol=tolerance)
        if value.dtype.kind == "f"
        else np.array_equal(value, expected[name])
        for name, value in found.items()
    )


if __name__ == "__main__":
    sys.exit(main())
