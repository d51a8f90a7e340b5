"""The pictures are of the results that are kept, and say which one is missing."""

import json
from pathlib import Path

import pytest

from benchmarks import pictures
from benchmarks.speed.results import Measured, Result
from bert_tf.errors import UserError

RESULTS = Path(__file__).parents[2] / "experiments" / "results"
PNG = b"\x89PNG"


def keep(folder, side, *of_seeds):
    folder.mkdir(exist_ok=True, parents=True)
    for seed, score in enumerate(of_seeds):
        (folder / f"{side}-{seed}.json").write_text(json.dumps({"score": score}))


def test_scores_are_in_percent_by_task_and_side(tmp_path):
    keep(tmp_path / "CoLA", "bert_tf", 0.25, 0.5)
    keep(tmp_path / "CoLA", "transformers", 0.75)
    keep(tmp_path / "SQuAD_by_article", "bert_tf", 44.0)
    keep(tmp_path / "SQuAD_by_article", "transformers", 43.0)
    assert pictures.scores(tmp_path) == {
        "CoLA, mcc": {"bert_tf": [25.0, 50.0], "transformers": [75.0]},
        "SQuAD by article, f1": {"bert_tf": [44.0], "transformers": [43.0]},
    }


def test_a_side_that_is_missing_is_named(tmp_path):
    keep(tmp_path / "CoLA", "bert_tf", 0.25)
    with pytest.raises(UserError, match="has no result of transformers on CoLA"):
        pictures.scores(tmp_path)


def test_a_folder_without_results_is_refused(tmp_path):
    for read in (pictures.scores, pictures.speed_results):
        with pytest.raises(UserError, match="choose another --results"):
            read(tmp_path)


def test_results_of_speed_come_in_the_order_of_the_works(tmp_path):
    for work in ("finetune", "encode"):
        contestants = [Measured("bert_tf", [1.0], 1.0), Measured("PyTorch", [2.0], 1.0)]
        Result(work, "float32", contestants, {}).save(tmp_path)
    assert [each.work for each in pictures.speed_results(tmp_path)] == ["encode", "finetune"]


def test_what_is_kept_here_is_drawn(tmp_path, monkeypatch):
    command = ["pictures", "--results", str(RESULTS), "--out", str(tmp_path)]
    monkeypatch.setattr("sys.argv", command)
    assert pictures.main() == 0
    drawn = {path.name: path.read_bytes()[:4] for path in tmp_path.iterdir()}
    assert drawn == {"speed.png": PNG, "training.png": PNG, "quality.png": PNG}
