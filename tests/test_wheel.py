"""The wheel: what is in it, and that it works where there is nothing of the checkout."""

import json
import os
import shutil
import subprocess
import sys
import tarfile
import venv
import zipfile
from email import message_from_bytes
from pathlib import Path

import pytest

import bert_tf
from tests import tiny

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("bert_tf", "export")
FOLDERS = (*PACKAGES, "benchmarks", "docs", "experiments", "serving", "tests")
FILES = ("LICENSE", "MANIFEST.in", "Makefile", "README.md", "mkdocs.yml", "pyproject.toml")
NAME = f"bert_tf-{bert_tf.__version__}"


def run(*command, cwd):
    """The standard output of a command that knows nothing of the folders of this process."""
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    done = subprocess.run(
        list(map(str, command)), cwd=cwd, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def files_of(folder, *names):
    return {
        path.relative_to(folder).as_posix()
        for name in names
        for path in (folder / name).rglob("*")
        if path.is_file()
    }


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """The checkout as it is committed, where nothing that was built before lies about."""
    folder = tmp_path_factory.mktemp("source")
    for name in FOLDERS:
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in (*FILES, "requirements.txt"):
        shutil.copy(ROOT / name, folder)
    return folder


@pytest.fixture(scope="module")
def distributions(source, tmp_path_factory):
    """The source distribution and the wheel made of it, as `python -m build` makes them."""
    out = tmp_path_factory.mktemp("dist")
    # Building leaves files beside the sources.
    copy = shutil.copytree(source, tmp_path_factory.mktemp("copy") / "source")
    script = "import sys; from setuptools import build_meta; build_meta.build_sdist(sys.argv[1])"
    run(sys.executable, "-c", script, out, cwd=copy)
    sources = out / f"{NAME}.tar.gz"
    options = ("--no-build-isolation", "--no-deps", "--no-index", "--wheel-dir", out)
    run(sys.executable, "-m", "pip", "wheel", sources, *options, cwd=out)
    return sources, out / f"{NAME}-py3-none-any.whl"


@pytest.fixture(scope="module")
def installed(distributions, tmp_path_factory):
    """The programs of an environment that has the wheel, and what it needs from this one."""
    environment = tmp_path_factory.mktemp("environment")
    venv.create(environment, symlinks=True)
    python = environment / "bin" / "python"
    pip = (sys.executable, "-m", "pip", "--python", python)
    run(*pip, "install", "--no-deps", "--no-index", distributions[1], cwd=environment)
    # Paths in such a file come last, and the files of this kind in them are not read: a checkout
    # that is installed here stays out.
    folder = Path(run(python, "-c", "import site; print(site.getsitepackages()[0])", cwd="/")[:-1])
    others = [path for path in sys.path if Path(path).name in ("site-packages", "dist-packages")]
    (folder / "others.pth").write_text("\n".join(others) + "\n")
    return python.parent


def test_the_source_distribution_is_the_whole_project(source, distributions):
    with tarfile.open(distributions[0]) as archive:
        found = {each.name.removeprefix(f"{NAME}/") for each in archive if each.isfile()}

    made = {"PKG-INFO", "setup.cfg"}
    made |= {each for each in found if each.startswith("bert_tf.egg-info/")}
    assert found - made == files_of(source, *FOLDERS) | {*FILES, "requirements.txt"}


def test_the_wheel_holds_both_packages_and_nothing_else(source, distributions):
    with zipfile.ZipFile(distributions[1]) as archive:
        found = set(archive.namelist())

    about = {"METADATA", "RECORD", "WHEEL", "entry_points.txt", "licenses/LICENSE", "top_level.txt"}
    packages = files_of(source, *PACKAGES)
    assert {"bert_tf/py.typed", "export/py.typed", "export/__main__.py"} <= packages
    assert found == packages | {f"{NAME}.dist-info/{each}" for each in about}


def test_the_wheel_requires_what_the_requirements_say(distributions):
    with zipfile.ZipFile(distributions[1]) as archive:
        told = message_from_bytes(archive.read(f"{NAME}.dist-info/METADATA"))

    lines = (ROOT / "requirements.txt").read_text().splitlines()
    required = told.get_all("Requires-Dist")
    assert [each for each in required if "extra ==" not in each] == [
        line for line in lines if not line.startswith("#")
    ]
    assert (told["Version"], told["Requires-Python"]) == (bert_tf.__version__, "<3.14,>=3.11")
    assert {"dev", "docs", "hub"} <= set(told.get_all("Provides-Extra"))


def test_the_installed_commands_start_outside_of_the_checkout(installed, tmp_path):
    script = "from importlib.util import find_spec; print(*(find_spec(n).origin for n in {}))"
    for place in run(installed / "python", "-c", script.format(PACKAGES), cwd=tmp_path).split():
        assert Path(place).is_relative_to(installed.parent)

    told = run(installed / "bert-tf", "--help", cwd=tmp_path)
    assert "bert-tf demo" in told
    told = run(installed / "python", "-m", "export", "--help", cwd=tmp_path)
    assert "bert-tf export runs/reviews" in told


@pytest.mark.slow
def test_an_installed_wheel_goes_the_whole_way(installed, tmp_path):
    tiny.write_labelled(tmp_path)
    tiny.write_pretraining(tmp_path)
    tiny.write_finetuning(tmp_path)
    command = (installed / "bert-tf", "--quiet")

    vocab = ("vocab", "--input", "corpus.txt", "--size", "60", "--out", "learned.txt")
    assert "pieces per word" in run(*command, *vocab, cwd=tmp_path)
    assert "##" in (tmp_path / "learned.txt").read_text()
    run(*command, "pretrain", "pretraining.yaml", "--out", "pretrained", cwd=tmp_path)
    more = ("--set", "init.checkpoint=pretrained")
    told = run(*command, "finetune", "finetuning.yaml", "--out", "run", *more, cwd=tmp_path)
    assert json.loads(told) == json.loads((tmp_path / "run" / "metrics.json").read_text())
    run(installed / "python", "-m", "export", "run", "--out", "model", cwd=tmp_path)
    told = run(*command, "predict", "model", "cat sat on the mat .", cwd=tmp_path)
    assert json.loads(told)["label"] in ("good", "bad")
    run(*command, "report", "run", "--out", "report.html", cwd=tmp_path)
    assert "<h1>" in (tmp_path / "report.html").read_text()
