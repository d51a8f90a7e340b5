"""Every notebook runs from top to bottom, and what is shown in it came from such a run."""

import contextlib
import json
import os
import random
import re
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path

import keras
import pandas as pd
import pytest
from matplotlib import pyplot as plt

from bert_tf import TextEmbedder
from bert_tf.encoder.encoder import Encoder
from tests import tiny, tiny_questions, tiny_tags
from tests.docs.test_links import anchors
from tests.tasks import tiny_texts
from tests.tasks.tiny_texts import write_lines

ROOT = Path(__file__).resolve().parents[2]
TUTORIALS = ROOT / "docs" / "tutorials"
NOTEBOOKS = sorted(path.stem for path in TUTORIALS.glob("*.ipynb"))
# Where a notebook has its server; a test has its own elsewhere.
PORT = "8501"
CHECKPOINT = "sentence-transformers/all-MiniLM-L6-v2"
LINK = re.compile(r"\]\(([^):\s]+)\)")
# Progress bars, escape codes of a terminal, and what TensorFlow logs.
NOISE = re.compile(r"[\b\r\x1b]|INFO:|WARNING|^\d{4}-\d\d-\d\d ", re.MULTILINE)

pytestmark = pytest.mark.notebook

each_notebook = pytest.mark.parametrize("name", NOTEBOOKS)


def cells_of(name):
    return json.loads((TUTORIALS / f"{name}.ipynb").read_text(encoding="utf-8"))["cells"]


def sources(name, kind):
    return ["".join(cell["source"]) for cell in cells_of(name) if cell["cell_type"] == kind]


def outputs_of(name):
    code = [cell for cell in cells_of(name) if cell["cell_type"] == "code"]
    return [output for cell in code for output in cell["outputs"]]


@each_notebook
def test_it_was_run_from_top_to_bottom(name):
    code = [cell for cell in cells_of(name) if cell["cell_type"] == "code"]
    outputs = outputs_of(name)

    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1))
    assert "error" not in {output["output_type"] for output in outputs}
    pictures = sum("image/png" in output.get("data", {}) for output in outputs)
    assert pictures == "".join(sources(name, "code")).count("plt.show()")


@each_notebook
def test_it_is_small_and_names_no_place_on_a_machine(name):
    text = (TUTORIALS / f"{name}.ipynb").read_text(encoding="utf-8")
    assert len(text) < 200_000
    assert not re.search(r"(?<![\w.])/(?:home|root|tmp|work|usr|var)/", text)


@each_notebook
def test_its_outputs_hold_no_noise(name):
    for output in outputs_of(name):
        text = "".join(output.get("text", output.get("data", {}).get("text/plain", "")))
        assert not NOISE.search(text), text


@each_notebook
def test_its_links_lead_somewhere(name):
    links = [link for text in sources(name, "markdown") for link in LINK.findall(text)]
    assert links
    for link in links:
        path, _, heading = link.partition("#")
        assert (TUTORIALS / path).is_file(), link
        assert not heading or heading in anchors((TUTORIALS / path).read_text()), link


@each_notebook
def test_the_files_that_it_names_are_there(name):
    for text in sources(name, "markdown"):
        for file in re.findall(r"`((?:bert_tf|docs|experiments|serving)/[\w./]*)`", text):
            assert (ROOT / file).exists(), file


def test_the_index_has_every_notebook():
    index = (TUTORIALS / "index.md").read_text(encoding="utf-8")
    assert sorted(re.findall(r"\]\((\w+)\.ipynb\)", index)) == NOTEBOOKS


def write_checkpoint(folder):
    """Writes a stand-in for the published checkpoint, in the folder of its name."""
    keras.utils.set_random_seed(0)
    tokenizer = tiny.tokenizer()
    config = tiny.encoder_config(max_position_embeddings=384, initializer_range=0.02)
    embedder = TextEmbedder(Encoder(config), tokenizer, normalize=True)
    embedder.save_checkpoint(folder / CHECKPOINT, format="sentence_transformers")


def write_reviews(folder):
    for split, count in {"train": 40, "dev": 12}.items():
        # Long enough to be taken.
        start = "the cat and the dog sat on the mat"
        lines = (f"{start} {a}\t{int(is_good)}" for a, _, is_good in tiny_texts.pairs(count))
        write_lines(folder / "SST-2" / f"{split}.tsv", ["sentence\tlabel", *lines])


def write_questions(folder):
    tiny_questions.write_squad(folder / "dev-v1.1.json", tiny_questions.rows(70, 0))


