"""TensorFlow and TensorFlow Text's operations without Keras, as docs/how_to/serving.md shows it.

TensorFlow, and the Python part of TensorFlow Text, import Keras where it is installed. A process
that only answers does not need it. `bert_tf.dependencies.prepare_to_serve` does the same for
`bert-tf predict`, but importing `bert_tf` in a program brings Keras.
"""

import importlib.util
import pathlib
import sys
from typing import Any

if "tensorflow" not in sys.modules and "keras" not in sys.modules:
    _modules: dict[str, Any] = sys.modules
    _modules["keras"] = None  # now its import fails
    import tensorflow as tf

    del _modules["keras"]
else:
    import tensorflow as tf

_PACKAGE = importlib.util.find_spec("tensorflow_text")
for _library in pathlib.Path(_PACKAGE.submodule_search_locations[0]).glob("python/ops/*.so"):
    tf.load_op_library(str(_library))
