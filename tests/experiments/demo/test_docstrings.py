"""Harvesting reads source files, never runs them, and gives the same for the same files."""

import pytest

from bert_tf.errors import UserError
from bert_tf.experiments.demo import docstrings

MODULE = '''"""The bags of the post office."""
raise SystemExit("this file was run")


class Bag:
    """A bag for many letters."""

    if True:
        def close(self):
            """Close the bag for good."""

    async def open(self):
        """Open the bag with care."""

add_newdoc("post", "weigh", ("weigh", """Weigh the bag on the scales."""))
print("This is a string of the program.")
'''


@pytest.fixture
def library(tmp_path):
    """A folder with source files good and bad."""
    files = {
        "bags.py": MODULE,
        "again.py": '"""The bags of the post office."""\n"""No documentation string at all."""\n',
        "broken.py": '"""This file is not the Python of today."""\nprint "x"\n',
        "inner/vans.py": 'def f():\n    """The vans are red and old."""\n',
        "inner/test_vans.py": '"""The test of the vans is here."""\n',
        "inner/vans_test.py": '"""The test of the vans is there."""\n',
        "tests/data.py": '"""The data of the tests is here."""\n',
        "_vendor/other.py": '"""The work of another is here."""\n',
        "notes.txt": '"""The notes are no program at all."""\n',
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    (tmp_path / "latin.py").write_bytes('"""The café is not in UTF-8."""\n'.encode("latin-1"))
    (tmp_path / "nul.py").write_bytes(b'"""The file has a zero in it."""\0\n')
    (tmp_path / "declared.py").write_bytes(
        '# -*- coding: latin-1 -*-\n"""The café is in the other street."""\n'.encode("latin-1")
    )
    return tmp_path


def test_documentation_strings_are_read_in_order_and_without_running_the_file(library):
    found = list(docstrings.docstrings(library / "bags.py"))
    assert found == [
        "The bags of the post office.",
        "A bag for many letters.",
        "Close the bag for good.",
        "Open the bag with care.",
        "post",
        "weigh",
        "weigh",
        "Weigh the bag on the scales.",
    ]


@pytest.mark.parametrize("name", ["broken.py", "latin.py", "nul.py", "missing.py"])
def test_a_file_that_cannot_be_parsed_has_no_documentation_strings(library, name):
    assert list(docstrings.docstrings(library / name)) == []


def test_harvest_takes_each_text_once_and_leaves_out_tests_and_vendored_code(library):
    found = docstrings.harvest({"post": library})
    assert [(passage.module, passage.sentences) for passage in found] == [
        ("post/again.py", ("The bags of the post office.",)),
        ("post/bags.py", ("A bag for many letters.",)),
        ("post/bags.py", ("Close the bag for good.",)),
        ("post/bags.py", ("Open the bag with care.",)),
        ("post/bags.py", ("Weigh the bag on the scales.",)),
        ("post/declared.py", ("The café is in the other street.",)),
        ("post/inner/vans.py", ("The vans are red and old.",)),
    ]
    assert {passage.library for passage in found} == {"post"}


def test_harvest_tells_its_progress_file_by_file(library):
    told = []
    docstrings.harvest({"post": library}, on_progress=lambda *done: told.append(done))
    total = len(docstrings.source_files("post", library))
    assert told == [(number, total) for number in range(1, total + 1)]


def test_the_standard_library_is_read_without_what_a_distribution_puts_beside_it(tmp_path):
    for name in ("json.py", "sitecustomize.py"):
        (tmp_path / name).write_text("")
    assert docstrings.source_files("python", tmp_path) == [tmp_path / "json.py"]


def test_every_library_of_the_list_is_found_without_being_imported():
    folders = docstrings.installed_folders()
    assert tuple(folders) == docstrings.LIBRARIES
    assert (folders["numpy"] / "linalg" / "_linalg.py").is_file()


def test_a_library_that_is_not_installed_is_named_in_one_line(monkeypatch):
    monkeypatch.setattr(docstrings, "find_spec", lambda name: None)
    with pytest.raises(UserError, match=r"numpy is not installed; run: pip install") as raised:
        docstrings.harvest()
    assert "\n" not in str(raised.value)


def test_what_only_some_pythons_have_is_left_out(tmp_path):
    for name in ("core.py", "distutils/build.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    assert docstrings.source_files("numpy", tmp_path) == [tmp_path / "core.py"]
