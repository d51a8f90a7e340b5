"""What a folder of results was made from, so that results of other data are not added."""

import json
from pathlib import Path

from bert_tf.checkpoints.plain_json import read_object
from bert_tf.errors import UserError
from bert_tf.experiments.small.job import Sources
from bert_tf.io.atomic import write_text

_FILE = "sources.json"


def known_sources(sources: Sources) -> Sources:
    """All that the results in `sources.out` are made from: what is given, or was before.

    Raises:
        UserError: one of them is another than before.
    """
    file = sources.out / _FILE
    before = read_object(file, "sources") if file.exists() else {}
    known = {name: Path(path) for name, path in before.items() if name in _inputs(sources)}
    for name, path in _inputs(sources).items():
        if path is not None and known.setdefault(name, path) != path:
            raise UserError(
                f"{sources.out} was made with --{name} {known[name]}, not {path}; give that, or "
                "choose another --out"
            )
    return sources._replace(**known)


def remember(sources: Sources) -> None:
    """Notes what the results in `sources.out` are made from."""
    named = {name: str(path) for name, path in _inputs(sources).items() if path is not None}
    write_text(sources.out / _FILE, json.dumps(named, indent=2) + "\n")


def _inputs(sources: Sources) -> dict[str, Path | None]:
    return {name: path for name, path in sources._asdict().items() if name != "out"}
