"""TensorFlow and Keras start faster, and what is delayed for that works as ever."""

import gc
import importlib
import sys
import threading
from pathlib import Path
from types import ModuleType

import pytest

from bert_tf import starting
from tests.test_package import run

SLOW = """
import time
time.sleep(0.05)
executions.append(__name__)
value = 7
"""


@pytest.fixture
def executions():
    return []


@pytest.fixture
def package(tmp_path, monkeypatch, executions):
    """A package whose import is delayed, with one submodule."""
    name = "delayed_package"
    (tmp_path / name).mkdir()
    head = "from tests.test_starting import seen\nexecutions = seen\n"
    (tmp_path / name / "__init__.py").write_text(head + SLOW)
    (tmp_path / name / "inner.py").write_text(f"import {name}\nvalue = {name}.value + 1\n")
    monkeypatch.setattr("tests.test_starting.seen", executions, raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(starting._DELAYED, name, "this test")
    monkeypatch.setattr(starting, "_is_starting", lambda _: True)
    monkeypatch.setattr(sys, "meta_path", [starting._Finder(), *sys.meta_path])
    yield name
    for each in [each for each in sys.modules if each.partition(".")[0] == name]:
        del sys.modules[each]


def test_it_is_executed_when_an_attribute_is_read(package, executions):
    module = importlib.import_module(package)
    assert not hasattr(module, "__warningregistry__") and Path(module.__file__).is_file()
    assert executions == []
    assert module.value == 7 and executions == [package]
    assert type(module) is ModuleType and module.__spec__.loader is module.__loader__
    assert module.value == 7 and executions == [package]
    with pytest.raises(AttributeError, match="no attribute 'other'"):
        _ = module.other


def test_it_is_executed_before_a_module_inside_it(package, executions):
    importlib.import_module(package)
    inner = importlib.import_module(f"{package}.inner")
    assert inner.value == 8 and executions == [package]


def test_several_threads_execute_it_once(package, executions):
    module = importlib.import_module(package)
    found = []
    threads = [threading.Thread(target=lambda: found.append(module.value)) for _ in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert found == [7] * 8 and executions == [package]


def test_an_error_in_it_is_that_of_its_import(package):
    module = importlib.import_module(package)
    Path(module.__file__).write_text("import a_package_that_is_not_there")
    importlib.invalidate_caches()
    for _ in range(2):
        with pytest.raises(ModuleNotFoundError, match="a_package_that_is_not_there"):
            _ = module.value


def test_what_a_program_has_frozen_remains_frozen():
    gc.freeze()
    frozen = gc.get_freeze_count()
    with starting.not_collecting():
        assert not gc.isenabled()
    # A frozen object may still end when nothing refers to it, so the number may fall a little.
    assert gc.isenabled() and gc.get_freeze_count() > 0.9 * frozen > 0


@pytest.mark.end_to_end
def test_keras_has_all_its_names_and_brings_no_scikit_learn():
    pytest.importorskip("sklearn")
    done = run(
        "import bert_tf, gc, sys, tensorflow as tf\n"
        "print('sklearn' in sys.modules, gc.isenabled())\n"
        "import keras\n"
        "print(keras.wrappers.SKLearnClassifier is tf.keras.wrappers.SKLearnClassifier)\n"
        "from sklearn.base import ClassifierMixin\n"
        "print(issubclass(keras.wrappers.SKLearnClassifier, ClassifierMixin))",
        TF_CPP_MIN_LOG_LEVEL="3",
    )
    assert done.stdout.split() == ["False", "True", "True", "True"], done.stderr
