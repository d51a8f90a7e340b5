"""Parts of reports: curves of training, pictures, and the machine that a result is from."""

import importlib
import warnings
from typing import Any


def report(*arguments: Any, **options: Any) -> None:
    """The former name of `bert_tf.programs.report.report`; it works until version 0.4."""
    warnings.warn(
        "bert_tf.report.report is now bert_tf.programs.report.report",
        DeprecationWarning,
        stacklevel=2,
    )
    importlib.import_module("bert_tf.programs.report").report(*arguments, **options)
