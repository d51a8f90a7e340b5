"""Models by their names on the Hugging Face Hub, through huggingface_hub and a real HTTP server."""

import sys
from pathlib import Path

import pytest

import bert_tf
from tests.checkpoints import hub_server

constants = pytest.importorskip("huggingface_hub.constants")

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "tests" / "fixtures" / "huggingface_answers" / "classification"


def load(*names):
    """For each name the labels of the model and a sum of weights, or a UserError."""
    found = {}
    for name in names:
        try:
            model = bert_tf.load(name)
            found[name] = [*model.labels, float(model.weights[0].numpy().sum())]
        except bert_tf.UserError as error:
            found[name] = f"UserError: {error}"
    return found


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    """What is answered to names while there is a Hub, and afterwards without a network."""
    cache = tmp_path_factory.mktemp("hub")
    (cache / "org").mkdir()
    (cache / "org" / "local").symlink_to(FOLDER)
    repositories = {name: FOLDER for name in ("org/good", "org/broken", "org/local", "short")}
    with pytest.MonkeyPatch.context() as patch:
        with hub_server.serving(repositories, broken=("org/broken",)) as endpoint:
            # What huggingface_hub reads from the environment at its import.
            patch.setattr(constants, "ENDPOINT", endpoint)
            template = f"{endpoint}/{{repo_id}}/resolve/{{revision}}/{{filename}}"
            patch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
            patch.setattr(constants, "HF_HUB_CACHE", str(cache))
            patch.setattr(constants, "HF_HUB_DISABLE_XET", True)
            patch.setattr(constants, "HF_HUB_DOWNLOAD_TIMEOUT", 2)
            patch.chdir(cache)
            names = ("org/good", "hf://org/good", "short", "org/local", "org/missing", "org/broken")
            online = load(*names)
        return online, load("org/good", "org/never")


@pytest.mark.end_to_end
def test_a_name_loads_the_model(answers):
    online, _ = answers
    assert online["org/good"] == online["hf://org/good"] == online["short"]
    assert sorted(online["org/good"][:-1]) == ["bad", "good", "neither"]


@pytest.mark.end_to_end
def test_a_path_that_exists_wins(answers):
    online, _ = answers
    assert online["org/local"] == online["org/good"]


@pytest.mark.end_to_end
def test_without_a_network_the_cache_answers(answers):
    online, offline = answers
    assert offline["org/good"] == online["org/good"]


@pytest.mark.end_to_end
def test_a_name_that_does_not_exist_names_both_readings(answers):
    online, _ = answers
    assert online["org/missing"] == (
        "UserError: there is no file or folder org/missing, and org/missing is not on the Hugging "
        "Face Hub; check its spelling"
    )


@pytest.mark.end_to_end
def test_without_a_network_and_a_cache_names_both_readings(answers):
    _, offline = answers
    assert offline["org/never"] == (
        "UserError: there is no file or folder org/never, and org/never is not in the cache, and "
        "the Hugging Face Hub cannot be reached; connect to the network once, or give a folder"
    )


@pytest.mark.end_to_end
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
