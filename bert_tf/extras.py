"""The optional packages: imports, and the command that installs a missing one."""

import importlib
import re
import shlex
from importlib import metadata
from typing import Any

from bert_tf.errors import UserError


def optional(module: str, extra: str, purpose: str) -> Any:
    """A module that an extra of bert_tf brings.

    Args:
        module: its name.
        extra: the name of the extra.
        purpose: what the module is required for; it begins the sentence of the error.

    Raises:
        UserError: the module cannot be imported.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise UserError(
            f"{purpose} requires the extra {extra} ({error}); install it: {how_to_install(extra)}"
        ) from None


def how_to_install(extra: str) -> str:
    """The command that installs what an extra of bert_tf brings, wherever bert_tf is from.

    >>> how_to_install("hub")
    "pip install 'huggingface_hub<3,>=2.0'"
    """
    try:
        requirements = metadata.requires("bert_tf") or []
    except metadata.PackageNotFoundError:  # a checkout that was never installed
        return f"pip install -e '.[{extra}]' in its checkout"
    of_extra = re.compile(rf"""(\S+) *; *extra == ["']{extra}["']""")
    found = [match[1] for match in map(of_extra.fullmatch, requirements) if match]
    return f"pip install {shlex.join(found)}"
