"""The callbacks of MLflow and of Weights & Biases, run offline as docs/how_to/trackers.md does."""

import re
from pathlib import Path

import pytest

from bert_tf import runs
from bert_tf.config.reading import load_config
from tests import tiny

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/how_to/trackers.md").read_text()


def test_each_trial_of_a_search_is_a_run_of_both_trackers(tmp_path, monkeypatch):
    for package in ("mlflow", "wandb"):
        pytest.importorskip(package, reason=f"requires {package}, which no extra installs")
    import mlflow

    (module,) = re.findall(r'```python title="trackers.py"\n(.*?)```', PAGE, re.DOTALL)
    (tmp_path / "trackers.py").write_text(module)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    storage = f"sqlite:///{tmp_path}/mlflow.db"
    monkeypatch.setenv("WANDB_MODE", "offline")
    mlflow.set_tracking_uri(storage)
    path = tiny.write_finetuning(tmp_path)
    callbacks = (
        "train.callbacks=[{name: 'trackers:mlflow_run', arguments: {folder: $run}}, "
        "{name: 'trackers:wandb_run', arguments: {folder: $run, log_freq: batch}}]"
    )
    steps = ["train.epochs=null", "train.steps=2", "train.eval_steps=1"]
    runs.finetune(load_config(path, [callbacks, "train.seed=[1, 2]", *steps]), tmp_path / "run")
    mlflow.end_run()

    client = mlflow.MlflowClient(storage)
    experiment = client.get_experiment_by_name("reviews")
    found = client.search_runs([experiment.experiment_id])
    assert {run.info.run_name for run in found} == {"seed=1", "seed=2"}
    for run in found:
        history = client.get_metric_history(run.info.run_id, "val_accuracy")
        assert [point.step for point in history] == [0, 1]
        assert run.data.params["optimizer_name"]
    files = list(tmp_path.glob("wandb/offline-run-*/*.wandb"))
    assert len(files) == 2 and all(file.stat().st_size > 1000 for file in files)
