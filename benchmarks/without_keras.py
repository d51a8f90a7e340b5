"""Imports TensorFlow as an environment without Keras does.

A process that only answers does not need Keras, which TensorFlow imports wherever it is installed.
`bert-tf predict` does the same.
"""

import sys
from typing import Any

if "tensorflow" not in sys.modules and "keras" not in sys.modules:
    _modules: dict[str, Any] = sys.modules
    _modules["keras"] = None  # now its import fails
    try:
        import tensorflow  # noqa: F401
    finally:
        del _modules["keras"]
