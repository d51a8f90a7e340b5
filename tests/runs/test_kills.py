"""A run that is killed and started again ends with the bits of one that was left alone."""

import json
import os
import random
import signal
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from bert_tf import runs
from bert_tf.checkpoints import of_run, tensors
from tests import tiny
from tests.runs.lives import Nursery, last_step

TRAINING = ["train.deterministic=true", "train.checkpoint_steps=2", "train.checkpoints_kept=2"]

KILLS = 12


def result(run: Path) -> tuple[dict[str, float], dict[str, np.ndarray]]:
    """The metrics, and all that is in the last checkpoint."""
    folder = of_run.newest(run)
    weights = [tensors.load(folder / f"{name}.safetensors") for name in ("model", "optimizer")]
    return json.loads((run / "metrics.json").read_text()), weights[0] | weights[1]


def check_equal(run: Path, undisturbed: Path) -> None:
    metrics, weights = result(run)
    expected_metrics, expected = result(undisturbed)
    assert metrics == expected_metrics
    assert weights.keys() == expected.keys()
    for name, value in expected.items():
        assert weights[name].tobytes() == value.tobytes(), name
    assert not list(run.rglob("*.unfinished"))


def kill_at_random(nursery: Nursery, command: list, run: Path, steps: int, seed: int) -> int:
    """Starts the command until it ends by itself; how often it was killed before that."""
    source = random.Random(seed)
    killed = 0
    for number in range(KILLS):
        target = source.randrange(number * steps // KILLS, (number + 1) * steps // KILLS)
        moment = None

        def now(target=target) -> bool:
            # Some time after the checkpoint of a random step: in an update, or in the next one's
            # writing.
            nonlocal moment
            if moment is None and last_step(run) >= target:
                moment = time.monotonic() + source.uniform(0, 0.1)
            return moment is not None and time.monotonic() >= moment

        killed += nursery.live(*command, until=now) == -signal.SIGKILL
    assert nursery.live(*command) == 0, nursery.log.read_text()
    return killed


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_pre_training_in_two_phases(tmp_path, nursery, pretraining_yaml):
    settings = [
        *TRAINING,
        "train.steps=60",
        "train.eval_steps=25",
        "train.checkpoint_minutes=0.001",
    ]
    settings += ["train.long_length=28", "train.long_fraction=0.4"]
    command = ["pretrain", pretraining_yaml, "--set", *settings, "--out"]
    assert nursery.live(*command, tmp_path / "undisturbed") == 0, nursery.log.read_text()

    run = tmp_path / "killed"
    assert kill_at_random(nursery, [*command, run], run, 60, seed=0) >= KILLS - 1

    check_equal(run, tmp_path / "undisturbed")


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_fine_tuning_that_keeps_the_best(tmp_path, nursery):
    path = tiny.write_finetuning(tmp_path)
    settings = [*TRAINING, "train.epochs=15", "train.keep=best", "model.num_hidden_layers=1"]
    command = ["finetune", path, "--set", *settings, "--out"]
    assert nursery.live(*command, tmp_path / "undisturbed") == 0, nursery.log.read_text()

    run = tmp_path / "killed"
    assert kill_at_random(nursery, [*command, run], run, 60, seed=0) >= KILLS - 1

    check_equal(run, tmp_path / "undisturbed")
    assert of_run.kept(run).name == of_run.kept(tmp_path / "undisturbed").name
    predictions = [
        (each / "predictions" / "dev.tsv").read_text() for each in (run, tmp_path / "undisturbed")
    ]
    assert predictions[0] == predictions[1]


def test_sigterm_saves_the_step_that_is_under_way_and_says_so(tmp_path, load_pretraining, capsys):
    settings = ["train.log_steps=5"]
    settings += ["train.steps=3000", "train.checkpoint_steps=3000", "train.eval_steps=3000"]
    run = tmp_path / "run"

    def terminate_in_training() -> None:
        while not list(run.glob("logs/train/*")):
            time.sleep(0.002)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=terminate_in_training, daemon=True).start()
    with pytest.raises(SystemExit) as end:
        runs.pretrain(load_pretraining(*settings), run)

    step = last_step(run)
    assert end.value.code == 143
    assert 0 < step < 3000
    last_line = capsys.readouterr().err.splitlines()[-1]
    assert (
        last_line
        == f"stopped by SIGTERM; step {step} is saved; start the same command again to resume"
    )
