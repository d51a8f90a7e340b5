"""The same run on one device, on several and in two processes: the same losses and weights."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from bert_tf.io.remote import fetched
from bert_tf.report.curves import read_curves
from tests import tiny
from tests.runs.killed import check_ended_equal, weights

ROOT = Path(__file__).resolve().parents[2]

SETTINGS = ["train.log_steps=1", "train.batch_size=8", "train.checkpoints_kept=100"]
SETTINGS += ["model.attention_probs_dropout_prob=0.0", "model.num_hidden_layers=1"]
PRETRAIN = ["train.steps=4", "train.checkpoint_steps=2", "train.eval_steps=100"]
FINETUNE = ["train.epochs=2", "train.checkpoint_steps=4", "train.eval_steps=100"]
IN_PARTS = "train.accumulation_steps=2"
ROWS, STEPS = 32, 8  # of the fine-tuning


@pytest.fixture(scope="module")
def commands(pretraining_yaml, tmp_path_factory):
    """Makes commands that write below the folder `place`."""
    finetuning_yaml = tiny.write_finetuning(tmp_path_factory.mktemp("finetuning"))

    def command(place, kind, strategy, *settings):
        yaml, own = {
            "pretrain": (pretraining_yaml, PRETRAIN),
            "finetune": (finetuning_yaml, FINETUNE),
        }[kind]
        name = "_".join([kind, strategy, *(["parts"] if IN_PARTS in settings else [])])
        chosen = [*SETTINGS, *own, f"train.strategy={strategy}", *settings]
        return [kind, str(yaml), "--out", str(place / name), "--set", *chosen]

    return command


def start(devices, commands, place, **environment):
    """Starts a process with virtual devices that runs commands."""
    file = place / "commands.json"
    file.write_text(json.dumps(commands))
    return subprocess.Popen(
        [sys.executable, "-m", "tests.runs.on_devices", str(devices), str(file)],
        cwd=ROOT,
        env=os.environ | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(*processes):
    """What each process reports about each command."""
    try:
        told = [process.communicate(timeout=250) for process in processes]
    finally:
        for process in processes:
            process.kill()
    for process, (_, err) in zip(processes, told, strict=True):
        assert process.returncode == 0, err[-4000:]
    return [json.loads(out.splitlines()[-1]) for out, _ in told]


def two_workers(commands, place):
    """The processes of the chief and of the worker, each with a cache of its own."""
    with socket.socket() as one, socket.socket() as other:
        for each in (one, other):
            each.bind(("localhost", 0))
        workers = [f"localhost:{each.getsockname()[1]}" for each in (one, other)]
    processes = []
    for index in (0, 1):
        task = {"type": "worker", "index": index}
        config = json.dumps({"cluster": {"worker": workers}, "task": task})
        cache = str(place / f"cache-{index}")
        processes.append(start(1, commands, place, TF_CONFIG=config, BERT_TF_CACHE=cache))
    return processes


def run_two_workers(commands, place):
    """What the chief and the worker report about each command."""
    return finish(*two_workers(commands, place))


def assert_close(run, other):
    """The same losses and metrics of every step, and weights."""
    for kind in ("train", "dev"):
        found, expected = read_curves(run / "logs" / kind), read_curves(other / "logs" / kind)
        assert found.keys() == expected.keys() and "loss" in found
        for name, (steps, values) in expected.items():
            assert list(found[name][0]) == list(steps)
            np.testing.assert_allclose(found[name][1], values, rtol=1e-5, atol=1e-5, err_msg=name)
    found, expected = weights(run), weights(other)
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        if not name.startswith("random/"):
            np.testing.assert_allclose(found[name], value, rtol=0, atol=1e-5, err_msg=name)


def assert_only_the_chief_writes(chief, worker):
    """For each command, only the chief has written files."""
    for of_chief, of_worker in zip(chief, worker, strict=True):
        assert any("checkpoints" in path for path in of_chief["written"])
        assert of_worker["written"] == []


def on_one_device_and_two(commands, place, kind, *settings):
    """The folder of a run on one device and the same on two."""
    strategies = ("one_device", "mirrored")
    finish(start(2, [commands(place, kind, each, *settings) for each in strategies], place))
    return place


@pytest.fixture(scope="module")
def two(commands, tmp_path_factory):
    """The folder of fine-tunings on one device and on two."""
    return on_one_device_and_two(commands, tmp_path_factory.mktemp("two"), "finetune")


@pytest.fixture(scope="module")
def two_pretrained(commands, tmp_path_factory):
    """The folder of pre-trainings on one device and on two."""
    place = tmp_path_factory.mktemp("two_pretrained")
    return on_one_device_and_two(commands, place, "pretrain", IN_PARTS)


def taken_up_again(command, place):
    """Commands that cut a run off in its middle, as `place / "again"`, and end it."""
    again = command.copy()
    again[3] = str(place / "again")
    return [["cut", command[3], again[3], "4"], again]


@pytest.mark.end_to_end
def test_two_devices_fine_tune_as_one(two):
    assert_close(two / "finetune_mirrored", two / "finetune_one_device")


@pytest.mark.slow
def test_a_run_on_two_devices_is_taken_up_again(two, commands):
    finish(start(2, taken_up_again(commands(two, "finetune", "mirrored"), two), two))

    check_ended_equal(two / "again", two / "finetune_mirrored")


@pytest.mark.slow
def test_two_workers_train_as_two_devices_and_share_the_examples(two, commands, tmp_path):
    chief, worker = run_two_workers([commands(tmp_path, "finetune", "multi_worker")], tmp_path)

    run = tmp_path / "finetune_multi_worker"
    check_ended_equal(run, two / "finetune_mirrored")
    assert_only_the_chief_writes(chief, worker)
    assert len(list((run / "logs" / "train").iterdir())) == 1
    # Batches are made ahead, so that there may be more than were used.
    used = [told[0]["rows"][:STEPS] for told in (chief, worker)]
    for epoch in (slice(0, STEPS // 2), slice(STEPS // 2, STEPS)):
        seen = [row for batches in used for batch in batches[epoch] for row in batch]
        assert sorted(seen) == list(range(ROWS))
    assert {len(batch) for batches in used for batch in batches} == {4}


@pytest.mark.slow
def test_a_run_of_two_workers_is_taken_up_again(two, commands, tmp_path):
    command = commands(tmp_path, "finetune", "multi_worker")
    told = run_two_workers([command, *taken_up_again(command, tmp_path)], tmp_path)

    check_ended_equal(tmp_path / "again", two / "finetune_mirrored")
    assert_only_the_chief_writes(*told)


@pytest.mark.slow
def test_two_workers_train_in_a_bucket(two, commands, tmp_path, s3):
    command = commands(tmp_path, "finetune", "multi_worker")
    command[3] = f"{s3.address}/run"
    s3.proxy.fault("expired", "PUT", "step-00000008", times=10_000)
    chief, worker = two_workers([command], tmp_path)
    _, said = chief.communicate(timeout=250)
    assert chief.returncode == 2 and "step-00000008" in said, said[-4000:]
    worker.communicate(timeout=250)
    assert worker.returncode != 0
    assert {name.split("/")[2] for name in s3.names("run/checkpoints")} == {"step-00000004"}

    s3.proxy.faults.clear()
    run_two_workers([command], tmp_path)
    check_ended_equal(fetched(command[3]), two / "finetune_mirrored")


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_two_workers_pre_train_as_two_devices(two_pretrained, commands, tmp_path):
    run_two_workers([commands(tmp_path, "pretrain", "multi_worker", IN_PARTS)], tmp_path)

    expected = two_pretrained / "pretrain_mirrored_parts"
    check_ended_equal(tmp_path / "pretrain_multi_worker_parts", expected)


@pytest.fixture(scope="module")
def four(commands, tmp_path_factory):
    """The folder of runs on one device and on four."""
    place = tmp_path_factory.mktemp("four")
    cases = [
        commands(place, kind, strategy, *parts)
        for strategy in ("one_device", "mirrored")
        for kind in ("pretrain", "finetune")
        for parts in ((), (IN_PARTS,))
    ]
    finish(start(4, cases, place))
    return place


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("parts", ["", "_parts"])
@pytest.mark.parametrize("kind", ["pretrain", "finetune"])
def test_four_devices_train_as_one(four, kind, parts):
    assert_close(four / f"{kind}_mirrored{parts}", four / f"{kind}_one_device{parts}")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (["train.strategy=multi_worker"], "requires --workers HOST:PORT HOST:PORT --worker N, or"),
        (["train.strategy=tpu", "train.tpu=nowhere"], "TPU not found: nowhere "),
        (["train.strategy=tpu"], "TPU not found: this machine "),
        (["train.strategy=mirrored", "train.batch_size=7"], "7 cannot be divided among 2 devices"),
        (
            ["train.strategy=mirrored", "train.batch_size=6", IN_PARTS],
            "6 cannot be divided among 2 devices x 2 accumulation steps; choose a multiple",
        ),
    ],
)
@pytest.mark.slow
def test_devices_that_are_not_there_are_told(commands, tmp_path, settings, message):
    process = start(2, [[*commands(tmp_path, "finetune", "mirrored"), *settings]], tmp_path)
    _, err = process.communicate(timeout=120)

    assert process.returncode == 2
    assert message in err.splitlines()[-1]
