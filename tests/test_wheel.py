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
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import bert_tf
from tests import tiny

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ("bert_tf", "export", "benchmarks", "docs", "experiments", "serving", "tests")
FOLDERS += (".ci", ".github")
FILES = ("LICENSE", "MANIFEST.in", "Makefile", "README.md", "pyproject.toml")
FILES += ("requirements.lock", "requirements.txt", "CHANGELOG.md", "CITATION.cff")
FILES += ("CODE_OF_CONDUCT.md", "CONTRIBUTING.md", "ROADMAP.md", "SECURITY.md")
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
    """The files below some folders, those behind links too, without what was measured there."""
    found = {
        Path(place, file).relative_to(folder).as_posix()
        for name in names
        for place, _, files in os.walk(folder / name, followlinks=True)
        for file in files
    }
    return {each for each in found if not each.startswith("bert_tf/experiments/results/")}


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """The checkout as it is committed, without anything that was built before."""
    folder = tmp_path_factory.mktemp("source")
    ignored = shutil.ignore_patterns("__pycache__")
    for name in FOLDERS:
        shutil.copytree(ROOT / name, folder / name, symlinks=True, ignore=ignored)
    for name in FILES:
        shutil.copy(ROOT / name, folder)
    return folder


@pytest.fixture(scope="module")
def distributions(source, tmp_path_factory):
    """The source distribution and the wheel made of it, as `python -m build` makes them."""
    out = tmp_path_factory.mktemp("dist")
    # Building leaves files beside the sources.
    copy = shutil.copytree(source, tmp_path_factory.mktemp("copy") / "source", symlinks=True)
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


@pytest.mark.end_to_end
def test_the_source_distribution_is_the_whole_project(source, distributions):
    with tarfile.open(distributions[0]) as archive:
        found = {each.name.removeprefix(f"{NAME}/") for each in archive if each.isfile()}

    made = {"PKG-INFO", "setup.cfg"}
    made |= {each for each in found if each.startswith("bert_tf.egg-info/")}
    assert found - made == files_of(source, *FOLDERS) | {*FILES}


@pytest.mark.end_to_end
def test_the_wheel_holds_one_package_and_nothing_else(source, distributions):
    with zipfile.ZipFile(distributions[1]) as archive:
        found = set(archive.namelist())

    about = {"METADATA", "RECORD", "WHEEL", "entry_points.txt", "licenses/LICENSE", "top_level.txt"}
    package = files_of(source, "bert_tf")
    assert {"bert_tf/py.typed", "bert_tf/export/__main__.py"} <= package
    assert found == package | {f"{NAME}.dist-info/{each}" for each in about}


def required(distributions):
    """What the wheel requires: extra, or "" -> its requirements."""
    with zipfile.ZipFile(distributions[1]) as archive:
        told = message_from_bytes(archive.read(f"{NAME}.dist-info/METADATA"))
    assert (told["Version"], told["Requires-Python"]) == (bert_tf.__version__, "<3.14,>=3.11")
    found = {name: [] for name in ("", *told.get_all("Provides-Extra"))}
    for line in told.get_all("Requires-Dist"):
        requirement, _, extra = line.partition("; extra == ")
        found[extra.strip("'\"")].append(Requirement(requirement))
    return found


def test_the_wheel_requires_ranges_that_the_reference_environment_is_in(distributions):
    pinned = {}
    for line in (ROOT / "requirements.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            pin = Requirement(line)
            pinned[canonicalize_name(pin.name)] = str(pin.specifier).removeprefix("==")
    card = {"tensorflow", "tensorflow-text", "tf-models-official", "keras", "pyyaml"}
    assert card <= pinned.keys()

    found, known = required(distributions), set()
    extras = "datasets dev gcs hub model-garden optuna report retrieval s3 serve tfds"
    for extra in ("", *extras.split()):
        for each in found[extra]:
            name = canonicalize_name(each.name)
            assert pinned[name] in each.specifier, name
            known.add(name)
    assert known == pinned.keys()
    core = {each.name for each in found[""]}
    assert not core & {"tf-models-official", "setuptools", "matplotlib", "pandas"}
    assert not any("==" in str(each.specifier) for each in found[""])


def test_the_lock_has_the_versions_of_the_reference_environment():
    lock = (ROOT / "requirements.lock").read_text().splitlines()
    for line in (ROOT / "requirements.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            pin = Requirement(line)
            assert f"{pin.name}{pin.specifier}" in lock


@pytest.mark.end_to_end
def test_the_installed_commands_start_outside_of_the_checkout(installed, tmp_path):
    script = "from importlib.util import find_spec; print(find_spec('{}'))"
    assert str(installed.parent) in run(
        installed / "python", "-c", script.format("bert_tf"), cwd=tmp_path
    )
    # The wheel installs no package `export`, which could hide another of that name.
    assert run(installed / "python", "-c", script.format("export"), cwd=tmp_path) == "None\n"

    told = run(installed / "bert-tf", "--help", cwd=tmp_path)
    assert "bert-tf demo" in told
    told = run(installed / "python", "-m", "bert_tf.export", "--help", cwd=tmp_path)
    assert "bert-tf export runs/reviews" in told
    for name in ("squad_ensemble", "trivia_qa", "glue_submission", "small", "small.corpus"):
        module = f"bert_tf.experiments.{name}"
        assert f"python -m {module} " in run(installed / "python", "-m", module, "-h", cwd=tmp_path)

    script = "from bert_tf.config.reading import load_config; print(load_config('glue/cola'))"
    told = run(installed / "python", "-c", script, cwd=tmp_path)
    assert "path='glue_data/CoLA'" in told and "learning_rate" in told


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
    run(*command, "export", "run", "--out", "model", cwd=tmp_path)
    told = run(*command, "predict", "model", "cat sat on the mat .", cwd=tmp_path)
    assert json.loads(told)["label"] in ("good", "bad")
    row = "a\t{}\t\tthe cat sat on the mat .\n"
    (tmp_path / "CoLA").mkdir()
    for split in ("train", "dev"):
        (tmp_path / "CoLA" / f"{split}.tsv").write_text((row.format(0) + row.format(1)) * 4)
    own = ("data.path=CoLA", "init.checkpoint=pretrained", "train.learning_rate=1e-3")
    few = ("train.max_length=16", "train.epochs=1", "train.batch_size=8")
    told = run(
        *command, "finetune", "glue/cola", "--out", "cola", "--set", *own, *few, cwd=tmp_path
    )
    assert "mcc" in json.loads(told)
    run(*command, "report", "run", "cola", "--out", "report.html", cwd=tmp_path)
    assert "GLUE: CoLA" in (tmp_path / "report.html").read_text()
