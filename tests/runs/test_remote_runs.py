"""Runs in buckets end with the bits of local ones, however often they are killed."""

import random
import shutil
import signal
import time

import pytest

from bert_tf import runs
from bert_tf.config.reading import load_config
from bert_tf.errors import UserError
from bert_tf.io.remote import fetched, local_path
from bert_tf.runs.run_folder import RunFolder
from tests import tiny
from tests.runs.killed import Killed, check_ended_equal, check_equal, kill_after
from tests.runs.lives import Nursery, last_step

SETTINGS = ["train.checkpoint_steps=2", "train.checkpoints_kept=2", "train.deterministic=true"]


def move_to_another_machine(monkeypatch, folder) -> None:
    """Leaves all local copies behind."""
    monkeypatch.setenv("BERT_TF_CACHE", str(folder / f"machine-{random.random()}"))


def steps_in(bucket, run: str) -> set[str]:
    return {name.split("/")[3] for name in bucket.names(f"{run}/checkpoints")}


@pytest.fixture
def finetuning(s3, tmp_path):
    """The address of a configuration whose data are next to it, and the same as a local file."""
    local = tiny.write_finetuning(tmp_path)
    return f"{s3.put_folder(tmp_path, 'data')}/finetuning.yaml", local


@pytest.mark.slow
def test_a_run_goes_on_elsewhere_with_the_same_bits(s3, finetuning, tmp_path, monkeypatch):
    address, local = finetuning
    settings = [*SETTINGS, "train.epochs=3", "train.keep=best"]
    runs.finetune(load_config(local, settings), tmp_path / "local")
    run = f"{s3.address}/runs/a"
    with monkeypatch.context() as patch:
        kill_after(patch, 6)
        with pytest.raises(Killed):
            runs.finetune(load_config(address, settings), run)
    assert "step-00000006" in steps_in(s3, "runs/a")
    s3.put("runs/a/checkpoints/step-00000007/model.safetensors", "half of a killed upload")

    move_to_another_machine(monkeypatch, tmp_path)
    runs.finetune(load_config(address, settings), run)

    assert s3.address in s3.get("runs/a/config.yaml").decode()
    move_to_another_machine(monkeypatch, tmp_path)
    copy = fetched(run)
    check_ended_equal(copy, tmp_path / "local")
    there = sorted(path.relative_to(copy) for path in copy.rglob("*") if path.is_file())
    here = [
        p.relative_to(tmp_path / "local") for p in (tmp_path / "local").rglob("*") if p.is_file()
    ]
    logs = lambda paths: {path for path in paths if path.parts[0] != "logs"}  # noqa: E731
    assert logs(there) == logs(here) - {
        here_lock for here_lock in here if here_lock.name == ".lock"
    }
    assert (copy / "predictions" / "dev.tsv").read_text() == (
        tmp_path / "local" / "predictions" / "dev.tsv"
    ).read_text()
    assert runs.evaluate(run)["accuracy"] == runs.evaluate(tmp_path / "local")["accuracy"]


@pytest.mark.slow
@pytest.mark.parametrize("killed_after", [2, 4, 10])
def test_listings_that_lag_behind_lose_nothing(s3, finetuning, tmp_path, monkeypatch, killed_after):
    address, local = finetuning
    settings = [*SETTINGS, "train.epochs=3", "train.keep=best"]
    runs.finetune(load_config(local, settings), tmp_path / "local")
    run = f"{s3.address}/runs/a"
    with monkeypatch.context() as patch:
        kill_after(patch, killed_after)
        s3.proxy.fault("stale", "GET", "list-type=2", times=10_000)
        with pytest.raises(Killed):
            runs.finetune(load_config(address, settings), run)
    move_to_another_machine(monkeypatch, tmp_path)
    runs.finetune(load_config(address, settings), run)
    assert len(s3.proxy.faults) < 9_990

    s3.proxy.faults.clear()
    move_to_another_machine(monkeypatch, tmp_path)
    check_ended_equal(fetched(run), tmp_path / "local")


@pytest.mark.slow
def test_only_what_is_read_is_fetched(s3, finetuning, tmp_path, monkeypatch):
    import bert_tf

    address, _ = finetuning
    run = f"{s3.address}/runs/a"
    runs.finetune(load_config(address, [*SETTINGS, "train.epochs=2"]), run)
    assert len(steps_in(s3, "runs/a")) == 2
    move_to_another_machine(monkeypatch, tmp_path)
    s3.proxy.seen.clear()
    model = bert_tf.load(run)
    assert model.predict("cat sat on the mat .")["label"] in ("good", "bad")
    assert s3.proxy.count("GET", "step-00000008/model.safetensors") == 1
    assert s3.proxy.count("GET", "step-00000006/model.safetensors") == 0


