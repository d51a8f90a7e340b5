"""`bert-tf predict`: answers many texts with a SavedModel, a LiteRT file, a run or a checkpoint.

The outputs become one JSON object for each input, in the order of the inputs. These are read in
blocks, so that they may be larger than memory and may come from a pipe.
"""

import contextlib
import io
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TextIO

import numpy as np

from bert_tf.asking import Answers, CutTexts, Outputs, batches, characters, columns_of
from bert_tf.asking.record import is_saved_model
from bert_tf.asking.row_files import Row, checked_lines, list_of, read_blocks, text_of
from bert_tf.asking.session import SessionModel
from bert_tf.console import Progress, escaped
from bert_tf.errors import UserError
from bert_tf.io.atomic import is_stream, text_file
from bert_tf.io.json_files import as_json
from bert_tf.io.refusals import explained

# See `Record.lists`.
Lists = Sequence[Sequence[str]]
_OFFSETS = ("start", "end", "starts", "ends")  # outputs that are offsets into a text


def run(
    path: str,
    texts: Sequence[str],
    input_file: str | None,
    output_file: str | None,
    signature: str = "serving_default",
    options: Mapping[str, Any] | None = None,
) -> None:
    """Writes a JSON line for each of `texts`, or line of `input_file`; "-" is standard input."""
    model, padded = _load(path, options or {})
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
        blocks = iter([([{name: text} for text in texts], lines)])
    cuts, done = CutTexts(model), 0
    with _output(output_file) as handle, contextlib.ExitStack() as shown:
        if lines is not None:
            progress = shown.enter_context(Progress("answering", lines, unit="rows"))
        for rows, last_line in blocks:
            if lines is None:  # the total is the number of lines read so far
                progress = shown.enter_context(Progress("answering", last_line, done, unit="rows"))
            written = [""] * len(rows)
            for chosen, outputs in batches(model, signature, rows, verbose=0):
                answered = answers(outputs, [rows[i] for i in chosen], ranks, padded)
                for i, answer in zip(chosen, answered, strict=True):
                    written[i] = escaped(json.dumps(answer, ensure_ascii=False)) + "\n"
                done += len(chosen)
                progress.update(done, line=True)
            if done < last_line:  # blank lines
                progress.update(last_line, line=True)
            handle.writelines(written)
            # Whoever reads from the pipe need not wait for the next block.
            handle.flush()
            cuts.add(columns_of(rows))
            done = last_line
            if lines is None:
                shown.close()
    cuts.say()


def _load(path: str, options: Mapping[str, Any]) -> tuple[Answers, Lists | None]:
    """The model, and its outputs that have padding, if they are known."""
    if is_saved_model(path) and not options:
        saved = SessionModel.load(path)
        if saved is not None:
            return saved, saved.record.lists if saved.record else None
    # These import TensorFlow and Keras.
    from bert_tf.asking.frozen import FrozenTask
    from bert_tf.tasks import registry
    from bert_tf.tasks.loading import load

    model = load(path)
    if isinstance(model, FrozenTask) and not (model.has_record or options):
        return model, None
    cls = model.task_class() if isinstance(model, FrozenTask) else type(model)
    return cls.with_options(model, options), registry.lists_of(cls)


def answers(
    outputs: Outputs, rows: Sequence[Row], ranks: Mapping[str, int], padded: Lists | None = None
) -> Iterator[dict[str, Any]]:
    """The answer to each row of a batch as JSON data, its outputs sorted by name.

    Lists are as long as for the row alone, whatever the other rows are. Offsets count characters.
    """
    lists = [name for name, rank in ranks.items() if rank == 2]
    widths = {name: max(len(row[name]) for row in rows) for name in lists}
    for i, row in enumerate(rows):
        answer = {name: outputs[name][i] for name in sorted(outputs)}
        least = max((len(row[name]) for name in lists), default=0)
        if padded is not None:
            groups = [group for group in padded if answer.keys() >= {*group}]
            found = cut_lists(answer, groups, least)
        else:
            # Outputs as wide as an input have an entry for each of its entries.
            found = _cut_by_values(answer, {widths[name]: len(row[name]) for name in lists})
        yield _in_characters({name: as_json(value) for name, value in found.items()}, row)


def cut_lists(
    answer: Mapping[str, Any], groups: Sequence[Sequence[str]], least: int = 0
) -> dict[str, Any]:
    """A row's outputs without the padding at the ends of lists. The lists of a group end together.

    Padding is "" in texts, -1 in integers and 0 in other numbers. The first `least` entries stay.
    """
    cut: dict[str, Any] = {}
    for group in groups:
        values = [answer[name] for name in group]
        end = min(map(len, values))
        while end > least and all(_is_padding(value[end - 1]) for value in values):
            end -= 1
        cut |= {name: answer[name][:end] for name in group}
    return {**answer, **cut}


def _cut_by_values(answer: Mapping[str, Any], own: Mapping[int, int]) -> dict[str, Any]:
    """As `cut_lists`, for a model of another program or of bert_tf 0.2.0: its lists are not known.

    Lists of the same length are taken to belong together. Numbers alone do not show padding: a
    vector may end in zeros. `own` maps the width of a padded input to this row's entries in it.
    """
    lists = {name: value for name, value in answer.items() if np.ndim(value)}
    # The labels are some of the classes, and have padding of their own.
    if {"labels", "classes"} <= lists.keys():
        del lists["labels"]
        answer = cut_lists(answer, [["labels"]])
    for width in {len(value) for value in lists.values()}:
        group = [name for name, value in lists.items() if len(value) == width]
        if width in own or any(lists[name].dtype == object for name in group):
            answer = cut_lists(answer, [group], own.get(width, 0))
    return dict(answer)


def _is_padding(entry: Any) -> bool:
    values = np.asarray(entry)
    if values.dtype.kind in "OSU":
        return all(value in (b"", "") for value in values.flat)
    return bool(np.all(values == (-1 if values.dtype.kind == "i" else 0)))


def _in_characters(answer: dict[str, Any], row: Row) -> dict[str, Any]:
    """An answer whose byte offsets are turned into offsets in characters of the row's text."""
    if not any(name in answer for name in _OFFSETS):
        return answer
    source = next((name for name in ("context", "text") if name in row), None)
    text = " ".join(list_of(row, "words")) if source is None else text_of(row, source)
    character = characters(text)
    converted = {
        name: [character(each) for each in value] if isinstance(value, list) else character(value)
        for name, value in answer.items()
        if name in _OFFSETS
    }
    return answer | converted


@contextlib.contextmanager
def _output(path: str | None) -> Iterator[TextIO]:
    """The output. A file appears only when it is complete; a device or pipe is written directly."""
    if path is None:
        # JSON is UTF-8, whatever the locale is.
        if isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(encoding="utf-8")
        yield sys.stdout
    elif is_stream(path):
        with explained(path), open(path, "w", encoding="utf-8", newline="\n") as handle:
            yield handle
    else:
        with text_file(path) as handle:
            yield handle
