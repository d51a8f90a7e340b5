"""The package: cheap to import, its public names there when they are asked for, one backend."""

import os
import subprocess
import sys
from pathlib import Path

import keras
import pytest

import bert_tf
from bert_tf.quiet import check_backend, prepare_environment

ROOT = Path(__file__).resolve().parents[1]


def run(script, **environment):
    return subprocess.run(
        [sys.executable, "-c", script],
        cwd=ROOT,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=120,
    )


@pytest.mark.parametrize("name", bert_tf.__all__)
def test_every_public_name_is_there(name):
    assert getattr(bert_tf, name).__name__ == name
    assert name in dir(bert_tf)


def test_another_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'bert_tf' has no attribute 'Bert'"):
        _ = bert_tf.Bert


def test_an_import_alone_does_not_load_tensorflow():
    done = run("import sys, bert_tf; assert not {'tensorflow', 'keras'} & set(sys.modules)")

    assert done.returncode == 0, done.stderr


def test_another_keras_backend_is_refused_at_the_import():
    done = run("import bert_tf", KERAS_BACKEND="jax")

    assert done.returncode != 0
    assert done.stderr.splitlines()[-1] == (
        "bert_tf.errors.UserError: bert_tf runs on TensorFlow, but Keras is set to jax; "
        "set KERAS_BACKEND=tensorflow before Python starts"
    )


def test_tensorflow_starts_without_a_word_and_below_keras_whatever_its_own_file_says(tmp_path):
    (tmp_path / "keras.json").write_text('{"backend": "jax"}')
    script = (
        "import os\n"
        "os.environ.pop('TF_CPP_MIN_LOG_LEVEL', None)\n"
        "import bert_tf, tensorflow as tf, tensorflow_text, keras\n"
        "tf.constant(1) + 1\n"
        "print(keras.backend.backend())\n"
    )
    done = run(script, KERAS_HOME=str(tmp_path), KERAS_BACKEND="")

    assert (done.returncode, done.stdout, done.stderr) == (0, "tensorflow\n", "")


def test_a_keras_that_is_already_loaded_counts_whatever_the_environment_says(monkeypatch):
    monkeypatch.setattr(keras.backend, "backend", lambda: "torch")
    monkeypatch.setenv("KERAS_BACKEND", "tensorflow")

    with pytest.raises(bert_tf.UserError, match="Keras is set to torch"):
        check_backend()


def test_what_the_user_has_set_in_the_environment_stays(monkeypatch):
    monkeypatch.setenv("TF_CPP_MIN_LOG_LEVEL", "0")
    monkeypatch.setenv("KERAS_BACKEND", "jax")

    prepare_environment()

    assert os.environ["TF_CPP_MIN_LOG_LEVEL"] == "0"
    assert os.environ["KERAS_BACKEND"] == "jax"
