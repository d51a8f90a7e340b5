"""The package: what its import brings and what it leaves, its public names, one backend."""

import os
import subprocess
import sys
from pathlib import Path

import keras
import pytest

import bert_tf
from bert_tf.dependencies import check_backend, prepare_environment
from tests import tiny

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


def test_an_import_brings_neither_tensorflow_nor_keras():
    done = run(
        "import sys, bert_tf; bert_tf.TaskFamily; print({'tensorflow', 'keras'} & set(sys.modules))"
    )

    assert (done.returncode, done.stdout) == (0, "set()\n"), done.stderr


@pytest.mark.end_to_end
def test_the_classes_bring_nothing_else_that_is_heavy_and_no_line_of_a_log():
    heavy = "tensorflow_text official tensorflow_datasets apache_beam seqeval safetensors"
    # XLA would log that it begins to compile, which it does of what is as wide.
    done = run(
        f"import sys, bert_tf; bert_tf.load; print(set({heavy.split()}) & set(sys.modules))\n"
        "import tensorflow as tf; from bert_tf.encoder import activations\n"
        "activations.by_name('gelu', training=True)(tf.ones([1, 256]))",
        TF_CPP_MIN_LOG_LEVEL="3",
    )

    assert (done.returncode, done.stdout) == (0, "set()\n"), done.stderr
    assert "XLA" not in done.stderr


@pytest.mark.slow
def test_keras_loads_a_compiled_model_once_a_class_is_imported(tmp_path):
    model = bert_tf.TextClassifier(bert_tf.Encoder(tiny.encoder_config(16)), None, range(2))
    model.compile(
        bert_tf.AdamW(bert_tf.WarmupLinearDecay(1e-3, total_steps=4, warmup_steps=1)),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    )
    model.save(tmp_path / "model.keras")
    for imports in (
        "import keras; from bert_tf import Tokenizer",
        "import bert_tf, keras; bert_tf.load",
    ):
        done = run(
            f"{imports}\n"
            f"model = keras.saving.load_model({str(tmp_path / 'model.keras')!r})\n"
            "print(type(model).__name__, type(model.optimizer).__name__)"
        )
        assert (done.returncode, done.stdout) == (0, "TextClassifier AdamW\n"), done.stderr


def test_a_process_that_answers_reads_no_configurations():
    done = run(
        "import sys, bert_tf.asking.embed, bert_tf.asking.predict; print('pydantic' in sys.modules)"
    )

    assert done.stdout == "False\n", done.stderr


def test_another_keras_backend_is_refused_when_a_class_is_used():
    done = run("from bert_tf import Encoder", KERAS_BACKEND="jax")

    assert done.returncode != 0
    assert done.stderr.splitlines()[-1] == (
        "bert_tf.errors.UserError: bert_tf runs on TensorFlow, but Keras is set to jax; "
        "set KERAS_BACKEND=tensorflow before Python starts"
    )


@pytest.mark.slow
def test_a_backend_in_the_file_of_keras_is_refused_too(tmp_path):
    (tmp_path / "keras.json").write_text('{"backend": "jax"}')
    done = run("from bert_tf import Encoder", KERAS_HOME=str(tmp_path), KERAS_BACKEND="")

    assert done.returncode != 0
    assert "KERAS_BACKEND=tensorflow" in done.stderr.splitlines()[-1]


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