def write_posts(folder):
    (folder / "wnut17").mkdir()
    tiny_tags.write_tagged(folder)
    for split, name in {"train": "wnut17train.conll", "dev": "emerging.dev.conll"}.items():
        (folder / f"{split}.conll").rename(folder / "wnut17" / name)


def write_endings(folder):
    source = random.Random(0)
    for split in ("train", "test"):
        endings = ("\t".join(tiny.sentence(source, 3) for _ in range(4)) for _ in range(16))
        lines = (f"o\tthe fish\t{each}\t{i % 4}" for i, each in enumerate(endings))
        write_lines(folder / "codah" / f"{split}.tsv", lines)


def write_scored(folder):
    for split, count in {"train": 40, "dev": 12}.items():
        pairs = tiny_texts.pairs(count)
        lines = (f"{a},{b},{i % 6}" for i, (a, b, _) in enumerate(pairs))
        write_lines(folder / "stsb" / f"stsb-en-{split}.csv", lines)


def write_emotions(folder):
    write_lines(folder / "emotions" / "labels.txt", ["anger", "fear", "joy"])
    source = random.Random(0)
    for split, count in {"train": 40, "dev": 24}.items():
        lines = (
            f"{tiny.sentence(source, 4)}\t{('0', '1', '2', '0,2')[i // 2 % 4]}\tid{i}"
            for i in range(count)
        )
        write_lines(folder / "emotions" / f"{split}.tsv", lines)


# Notebook -> what writes its data, and a file that it makes.
DATA = {
    "classify": (write_reviews, "models/reviews/1/saved_model.pb"),
    "ask": (write_questions, "models/questions/1/saved_model.pb"),
    "tag": (write_posts, "models/names/1/saved_model.pb"),
    "embed_and_search": (write_questions, "models/passages.npy"),
    "choose": (write_endings, "models/endings/1/saved_model.pb"),
    "score": (write_scored, "models/similarity/1/saved_model.pb"),
    "label": (write_emotions, "models/emotions/1/saved_model.pb"),
    "serve": (write_reviews, "models/reviews/2/saved_model.pb"),
    "phone": (write_reviews, "models/reviews_int8.tflite"),
}
FAST = ("embed_and_search",)


def no_network(*args, **kwargs):
    raise AssertionError(f"{args[0]} is looked for in the network")


def of_this_machine(request, urlopen=urllib.request.urlopen):
    """What `urlopen` returns for a server of this machine; other addresses are an error."""
    url = request if isinstance(request, str) else request.full_url
    return urlopen(request) if url.startswith("http://localhost:") else no_network(url)


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return str(listener.getsockname()[1])


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "name", [pytest.param(each, marks=() if each in FAST else pytest.mark.slow) for each in DATA]
)
def test_it_runs_as_written_on_small_data(name, tmp_path, monkeypatch):
    write_data, made = DATA[name]
    write_checkpoint(tmp_path)
    (tmp_path / "data").mkdir()
    write_data(tmp_path / "data")
    monkeypatch.setattr(urllib.request, "urlopen", of_this_machine)
    monkeypatch.setattr(urllib.request, "urlretrieve", no_network)
    monkeypatch.setattr(plt, "show", lambda: plt.close("all"))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    plt.switch_backend("Agg")

    names, port = {}, free_port()
    with contextlib.chdir(tmp_path), pd.option_context("display.max_colwidth", 50):
        for number, cell in enumerate(sources(name, "code"), start=1):
            exec(compile(cell.replace(PORT, port), f"{name}, cell {number}", "exec"), names)

    assert (tmp_path / made).is_file()


def test_every_notebook_is_run():
    assert sorted([*DATA, "pretrain"]) == NOTEBOOKS


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_pretraining_runs_as_written(tmp_path):
    """In a process of its own, with all of its data: they are the installed libraries' texts."""
    script = tmp_path / "cells.py"
    script.write_text("\n\n".join(sources("pretrain", "code")), encoding="utf-8")
    environment = {"MPLBACKEND": "Agg", "TMPDIR": str(tmp_path), "KERAS_HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, script],
        cwd=tmp_path,
        env=os.environ | environment | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )

    assert done.returncode == 0, done.stderr
    (accuracy,) = re.findall(r"^accuracy on 800 passages: ([\d.]+)%$", done.stdout, re.MULTILINE)
    # Of four libraries, each as frequent as the others.
    assert float(accuracy) > 50
    assert len(re.findall(r"^ +(?:keras|python|scipy|sklearn) +\d+%", done.stdout, re.M)) == 4
