"""The types of the public names: complete, and of use to a program that is checked with mypy."""

import inspect
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import bert_tf

ROOT = Path(__file__).parents[2]

RIGHT = """\
import bert_tf


def train(texts: list[str], labels: list[str]) -> bert_tf.TextClassifier:
    model = bert_tf.TextClassifier.from_checkpoint("checkpoint", max_length=64, dtype="float32")
    history = model.fit(texts, labels, epochs=3, learning_rate=3e-5, class_weight={"good": 2.0})
    print(history.history)
    print(model.evaluate(texts, labels)["accuracy"], model.predict(texts, batch_size=8))
    model.save("model.keras")
    model.export("saved_model", freeze=True, version=1)
    return model


def answer(path: str) -> None:
    try:
        print(bert_tf.load(path).predict(["what a lovely film"]))
    except bert_tf.UserError as error:
        print(error)


config = bert_tf.EncoderConfig.preset("bert-tiny-uncased", vocab_size=8000)
encoder: bert_tf.Encoder = bert_tf.Encoder(config, layout="padded")
pieces: int = bert_tf.Tokenizer("vocab.txt").vocab_size
"""


def functions() -> Iterator[tuple[str, Callable[..., object]]]:
    """The public functions and methods of the public names that bert_tf defines, by name."""
    for name in bert_tf.__all__:
        public = getattr(bert_tf, name)
        if not inspect.isclass(public):
            yield name, public
            continue
        ours = [each for each in public.__mro__ if each.__module__.startswith("bert_tf")]
        for cls in ours:
            for attribute, value in vars(cls).items():
                value = value.fget if isinstance(value, property) else value
                value = getattr(value, "__func__", value)
                is_public = not attribute.startswith("_") or attribute in ("__init__", "__call__")
                if is_public and inspect.isfunction(value):
                    yield f"{cls.__name__}.{attribute}", value


FUNCTIONS = dict(functions())


def check(folder: Path, program: str) -> tuple[int, str]:
    """The exit code and output of mypy for a program; errors in bert_tf itself are not shown."""
    (folder / "program.py").write_text(program, encoding="utf-8")
    options = ["--strict", "--follow-imports=silent", "--config-file=", "program.py"]
    done = subprocess.run(
        [sys.executable, "-m", "mypy", *options],
        cwd=folder,
        env=os.environ | {"MYPYPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize("name", FUNCTIONS)
def test_public_function_is_fully_annotated(name):
    signature = inspect.signature(FUNCTIONS[name])
    bare = [
        each.name
        for each in signature.parameters.values()
        if each.annotation is each.empty and each.name not in ("self", "cls")
    ]
    # A constructor returns nothing else than None.
    if signature.return_annotation is signature.empty and not name.endswith("__init__"):
        bare.append("return")
    assert not bare


@pytest.mark.slow
def test_a_users_program_is_checked(tmp_path):
    assert check(tmp_path, RIGHT) == (0, "Success: no issues found in 1 source file\n")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("right", "wrong", "error"),
    [
        ("epochs=3", 'epochs="three"', 'Argument "epochs" has incompatible type "str"'),
        ('layout="padded"', "layout=1", '"Encoder" has incompatible type "int"'),
    ],
)
def test_a_wrong_argument_is_found(tmp_path, right, wrong, error):
    assert right in RIGHT
    code, said = check(tmp_path, RIGHT.replace(right, wrong))
    assert code == 1
    assert error in said
    assert "Found 1 error in 1 file" in said
