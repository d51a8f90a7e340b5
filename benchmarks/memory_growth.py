"""Memory that stays in a process after each model that it has used.

    python -m benchmarks.memory_growth
    python -m benchmarks.memory_growth --preset bert-base-uncased --kinds keras saved_model plain

A model is opened, used and dropped again and again; each kind has a process of its own. The table
shows what a round adds to the process's resident memory: the slope of a line through the rounds
after the first fifth. "plain" loads the same SavedModel with TensorFlow alone, without bert_tf;
"plain_fit" is a Keras model of dense layers. Weights are random.
"""

import argparse
import gc
import multiprocessing
import sys
import tempfile
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.memory import resident_bytes
from bert_tf.cli.command import module_parser, run

_TEXTS = ["the cat sat on the mat", "a dog ran"] * 4
_LABELS = ["good", "bad"]
KINDS = ("keras", "checkpoint", "saved_model", "plain", "litert", "fit", "train_on_batch")
KINDS += ("plain_fit",)


def main(argv: list[str] | None = None) -> int:
    """Prints the table; returns the exit code, see `bert_tf.cli.command`."""
    parser = module_parser("benchmarks.memory_growth", __doc__)
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS))
    parser.add_argument("--rounds", metavar="N", type=int, default=40)
    parser.add_argument("--preset", metavar="NAME", help="sizes of the encoder; default: tiny")
    return run("memory_growth", parser, argv, _work, "stopped")


def _work(arguments: argparse.Namespace) -> None:
    table = Table("kind", "MB after round 1", f"after round {arguments.rounds}", "MB a round")
    context = multiprocessing.get_context("spawn")
    for kind in arguments.kinds:
        with ProcessPoolExecutor(1, mp_context=context) as pool:
            found = pool.submit(measure, kind, arguments.rounds, arguments.preset).result()
        late = found[len(found) // 5 :]
        slope = np.polyfit(np.arange(len(late)), late, 1)[0]
        table.add_row(kind, f"{found[0]:.0f}", f"{found[-1]:.0f}", f"{slope:.2f}")
        print(f"{kind}: {slope:.2f} MB a round", file=sys.stderr)
    Console(width=80).print(table)


def measure(kind: str, rounds: int, preset: str | None) -> list[float]:
    """The resident memory after each round, MB."""
    found = []
    with tempfile.TemporaryDirectory() as folder:
        one_round = _round(kind, Path(folder), preset)
        for _ in range(rounds):
            one_round()
            gc.collect()
            found.append(resident_bytes() / 1e6)
    return found


def _round(kind: str, folder: Path, preset: str | None) -> Callable[[], object]:
    import keras
    import tensorflow as tf

    import bert_tf
    from bert_tf.encoder.config import EncoderConfig

    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    words = sorted({word for text in _TEXTS for word in text.split()})
    tokenizer = bert_tf.Tokenizer(special + words + [f"word{i}" for i in range(1000)])
    sizes = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2}
    known = {"vocab_size": tokenizer.vocab_size}
    config = EncoderConfig.preset(preset, **known) if preset else EncoderConfig(**known, **sizes)

    def made() -> bert_tf.TextClassifier:
        return bert_tf.TextClassifier(bert_tf.Encoder(config), tokenizer, _LABELS)

    def plain() -> object:
        model = tf.saved_model.load(str(path))
        return model.signatures["serving_default"](text=tf.constant(_TEXTS))

    def plain_fit() -> object:
        layers = [keras.layers.Dense(16, "relu") for _ in range(8)]
        model = keras.Sequential([keras.Input([16]), *layers, keras.layers.Dense(2)])
        model.compile("adam", "mse")
        return model.fit(np.zeros([8, 16]), np.zeros([8, 2]), verbose=0)

    def train_on_batch() -> object:
        model, ids = made(), np.ones([8, 16], np.int32)
        model.compile(bert_tf.AdamW(1e-4))
        names = ("input_word_ids", "input_mask", "input_type_ids")
        return model.train_on_batch(dict.fromkeys(names, ids), np.zeros(8, np.int32))

    answers = _LABELS * (len(_TEXTS) // 2)
    others = {
        "plain_fit": plain_fit,
        "train_on_batch": train_on_batch,
        "fit": lambda: made().fit(_TEXTS, answers, batch_size=4, epochs=1, verbose=0),
    }
    if kind in others:
        return others[kind]
    path = folder / {"keras": "model.keras", "litert": "model.tflite"}.get(kind, "model")
    match kind:
        case "keras":
            made().save(path)
        case "checkpoint":
            made().save_checkpoint(path)
        case "litert":
            made().export(path, format="litert")
        case _:
            made().export(path)
    return plain if kind == "plain" else lambda: bert_tf.load(path).predict(_TEXTS, verbose=0)


if __name__ == "__main__":
    sys.exit(main())
