"""Tests mirror the packages."""

import bert_tf  # noqa: F401 - TensorFlow then starts faster
