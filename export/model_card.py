"""The model card of an export: the model, its training data, its metrics, and how to call it."""

import dataclasses
import json
import platform
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import keras
import tensorflow as tf

import bert_tf
from bert_tf.console import escaped
from bert_tf.dependencies import FIXED_WEIGHTS
from bert_tf.export.service import Service, Signature, Tensors
from bert_tf.io.json_files import as_json

_SHOWN = 8  # entries that are shown of each axis of an example's answer
# See docs/how_to/serving.md.
_FIXED = f"`{FIXED_WEIGHTS}=1` in the environment of a process that only serves, "
_THREADS = "2 inter-op threads, and one intra-op thread for every two processors"


@dataclasses.dataclass(frozen=True)
class Origin:
    """How a model was made, as far as this is known; None means unknown."""

    source: str | None = None
    task: str | None = None
    configuration: Mapping[str, Any] | None = None
    metrics: Mapping[str, float] | None = None


def describe(
    service: Service,
    signatures: Mapping[str, Signature],
    answers: Mapping[str, Tensors],
    origin: Origin,
) -> dict[str, Any]:
    """The card as plain data."""
    import tensorflow_text

    return {
        "task": service.task or origin.task,
        "source": origin.source,
        "model": service.facts(),
        "labels": list(service.labels),
        "training_data": (origin.configuration or {}).get("data"),
        "configuration": origin.configuration,
        "metrics": origin.metrics,
        "versions": {
            "bert_tf": bert_tf.__version__,
            "tensorflow": tf.__version__,
            "tensorflow_text": tensorflow_text.__version__,
            "keras": keras.__version__,
            "python": platform.python_version(),
        },
        "signatures": {name: _signature(each, answers[name]) for name, each in signatures.items()},
    }


def write(folder: Path, card: Mapping[str, Any]) -> None:
    """Writes `model_card.json` and the same as `model_card.md`."""
    text = escaped(json.dumps(card, indent=2, ensure_ascii=False), "\n") + "\n"
    (folder / "model_card.json").write_text(text, encoding="utf-8")
    (folder / "model_card.md").write_text(_markdown(card), encoding="utf-8")


def _signature(signature: Signature, answer: Tensors) -> dict[str, Any]:
    shown = {name: each.numpy() for name, each in answer.items()}
    return {
        "inputs": {
            name: {"dtype": spec.dtype.name, "shape": list(spec.shape)}
            for name, spec in signature.inputs.items()
        },
        "outputs": {name: answer[name].dtype.name for name in sorted(answer)},
        "example": {
            "inputs": signature.example,
            "outputs": {
                name: {
                    "shape": list(values.shape),
                    "values": as_json(values[(slice(_SHOWN),) * values.ndim]),
                }
                for name, values in sorted(shown.items())
            },
        },
    }


def _markdown(card: Mapping[str, Any]) -> str:
    model = card["model"]
    lines = [f"# {card['task'] or model['class']}", ""]
    lines += [f"- {name.replace('_', ' ')}: {_inert(_described(model[name]))}" for name in model]
    if card["source"]:
        lines += [f"- exported from: `{_inert(card['source'])}`"]
    if card["labels"]:
        lines += [f"- labels: {', '.join(f'`{_inert(label)}`' for label in card['labels'])}"]
    if model.get("device") == "CPU":
        fixed = "" if model["precision"] == "float32" else _FIXED
        lines += [f"- fastest with: {fixed}{_THREADS}"]
    for title in ("metrics", "training_data", "configuration", "versions"):
        lines += ["", f"## {title.replace('_', ' ').capitalize()}", ""]
        lines += _fenced(card[title]) if card[title] else ["Not known."]
    for name, signature in card["signatures"].items():
        lines += ["", f"## Signature `{_inert(name)}`", ""]
        for kind in ("inputs", "outputs"):
            named = signature[kind].items()
            entries = (f"`{_inert(key)}` {_described(each)}" for key, each in named)
            lines += [f"- {kind}: {', '.join(entries)}"]
        shown = f"the first {_SHOWN} entries of each axis are shown"
        lines += ["", f"An example request, and the response of the model at export ({shown}):", ""]
        example = signature["example"]
        lines += [*_fenced(example["inputs"]), "", *_fenced(example["outputs"])]
    return "\n".join(lines) + "\n"


def _described(value: Any) -> str:
    if isinstance(value, dict) and value.keys() == {"dtype", "shape"}:
        sizes = ", ".join("any" if size is None else str(size) for size in value["shape"])
        return f"{value['dtype']} [{sizes}]"
    if isinstance(value, dict):
        return ", ".join(f"{key} {each}" for key, each in value.items())
    return str(value)


def _fenced(values: Mapping[str, Any]) -> list[str]:
    """A block of JSON with a line for each key."""
    lines = [f"  {json.dumps(k)}: {json.dumps(v, ensure_ascii=False)}" for k, v in values.items()]
    return ["```json", "{", ",\n".join(map(escaped, lines)), "}", "```"]


def _inert(text: str) -> str:
    """A text in which characters that Markdown or HTML interprets are escaped as in JSON."""
    return escaped(re.sub("[`<>&|\\]\\[]", lambda match: f"\\u{ord(match[0]):04x}", text))
