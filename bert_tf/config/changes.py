"""The differences between two configurations of one run."""

import glob
import json
import os
from pathlib import Path

from pydantic_core import to_jsonable_python

from bert_tf.config.run import RunConfig
from bert_tf.config.section import Section

# Keys that may change between two sessions of a run, since they decide none of its numbers
# as long as these are finite. A callback may change more; this is the user's own choice.
_FREE = (
    "search.trials train.callbacks train.checkpoint_minutes train.checkpoints_kept train.log_steps "
    "train.metrics train.skip_nonfinite train.strategy train.tpu"
).split()


def difference(old: RunConfig, new: RunConfig) -> dict[str, tuple[object, object]]:
    """The keys, such as "train.seed", whose values differ but must not, with both values."""
    if type(old) is not type(new):
        return {"task": (old.task, new.task)}
    before, after = _flat_pair(old, new)
    both = () if getattr(new, "search", None) else old.searched.keys() & new.searched.keys()
    free = {*_FREE, *(f"train.{key}" for key in both)}
    return {
        key: (value, after[key])
        for key, value in before.items()
        if key not in free and not _is_same(value, after[key])
    }


def has_moved(old: RunConfig, new: RunConfig) -> bool:
    """Whether a path of the old configuration has moved to where the new one says."""
    before, after = _flat_pair(old, new)
    return type(old) is type(new) and any(
        value != after[key] and _is_same(value, after[key]) and os.path.isabs(str(after[key]))
        for key, value in before.items()
    )


def tell_difference(old: RunConfig, new: RunConfig) -> str:
    """The result of `difference` as text, such as "train.seed (0 there, 1 now)"."""
    return ", ".join(
        f"{key} ({as_written(before)} there, {as_written(after)} now)"
        for key, (before, after) in difference(old, new).items()
    )


def identity(config: RunConfig) -> str:
    """A text that all configurations of one Optuna search share, wherever their files are."""
    values = {
        key: Path(value).name if isinstance(value, str) and os.path.isabs(value) else value
        for key, value in _flat(config).items()
        if key not in (*_FREE, "search.storage")
    }
    return json.dumps(values, sort_keys=True, default=to_jsonable_python)


def _is_same(before: object, after: object) -> bool:
    """Whether two values are equal, or are paths with one name and the first no longer exists."""
    if isinstance(before, tuple) and isinstance(after, tuple) and len(before) == len(after):
        return all(map(_is_same, before, after))
    if before == after or not (isinstance(before, str) and isinstance(after, str) and after):
        return before == after
    # A path was made absolute only if something was there.
    is_gone = os.path.isabs(before) and not glob.glob(before, recursive=True)
    return is_gone and Path(before).name == Path(after).name


def _flat_pair(old: RunConfig, new: RunConfig) -> tuple[dict[str, object], dict[str, object]]:
    """`_flat` of both; the keys of a section that only one has are null in the other."""
    before, after = _flat(old), _flat(new)
    none = dict.fromkeys([*before, *after])
    return none | before, none | after


def _flat(config: RunConfig) -> dict[str, object]:
    """Every key with its value, or with its values where they are searched."""
    values: dict[str, object] = {"task": config.task}
    for section in ("data", "tokenizer", "model", "init", "train", "distillation", "search"):
        for key, value in vars(getattr(config, section, None) or Section()).items():
            values[f"{section}.{key}"] = value
    return values | {f"train.{key}": each for key, each in config.searched.items()}


def as_written(value: object) -> str:
    """A value in one line, as in a file."""
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, default=to_jsonable_python)
