"""TensorFlow's own command line shows exports and runs them."""

import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf

from tests.export.requests import assert_same

# The command line as it is; `run` needs the ops of tensorflow-text.
_RUN = """
import sys
import tensorflow_text
from tensorflow.python.tools.saved_model_cli import main
main()
"""
# A request of two rows for each family.
REQUESTS = {
    "classification": {"text": ["the cat sat", ""]},
    "pair": {"text_a": ["the cat sat", ""], "text_b": ["it ran", "a dog"]},
    "regression": {"text": ["the cat sat", "a dog"]},
    "multiple_choice": {"context": ["the cat", "a dog"], "choices": [["sat", "ran"], ["sat", ""]]},
    "reranking": {"query": ["the cat", "a dog"], "passages": [["sat", "ran"], ["sat", ""]]},
    "zero_shot": {"text": ["the cat", "a dog"], "candidates": [["sat", "ran"], ["sat", ""]]},
    "question_answering": {"question": ["cat", ""], "context": ["the cat sat on a mat", "a dog"]},
    "token_classification": {"text": ["the cat sat", ""]},
    "mlm": {"text": ["the [MASK] sat", "a dog"]},
    "nsp": {"text_a": ["the cat sat", ""], "text_b": ["it ran", "a dog"]},
    "embedding": {"text": ["the cat sat", ""]},
}


def command(*arguments: object) -> str:
    """What the command line prints."""
    done = subprocess.run(
        [sys.executable, "-c", _RUN, *map(str, arguments)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("family", REQUESTS)
def test_run_gives_the_answers_of_the_signature(exported, loaded, tmp_path, family):
    request = REQUESTS[family]
    texts = ";".join(f"{name}={values!r}" for name, values in request.items())
    command(
        *("run", "--dir", exported(family), "--tag_set", "serve"),
        *("--signature_def", "serving_default", "--input_exprs", texts, "--outdir", tmp_path),
    )
    answer = loaded(family).signatures["serving_default"]
    expected = answer(**{name: tf.constant(values) for name, values in request.items()})
    found = {file.stem: np.load(file, allow_pickle=True) for file in tmp_path.glob("*.npy")}
    assert_same(found, {name: value.numpy() for name, value in expected.items()}, 1e-5)
