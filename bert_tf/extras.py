"""The optional packages: how whoever lacks one gets it."""

import re
from importlib import metadata


def how_to_install(extra: str) -> str:
    """The command that installs what an extra of bert_tf brings, wherever bert_tf is from."""
    try:
        requirements = metadata.requires("bert_tf") or []
    except metadata.PackageNotFoundError:  # a checkout that was never installed
        return f"pip install -e '.[{extra}]' in its checkout"
    of_extra = re.compile(rf"""(\S+) *; *extra == ["']{extra}["']""")
    found = [match[1] for match in map(of_extra.fullmatch, requirements) if match]
    return f"pip install {' '.join(found)}"
