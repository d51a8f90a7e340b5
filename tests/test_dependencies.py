"""What a missing extra says: one sentence with the command that installs it."""

import shlex
import sys
from importlib import metadata

import pytest

from bert_tf.checkpoints import model_garden_classes
from bert_tf.data.tfds import tfds
from bert_tf.dependencies import how_to_install, optional
from bert_tf.errors import UserError
from bert_tf.report.plots import new_figure


def test_a_module_that_is_there_is_imported():
    assert optional("json", "hub", "this") is sys.modules["json"]


@pytest.mark.parametrize(
    ("module", "extra", "use"),
    [
        ("matplotlib", "report", new_figure),
        ("tensorflow_datasets", "tfds", tfds),
        ("official", "model-garden", model_garden_classes.require),
    ],
)
def test_a_module_that_is_missing_is_named_with_its_extra(monkeypatch, module, extra, use):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(UserError) as error:
        use()
    (line,) = str(error.value).splitlines()
    assert f" requires the extra {extra} (" in line
    assert line.endswith(f"; install it: {how_to_install(extra)}")


@pytest.mark.parametrize("extra", sorted(metadata.metadata("bert_tf").get_all("Provides-Extra")))
def test_a_shell_takes_the_command_as_it_stands(extra):
    command = how_to_install(extra)
    words = shlex.split(command)
    assert words[:2] == ["pip", "install"] and len(words) > 2
    assert all(each[0].isalnum() for each in words[2:])
    assert command == f"pip install {shlex.join(words[2:])}"
