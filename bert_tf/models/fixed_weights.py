"""A setting of TensorFlow's that makes serving faster, and training wrong without a word."""

import os

from bert_tf.dependencies import FIXED_WEIGHTS
from bert_tf.errors import UserError


def check_weights_may_change() -> None:
    """Raises UserError if TensorFlow is set up for weights that never change."""
    if os.environ.get(FIXED_WEIGHTS, "").lower() in ("1", "true"):
        raise UserError(
            f"{FIXED_WEIGHTS} is set, which is only for serving: training would keep using the "
            "weights of its first step; unset it and start again"
        )
