"""A family is whole and the only one of its name, or it is refused in one sentence."""

import dataclasses
import importlib.metadata
import json
from typing import Literal

import keras
import pytest

import bert_tf
from bert_tf.checkpoints import conversion, tensors
from bert_tf.checkpoints.heads import Place
from bert_tf.config.data import FinetuningData
from bert_tf.config.run import FinetuningRun
from bert_tf.tasks import classification, from_checkpoint, keras_files, registry
from bert_tf.tasks.family import TaskFamily
from bert_tf.tasks.regression.model import TextRegressor
from bert_tf.text import Tokenizer
from tests.checkpoints import tiny_models
from tests.tasks.refusals import refusal


class TinyRun(FinetuningRun):
    task: Literal["tiny"]
    data: FinetuningData


@keras.saving.register_keras_serializable("tests")
class TinyModel(TextRegressor):
    """Has all that a family's model needs."""


PARTS = {
    "name": "tiny",
    "title": "Tiny",
    "model": TinyModel,
    "pictures": "bert_tf.tasks.regression.pictures:RegressionPictures",
    "config": TinyRun,
    "task": "bert_tf.tasks.regression.run:Regression",
    "metrics": ("pearson",),
    "outputs": ("score",),
}


@pytest.fixture(autouse=True)
def families(monkeypatch):
    """What is registered here is forgotten afterwards."""
    known = registry.families()
    monkeypatch.setattr(registry, "_registered", dict(registry._registered))
    return known


def test_every_family_of_ours_is_whole(families):
    names = {family.name for family in families}
    assert {"classification", "masked_lm", "multi_label_classification", "embedding"} <= names
    for family in families:
        assert family.model_class().__name__ == family.class_name
        family.pictures_class()
        if family.config is not None:
            task = family.task_class()
            assert task.best_metric in family.metrics


def test_a_family_is_found_by_name_and_by_the_class_of_its_model():
    family = TaskFamily(**PARTS)
    bert_tf.register(family)
    assert registry.family("tiny") is family
    assert registry.family_of("TinyModel") is family
    assert registry.family_of("NoModel") is None


def test_a_family_states_its_head_and_its_files_are_opened(tmp_path):
    place = Place("tiny.", "BertForTiny")
    head = dataclasses.replace(classification.HEAD, places={"huggingface": place})
    bert_tf.register(TaskFamily(**PARTS, head=head))
    model = TinyModel(tiny_models.make("encoder"), Tokenizer(tiny_models.PIECES))
    model.save(tmp_path / "model.keras")
    conversion.save(model, tmp_path / "theirs", "huggingface")

    config = json.loads((tmp_path / "theirs" / "config.json").read_text())
    assert config["architectures"] == ["BertForTiny"]
    theirs = tensors.open_file(tmp_path / "theirs" / "model.safetensors").shapes
    assert {"tiny.weight", "tiny.bias"} <= theirs.keys()
    read = from_checkpoint.build(from_checkpoint.find(tmp_path / "theirs"), "theirs")
    from_checkpoint.find(tmp_path / "theirs").fill(read)
    for again in (read, keras_files.read(tmp_path / "model.keras")):
        assert type(again) is TinyModel
        tiny_models.assert_equal(again, model)


def test_a_family_is_registered_once():
    bert_tf.register(TaskFamily(**PARTS))
    said = "the task 'tiny' is registered already; choose another name"
    assert refusal(bert_tf.register, TaskFamily(**PARTS)) == said
    for name in ("classification", "pretraining"):
        own = {"config": None, "task": "", "metrics": ()}
        family = TaskFamily(**PARTS | own | {"name": name})
        assert f"the task '{name}' is registered already" in refusal(bert_tf.register, family)


def test_models_of_two_families_have_different_names():
    own = {"config": None, "task": "", "metrics": (), "model": "elsewhere:TextClassifier"}
    said = refusal(bert_tf.register, TaskFamily(**PARTS | own))
    assert said.startswith("the model of the task 'tiny' is called TextClassifier, like that of")


def test_only_families_are_registered():
    assert refusal(bert_tf.register, TinyModel).endswith("give a bert_tf.TaskFamily")


@pytest.mark.parametrize("part", ["title", "model", "pictures", "config", "task", "metrics"])
def test_a_part_that_is_missing_is_named(part):
    parts = {name: value for name, value in PARTS.items() if name != part}
    said = f"the task family 'tiny' has no {part}; give it one"
    assert refusal(TaskFamily, **parts) == said


@pytest.mark.parametrize(
    ("part", "value", "said"),
    [
        ("name", "Tiny task", "is 'Tiny task'; use only lowercase letters, digits and underscores"),
        ("model", dict, "the model of the task family 'tiny' does not extend TaskModel"),
        ("model", "no place", "is 'no place'; it must be a class, or \"module:Name\""),
        ("pictures", dict, "the pictures of the task family 'tiny' does not extend Pictures"),
        ("task", dict, "the task of the task family 'tiny' does not extend Task"),
        ("config", dict, "the config of the task family 'tiny' does not extend FinetuningRun"),
        ("name", "other", "must have the field task: Literal['other']"),
        ("head", dict, "the head of the task family 'tiny' is <class 'dict'>; give a Head"),
        ("outputs", "score", "the outputs of the task family 'tiny' are 'score'; give a tuple of"),
    ],
)
def test_a_part_of_another_kind_is_named(part, value, said):
    assert said in refusal(TaskFamily, **PARTS | {part: value})


def test_a_model_that_lacks_a_method_is_refused():
    from bert_tf.tasks.task_model import TaskModel

    class Half(TaskModel):
        pass

    said = refusal(TaskFamily, **PARTS | {"model": Half})
    assert said.startswith("the model of the task family 'tiny', Half, lacks ")
    assert "official_metrics" in said and "target" in said


def test_a_variant_that_is_not_registered_is_named():
    registry.register(TaskFamily(**PARTS, variants={"wild": "wilder"}))
    assert registry.class_for(TinyModel, {"wild": False}) is TinyModel
    said = refusal(registry.class_for, TinyModel, {"wild": True})
    assert said == "'wilder', a variant of 'tiny', is not registered; register it"


def test_a_part_that_cannot_be_imported_is_named_when_it_is_needed():
    family = TaskFamily(**PARTS | {"model": "no_such_package:Model"})
    said = refusal(family.model_class)
    assert said.startswith("the model of the task family 'tiny', no_such_package:Model, cannot be ")


class Entry:
    """An entry point as Python's metadata has it."""

    def __init__(self, name, load):
        self.name, self.load = name, load
        self.value, self.dist = f"{name}:FAMILY", None


def test_packages_offer_families_by_entry_points(monkeypatch, capsys):
    family = TaskFamily(**PARTS)

    def broken():
        raise ImportError("no module named 'x'")

    entries = [Entry("broken", broken), Entry("tiny", lambda: family)]
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda group: entries)
    registry._read_entry_points.cache_clear()
    assert family in registry.families()
    said = "the task broken of the package broken:FAMILY is skipped: no module named 'x'"
    assert said in capsys.readouterr().err


def test_a_package_may_also_register_its_family_itself(monkeypatch, capsys):
    family = TaskFamily(**PARTS)
    bert_tf.register(family)
    entries = [Entry("tiny", lambda: family)]
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda group: entries)
    registry._read_entry_points.cache_clear()
    assert registry.families().count(family) == 1
    assert "skipped" not in capsys.readouterr().err
