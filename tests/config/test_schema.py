"""The JSON Schema of configurations accepts what a run accepts, and describes every key."""

import json
from pathlib import Path
from typing import Literal

import jsonschema
import pytest

import bert_tf
from bert_tf.cli.parser import main
from bert_tf.config import yaml_files
from bert_tf.config.data import FinetuningData
from bert_tf.config.run import FinetuningRun
from bert_tf.config.schema import schema
from bert_tf.config.section import Count
from bert_tf.tasks import registry

ROOT = Path(__file__).parents[2]
EXPERIMENTS = sorted((ROOT / "experiments").rglob("*.yaml"))
FILE = """\
task: classification
data: {path: reviews, format: tsv}
init:
train: {epochs: 3, seed: [0, 1]}
"""


@pytest.fixture(scope="module")
def validator():
    jsonschema.Draft202012Validator.check_schema(schema())
    return jsonschema.Draft202012Validator(schema())


def values(text):
    """What a file holds, without what its base holds."""
    return yaml_files._parse(text, "a file", Path("."))[0]


@pytest.mark.parametrize("file", EXPERIMENTS, ids=lambda file: str(file.relative_to(ROOT)))
def test_every_experiment_is_valid(validator, file):
    assert list(validator.iter_errors(values(file.read_text()))) == []


@pytest.mark.parametrize("task", ["", "task: pretraining", "task: token_classification"])
def test_a_file_may_have_a_part_of_the_keys(validator, task):
    validator.validate(values(f"{task}\nbase: other.yaml\nmodel: {{attention: left_to_right}}\n"))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("task: classification", "task: classifcation"),
        ("task: classification", "task: pretraining"),  # it has no list under train
        ("epochs: 3", "epoch: 3"),
        ("epochs: 3", "epochs: 0"),
        ("epochs: 3", "epochs: three"),
        ("epochs: 3", "epochs: [3, 0]"),
        ("epochs: 3", "epochs: []"),
        ("epochs: 3", "epochs: [3, 3]"),
        ("epochs: 3", "strategy: [mirrored]"),
        ("epochs: 3", "precision: float16"),
        ("init:", "init: {stride: 3}"),
        ("init:", "data_of_mine: 3"),
        ("format: tsv", "format: tsv, masked_lm_prob: 0.2"),
        ("format: tsv", "format: tsv, class_weights: even"),
        ("format: tsv", "format: tsv, text_columns: [a, b, c]"),
        ("task: classification", "task: pretraining\nsearch: {}"),
        ("epochs: 3", "epochs: {low: 3}"),
        ("epochs: 3", "precision: {low: 1, high: 2}"),
        ("epochs: 3", "optimizer: {nam: a.b}"),
        ("epochs: 3", "callbacks: ['a b']"),
        ("epochs: 3", "callbacks: a.b:C"),
    ],
)
def test_what_a_run_refuses_is_invalid(validator, old, new):
    assert validator.is_valid(values(FILE))
    assert not validator.is_valid(values(FILE.replace(old, new)))


def test_keys_have_descriptions_and_defaults():
    found = schema()
    keys = found["$defs"]
    assert keys["FinetuningTrain"]["properties"]["learning_rate"]["default"] == 5e-5
    assert "[CLS]" in keys["PretrainingTrain"]["properties"]["max_length"]["description"]


def test_a_family_of_another_package_is_in_it(monkeypatch):
    class LimerickData(FinetuningData):
        """Limericks."""

        lines: Count = 5
        """How many lines a poem has."""

    class LimerickRun(FinetuningRun):
        """Poems."""

        task: Literal["limericks"]
        data: LimerickData

    monkeypatch.setattr(registry, "_registered", dict(registry._registered))
    bert_tf.register(
        bert_tf.TaskFamily(
            name="limericks",
            title="Limericks",
            model="limericks:Model",
            pictures="limericks:Pictures",
            config=LimerickRun,
            task="limericks:Task",
            metrics=("accuracy",),
            outputs=("poem",),
        )
    )
    found = schema()
    lines = found["$defs"]["LimerickData"]["properties"]["lines"]
    assert lines["description"] == "How many lines a poem has."
    assert "limericks" in found["properties"]["task"]["enum"]
    text = FILE.replace("classification", "limericks")
    assert jsonschema.Draft202012Validator(found).is_valid(values(text))
    text = text.replace("format: tsv", "format: tsv, lines: 0")
    assert not jsonschema.Draft202012Validator(found).is_valid(values(text))


def test_the_command_prints_it_or_writes_it(tmp_path, capsys):
    assert main(["schema"]) == 0
    assert json.loads(capsys.readouterr().out) == schema()
    assert main(["schema", "--out", str(tmp_path / "a.json")]) == 0
    assert json.loads((tmp_path / "a.json").read_text()) == schema()
    assert capsys.readouterr().out == ""
