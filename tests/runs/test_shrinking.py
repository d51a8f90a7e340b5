"""`bert-tf shrink`: from a run to a small file, with a report of every stage."""

import json

import pytest

import bert_tf
from bert_tf import runs
from bert_tf.cli.parser import main
from bert_tf.config.reading import load_config
from bert_tf.errors import UserError
from bert_tf.runs.shrinking import shrink
from tests import tiny_questions, tiny_tags

STAGES = [
    "teacher, SavedModel float32",
    "student, SavedModel float32",
    "student, LiteRT float32",
    "student, LiteRT int8",
]


@pytest.fixture(scope="module")
def teacher(finetuned):
    """A finished fine-tuning of two layers."""
    return finetuned[0]


@pytest.fixture(scope="module")
def small(teacher, tmp_path_factory):
    """The folder of the student, by the command."""
    out = tmp_path_factory.mktemp("small") / "run"
    options = ["--layers", "1", "--lengths", "24", "--set", "train.epochs=1"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("bert_tf.runs.shrinking._TIMED", 2)
        assert main(["shrink", str(teacher), "--out", str(out), *options]) == 0
    return out


@pytest.mark.end_to_end
def test_the_student_is_a_run_and_a_file(teacher, small):
    config = load_config(small / "config.yaml")
    assert config.distillation.teacher == str(teacher)
    assert (config.model.num_hidden_layers, config.train.epochs) == (1, 1)
    texts = ["cat sat on the mat .", "dog ran under the log ."]
    found = bert_tf.load(small / "model.tflite").predict(texts, verbose=0)
    expected = bert_tf.load(small).predict(texts, verbose=0)
    for one, other in zip(found, expected, strict=True):
        assert one["probability"] == pytest.approx(other["probability"], abs=0.05)


@pytest.mark.end_to_end
def test_the_report_has_every_stage(teacher, small):
    results = json.loads((small / "shrink.json").read_text())
    stages = {each["name"]: each for each in results["stages"]}
    assert [*stages] == STAGES
    assert results["metric"] == "accuracy"
    scores = [json.loads((each / "metrics.json").read_text()) for each in (teacher, small)]
    assert [each["score"] for each in stages.values()][:2] == [
        pytest.approx(each["accuracy"]) for each in scores
    ]
    assert stages[STAGES[0]]["parameters"] > stages[STAGES[1]]["parameters"]
    assert all(each["milliseconds"] > 0 and each["megabytes"] > 0 for each in stages.values())
    table = (small / "shrink.md").read_text()
    assert all(f"| {name} |" in table for name in STAGES)
    assert (small / "shrink.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
def test_started_again_it_trains_no_more(teacher, small, monkeypatch):
    monkeypatch.setattr("keras.Model.fit", None)
    stages = shrink(teacher, small, 1, lengths=[24], settings=["train.epochs=1"])
    assert [each.name for each in stages] == STAGES


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"layers": 3}, "3"),
        ({"layers": 1, "precision": "bfloat16"}, "unknown precision 'bfloat16'"),
        ({"layers": 0}, "num_hidden_layers"),
        ({"layers": 1, "settings": ["train.epoch=3"]}, "train.epoch"),
    ],
)
def test_mistakes_are_one_sentence(teacher, tmp_path, settings, said):
    with pytest.raises(UserError, match=said):
        shrink(teacher, tmp_path / "small", **settings)


def test_only_a_finished_fine_tuning_is_shrunk(tmp_path, pretrained):
    with pytest.raises(UserError):
        shrink(tmp_path, tmp_path / "small", 1)
    with pytest.raises(UserError, match="is not a finished fine-tuning run"):
        shrink(pretrained, tmp_path / "small", 1)


@pytest.mark.slow
@pytest.mark.parametrize("tiny_task", [tiny_questions, tiny_tags])
def test_other_tasks_are_shrunk(tmp_path, tiny_task):
    write = getattr(tiny_task, "write_finetuning", None) or tiny_task.write_tagging
    runs.finetune(load_config(write(tmp_path)), tmp_path / "run")
    stages = shrink(tmp_path / "run", tmp_path / "small", 1)
    assert [each.name for each in stages] == STAGES
