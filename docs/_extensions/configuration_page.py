"""The reference of configurations, made of their JSON Schema."""

import json
import re
from typing import Any

from markdown_text import as_markdown

from bert_tf.config.run import PRETRAINING
from bert_tf.config.schema import schema

_REQUIRED = "*required*"

Properties = dict[str, dict[str, Any]]
Tasks = tuple[str, ...]


def markdown() -> str:
    """The keys of a file, and those of each section by the tasks that have them."""
    whole = schema()
    runs = {
        case["if"]["properties"]["task"]["const"]: _definition(whole, case["then"])
        for case in whole["allOf"]
        if "const" in str(case["if"])
    }
    for run in runs.values():  # a section may stand in another one
        run |= {
            key: about
            for section in [*run.values()]
            if "$ref" in str(section)
            for key, about in _definition(whole, section).items()
            if is_section(about)
        }
    keys = [row(key, about, missing="") for key, about in whole["properties"].items()]
    single = {
        key: about
        for run in runs.values()
        for key, about in run.items()
        if key not in whole["properties"] and "$ref" not in str(about)
    }
    keys += [row(key, about) for key, about in single.items()]
    lines = ["## The whole file", "", *_table(keys)]
    names = dict.fromkeys(key for run in runs.values() for key in run)
    for name in names:
        sections = {
            task: (about.get("description", ""), _definition(whole, about))
            for task, run in runs.items()
            if (about := run.get(name)) and "$ref" in str(about)
        }
        if sections:
            lines += ["", *_section(name, sections, (*runs,))]
    return "\n".join([*lines, ""])


def is_section(about: dict[str, Any]) -> bool:
    """Whether a key is a section, or may be one, and not a list of them."""
    return any("$ref" in each for each in about.get("anyOf", [about]))


def _definition(whole: dict[str, Any], about: dict[str, Any]) -> Properties:
    """The properties of what a schema refers to, or of what it may refer to."""
    (ref,) = (each["$ref"] for each in about.get("anyOf", [about]) if "$ref" in each)
    return whole["$defs"][ref.rpartition("/")[2]]["properties"]


def _section(name: str, sections: dict[str, tuple[str, Properties]], all_tasks: Tasks) -> list[str]:
    """A table of the keys that all tasks with this section share, and one for each other group."""
    rows: dict[str, list[str]] = {}
    texts: dict[str, list[str]] = {}
    for task, (about, properties) in sections.items():
        texts.setdefault(as_markdown(about), []).append(task)
        for key, each in properties.items():
            rows.setdefault(row(key, each), []).append(task)
    most = max(texts, key=lambda text: len(texts[text]))
    everywhere = (*sections,)
    groups: dict[Tasks, list[str]] = {}
    # Keys without a default come first.
    for line, tasks in sorted(rows.items(), key=lambda each: f"| {_REQUIRED} |" not in each[0]):
        groups.setdefault((*tasks,), []).append(line)
    notes = {(*tasks,): text for text, tasks in texts.items() if text != most}
    lines = [f"## `{name}`", ""]
    if everywhere != all_tasks:
        lines += [f"Only for {_of(everywhere, all_tasks)}.", ""]
    if len(texts[most]) > 1:
        lines += [most, ""]
    else:
        notes[(*texts[most],)] = most
    order = sorted({**groups, **notes}, key=lambda tasks: (-len(tasks), all_tasks.index(tasks[0])))
    for tasks in order:
        if tasks != everywhere:
            lines += ["", f"### `{name}` of {_of(tasks, all_tasks)}", ""]
        lines += [notes[tasks], ""] if tasks in notes else []
        lines += _table(groups[tasks]) if tasks in groups else []
    return lines


def _table(rows: list[str]) -> list[str]:
    """Keys in a table, which `_static/site.css` shows in another way on phones."""
    head = ["| key | type | default | meaning |", "|---|---|---|---|"]
    return ["```{container} keys", "", *head, *rows, "```"]


def _of(tasks: Tasks, all_tasks: Tasks) -> str:
    """The name of a set of tasks."""
    finetuning = [task for task in all_tasks if task != PRETRAINING]
    others = [task for task in finetuning if task not in tasks]
    if PRETRAINING in tasks or len(others) > len(finetuning) / 2:
        return _joined(tasks, "and")
    return f"fine-tuning, except {_joined(others, 'and')}" if others else "fine-tuning"


def row(key: str, about: dict[str, Any], missing: str = _REQUIRED) -> str:
    """One key in a table; `missing` stands for the default that it lacks."""
    default = _written(about["default"]) if "default" in about else missing
    meaning = as_markdown(about.get("description", ""))
    return f"| `{key}` | {_type(about)} | {default} | {meaning} |"


def _type(about: dict[str, Any]) -> str:
    """The values of a key in words, without the lists and the ranges of a search.

    >>> _type({"anyOf": [{"type": "integer", "minimum": 1}, {"type": "null"}], "default": None})
    'integer, at least 1'
    """
    shown: list[str] = []
    for each in about.get("anyOf", [about]):
        # A default of null stands in its own column.
        is_default = each.get("type") == "null" and about.get("default") is None
        if not each.get("uniqueItems") and each.get("title") != "Range" and not is_default:
            kind = _kind(each)
            is_list_of_these = shown and kind == f"a list of {_plural(shown[-1])}"
            shown.append("a list of these" if is_list_of_these else kind)
    return ", or ".join(shown)


def _kind(about: dict[str, Any]) -> str:
    """The values that one alternative of a schema takes."""
    if "$ref" in about:
        return "section"
    if "enum" in about or "const" in about:
        return _joined([f"`{each}`" for each in about.get("enum", [about.get("const")])], "or")
    match about["type"]:
        case "array":
            return f"a list of {_plural(_type(about['items']))}"
        case "object" if about["additionalProperties"] is True:
            return "a mapping"
        case "object":
            return f"a mapping of names to {_plural(_type(about['additionalProperties']))}"
        case "null":
            return "`null`"
        case kind:
            return kind + _bounds(about)


def _plural(kind: str) -> str:
    """Several values of a kind.

    >>> _plural("integer, at least 1")
    'integers, at least 1'
    """
    return re.sub("(^|, or )(integer|number|string|section)", r"\1\2s", kind)


def _bounds(about: dict[str, Any]) -> str:
    """The range of a number."""
    if "minimum" in about and "maximum" in about:
        return f" from {about['minimum']} to {about['maximum']}"
    if "minimum" in about:
        return f", at least {about['minimum']}"
    if "exclusiveMinimum" in about:
        return f" above {about['exclusiveMinimum']}"
    return ""


def _written(value: Any) -> str:
    """A default as it is written in YAML.

    >>> _written(5e-05), _written(True), _written(",")
    ('`5e-5`', '`true`', '`","`')
    """
    if isinstance(value, str):
        return f"`{value}`" if value.isidentifier() else f'`"{value}"`'
    return f"`{json.dumps(value)}`".replace("e-0", "e-")


def _joined(names: Any, word: str) -> str:
    """Names in a sentence.

    >>> _joined(["a", "b", "c"], "or")
    'a, b or c'
    """
    *first, last = names
    return f"{', '.join(first)} {word} {last}" if first else last
