"""`bert-tf check`: finds oddities in the data of a fine-tuning run before training."""

import collections
import contextlib
import os
import re
import unicodedata
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from bert_tf.config.run import FinetuningRun
from bert_tf.console import Progress, escaped, logger
from bert_tf.data import arrow
from bert_tf.data.columns import Columns, is_text
from bert_tf.encoder.config import EncoderConfig
from bert_tf.encoder.encoder import Encoder
from bert_tf.errors import UserError
from bert_tf.io.atomic import text_file
from bert_tf.runs.vocabulary import settle
from bert_tf.tasks import registry
from bert_tf.tasks.embedding.data import NumberedTexts
from bert_tf.tasks.task import Task
from bert_tf.templates import TEMPLATES
from bert_tf.text import Tokenizer
from bert_tf.text.word_counts import count_words_of_texts

# Signs that a text was decoded or written wrongly.
_ODD: dict[str, Callable[[str], Any]] = {
    "replacement characters (U+FFFD)": re.compile("\ufffd").search,
    "UTF-8 read as another encoding": re.compile("[\u00c2\u00c3][\x80-\xbf]|\u00e2\u20ac").search,
    "control characters": re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]").search,
    "accents as separate characters": lambda text: not unicodedata.is_normalized("NFC", text),
    "empty texts": lambda text: not text.strip(),
}
# The most rows or words in a line, the most bars of a picture, and a length that no text reaches.
_FIRST, _BARS, _LONGEST = 3, 20, 2**16


def check(config: FinetuningRun, out: str | os.PathLike | None = None) -> None:
    """Prints oddities in the training and dev data of a run, and may write a page with pictures.

    Args:
        config: the run's configuration. A dev file that is not there is left out.
        out: the page, which ends in .html; None writes none.

    Raises:
        UserError: as `finetune`, for files that cannot be read; or `out` has another ending.
    """
    if out is not None and Path(out).suffix != ".html":
        raise UserError(f"--out {out} must end in .html")
    with contextlib.nullcontext() if out is None else text_file(out) as page:
        lines, pictures = _findings(config.trials()[0])
        for what, split, count, of, some in lines:
            share = f"{count:>7} of {of:<7} {count / max(of, 1):6.1%}"
            print(escaped(f"{what:32} {split:5} {share}  {some}".rstrip()))
        if page is not None:
            template = TEMPLATES.get_template("bert_tf/interpret/data_quality.html")
            page.write(template.render(title=config.data.path, lines=lines, pictures=pictures))
    if out is not None:
        logger.info(f"{out}: open it in a browser")


# The finding, the split, the count, the total, and the places of some examples.
_Line = tuple[str, str, int, int, str]
# Title -> bar -> count.
_Bars = dict[str, dict[str, int]]


