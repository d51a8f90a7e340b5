"""A run that is killed and started again ends with the bits of one that was left alone."""

import os
import random
import signal
import threading
import time
from pathlib import Path

import pytest

from bert_tf import runs
from bert_tf.checkpoints import of_run
from tests import tiny
from tests.runs.killed import check_ended_equal
from tests.runs.lives import Nursery, last_step

TRAINING = ["train.deterministic=true", "train.checkpoint_steps=2", "train.checkpoints_kept=2"]

KILLS = 12


def kill_at_random(nursery: Nursery, command: list, folder: Path) -> tuple[Path, Path]:
    """Two runs of the command, of 60 steps: one undisturbed, and one that was often killed."""
    undisturbed, run, steps = folder / "undisturbed", folder / "killed", 60
    assert nursery.live(*command, undisturbed) == 0, nursery.log.read_text()
    source = random.Random(0)
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

        killed += nursery.live(*command, run, until=now) == -signal.SIGKILL
    assert nursery.live(*command, run) == 0, nursery.log.read_text()
    assert killed >= KILLS - 1
    check_ended_equal(run, undisturbed)
    return undisturbed, run


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_pre_training_in_two_phases(tmp_path, nursery, pretraining_yaml):
    settings = [*TRAINING, "train.steps=60", "train.eval_steps=25"]
    settings += ["train.checkpoint_minutes=0.001"]
    settings += ["train.long_length=28", "train.long_fraction=0.4"]
    command = ["pretrain", pretraining_yaml, "--set", *settings, "--out"]
    kill_at_random(nursery, command, tmp_path)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_fine_tuning_that_keeps_the_best(tmp_path, nursery):
    path = tiny.write_finetuning(tmp_path)
    settings = [*TRAINING, "train.epochs=15", "train.keep=best", "model.num_hidden_layers=1"]
    command = ["finetune", path, "--set", *settings, "--out"]
    both = kill_at_random(nursery, command, tmp_path)
    assert len({of_run.kept(run).name for run in both}) == 1
    assert len({(run / "predictions" / "dev.tsv").read_text() for run in both}) == 1


@pytest.mark.end_to_end
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
    said = f"stopped by SIGTERM; step {step} is saved; start the same command again to resume"
    assert last_line == said
