"""Files of texts with spans, as doccano, Label Studio, Prodigy and spaCy write them."""

import importlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from bert_tf.console import logger
from bert_tf.data import arrow
from bert_tf.data.columns import Columns, quoted
from bert_tf.data.tables import rows_of
from bert_tf.errors import UserError
from bert_tf.io.json_files import read_json, read_json_lines, text_of
from bert_tf.tasks.token_classification.spans import TEXT, Span
from bert_tf.tasks.token_classification.tagged_sentences import WordTags

# The keys under which the tools write the spans of a text.
_SPANS = ("spans", "entities", "label", "labels", "annotations")
# Their names for the parts of a span, and the other keys that they write for a span.
_NAMES = {"start_offset": "start", "end_offset": "end", "labels": "label"}
_MORE = {
    *"id user score text token_start token_end source pattern from_name to_name origin".split()
}


def read_spans(path: Path, file_format: str = "spans") -> Columns:
    """The texts of a file with the spans of their entities, in its order.

    The form is that of Prodigy (JSONL with `text` and `spans`), doccano (JSONL), Label Studio (JSON
    and JSON-MIN) or spaCy (`.spacy`, of which `doc.ents` are read). Texts that annotators rejected
    or skipped are left out and counted.
    """
    is_arrow = arrow.reads(path, file_format)
    unit, rows = rows_of(path, file_format) if is_arrow else _rows(path)
    found, left_out = [], 0
    for number, row in rows:
        place = f"{path}, {unit} {number}"
        if not isinstance(row, dict):
            raise UserError(f"{place} is {quoted(row)}, not an object with a text")
        text = (row["data"] if isinstance(row.get("data"), dict) else row).get("text")
        annotations = _annotations(row, place)
        if len(annotations) > 1:
            raise UserError(f"{place} has {len(annotations)} annotations; keep one of them")
        left_out += not annotations
        for spans in annotations:
            spans = None if spans is None else [_span(each, text, place) for each in spans]
            found.append((number, text, spans))
    if left_out:
        logger.info(f"{path}: texts that annotators rejected or skipped are left out ({left_out})")
    return Columns.of_file(path, ["text"], found, unit=unit).checked([TEXT], WordTags())


def _rows(path: Path) -> tuple[str, Iterable[tuple[int, Any]]]:
    """The unit in which the rows of a file are counted, and the rows with their numbers."""
    if path.suffix == ".spacy":
        return "row", enumerate(_of_spacy(path), start=1)
    if text_of(path).lstrip().startswith("["):
        return "row", enumerate(read_json(path), start=1)
    return "line", read_json_lines(path)


def _annotations(row: dict[str, Any], place: str) -> list[list[Any] | None]:
    """The spans of a row by each annotator who did not skip it; None if nobody has seen it."""
    if row.get("answer") in ("reject", "ignore"):
        return []
    keys = [key for key in _SPANS if isinstance(row.get(key), list)]
    if len(keys) > 1:
        raise UserError(f"{place} has spans under {' and '.join(keys)}; keep one of them")
    spans = row[keys[0]] if keys else None
    if keys == ["annotations"] and not spans:
        return [None]
    if spans and all(isinstance(each, dict) and "result" in each for each in spans):
        return [each["result"] for each in spans if not each.get("was_cancelled")]
    return [spans]


def _span(given: Any, text: Any, place: str) -> Any:
    """A tool's span as a dict of `start`, `end` and `label`, and of keys that are not known."""
    if isinstance(given, list) and len(given) == len(Span._fields):
        return dict(zip(Span._fields, given, strict=True))
    parts = given.get("value", given) if isinstance(given, dict) else given
    if not isinstance(parts, dict):
        return given
    span = {_NAMES.get(name, name): part for name, part in parts.items() if name not in _MORE}
    start, end, label, said = (*map(span.get, Span._fields), parts.get("text"))
    if isinstance(label, list) and len(label) == 1:
        span["label"] = label[0]
    can_compare = type(start) is type(end) is int and isinstance(text, str)
    if can_compare and said not in (None, text[start:end]):
        raise UserError(
            f"{place}: the characters {start} to {end} of {quoted(text)} are not {quoted(said)}; "
            "export the file again with offsets in characters"
        )
    return span


def _of_spacy(path: Path) -> list[dict[str, Any]]:
    try:
        spacy = importlib.import_module("spacy")
        docs = [*spacy.tokens.DocBin().from_disk(path).get_docs(spacy.blank("xx").vocab)]
    except ImportError:
        raise UserError(f"{path}: to read it, install spaCy: pip install spacy") from None
    # The errors of spaCy in a damaged file have no common class.
    except Exception as error:
        raise UserError(f"{path} cannot be read by spaCy ({error})") from error
    spans = ([[each.start_char, each.end_char, each.label_] for each in doc.ents] for doc in docs)
    return [{"text": doc.text, "spans": each} for doc, each in zip(docs, spans, strict=True)]
