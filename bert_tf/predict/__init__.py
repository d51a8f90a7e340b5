"""`bert-tf predict`: answers many texts with a SavedModel, a run or a checkpoint.

It knows nothing of the task: the signature says what goes in, and whatever comes out becomes one
JSON object for each input, in the order of the inputs. The input is worked on in blocks, so that it
may be larger than memory and may come from a pipe.
"""

import contextlib
import io
import json
import os
import sys
from collections.abc import Iterator, Sequence
from typing import TextIO

from bert_tf.asking import Answers, batches
from bert_tf.asking.row_files import Block, checked_lines, read_blocks
from bert_tf.asking.saved_model import SavedModel, is_saved_model
from bert_tf.console import Progress
from bert_tf.errors import UserError
from bert_tf.io.atomic import atomic_path, is_stream
from bert_tf.io.refusals import explained
from bert_tf.predict.answers import answers


def run(
    path: str,
    texts: Sequence[str],
    input_file: str | None,
    output_file: str | None,
    signature: str = "serving_default",
) -> None:
    """Writes an answer for each of `texts`, or for each line of `input_file`, as JSON lines.

    Args:
        path: what `bert_tf.load` opens.
        texts: texts, for a signature of one text.
        input_file: JSON lines keyed by the inputs' names, or plain lines for a signature of one
            text; "-" is standard input.
        output_file: where to write, a file, a device or a pipe; None is standard output.
        signature: how the model is asked.

    Raises:
        UserError: no model or signature there, or a line that does not fit its inputs.
    """
    model = _load(path)
    ranks = model.ranks(signature)
    if input_file:
        lines = checked_lines(input_file, ranks)
        blocks = read_blocks(input_file, ranks)
    else:
        if list(ranks.values()) != [1]:
            raise UserError(
                f"{path}: signature {signature} takes {' and '.join(ranks)}; give them as JSON "
                "lines with --input"
            )
        lines = len(texts)
        (name,) = ranks
        blocks = iter([Block([{name: text} for text in texts], lines)])
    answered = _answer(model, signature, blocks, lines)
    with _output(output_file) as handle:
        for written in answered:
            handle.writelines(written)
            # Whoever reads from the pipe need not wait for the next block.
            handle.flush()


def _load(path: str) -> Answers:
    if is_saved_model(path):
        return SavedModel.load(path)
    # This imports Keras.
    from bert_tf.tasks.loading import load

    return load(path)


def _answer(
    model: Answers, signature: str, blocks: Iterator[Block], lines: int | None
) -> Iterator[list[str]]:
    """The JSON lines of each block; batches hold rows of similar length.

    Where the number of lines is not known, progress is shown of the lines read so far.
    """
    done = 0
    if lines is not None:
        with Progress("answering", lines, unit="rows") as progress:
            for block in blocks:
                yield _answer_block(model, signature, block, done, progress)
                done = block.last_line
        return
    for block in blocks:
        with Progress("answering", block.last_line, start=done, unit="rows") as progress:
            written = _answer_block(model, signature, block, done, progress)
        done = block.last_line
        yield written


def _answer_block(
    model: Answers, signature: str, block: Block, done: int, progress: Progress
) -> list[str]:
    """The JSON lines of one block, before which so many lines are done."""
    rows, ranks = block.rows, model.ranks(signature)
    written = [""] * len(rows)
    for chosen, outputs in batches(model, signature, rows, verbose=0):
        answered = answers(outputs, [rows[i] for i in chosen], ranks)
        for i, answer in zip(chosen, answered, strict=True):
            written[i] = json.dumps(answer, ensure_ascii=False) + "\n"
        done += len(chosen)
        progress.update(done, line=True)
    if done < block.last_line:  # blank lines
        progress.update(block.last_line, line=True)
    return written


@contextlib.contextmanager
def _output(path: str | None) -> Iterator[TextIO]:
    """What is written to. A file appears when all is written; devices and pipes cannot wait."""
    if path is None:
        # JSON is UTF-8, whatever the locale is.
        if isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(encoding="utf-8")
        yield sys.stdout
    elif is_stream(path):
        with explained(path), _written(path) as handle:
            yield handle
    else:
        with atomic_path(path, is_file=True) as new, _written(new) as handle:
            yield handle


def _written(path: str | os.PathLike) -> TextIO:
    return open(path, "w", encoding="utf-8", newline="\n")
