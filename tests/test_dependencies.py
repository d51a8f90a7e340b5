"""What a missing extra says, and how a process that answers is set up."""

import os
import shlex
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

from bert_tf.checkpoints import model_garden_classes
from bert_tf.data.tfds import tfds
from bert_tf.dependencies import how_to_install, optional
from bert_tf.errors import UserError
from bert_tf.report.plots import new_figure

ROOT = Path(__file__).parents[1]


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


_HEAPS = """
import ctypes, threading
from bert_tf.dependencies import prepare_to_serve
prepare_to_serve()
libc = ctypes.CDLL(None)
libc.fopen.restype = libc.malloc.restype = ctypes.c_void_p
start = threading.Barrier(8)
def take():
    start.wait()
    for _ in range(1000):
        libc.malloc(ctypes.c_size_t(5000))
threads = [threading.Thread(target=take) for _ in range(8)]
for each in threads:
    each.start()
for each in threads:
    each.join()
file = ctypes.c_void_p(libc.fopen(b"{path}", b"w"))
libc.malloc_info(0, file)
libc.fclose(file)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="glibc's malloc")
@pytest.mark.parametrize("given", [None, "5"])
def test_a_process_that_answers_has_few_heaps(tmp_path, given):
    script = _HEAPS.replace("{path}", str(tmp_path / "heaps.xml"))
    environment = {n: v for n, v in os.environ.items() if not n.startswith("MALLOC_")}
    if given:
        environment["MALLOC_ARENA_MAX"] = given
    subprocess.run([sys.executable, "-c", script], check=True, env=environment, cwd=ROOT)
    heaps = (tmp_path / "heaps.xml").read_text().count("<heap nr=")
    most = int(given) if given else max(1, (os.cpu_count() or 1) // 2)
    assert 1 <= heaps <= most