@pytest.mark.slow
def test_a_run_that_another_process_writes_is_refused(s3, finetuning, monkeypatch):
    from bert_tf.io import locks

    address, _ = finetuning
    run = f"{s3.address}/runs/a"
    with RunFolder.in_use(_made(run)), pytest.raises(UserError, match="another process is writing"):
        runs.finetune(load_config(address), run)
    assert not locks._held and s3.names("runs") == []


def _made(address: str) -> str:
    local_path(address).mkdir(parents=True)
    return address


@pytest.mark.slow
def test_a_checkpoint_that_cannot_be_stored_ends_the_run_and_loses_nothing(
    s3, finetuning, tmp_path
):
    address, local = finetuning
    settings = [*SETTINGS, "train.epochs=2"]
    runs.finetune(load_config(local, settings), tmp_path / "local")
    run = f"{s3.address}/runs/a"
    s3.proxy.fault("expired", "PUT", "step-00000004", times=10_000)
    with pytest.raises(
        UserError, match=r"step-00000004.*is refused.*what was to be stored is kept"
    ):
        runs.finetune(load_config(address, settings), run)
    s3.proxy.faults.clear()
    runs.finetune(load_config(address, settings), run)
    check_ended_equal(fetched(run), tmp_path / "local")


@pytest.mark.slow
def test_pre_training_and_search(gs, tmp_path, monkeypatch):
    local = tiny.write_pretraining(tmp_path)
    address = f"{gs.put_folder(tmp_path, 'data')}/pretraining.yaml"
    runs.pretrain(load_config(local, SETTINGS), tmp_path / "local")
    runs.pretrain(load_config(address, SETTINGS), f"{gs.address}/run")
    move_to_another_machine(monkeypatch, tmp_path)
    check_equal(fetched(f"{gs.address}/run"), tmp_path / "local")

    shutil.rmtree(tmp_path / "local")
    local = tiny.write_finetuning(tmp_path)
    address = f"{gs.put_folder(tmp_path, 'data')}/finetuning.yaml"
    search = [*SETTINGS, "train.epochs=2", "train.seed=[1,2]"]
    runs.finetune(load_config(local, search), tmp_path / "local")
    runs.finetune(load_config(address, search), f"{gs.address}/search")
    move_to_another_machine(monkeypatch, tmp_path)
    copy = fetched(f"{gs.address}/search")
    check_ended_equal(copy, tmp_path / "local")
    assert (copy / "search.tsv").read_text() == (tmp_path / "local" / "search.tsv").read_text()


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_run_that_is_killed_by_the_system(s3, finetuning, tmp_path, monkeypatch):
    address, local = finetuning
    nursery = Nursery(tmp_path / "log.txt")
    settings = [*SETTINGS, "train.epochs=10"]
    command = ["finetune", address, "--set", *settings, "--out"]
    try:
        assert nursery.live("finetune", local, "--set", *settings, "--out", tmp_path / "local") == 0
        source, killed, run = random.Random(0), 0, f"{s3.address}/runs/a"
        for number in range(6):
            target, moment = source.randrange(number * 6, number * 6 + 6), None

            def now(target=target) -> bool:
                nonlocal moment
                if moment is None and last_step(local_path(run)) >= target:
                    moment = time.monotonic() + source.uniform(0, 0.5)
                return moment is not None and time.monotonic() >= moment

            killed += nursery.live(*command, run, until=now) == -signal.SIGKILL
            s3.proxy.fault("slow_down", "PUT", times=3)
            s3.proxy.fault("lose", "PUT", times=1)
            s3.proxy.fault("drop", "GET", "safetensors", times=2)
            if number % 2:
                shutil.rmtree(local_path(run))
        assert nursery.live(*command, run) == 0, nursery.log.read_text()
    finally:
        nursery.close()
    assert killed >= 5
    move_to_another_machine(monkeypatch, tmp_path)
    check_ended_equal(fetched(run), tmp_path / "local")
    assert ".lock" not in str(s3.names())
    assert "damaged" not in nursery.log.read_text()
