"""How many threads TensorFlow has in a contestant."""

from collections.abc import Mapping
from typing import Any

import tensorflow as tf


def set_threads(settings: Mapping[str, Any]) -> None:
    """Sets TensorFlow's `intra_op` and `inter_op` threads of a contestant's settings."""
    tf.config.threading.set_intra_op_parallelism_threads(settings["intra_op"])
    tf.config.threading.set_inter_op_parallelism_threads(settings["inter_op"])
