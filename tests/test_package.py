"""The package: what its import brings and what it leaves, its public names, one backend."""

import os
import subprocess
import sys
from pathlib import Path

import keras
import pytest

import bert_tf
from bert_tf.quiet import check_backend, prepare_environment
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


def test_an_import_brings_nothing_heavy_but_tensorflow_and_keras():
    heavy = "tensorflow_text official tensorflow_datasets apache_beam seqeval safetensors"
    done = run(f"import sys, bert_tf; print(set({heavy.split()}) & set(sys.modules))")

    assert (done.returncode, done.stdout) == (0, "set()\n"), done.stderr


@pytest.mark.slow
def test_another_program_may_have_our_names_among_its_arguments(tmp_path):
    (tmp_path / "app").mkdir()
    (tmp_path / "app" / "__init__.py").write_text("import bert_tf, bert_tf.export\n")
    main = "import bert_tf.export\nprint(bert_tf.export.__name__)\n"
    (tmp_path / "app" / "__main__.py").write_text(main)
    path = os.pathsep.join([str(tmp_path), str(ROOT)])
    done = subprocess.run(
        [sys.executable, "-m", "app", "export", "bert_tf.yaml"],
        env=os.environ | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (done.returncode, done.stdout) == (0, "bert_tf.export\n"), done.stderr


@pytest.mark.slow
def test_keras_loads_a_compiled_model_in_a_process_that_has_only_imported_bert_tf(tmp_path):
    model = bert_tf.TextClassifier(bert_tf.Encoder(tiny.encoder_config(16)), None, range(2))
    model.compile(
        bert_tf.AdamW(bert_tf.WarmupLinearDecay(1e-3, total_steps=4, warmup_steps=1)),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    )
    model.save(tmp_path / "model.keras")
    for imports in ("import bert_tf, keras", "import keras, bert_tf"):
        done = run(
            f"{imports}\n"
            f"model = keras.saving.load_model({str(tmp_path / 'model.keras')!r})\n"
            "print(type(model).__name__, type(model.optimizer).__name__)"
        )
        assert (done.returncode, done.stdout) == (0, "TextClassifier AdamW\n"), done.stderr


@pytest.mark.slow
def test_a_command_starts_without_tensorflow_but_a_program_of_others_with_it(tmp_path):
    (tmp_path / "ours").mkdir()
    (tmp_path / "ours" / "__init__.py").write_text("import bert_tf, bert_tf.export, sys")
    (tmp_path / "ours" / "train.py").write_text(
        "import sys, bert_tf.export; print('keras' in sys.modules, bert_tf.export.__name__)"
    )
    command = [sys.executable, "-m", "ours.train"]
    path = os.pathsep.join([str(tmp_path), str(ROOT)])
    environment = os.environ | {"PYTHONPATH": path}
    assert subprocess.check_output(command, env=environment, text=True) == "True bert_tf.export\n"
    script = "import sys; sys.argv = ['bert-tf']; import bert_tf; print('keras' in sys.modules)"
    assert run(script).stdout == "False\n"


def test_another_keras_backend_is_refused_at_the_import():
    done = run("import bert_tf", KERAS_BACKEND="jax")

    assert done.returncode != 0
    assert done.stderr.splitlines()[-1] == (
        "bert_tf.errors.UserError: bert_tf runs on TensorFlow, but Keras is set to jax; "
        "set KERAS_BACKEND=tensorflow before Python starts"
    )


@pytest.mark.slow
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
