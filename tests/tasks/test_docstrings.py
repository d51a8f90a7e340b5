"""The examples in the docstrings of bert_tf/tasks are right; see tests/docs/test_docstrings.py."""

import pytest

from tests import doctests


@pytest.mark.parametrize("path", doctests.with_examples(True), ids=doctests.module_name)
def test_examples_are_right(path, tmp_path):
    doctests.check(path, tmp_path)
