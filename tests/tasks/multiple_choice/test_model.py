"""Multiple choice learns which ending fits, whatever the number of choices."""

import json
import random

import numpy as np
import pytest

from bert_tf import runs
from bert_tf.config.reading import load_config
from bert_tf.errors import UserError
from bert_tf.tasks.multiple_choice.run import MultipleChoiceTask
from bert_tf.text import Preprocessor
from tests import tiny
from tests.tasks.tiny_tasks import examples_of, model_of
from tests.tasks.tiny_texts import write_config, write_lines


def task_of(path, settings=()) -> MultipleChoiceTask:
    return MultipleChoiceTask(load_config(path, settings))


def rows(count: int, choices: int, seed: int = 0) -> list[dict]:
    """The right choice is the one about the sea."""
    source = random.Random(seed)
    made = []
    for i in range(count):
        endings = [f"ran {source.choice(('on', 'under'))} the log" for _ in range(choices)]
        endings[i % choices] = f"swam in the sea {tiny.sentence(source, 2)}"
        made.append({"context": "the fish .", "choices": endings, "label": i % choices})
    return made


@pytest.mark.slow
def test_it_learns_among_three_choices(tmp_path):
    for name, count in (("train", 40), ("dev", 9)):
        lines = map(json.dumps, rows(count, 3, seed=count))
        write_lines(tmp_path / f"{name}.jsonl", lines)
    path = write_config(tmp_path, "multiple_choice", "path: ., format: jsonl", epochs=6)
    metrics = runs.finetune(load_config(path), tmp_path / "run")
    assert list(metrics) == ["accuracy", "loss"]
    assert metrics["accuracy"] > 0.8
    header, *lines = (tmp_path / "run/predictions/dev.tsv").read_text().splitlines()
    assert header == "index\tprediction"
    right = [line == f"{i}\t{i % 3}" for i, line in enumerate(lines)]
    assert np.mean(right) == metrics["accuracy"]
    assert runs.evaluate(tmp_path / "run") == pytest.approx(metrics, abs=1e-6)


def test_each_choice_is_packed_with_its_context(tmp_path):
    made = rows(5, 4)
    write_lines(tmp_path / "train.jsonl", map(json.dumps, made))
    task = task_of(write_config(tmp_path, "multiple_choice", "path: ., format: jsonl"))
    examples = examples_of(task)
    inputs, labels = examples.take(np.array([3, 1]))
    assert labels.tolist() == [3, 1]
    preprocess = Preprocessor(tiny.tokenizer(), 24, padding="batch")
    for place, row in enumerate((3, 1)):
        expected = preprocess((["the fish ."] * 4, made[row]["choices"]))
        width = expected["input_mask"].shape[1]
        for name, values in expected.items():
            np.testing.assert_array_equal(inputs[name][place, :, :width], values)
            assert not inputs[name][place, :, width:].any()
    assert examples.lengths.tolist() == [
        preprocess((["the fish ."] * 4, row["choices"]))["input_mask"].shape[1] for row in made
    ]
    few = task_of(tmp_path / "config.yaml", ["data.train_rows=2"])
    assert len(examples_of(few).lengths) == 2


def test_swag_has_its_files_and_its_predictions(tmp_path):
    header = ",video-id,fold-ind,startphrase,sent1,sent2,gold-source"
    header += ",ending0,ending1,ending2,ending3"
    ending = ",v,1,s,the fish .,the cat,gold,ran.,sat.,swam.,flew."
    write_lines(tmp_path / "val.csv", [f"{header},label", f"0{ending},2"])
    write_lines(tmp_path / "test.csv", [header, f"0{ending}"])
    task = task_of(write_config(tmp_path, "multiple_choice", "path: ., format: swag"))
    (dev,) = task.files("dev").values()
    assert task.read(dev).targets == [2]
    (test,) = task.test_files().values()
    data = task.read(test)
    predictions = np.array([[0.0, 1.0, 3.0, 2.0]])
    model = model_of(task)
    assert task.score(model, predictions, data) == {}
    task.write_predictions(model, predictions, data, tmp_path, "test_predictions")
    assert (tmp_path / "test_predictions.csv").read_text() == ",pred\n0,2\n"
    (named,) = task_of(tmp_path / "config.yaml", ["data.dev=my.csv"]).files("dev").values()
    assert named.name == "my.csv"


def test_mistakes_are_told(tmp_path):
    write_lines(tmp_path / "train.tsv", ["o\ta\tb\tc\td\te"])
    task = task_of(write_config(tmp_path, "multiple_choice", "path: ., format: codah"))
    with pytest.raises(UserError, match="train.tsv has no labels"):
        task.training_rows()
    with pytest.raises(UserError, match="unknown data.format 'tsv'; choose one of swag, codah"):
        task_of(tmp_path / "config.yaml", ["data.format=tsv"]).training_rows()
