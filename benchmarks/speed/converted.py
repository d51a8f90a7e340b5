"""The jobs of runtimes that read a converted model, without the library that it comes from."""

import json
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import tokenizers

from benchmarks.speed.answering import answering
from benchmarks.speed.turns import Job

Run = Callable[[dict[str, np.ndarray]], np.ndarray]
# As `answering` takes it.
Make = Callable[[dict[str, Any]], Callable[[], np.ndarray]]

_NAMES = {
    "input_word_ids": "input_ids",
    "input_mask": "attention_mask",
    "input_type_ids": "token_type_ids",
}
_LONGEST = 512


def write(runtime: str, settings: dict[str, Any], out: Path) -> None:
    """Writes the model in a process of its own, to keep its memory out of serving's.

    Args:
        runtime: openvino or onnx.
        settings: of the contestant.
        out: the file.
    """
    given = runtime, json.dumps(settings), str(out)
    # Tracing warns of values that its example would fix; the outputs are compared on other sizes.
    converter = [sys.executable, "-W", "ignore", "-m", "benchmarks.speed.converting", *given]
    subprocess.run(converter, check=True)


def job(settings: dict[str, Any], run: Run) -> Job:
    """The job that `settings` names; texts are tokenized by the tokenizer next to the weights.

    Args:
        settings: of the contestant; the work is encode or classify.
        run: takes int64 [batch, seq_len] under transformers' names, gives float32.
    """
    of_inputs = {"encode": _of_ids, "classify": _of_texts}[settings["work"]]
    return answering(settings, of_inputs(settings, run))


def renamed(given: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The encoder's inputs as a converted model takes them."""
    return {_NAMES[name]: value.astype(np.int64) for name, value in given.items()}


def _of_ids(_: dict[str, Any], run: Run) -> Make:
    def make(given: dict[str, Any]) -> Callable[[], np.ndarray]:
        arrays = renamed(given)
        return lambda: run(arrays)

    return make


def _of_texts(settings: dict[str, Any], run: Run) -> Make:
    tokenizer = tokenizers.Tokenizer.from_file(str(Path(settings["weights"]) / "tokenizer.json"))
    tokenizer.enable_padding()
    tokenizer.enable_truncation(_LONGEST)

    def answer(texts: list[str]) -> np.ndarray:
        rows = tokenizer.encode_batch(texts)
        arrays = {
            "input_ids": np.array([row.ids for row in rows]),
            "attention_mask": np.array([row.attention_mask for row in rows]),
            "token_type_ids": np.array([row.type_ids for row in rows]),
        }
        return run(arrays)

    return lambda given: lambda: answer(given["text"])
