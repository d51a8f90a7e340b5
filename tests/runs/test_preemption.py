"""SIGTERM waits for the end of an update, and stops work that may be interrupted."""

import os
import signal
import threading

import pytest
import tensorflow as tf

from bert_tf.training.distributed import Cluster
from bert_tf.training.preemption import EXIT_CODE, Preempted, Preemption

ALONE = Cluster(tf.distribute.get_strategy())


def terminate():
    os.kill(os.getpid(), signal.SIGTERM)


def test_a_signal_is_noted_and_ends_the_process_when_all_is_saved(capsys):
    with Preemption(ALONE) as preemption:
        preemption.end_if_asked(1)
        terminate()
        done = "the update goes on"
        assert preemption.asked
        with pytest.raises(Preempted) as end:
            preemption.end_if_asked(7)

    assert done
    assert end.value.code == EXIT_CODE == 143
    assert "stopped by SIGTERM; step 7 is saved" in capsys.readouterr().err


def test_work_that_may_be_left_is_left_at_once():
    reached = []

    def work():
        reached.append("before")
        terminate()
        reached.append("after")

    with Preemption(ALONE) as preemption:
        assert preemption.attempt(lambda: 7) == 7
        terminate()  # no work is under way
        assert preemption.attempt(work) is None
        terminate()

    assert reached == ["before"]
    assert preemption.asked


def test_an_error_in_the_work_is_raised():
    def work():
        raise ValueError("the data is wrong")

    with Preemption(ALONE) as preemption:
        with pytest.raises(ValueError, match="the data is wrong"):
            preemption.attempt(work)
        terminate()


def test_the_previous_handler_of_sigterm_is_restored():
    before = signal.getsignal(signal.SIGTERM)
    with Preemption(ALONE):
        assert signal.getsignal(signal.SIGTERM) != before
    assert signal.getsignal(signal.SIGTERM) == before


def test_another_thread_than_the_main_one_trains_without():
    asked = []

    def train():
        with Preemption(ALONE) as preemption:
            asked.append(preemption.asked)

    thread = threading.Thread(target=train)
    thread.start()
    thread.join()

    assert asked == [False]
