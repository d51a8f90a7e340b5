"""The experiments on GLUE and SWAG load, and say what the paper says."""

from pathlib import Path

import pytest

from bert_tf.config.reading import load_config
from bert_tf.tasks.texts.glue_tasks import GLUE

FOLDER = Path(__file__).parents[2] / "experiments"


@pytest.mark.parametrize("task", [task for task in GLUE if task != "ax"])
def test_every_task_of_glue_has_an_experiment(task):
    config = load_config(FOLDER / "glue" / f"{task}.yaml")
    assert config.task == ("classification" if GLUE[task].classes else "regression")
    assert config.data.format == task
    assert config.search == {"learning_rate": (5e-5, 4e-5, 3e-5, 2e-5)}
    assert (config.train.batch_size, config.train.epochs) == (32, 3)
    assert config.init.checkpoint == "bert-base-uncased"
    large = FOLDER / "glue" / f"{task}_large.yaml"
    if task == "wnli":
        assert not large.exists()
    else:
        config = load_config(large)
        assert config.init.checkpoint == "bert-large-uncased"
        assert ("seed" in config.search) == (task in ("cola", "stsb", "mrpc", "rte"))


@pytest.mark.parametrize("name", ["swag", "codah", "swag_large"])
def test_multiple_choice_has_the_papers_settings(name):
    config = load_config(FOLDER / "swag" / f"{name}.yaml")
    assert config.task == "multiple_choice"
    train = config.train
    assert (train.batch_size, train.learning_rate, train.epochs) == (16, 2e-5, 3)
