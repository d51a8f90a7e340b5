"""Models by their names on the Hugging Face Hub, through huggingface_hub and a real HTTP server."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import bert_tf
from tests.checkpoints import hub_server

pytest.importorskip("huggingface_hub")

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "tests" / "fixtures" / "huggingface_answers" / "classification"

# Loads each model by its name, and prints its labels and a sum of weights, or a UserError.
SCRIPT = """
import json, sys
import bert_tf
for line in sys.stdin:
    try:
        model = bert_tf.load(line.strip())
        answer = [*model.labels, float(model.weights[0].numpy().sum())]
    except bert_tf.UserError as error:
        answer = f"UserError: {error}"
    print(json.dumps(answer), flush=True)
"""


def load(process, *names):
    """What a process prints of each name."""
    found = {}
    for name in names:
        process.stdin.write(f"{name}\n")
        process.stdin.flush()
        found[name] = json.loads(process.stdout.readline())
    return found


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    """What is printed of names while there is a Hub, and afterwards without a network."""
    cache = tmp_path_factory.mktemp("hub")
    (cache / "org").mkdir()
    (cache / "org" / "local").symlink_to(FOLDER)
    repositories = {name: FOLDER for name in ("org/good", "org/broken", "org/local", "short")}
    with hub_server.serving(repositories, broken=("org/broken",)) as endpoint:
        settings = {"HF_ENDPOINT": endpoint, "HF_HOME": str(cache), "HF_HUB_DISABLE_XET": "1"}
        settings |= {"HF_HUB_DOWNLOAD_TIMEOUT": "2", "PYTHONPATH": str(ROOT)}
        # huggingface_hub reads its settings at its import, so that this takes a new process.
        process = subprocess.Popen(
            [sys.executable, "-c", SCRIPT],
            cwd=cache,
            env=os.environ | settings,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        names = ("org/good", "hf://org/good", "short", "org/local", "org/missing", "org/broken")
        online = load(process, *names)
    offline = load(process, "org/good", "org/never")
    process.communicate()
    return online, offline


def test_a_name_loads_the_model(answers):
    online, _ = answers
    assert online["org/good"] == online["hf://org/good"] == online["short"]
    assert sorted(online["org/good"][:-1]) == ["bad", "good", "neither"]


def test_a_path_that_exists_wins(answers):
    online, _ = answers
    assert online["org/local"] == online["org/good"]


def test_without_a_network_the_cache_answers(answers):
    online, offline = answers
    assert offline["org/good"] == online["org/good"]


def test_a_name_that_does_not_exist_names_both_readings(answers):
    online, _ = answers
    assert online["org/missing"] == (
        "UserError: there is no file or folder org/missing, and org/missing is not on the Hugging "
        "Face Hub; check its spelling"
    )


def test_without_a_network_and_a_cache_names_both_readings(answers):
    _, offline = answers
    assert offline["org/never"] == (
        "UserError: there is no file or folder org/never, and org/never is not in the cache, and "
        "the Hugging Face Hub cannot be reached; connect to the network once, or give a folder"
    )


def test_a_broken_download_is_one_sentence(answers):
    online, _ = answers
    assert online["org/broken"].startswith(
        "UserError: there is no file or folder org/broken, and org/broken cannot be downloaded ("
    )
    assert online["org/broken"].endswith("; try again later")


def test_huggingface_hub_that_is_missing_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(bert_tf.UserError, match="requires the extra hub .*install it: pip install"):
        bert_tf.load("org/name")
