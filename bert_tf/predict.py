"""`bert-tf predict`: asks a SavedModel about many texts.

It knows nothing of the task: the signature says what goes in, and whatever comes out becomes one
JSON object for each input, in the order of the inputs.
"""

import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TextIO

import numpy as np
import tensorflow as tf

from bert_tf.errors import UserError
from bert_tf.files import atomic_path, read_text
from bert_tf.progress import Progress

_BATCH = 32


def run(
    saved_model: str, texts: Sequence[str], input_file: str | None, output_file: str | None
) -> None:
    """Writes an answer for each of `texts`, or for each line of `input_file`, as JSON lines.

    Args:
        saved_model: folder made by an export.
        texts: texts, for a model with one input.
        input_file: plain lines for a model with one input, or JSON lines keyed by the inputs'
            names; "-" is standard input.
        output_file: where to write; None is standard output.

    Raises:
        UserError: no SavedModel there, or a line that does not fit its inputs.
    """
    answer = _load(saved_model)
    names = tuple(sorted(answer.structured_input_signature[1]))
    if input_file:
        rows = _read(input_file, names)
    else:
        _check_single(names, saved_model)
        rows = [{names[0]: text} for text in texts]
    answers = _answers(answer, rows, names)
    if output_file is None:
        _write(answers, sys.stdout)
        return
    with atomic_path(output_file) as new, open(new, "w", encoding="utf-8") as handle:
        _write(answers, handle)


def _load(path: str) -> Any:
    import tensorflow_text  # noqa: F401  registers the ops of the tokenizer

    if not (Path(path) / "saved_model.pb").is_file():
        raise UserError(f"no SavedModel at {path}; make one with python -m export RUN --out {path}")
    # The signature keeps its variables alive only through the loaded object.
    loaded = tf.saved_model.load(path)
    answer = loaded.signatures["serving_default"]
    answer.loaded = loaded
    return answer


def _read(path: str, names: tuple[str, ...]) -> list[dict[str, str]]:
    text = sys.stdin.read() if path == "-" else read_text(path, "input")
    lines = text.splitlines()
    if not (lines and lines[0].lstrip().startswith("{")):
        _check_single(names, path)
        return [{names[0]: line} for line in lines]
    return [_row(path, number, line, names) for number, line in enumerate(lines, 1) if line.strip()]


def _row(path: str, number: int, line: str, names: tuple[str, ...]) -> dict[str, str]:
    try:
        row = json.loads(line)
    except json.JSONDecodeError as error:
        raise UserError(f"{path}, line {number}: not JSON ({error.msg})") from None
    missing = [name for name in names if not isinstance(row.get(name), str)]
    if missing:
        raise UserError(f"{path}, line {number}: no text under {missing[0]!r}")
    return {name: row[name] for name in names}


def _check_single(names: tuple[str, ...], where: str) -> None:
    if len(names) > 1:
        raise UserError(
            f"{where}: the model takes {' and '.join(names)}; give them as JSON lines by --input"
        )


def _answers(
    answer: Any, rows: list[dict[str, str]], names: tuple[str, ...]
) -> Iterator[dict[str, Any]]:
    """One answer a row, in the order of the rows; batches hold rows of similar length."""
    order = sorted(range(len(rows)), key=lambda i: -sum(len(rows[i][name]) for name in names))
    progress = Progress("answering", len(rows), unit="rows")
    results: list[dict[str, Any]] = [{} for _ in rows]
    for start in range(0, len(order), _BATCH):
        chosen = order[start : start + _BATCH]
        batch = {name: tf.constant([rows[i][name] for i in chosen]) for name in names}
        outputs = {name: value.numpy() for name, value in answer(**batch).items()}
        for place, i in enumerate(chosen):
            results[i] = {name: _plain(outputs[name][place]) for name in sorted(outputs)}
        progress.update(start + len(chosen))
    progress.close()
    return iter(results)


def _plain(value: Any) -> Any:
    """A NumPy value or array as JSON data; strings are UTF-8."""
    if isinstance(value, np.ndarray):
        return [_plain(each) for each in value]
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return value.item()


def _write(answers: Iterator[dict[str, Any]], handle: TextIO) -> None:
    for each in answers:
        handle.write(json.dumps(each, ensure_ascii=False) + "\n")
