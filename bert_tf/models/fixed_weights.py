"""A setting of TensorFlow's that makes serving faster, and training wrong without a word."""

import os

from bert_tf.errors import UserError

# With it, oneDNN orders the weights of a product for its kernels once and keeps them so: see
# `AreWeightsFrozen` in TensorFlow's core/util/onednn_env_vars.cc and what is_weight_const_ does in
# core/kernels/mkl/mkl_matmul_op_fused.cc. Whatever is assigned to them later is not looked at.
VARIABLE = "TF_ONEDNN_ASSUME_FROZEN_WEIGHTS"


def check_weights_may_change() -> None:
    """Raises UserError where TensorFlow was told that no weight ever changes."""
    if os.environ.get(VARIABLE, "").lower() in ("1", "true"):
        raise UserError(
            f"{VARIABLE} is set, which is for processes that only serve: training would go on "
            "with the weights of its first step; start it without"
        )
