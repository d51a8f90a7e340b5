"""The tables of speed: ratios, goals that are missed, and results that must not be mixed."""

import dataclasses

import numpy as np
import pytest

from benchmarks.speed.__main__ import agreeing
from benchmarks.speed.results import UNKNOWN, Measured, Result, summary
from benchmarks.speed.turns import Ended
from benchmarks.speed.works import PREDICT
from bert_tf.errors import UserError

SETTINGS = {"threads": 2, "peers": ["openvino", "pytorch"], "commit": "c6fac18"}


def result(
    ours: float, work: str = "encode", precision: str = "bfloat16", memory: float = 1.0, **changes
) -> Result:
    """A step of two of ours beside peers of 2 and 3 seconds and of 1 and 2 GiB."""
    contestants = [
        Measured("bert_tf", [9 * ours], 9.0),
        Measured("bert_tf, fixed weights", [ours], memory),
        Measured("PyTorch", [3.0], 1.0),
        Measured("OpenVINO", [2.0], 2.0),
    ]
    return Result(work, precision, contestants, SETTINGS, **changes)


def rows(*results: Result) -> list[tuple[str, ...]]:
    """The cells of the table of goals."""
    columns = summary(results).columns
    return list(zip(*(list(column.cells) for column in columns), strict=True))


def test_ratios_are_to_the_fastest_peer():
    found = result(1.0)
    assert [found.ratio(each) for each in found.contestants] == pytest.approx(
        [2 / 9, 2.0, 2 / 3, 1.0]
    )
    assert found.ours.name == "bert_tf, fixed weights"
    alone = Result("encode", "float32", found.contestants[:2], SETTINGS)
    assert alone.ratio(alone.ours) is None
    assert rows(alone) == []


def test_each_goal_says_how_far_it_is_met():
    assert rows(result(1.0)) == [
        (
            *("encode", "bfloat16", "8.00", "OpenVINO", "4.00", "2.00", "1.00 / 1.10"),
            "1.00 of 1.00: 1.00 of 1.5 / 1.2",
        )
    ]
    assert [rows(result(ours))[0][6] for ours in (2.0, 4.0)] == [
        "1.00 / 1.10 met",
        "1.00 / 1.10 missed",
    ]


def test_memory_is_compared_with_that_of_the_least_peer():
    found = [result(1.0, "latency", memory=memory) for memory in (0.8, 1.2, 2.0)]
    predicts = dataclasses.replace(
        found[2], contestants=[*found[2].contestants, Measured(PREDICT, [7.0], 0.9)]
    )
    assert [cells[-1] for cells in rows(*found, predicts)] == [
        "0.80 of 1.00: 0.80 of 1.3 / 1.0",
        "1.20 of 1.00: 1.20 of 1.3 / 1.0 met",
        "2.00 of 1.00: 2.00 of 1.3 / 1.0 missed",
        "0.90 of 1.00: 0.90 of 1.3 / 1.0",
    ]


def test_the_share_of_the_peak_has_a_goal_in_bfloat16_only():
    shown = [
        rows(result(1.0, precision=precision, share_of_peak=0.6))[-1]
        for precision in ("float32", "bfloat16")
    ]
    assert [each[3:7] for each in shown] == [
        ("matmul peak", "", "0.60", ""),
        ("matmul peak", "", "0.60", "0.75 missed"),
    ]


def test_results_of_other_settings_are_not_taken_up(tmp_path):
    kept = result(1.0, share_of_peak=0.6)
    kept.save(tmp_path)
    path = Result.path(tmp_path, "encode", "bfloat16")
    assert Result.load(path, SETTINGS) == kept
    with pytest.raises(UserError, match="has threads 2, not 4; remove it or choose another --out"):
        Result.load(path, SETTINGS | {"threads": 4})
    with pytest.raises(UserError, match="commit c6fac18, not 0123456; threads 2, not 4"):
        Result.load(path, SETTINGS | {"threads": 4, "commit": "0123456"})


@pytest.mark.parametrize("commit", ["c6fac18-dirty", UNKNOWN])
def test_results_without_a_clean_commit_are_not_reused(tmp_path, commit):
    settings = SETTINGS | {"commit": commit}
    dataclasses.replace(result(1.0), settings=settings).save(tmp_path)
    with pytest.raises(UserError, match=f"is of commit {commit}, .*; remove it or choose another"):
        Result.load(Result.path(tmp_path, "encode", "bfloat16"), settings)


class Fake:
    """A contestant that always computes the same number; without a number its process ends."""

    def __init__(self, name: str, value: float | None):
        self.name, self._value, self.closed = name, value, False

    def turn(self, steps: int) -> None:
        if self._value is None:
            raise Ended(f"{self.name} ended")

    def outputs(self) -> np.ndarray:
        return np.array([self._value, self._value])

    def close(self) -> None:
        self.closed = True


def test_a_contestant_whose_outputs_differ_is_left_out_and_named():
    ours, same = Fake("bert_tf", 1.0), Fake("OpenVINO", 1.001)
    other, nan, ended = Fake("PyTorch", 1.022), Fake("KerasHub", np.nan), Fake("ONNX", None)
    kept, left_out = agreeing([ours, other, nan, same, ended], tolerance=0.02)
    assert kept == [ours, same]
    assert left_out == {
        "PyTorch": "it computes something else: it differs by 0.022",
        "KerasHub": "it computes something else: it differs by nan",
        "ONNX": "its process ended",
    }
    assert other.closed and nan.closed and not same.closed
    with pytest.raises(Ended):
        agreeing([ended, ours], tolerance=0.02)


def test_who_was_left_out_is_kept_and_stands_below_the_table(tmp_path):
    measured = result(1.0, left_out={"KerasHub": "its process ended"})
    measured.save(tmp_path)
    read = Result.read(Result.path(tmp_path, "encode", "bfloat16"))
    assert read == measured
    assert read.table().caption == "left out: KerasHub; its process ended"
