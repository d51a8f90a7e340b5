"""Regression learns numbers, scores them as GLUE does STS-B, and submits them in its range."""

import numpy as np
import pytest

from bert_tf import runs
from bert_tf.config.reading import load_config
from bert_tf.errors import UserError
from bert_tf.tasks.regression.run import Regression
from tests.tasks.tiny_tasks import examples_of, model_of
from tests.tasks.tiny_texts import pairs, write_config, write_lines

STSB = "index\tgenre\tfilename\tyear\told_index\tsource1\tsource2\tsentence1\tsentence2"


def task_of(path, settings=()) -> Regression:
    return Regression(load_config(path, settings))


def write_stsb(folder):
    """GLUE's STS-B in small, with scores of 1 and -1, which the tiny model learns soon."""
    for name, count in (("train", 48), ("dev", 10)):
        rows = enumerate(pairs(count, seed=count))
        lines = [
            f"{i}\tg\tf\ty\t{i}\tn\tn\t{a}\t{b}\t{1.0 if c else -1.0}" for i, (a, b, c) in rows
        ]
        write_lines(folder / f"{name}.tsv", [f"{STSB}\tscore", *lines])
    lines = [f"{i}\tg\tf\ty\t{i}\tn\tn\t{a}\t{b}" for i, (a, b, _) in enumerate(pairs(3))]
    write_lines(folder / "test.tsv", [STSB, *lines])


@pytest.mark.slow
def test_it_learns_and_writes_numbers(tmp_path):
    write_stsb(tmp_path)
    path = write_config(tmp_path, "regression", "path: ., format: stsb", epochs=10)
    run = tmp_path / "run"
    metrics = runs.finetune(load_config(path), run)
    assert list(metrics) == ["spearman", "pearson", "loss"]
    assert metrics["pearson"] > 0.9
    written = (run / "predictions" / "dev.tsv").read_text().splitlines()
    predictions = np.array([float(line.split("\t")[1]) for line in written[1:]])
    gold = np.array([-1.0, 1.0] * 5)
    np.testing.assert_allclose(np.corrcoef(predictions, gold)[0, 1], metrics["pearson"], atol=1e-4)
    task = task_of(path)
    assert task.best_metric == "spearman"
    (test,) = task.test_files().values()
    data = task.read(test)
    model = model_of(task)
    assert task.score(model, np.zeros(3), data) == {}
    task.write_predictions(model, np.array([-1.0, 2.25, 5.5]), data, run, "test")
    assert (run / "STS-B.tsv").read_text() == "index\tprediction\n0\t0\n1\t2.25\n2\t5\n"


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("cat\tnan", "train.tsv, line 3: label is missing, but other rows have one"),
        ("cat\tinf", "train.tsv, line 3: label is inf, not a finite number"),
        ("cat\tgood", "train.tsv, line 3: label is 'good', not a finite number"),
        ("cat", "train.tsv, line 3: 1 fields, but the header has 2"),
    ],
)
def test_a_row_without_a_number_is_named(tmp_path, row, message):
    write_lines(tmp_path / "train.tsv", ["text\tlabel", "dog\t-1.5", row])
    with pytest.raises(UserError, match=message):
        examples_of(task_of(write_config(tmp_path, "regression", "path: ., format: tsv")))


def test_what_is_for_classes_is_refused(tmp_path):
    with pytest.raises(UserError, match="cola predicts labels, not numbers; set"):
        task_of(write_config(tmp_path, "regression", "path: ., format: cola"))
    data = "path: ., format: tsv, class_weights: balanced"
    with pytest.raises(UserError, match="unknown key 'data.class_weights'"):
        task_of(write_config(tmp_path, "regression", data))