def _findings(config: FinetuningRun) -> tuple[list[_Line], _Bars]:
    settled, vocabulary = settle(config)
    pieces = vocabulary.removesuffix("\n").split("\n")
    tokenizer = Tokenizer.of(pieces, settled.tokenizer.settings)
    task = registry.family(config.task).task_class()(config)
    splits = {"train": task.training_rows()}
    for ending, path in task.files("dev").items():
        is_there = arrow.files_of(path) or config.data.format in ("datasets", "tfds")
        rows = task.read(path) if is_there else None
        if isinstance(rows, Columns):
            splits[f"dev{ending}"] = rows
        else:
            logger.info(f"{path} is skipped: {'no rows' if is_there else 'it does not exist'}")
    lines: list[_Line] = []
    pictures: _Bars = {}
    most, text_settings = config.train.max_length, tokenizer.settings
    edges = [most * i // 8 for i in range(1, 9)]
    sizes = [*(f"up to {edge}" for edge in edges), f"more than {most}"]
    for split, rows in splits.items():
        lengths = _lengths(rows, task, tokenizer)
        odd = _odd(rows) | ({} if split == "train" else _leaks(rows, splits["train"]))
        odd[f"more than {most} tokens"] = {int(i): "" for i in np.flatnonzero(lengths > most)}
        for what, found in odd.items():
            first = [f"{rows.where(row)}{more}" for row, more in [*found.items()][:_FIRST]]
            lines.append((what, split, len(found), len(rows), "; ".join(first)))
        counts = count_words_of_texts((t for row in _texts(rows) for t in row), text_settings)
        ids = tokenizer.tokenize(tf.constant([*counts], tf.string)).to_list()
        words = zip(counts.items(), ids, strict=True)
        unknown = collections.Counter({w: n for (w, n), each in words if tokenizer.unk_id in each})
        first = [f"{word} ({count})" for word, count in unknown.most_common(_FIRST)]
        lines.append(("[UNK] words", split, unknown.total(), counts.total(), "; ".join(first)))
        names = collections.Counter(n for each in rows.targets or () for n in _names(each))
        common = names.most_common(_BARS)
        lines += [(f"class {name}", split, count, names.total(), "") for name, count in common]
        of_sizes = collections.Counter(np.searchsorted(edges, lengths).tolist())
        pictures |= {
            f"{split}: tokens of a row": {size: of_sizes[i] for i, size in enumerate(sizes)},
            f"{split}: [UNK] words": dict(unknown.most_common(_BARS)),
            f"{split}: classes": dict(common),
        }
    return lines, pictures


def _texts(rows: Columns) -> list[list[str]]:
    """All texts of each row."""
    values = zip(*rows.values, strict=True)
    return [[t for each in row for t in ([each] if is_text(each) else each)] for row in values]


def _keys(rows: Columns) -> list[str]:
    """The texts of each row, without regard to case, spaces and the forms of Unicode."""
    rows_as_text = ("\0".join(" ".join(text.split()) for text in row) for row in _texts(rows))
    return [unicodedata.normalize("NFKC", text).casefold() for text in rows_as_text]


def _odd(rows: Columns) -> dict[str, dict[int, str]]:
    """Findings in one file: finding -> row -> the text that is printed after the row's place."""
    first: dict[str, int] = {}
    pairs = ((row, first.setdefault(key, row)) for row, key in enumerate(_keys(rows)))
    again = {row: other for row, other in pairs if row != other}
    said = {row: f" = {rows.where(other)}" for row, other in again.items()}
    targets = rows.targets or [None] * len(rows)
    differ = [row for row, other in again.items() if repr(targets[row]) != repr(targets[other])]
    found = {"duplicates": said, "duplicates of another label": {row: said[row] for row in differ}}
    texts = _texts(rows)
    for what, is_odd in _ODD.items():
        found[what] = {row: "" for row, each in enumerate(texts) if any(map(is_odd, each))}
    return found


def _leaks(rows: Columns, train: Columns) -> dict[str, dict[int, str]]:
    """Rows that are also in the training data, exactly or almost; in the form of `_odd`."""
    from sklearn import config_context
    from sklearn.feature_extraction.text import HashingVectorizer
    from sklearn.neighbors import NearestNeighbors

    known, ours = _keys(train), _keys(rows)
    place = {key: row for row, key in reversed([*enumerate(known)])}
    sets = HashingVectorizer(analyzer="char", ngram_range=(5, 5), binary=True, lowercase=False)
    index = NearestNeighbors(n_neighbors=1, metric="cosine").fit(sets.transform(known))
    found: dict[str, dict[int, str]] = {"also in train": {}, "almost the same in train": {}}
    with config_context(working_memory=256), Progress("comparing", len(ours), 0, "rows") as shown:
        for start in range(0, len(ours), 256):  # 256 rows at a time, in 256 MB of memory
            part = ours[start : start + 256]
            nearest = zip(part, *index.kneighbors(sets.transform(part)), strict=True)
            for row, (key, (distance,), (other,)) in enumerate(nearest, start):
                if key in place:
                    found["also in train"][row] = f" = {train.where(place[key])}"
                elif distance <= 0.1:  # 1 less the cosine of their sets of five characters
                    found["almost the same in train"][row] = f" = {train.where(other)}"
            shown.update(start + len(part), line=True)
    return found


def _lengths(rows: Columns, task: Task, tokenizer: Tokenizer) -> np.ndarray:
    """int64 [rows]: tokens of the longest input of each row, as the model would read it whole."""
    train = task.config.train.model_copy(update={"max_length": _LONGEST})
    sizes = EncoderConfig(tokenizer.vocab_size, 2, 24, 1, 2, max_position_embeddings=_LONGEST)
    whole = task.of_trial(task.config.model_copy(update={"train": train}))
    examples = whole.model(Encoder(sizes), tokenizer).examples(rows)
    if isinstance(examples, NumberedTexts):  # each text is an input of its own
        return examples.encoded.lengths[examples.groups].max(axis=1)
    return examples.lengths


def _names(target: Any) -> Iterator[str]:
    """The names of classes in a target: labels, tags, numbers of choices, types of spans."""
    if isinstance(target, str | int):
        yield str(target)
    elif hasattr(target, "label"):
        yield target.label
    elif isinstance(target, list | tuple) and not hasattr(target, "_fields"):
        for each in target:
            yield from _names(each)
