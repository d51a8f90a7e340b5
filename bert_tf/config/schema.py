"""The JSON Schema of the YAML files, by which editors complete and check them."""

from typing import Any

from pydantic.json_schema import GenerateJsonSchema, models_json_schema

from bert_tf.config.reading import DISTILLATION, kinds
from bert_tf.config.run import FORMAT

_TASK = "The kind of task; it decides which keys the sections have."
_BASE = "Another file, or an experiment, to start from; the keys of this file override its keys."
_FORMAT = "The version of the form of a run folder, which bert_tf writes into its configuration."


class _OfFile(GenerateJsonSchema):
    """The schema of a model without titles of the keys, which would only repeat their names."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


def schema() -> dict[str, Any]:
    """A JSON Schema, draft 2020-12, of a file of any task, also of one without the key `task`."""
    runs = kinds()
    refs, whole = models_json_schema(
        [(kind, "validation") for kind in runs.values()],
        title="A run of bert_tf",
        schema_generator=_OfFile,
    )
    of_task = {task: refs[kind, "validation"] for task, kind in runs.items()}
    others = {
        "base": {"type": "string", "description": _BASE},
        "format": {"const": FORMAT, "description": _FORMAT},
    }
    for definition in whole["$defs"].values():
        definition.pop("required", None)
        definition["type"] = ["object", "null"]  # `train:` with nothing below it
        if "task" in definition["properties"]:
            definition["properties"]["task"]["description"] = _TASK
            definition["properties"] |= others
    cases = [
        {"if": {"required": ["task"], "properties": {"task": {"const": task}}}, "then": ref}
        for task, ref in of_task.items()
    ]
    named = {"required": ["task"], "properties": {"task": {"enum": [*runs]}}}
    other = {"if": {"not": named}, "then": {"anyOf": [*of_task.values()]}}
    return {
        "$schema": GenerateJsonSchema.schema_dialect,
        **whole,
        "type": "object",
        "properties": {"task": {"enum": [*runs, DISTILLATION], "description": _TASK}, **others},
        "allOf": [*cases, other],
    }
