"""Every key in the files of other programs' checkpoints, and how bert_tf treats it.

The keys are those of transformers 4 and 5, tokenizers, google-research/bert, Model Garden and
sentence-transformers. They are in `keys.json`; `docs/reference/checkpoint_keys.md` shows them too.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from bert_tf.checkpoints.plain_json import shown
from bert_tf.errors import UserError

HONOURED, WITHOUT_EFFECT = "honoured", "without effect"
PRINTED, REFUSED = "printed", "refused"
"""How a key is treated. The last two apply only if its value is not one of the usual values."""
ANY = "*"
"""A row with this name is for every key that has no other row."""


class Keys(NamedTuple):
    """Keys of a file that are treated alike."""

    fate: str
    names: str  # separated by spaces
    why: str = ""  # if printed or refused: the end of the sentence
    usual: Sequence[Any] = ()  # values that are neither printed nor refused


_JSON = json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))
TABLE = {str(name): tuple(Keys(*row) for row in rows) for name, rows in _JSON.items()}
"""Files or parts of files, and their keys. A key without a row is unknown.

A file's name may be followed by the kind of model that has these keys. The name of a part follows a
colon.
"""


def files() -> list[str]:
    """The names of the files next to the weights, without the files of modules."""
    names = (name.split(" ")[0].rstrip(":") for name in TABLE)
    return [name for name in dict.fromkeys(names) if "/" not in name]


def check(path: Path | str, fields: Mapping[str, Any], *tables: str) -> dict[str, str]:
    """Notes on the unknown and unusual keys of a file, by `tables`; UserError for a refused one."""
    rows = {name: row for table in tables for row in TABLE[table] for name in row.names.split()}
    notes = {}
    for key, value in fields.items():
        row, name = rows.get(key, rows.get(ANY)), shown(key).strip("'")
        if row is None:
            if not (value is None or value is False or value in ("", [], {})):
                sentence = f"{name} = {shown(value)} is not known and has no effect"
                notes[key] = f"{Path(path).name}: {sentence}"
        elif row.fate in (PRINTED, REFUSED) and (value := plain(value)) not in row.usual:
            sentence = f"{name} is {shown(value)}; {row.why}"
            if row.fate == REFUSED:
                raise UserError(f"{path}: {sentence}")
            notes[key] = f"warning: {Path(path).name}: {sentence}"
    return notes


def plain(value: Any) -> Any:
    """The string of a token that is stored with its settings; any other value unchanged."""
    return value["content"] if isinstance(value, dict) and "content" in value else value
