"""Exports answer a C program as they answer Python: TensorFlow's C library is all they need."""

import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_text

from tests.export.requests import TEXTS

SOURCE = Path(__file__).with_name("serve.c")
OPS = Path(tensorflow_text.__file__).parent / "python" / "ops"
# An argument of a program cannot hold a NUL.
GIVEN = [text.replace("\0", "") for text in TEXTS]


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler (cc or gcc) on this machine")
    out = tmp_path_factory.mktemp("c") / "serve"
    library = Path(tf.sysconfig.get_lib())
    libraries = [library / "libtensorflow_cc.so.2", library / "libtensorflow_framework.so.2"]
    includes = ["-I", tf.sysconfig.get_include(), f"-Wl,-rpath,{library}"]
    warnings = ["-std=c11", "-D_GNU_SOURCE", "-Wall", "-Werror"]
    # This linker takes a quarter of the time to link TensorFlow.
    linker = ["-fuse-ld=gold"] if shutil.which("ld.gold") else []
    options = [*warnings, *linker, SOURCE, *includes, *libraries]
    subprocess.run([compiler, *options, "-o", out], check=True)
    return out


def ask(program, folder, signature, inputs):
    """What the program prints, as name -> (shape, values as texts)."""
    given = [f"{name}={text}" for name, texts in inputs.items() for text in texts]
    # The library of regular expressions is for words.
    libraries = sorted([*OPS.glob("_*wordpiece_tokenizer.so"), OPS / "_regex_split_ops.so"])
    done = subprocess.run(
        [program, folder, signature, *libraries, "--", *given],
        capture_output=True,
        env={"PATH": "", "TF_CPP_MIN_LOG_LEVEL": "3"},
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    rows = [line.split("\t") for line in done.stdout.decode("ascii").splitlines()]
    return {name: (tuple(map(int, shape.split("x"))), values) for name, shape, *values in rows}


def compare(said, answers):
    assert said.keys() == answers.keys()
    for name, value in answers.items():
        shape, values = said[name]
        assert shape == tuple(value.shape)
        if value.dtype == tf.string:
            found = [each.encode().decode("unicode_escape").encode("latin-1") for each in values]
            assert found == value.numpy().ravel().tolist()
        else:
            np.testing.assert_allclose(np.array(values, float), value.numpy().ravel(), atol=1e-5)


@pytest.mark.end_to_end
@pytest.mark.parametrize(
    ("family", "settings", "signature"),
    [
        ("nsp", {}, "serving_default"),
        pytest.param(
            *("mlm", {"freeze": True, "precision": "bfloat16"}, "serving_default"),
            marks=[pytest.mark.slow, pytest.mark.bfloat16],
        ),
        pytest.param("question_answering", {}, "serving_default", marks=pytest.mark.slow),
        pytest.param("token_classification", {"freeze": True}, "entities", marks=pytest.mark.slow),
        pytest.param("classification", {"freeze": True}, "serving_default", marks=pytest.mark.slow),
        pytest.param("embedding", {}, "serving_default", marks=pytest.mark.slow),
    ],
)
def test_a_c_program_gets_the_same_answers(program, exported, loaded, family, settings, signature):
    answer = loaded(family, **settings).signatures[signature]
    inputs = {name: GIVEN for name in answer.structured_input_signature[1]}
    said = ask(program, exported(family, **settings), signature, inputs)
    compare(said, answer(**{name: tf.constant(texts) for name, texts in inputs.items()}))


def test_a_wrong_name_is_told(program, exported):
    done = subprocess.run(
        [program, exported("nsp"), "other", "--"],
        capture_output=True,
        text=True,
        env=os.environ | {"TF_CPP_MIN_LOG_LEVEL": "3"},
        check=False,
    )
    assert done.returncode == 1
    assert "serve:" in done.stderr.splitlines()[-1]
