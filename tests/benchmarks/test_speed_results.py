"""The tables of speed: ratios, goals that are missed, and results that must not be mixed."""

import dataclasses

import pytest

from benchmarks.speed.results import UNKNOWN, Measured, Result, summary
from bert_tf.errors import UserError

SETTINGS = {"threads": 2, "peers": ["openvino", "pytorch"], "commit": "c6fac18"}


def result(
    ours: float, work: str = "encode", precision: str = "bfloat16", memory: float = 1.0, **changes
) -> Result:
    """One step of ours, plain and frozen, beside peers of 2 and 3 seconds and of 1 and 2 GiB."""
    contestants = [
        Measured("bert_tf", [9 * ours], 9.0),
        Measured("bert_tf, frozen", [ours], memory),
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
    assert found.ours.name == "bert_tf, frozen"
    alone = Result("encode", "float32", found.contestants[:2], SETTINGS)
    assert alone.ratio(alone.ours) is None
    assert rows(alone) == []


def test_goals_that_are_met_have_nothing_beside_them():
    assert rows(result(1.0)) == [
        ("encode", "bfloat16", "8.00", "OpenVINO", "4.00", "2.00", "1.05", "1.00 of 1.00 GiB"),
        ("encode", "bfloat16", "8.00", "PyTorch", "2.67", "3.00", "1.25", "1.00 of 1.00 GiB"),
    ]


def test_goals_that_are_missed_say_so():
    best, pytorch = rows(result(2.0, memory=1.5))
    assert best[5:] == ("1.00", "1.05 missed", "1.50 of 1.00 GiB missed")
    assert pytorch[5:] == ("1.50", "1.25", "1.50 of 1.00 GiB missed")


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
def test_results_of_code_that_no_commit_tells_are_not_taken_up(tmp_path, commit):
    settings = SETTINGS | {"commit": commit}
    dataclasses.replace(result(1.0), settings=settings).save(tmp_path)
    with pytest.raises(UserError, match=f"is of commit {commit}, .*; remove it or choose another"):
        Result.load(Result.path(tmp_path, "encode", "bfloat16"), settings)
