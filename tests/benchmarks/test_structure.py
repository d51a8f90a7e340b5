"""The counts of the structure are those of the sources and of the classes themselves."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

import bert_tf
from benchmarks import structure

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def found():
    if not (ROOT / ".git").exists():
        pytest.skip("the files are those that git knows")
    return structure.counts(ROOT)


def test_lines_are_those_of_the_files_that_git_knows(found):
    listed = ["git", "-C", str(ROOT), "ls-files", "bert_tf/*.py", "export/*.py"]
    files = subprocess.run(listed, capture_output=True, text=True, check=True).stdout.split()
    assert found["lines of the library"] == sum(
        len((ROOT / each).read_text(encoding="utf-8").splitlines()) for each in files
    )


def test_lines_that_moved_to_the_experiments_are_not_called_saved(monkeypatch, tmp_path):
    repository, before = tmp_path / "now", tmp_path / "before"
    git = ["git", "-C", str(repository), "-c", "user.name=a", "-c", "user.email=a@b.c"]
    (repository / "bert_tf").mkdir(parents=True)
    for name in ("demo", "io"):
        (repository / "bert_tf" / f"{name}.py").write_text(f"{name} = 1\n" * 5)
    for command in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "before"]):
        subprocess.run([*git, *command], check=True)
    shutil.copytree(repository, before)
    (repository / "experiments").mkdir()
    subprocess.run([*git, "mv", "bert_tf/demo.py", "experiments/demo.py"], check=True)
    monkeypatch.setattr(structure, "ROOT", repository)
    assert structure._moved("HEAD", before) == 5


def test_classes_and_names_are_those_of_a_classifier(found):
    before = [c for c in bert_tf.TextClassifier.__mro__ if c.__module__.startswith("bert_tf")]
    names = ", ".join(each.__name__ for each in before)
    assert found["classes before keras.Model"] == f"{len(before)}: {names}"
    own = {name for each in before for name in vars(each) if not name.startswith("__")}
    assert found["names in their bodies"] == len(own)


def test_files_that_run_are_counted(found):
    assert 5 < found["files that run in predict"] < found["files that run in fit"] < 100
    assert found["circles of imports"] == "0"
    assert re.fullmatch(
        r"\d+( of [\d, ]+ files)?", found["circles of imports, with those for types"]
    )


def test_files_are_those_in_which_a_function_runs():
    folders = [str(ROOT / "benchmarks"), str(ROOT / "export")]
    found = structure.files_in(lambda: structure.circles({"a": set()}), folders)
    assert found == {structure.__file__}


def test_members_of_one_family_are_counted(found):
    fewest, most, median = re.findall(r"[\d.]+", found["of these, in one family"])
    assert 1 < int(fewest) <= float(median) <= int(most)


def test_circles_are_groups_that_reach_each_other():
    graph = {"a": {"b"}, "b": {"c"}, "c": {"a", "d"}, "d": {"e"}, "e": {"d"}, "f": {"a"}}
    assert sorted(map(sorted, structure.circles(graph))) == [["a", "b", "c"], ["d", "e"]]
    assert structure.circles({"a": {"b"}, "b": set()}) == []
