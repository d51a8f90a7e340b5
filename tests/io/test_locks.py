"""Locks in buckets: who gets one, who waits for one, and who has lost one."""

import json
import os
import subprocess
import sys
import threading
import time

import pytest

from bert_tf.errors import UserError
from bert_tf.io import locks
from bert_tf.io.remote import local_path


@pytest.fixture(autouse=True)
def short_times(monkeypatch):
    for name, seconds in (("RENEWED", 0.1), ("ABANDONED", 1.0), ("_LOOKS", 0.05)):
        monkeypatch.setattr(locks, name, seconds)


def owner(**changes) -> str:
    """The content of a lock of this process, as another process would see it."""
    process = os.getpid()
    own = {"host": "here", "machine": locks._machine(), "process": process}
    return json.dumps(
        own | {"started": locks._started(process), "id": "x", "renewals": 0} | changes
    )


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["s3", "gs"])
def test_a_lock_is_there_is_renewed_and_goes(scheme, request):
    bucket = request.getfixturevalue(scheme)
    run = local_path(f"{bucket.address}/runs/a")
    with locks.held(run, is_folder=True):
        assert bucket.names() == ["runs/a/.lock"]
        first = json.loads(bucket.get("runs/a/.lock"))
        assert (first["process"], first["renewals"]) == (os.getpid(), 0)
        with (
            locks.held(run / "trials" / "b", is_folder=True),
            locks.held(run / "checkpoints" / "1"),
        ):
            assert bucket.names() == ["runs/a/.lock"]  # one lock is enough
        time.sleep(0.6)
        assert json.loads(bucket.get("runs/a/.lock"))["renewals"] >= 2
        locks.check_held(run / "metrics.json")
    assert bucket.names() == []


def test_a_living_process_of_this_machine_refuses_at_once(s3):
    s3.put("runs/a/.lock", owner())
    said = (
        rf"^another process is writing to s3://bucket-\d+/runs/a \(process {os.getpid()} on here\)"
    )
    start = time.monotonic()
    with pytest.raises(UserError, match=said), locks.held(local_path(f"{s3.address}/runs/a"), True):
        pass
    assert time.monotonic() - start < 1
    assert s3.get("runs/a/.lock").decode() == owner()


@pytest.mark.parametrize("scheme", ["s3", "gs"])
def test_a_process_of_this_machine_that_is_gone_has_lost_its_lock_at_once(scheme, request, capsys):
    bucket = request.getfixturevalue(scheme)
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    for gone in ({"process": process.pid}, {"started": "1"}):  # a process number that is used again
        bucket.put("runs/a/.lock", owner(**gone))
        with locks.held(local_path(f"{bucket.address}/runs/a"), is_folder=True):
            assert json.loads(bucket.get("runs/a/.lock"))["id"] != "x"
        assert "taking over the lock of process" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["s3", "gs"])
def test_another_machine_is_waited_for_and_printed(scheme, request, capsys):
    bucket = request.getfixturevalue(scheme)
    bucket.put("runs/a/.lock", owner(machine="another", host="there"))
    start = time.monotonic()
    with locks.held(local_path(f"{bucket.address}/runs/a"), is_folder=True):
        assert time.monotonic() - start >= 1
    said = capsys.readouterr().err
    assert f"/runs/a is locked by process {os.getpid()} on there; waiting for 1 s" in said


@pytest.mark.parametrize(
    "content",
    ["", "[]", "7", "[" * 100_000, owner(process="../tmp"), owner(process=None), owner(started=7)],
)
def test_a_lock_that_says_nothing_of_use_is_waited_for_or_lost(s3, content, monkeypatch):
    monkeypatch.setattr(locks, "ABANDONED", 0.1)
    s3.put("runs/a/.lock", content)
    with locks.held(local_path(f"{s3.address}/runs/a"), is_folder=True):
        assert json.loads(s3.get("runs/a/.lock"))["process"] == os.getpid()


@pytest.mark.slow
def test_another_machine_that_renews_refuses(s3):
    s3.put("runs/a/.lock", owner(machine="another", host="there"))
    renewed = owner(machine="another", host="there", renewals=1)
    threading.Timer(0.4, lambda: s3.put("runs/a/.lock", renewed)).start()
    run = local_path(f"{s3.address}/runs/a")
    with pytest.raises(UserError, match=r"\(process \d+ on there\)"), locks.held(run, True):
        pass


@pytest.mark.slow
def test_one_of_two_that_take_over_at_once_is_refused(s3):
    s3.put("runs/a/.lock", owner(started="1"))
    results = []

    def take() -> None:
        try:
            with locks.held(local_path(f"{s3.address}/runs/{'a'}"), is_folder=True):
                results.append("held")
                time.sleep(1.0)
        except UserError:
            results.append("refused")

    locks_of = [threading.Thread(target=take) for _ in range(4)]
    for each in locks_of:
        each.start()
    for each in locks_of:
        each.join()
    assert sorted(results) == ["held", "refused", "refused", "refused"]


def test_a_lock_that_was_lost_stops_what_is_written(s3, monkeypatch):
    from bert_tf.io.atomic import write_text

    monkeypatch.setattr(locks, "RENEWED", 60.0)  # as in a process that was stopped
    monkeypatch.setattr(locks, "ABANDONED", 0.2)
    run = local_path(f"{s3.address}/runs/a")
    with locks.held(run, is_folder=True):
        s3.put("runs/a/.lock", owner(machine="another"))
        time.sleep(0.15)
        with pytest.raises(UserError, match="^another process has taken over s3://bucket-"):
            write_text(run / "metrics.json", "{}")
    assert s3.names() == ["runs/a/.lock"]  # the lock of the other machine


@pytest.mark.slow
def test_a_lost_answer_of_taking_a_lock_is_no_refusal(s3):
    s3.proxy.fault("lose", "PUT", ".lock")
    with locks.held(local_path(f"{s3.address}/runs/a"), is_folder=True):
        pass
    assert s3.names() == []


def test_a_local_run_has_no_such_lock(tmp_path):
    with locks.held(tmp_path / "run", is_folder=True):
        assert not (tmp_path / "run").exists()
