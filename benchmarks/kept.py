"""Results that are kept in files say what they were measured with, so that no two are mixed."""

import os
from collections.abc import Mapping
from typing import Any

from bert_tf.errors import UserError


def check(
    path: str | os.PathLike, measured_with: Mapping[str, Any], asked: Mapping[str, Any]
) -> None:
    """Refuses a kept result that was measured with other settings.

    Args:
        path: where the result is kept.
        measured_with: its settings, of JSON's types.
        asked: the settings of this call.

    Raises:
        UserError: they differ.
    """
    differences = [
        f"{name} {measured_with.get(name)}, not {asked.get(name)}"
        for name in sorted(measured_with.keys() | asked.keys())
        if measured_with.get(name) != asked.get(name)
    ]
    if differences:
        raise UserError(f"{path} has {'; '.join(differences)}; remove it or choose another --out")
