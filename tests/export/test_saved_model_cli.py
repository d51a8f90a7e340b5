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


@pytest.mark.slow
def test_show_tells_every_signature(exported):
    """Without tensorflow-text: it reads the file only."""
    shown = subprocess.run(
        [
            *(sys.executable, "-m", "tensorflow.python.tools.saved_model_cli", "show"),
            *("--dir", exported("token_classification"), "--tag_set", "serve"),
        ],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    for name in ("serving_default", "words", "entities"):
        assert f'SignatureDef key: "{name}"' in shown


@pytest.mark.slow
def test_show_tells_names_shapes_and_types(exported):
    shown = command("show", "--dir", exported("multiple_choice"), "--all")
    signature = shown.partition("signature_def['serving_default']:")[2]
    for name, shape, dtype in (
        ("inputs['context']", "(-1)", "DT_STRING"),
        ("inputs['choices']", "(-1, -1)", "DT_STRING"),
        ("outputs['choice']", "(-1)", "DT_INT32"),
        ("outputs['probabilities']", "(-1, -1)", "DT_FLOAT"),
    ):
        told = signature.partition(name)[2].partition("name:")[0]
        assert f"dtype: {dtype}" in told and f"shape: {shape}" in told
    assert "Function Name: 'serve'" in shown
