"""What is pushed opens from the files of one commit as the same model; nothing else is sent."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

import bert_tf
from bert_tf.cli.parser import main
from bert_tf.errors import UserError
from bert_tf.runs.publishing import push
from tests.fixtures.make_keras_files import ask
from tests.runs.writable_hub import serving
from tests.tasks.test_keras_files import close

pytest.importorskip("huggingface_hub", reason="requires the extra hub")

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "tests" / "fixtures" / "keras_files" / "1"
NAME, TARGET = "org/model", "hf://org/model"


@pytest.fixture
def hub(monkeypatch):
    """The Hub, for which this process is logged in."""
    from huggingface_hub import constants

    with serving() as hub:
        monkeypatch.setattr(constants, "ENDPOINT", hub.address)
        monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)
        monkeypatch.setenv("HF_TOKEN", "hf_mine")
        yield hub


def header(files):
    text = files["README.md"] if isinstance(files, dict) else files
    text = text.decode() if isinstance(text, bytes) else text
    return yaml.safe_load(text.split("---\n")[1])


def opened(files, folder):
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return bert_tf.load(folder)


@pytest.mark.end_to_end
@pytest.mark.parametrize(
    ("kind", "library", "pipeline", "large"),
    [
        ("classifier", "transformers", "text-classification", ()),
        ("embedder", "sentence-transformers", "sentence-similarity", (".safetensors",)),
        ("reranker", "sentence-transformers", "text-ranking", ()),
        ("follower", "transformers", None, ()),
    ],
)
def test_the_files_of_one_commit_are_the_same_model(hub, tmp_path, large, kind, library, pipeline):
    hub.large = large

    push(GOLDEN / f"{kind}.keras", TARGET, license="apache-2.0")

    ((name, branch, files),) = hub.commits
    assert (name, branch, hub.private) == (NAME, "main", {NAME: False})
    assert len(hub.stored) == len(large)
    golden = json.loads((GOLDEN / "answers.json").read_text())[kind]
    model = opened(files, tmp_path)
    assert type(model).__name__ == golden["class"]
    assert close(ask(model, golden["asked"]), golden["answers"])
    found = header(files)
    assert (found["library_name"], found.get("pipeline_tag")) == (library, pipeline)
    assert found["license"] == "apache-2.0" and "bert_tf" in found["tags"]


def test_a_run_is_pushed_with_its_metrics_and_without_paths(hub, finetuned, capsys):
    run, metrics = finetuned

    push(run, f"{TARGET}@v2", private=True, license="mit")

    ((_, branch, files),) = hub.commits
    assert branch == "v2" and hub.private == {NAME: True}
    (found,) = header(files)["model-index"]
    (result,) = found["results"]
    assert {m["type"]: m["value"] for m in result["metrics"]} == pytest.approx(metrics)
    assert header(files)["metrics"] == [*metrics]
    assert not any(str(run.parent).encode() in each for each in files.values())
    assert "warning" not in capsys.readouterr().err
    with pytest.raises(UserError, match="is a public repository already"):
        hub.private[NAME] = False
        push(run, TARGET, private=True)
    assert len(hub.commits) == 1


def test_a_dry_run_prints_files_and_card_and_sends_nothing(hub, capsys, monkeypatch):
    monkeypatch.delenv("HF_TOKEN")  # nobody needs to be logged in

    assert main(["push", str(GOLDEN / "classifier.keras"), TARGET, "--dry-run"]) == 0

    told = capsys.readouterr()
    assert "  model.safetensors\n" in told.out and "  README.md\n" in told.out
    assert header(told.out)["pipeline_tag"] == "text-classification"
    assert "the model card has no license; add one with --license" in told.err
    assert hub.asked == []


def test_what_the_card_of_a_checkpoint_says_is_kept(hub, tmp_path):
    classifier = bert_tf.load(GOLDEN / "classifier.keras")
    classifier.save_checkpoint(tmp_path / "checkpoint", "huggingface")
    card = tmp_path / "checkpoint" / "README.md"
    card.write_text("---\nlicense: cc-by-4.0\nlanguage: [de]\nbase_model: org/base\n---\n# Old\n")

    push(tmp_path / "checkpoint", TARGET)
    found = header(hub.commits[0][2])
    kept = {name: found[name] for name in ("license", "language", "base_model")}
    assert kept == {"license": "cc-by-4.0", "language": ["de"], "base_model": "org/base"}

    card.write_text("---\nlicense: [\n---\n")
    with pytest.raises(UserError, match="the model card .*README.md cannot be read"):
        push(tmp_path / "checkpoint", TARGET)


@pytest.mark.parametrize(
    ("refused", "told"),
    [
        ({"/api/repos/create": 401}, "does not accept the token; run hf auth login"),
        ({"/api/repos/create": 403}, "the token may not write to org/model"),
        ({"/preupload/": 403}, "the token may not write to org/model"),
        ({"/large/": 403}, "the token may not write to org/model"),
        ({"/commit/": 413}, "org/model cannot be pushed .*413.*; check the network, and run"),
    ],
)
def test_a_refusal_is_one_sentence_and_leaves_no_commit(hub, refused, told):
    hub.refused, hub.large = refused, (".safetensors",)
    with pytest.raises(UserError, match=told):
        push(GOLDEN / "classifier.keras", TARGET)
    assert hub.commits == []

    hub.refused = {}
    push(GOLDEN / "classifier.keras", TARGET)
    assert len(hub.commits) == 1


def test_a_namespace_of_others_is_refused(hub):
    with pytest.raises(UserError, match="the token may not write to others/model"):
        push(GOLDEN / "classifier.keras", "hf://others/model")


@pytest.mark.parametrize(
    ("target", "options", "told"),
    [
        ("org/model", {}, "org/model is not of the form hf://org/name"),
        ("hf://model", {}, "hf://model is not of the form"),
        ("hf://org/model/sub", {}, "is not of the form"),
        ("hf://org/a--b", {}, "org/a--b cannot be the name of a repository"),
        (f"{TARGET}@v1", {"revision": "v2"}, "with the branch of --revision v2"),
        (TARGET, {"license": "My License"}, "--license 'My License' is not a name"),
    ],
)
def test_a_wrong_name_is_refused_before_the_work(hub, target, options, told):
    with pytest.raises(UserError, match=told):
        push("missing", target, **options)
    assert hub.asked == []


def test_nobody_is_logged_in(hub, monkeypatch, tmp_path):
    from huggingface_hub import constants

    monkeypatch.delenv("HF_TOKEN")
    monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(tmp_path / "token"))
    with pytest.raises(UserError, match="nobody is logged in .* run hf auth login"):
        push(GOLDEN / "classifier.keras", TARGET)


def test_the_extra_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(UserError, match="bert-tf push requires the extra hub"):
        push(GOLDEN / "classifier.keras", TARGET)


@pytest.mark.end_to_end
def test_the_command_takes_address_and_token_from_the_environment():
    with serving() as hub:
        environment = {"HF_ENDPOINT": hub.address, "HF_TOKEN": "hf_mine", "PYTHONPATH": str(ROOT)}
        command = [
            sys.executable,
            "-m",
            "bert_tf",
            "push",
            str(GOLDEN / "classifier.keras"),
            TARGET,
        ]
        options = {"env": os.environ | environment, "capture_output": True, "text": True}
        done = subprocess.run([*command, "--license", "mit"], cwd=ROOT, **options)
        assert done.returncode == 0, done.stderr
        assert f"{hub.address}/{NAME}/commit/" in done.stderr and len(hub.commits) == 1
    done = subprocess.run(command, cwd=ROOT, **options)
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].startswith("bert-tf: error: org/model cannot be pushed (")
