"""How bert_tf imports the packages that it depends on: TensorFlow and Keras, and optional ones.

TensorFlow logs its CPU instructions, its missing GPU and its number formats on every start. Keras
chooses its backend once, when it is imported. Environment variables control both.
"""

import ctypes
import importlib
import os
import re
import shlex
import sys
from typing import Any

from bert_tf.errors import UserError

# With this variable set, oneDNN reorders the weights of a product for its kernels once and keeps
# that copy, whatever is assigned later (`AreWeightsFrozen` in TensorFlow's onednn_env_vars.cc).
FIXED_WEIGHTS = "TF_ONEDNN_ASSUME_FROZEN_WEIGHTS"
_M_ARENA_MAX = -8  # of glibc's malloc.h


def prepare_environment() -> None:
    """Quiets TensorFlow's start and keeps Keras on TensorFlow, whatever ~/.keras/keras.json says.
    Commands call it, not the library. Variables that the user has set keep their values.
    """
    # 3 hides logged errors, since TensorFlow logs one without a GPU. Other errors are also raised.
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    if not os.environ.get("KERAS_BACKEND"):
        os.environ["KERAS_BACKEND"] = "tensorflow"


def prepare_to_serve(fixed_weights: bool = True) -> None:
    """Sets how TensorFlow computes in a process that only serves; the user's own settings stay."""
    if "tensorflow" in sys.modules:
        return
    os.environ.setdefault(FIXED_WEIGHTS, str(int(fixed_weights)))
    # TensorFlow sets this only with AVX512-VNNI or AMX. It is as fast or faster elsewhere too.
    os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")
    # An export computes in two shards, each of which has half of the processors.
    half = max(1, (os.cpu_count() or 1) // 2)
    os.environ.setdefault("TF_NUM_INTEROP_THREADS", "2")
    os.environ.setdefault("TF_NUM_INTRAOP_THREADS", str(half))
    if sys.platform == "linux" and "MALLOC_ARENA_MAX" not in os.environ:
        # glibc has up to eight heaps for each processor, which do not share free memory.
        ctypes.CDLL(None).mallopt(_M_ARENA_MAX, half)


def check_backend() -> None:
    """Raises UserError if Keras runs on another backend, or would when it is imported."""
    backend = os.environ.get("KERAS_BACKEND") or "tensorflow"
    if keras := sys.modules.get("keras"):
        backend = keras.backend.backend()
    if backend != "tensorflow":
        raise UserError(
            f"bert_tf runs on TensorFlow, but Keras is set to {backend}; "
            "set KERAS_BACKEND=tensorflow before Python starts"
        )


def import_keras() -> None:
    """Imports Keras, on TensorFlow."""
    check_backend()
    try:
        import keras  # noqa: F401
    except ImportError as error:
        raise UserError(
            f"Keras cannot be imported ({error}); bert_tf runs on TensorFlow, so set "
            "KERAS_BACKEND=tensorflow before Python starts"
        ) from error
    check_backend()


def optional(module: str, extra: str, purpose: str) -> Any:
    """A module that an extra installs. If it is missing, a UserError begins with `purpose`."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise UserError(
            f"{purpose} requires the extra {extra} ({error}); install it: {how_to_install(extra)}"
        ) from None


def how_to_install(extra: str) -> str:
    """The command that installs the packages of an extra, wherever bert_tf was installed from."""
    from importlib import metadata

    try:
        requirements = metadata.requires("bert_tf") or []
    except metadata.PackageNotFoundError:  # a checkout that was never installed
        return f"pip install -e '.[{extra}]' in its checkout"
    of_extra = re.compile(rf"""(\S+) *; *extra == ["']{extra}["']""")
    found = [match[1] for match in map(of_extra.fullmatch, requirements) if match]
    return f"pip install {shlex.join(found)}"
