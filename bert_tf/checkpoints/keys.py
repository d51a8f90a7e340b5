"""Every key in the files of other programs' checkpoints, and what becomes of it.

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
"""What becomes of a key. The last two are for a value that is not one of the usual ones."""
ANY = "*"
"""A row with this name is for every key."""


class Keys(NamedTuple):
    """Keys of a file that are treated alike."""

    fate: str
    names: str  # separated by spaces
    why: str = ""  # or the end of the sentence that is printed or raised
    usual: Sequence[Any] = ()  # values that are neither printed nor refused


_JSON = json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))
TABLE = {str(name): tuple(Keys(*row) for row in rows) for name, rows in _JSON.items()}
"""Files, or parts of them, and their keys. A key that a file's rows do not have is unknown.

The name of a file may be followed by the kind of model whose keys they are, and the name of a part
stands after a colon.
"""


def files() -> list[str]:
    """The names of the files that stand next to the weights, without those of modules."""
    names = (name.split(" ")[0].rstrip(":") for name in TABLE)
    return [name for name in dict.fromkeys(names) if "/" not in name]


def check(path: Path | str, fields: Mapping[str, Any], *tables: str) -> dict[str, str]:
    """Notes on the unusual keys of a file, by `tables`; UserError if one cannot be honoured."""
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
    """The string of a token that is stored with its settings; other values stay."""
    return value["content"] if isinstance(value, dict) and "content" in value else value
