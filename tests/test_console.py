"""What is printed on the console: news or none, and progress with rate and time left."""

import pytest

from bert_tf import console
from bert_tf.console import Progress, be_silent, logger, news, print_metrics


def tell_all():
    logger.info("news")
    logger.warning("careful")
    print_metrics({"accuracy": 0.5})


def test_results_go_to_standard_output_and_all_else_to_standard_error(capsys):
    tell_all()
    told = capsys.readouterr()
    assert told.out == '{\n  "accuracy": 0.5\n}\n'
    assert told.err == "news\nwarning: careful\n"


def test_without_news_there_are_still_warnings_and_results(capsys, clock):
    with news(shown=False):
        tell_all()
        bar = Progress("reading", 100)
        clock[0] += 20
        bar.update(100, line=True)
    told = capsys.readouterr()
    assert (told.out, told.err) == ('{\n  "accuracy": 0.5\n}\n', "warning: careful\n")

    logger.info("news")
    assert capsys.readouterr().err == "news\n"


def test_a_silent_process_prints_nothing(capsys, monkeypatch):
    monkeypatch.setattr(logger, "disabled", False)
    be_silent()
    tell_all()
    assert capsys.readouterr() == ("", "")


@pytest.fixture
def clock(monkeypatch):
    """A clock that is set by hand."""
    time = [1000.0]
    monkeypatch.setattr(console.time, "monotonic", lambda: time[0])
    return time


def test_a_line_tells_rate_and_time_left(clock, capsys):
    bar = Progress("reading", 100, unit="rows")
    clock[0] += 20
    bar.update(40, {"loss": 0.5}, line=True)

    assert capsys.readouterr().err == "reading: 40/100  2 rows/s  0:30 left  loss 0.5\n"


def test_work_of_unknown_length_has_a_rate(clock, capsys):
    bar = Progress("reading", None, unit="rows")
    clock[0] += 20
    bar.update(40, line=True)

    assert capsys.readouterr().err == "reading: 40  2 rows/s\n"


def test_steps_of_different_size_count_for_what_they_are(clock, capsys):
    # Ten steps of 5 tokens, then ten of 50.
    bar = Progress("training", 20, 0, "tokens", lambda step: 5 * step + 45 * max(0, step - 10))
    clock[0] += 10
    bar.update(10, line=True)

    assert capsys.readouterr().err == "training: 10/20  5 tokens/s  1:40 left\n"


def test_what_was_done_before_does_not_count_as_speed(clock, capsys):
    bar = Progress("training", 100, 60)
    clock[0] += 20
    bar.update(80, line=True)

    assert "80/100  1 it/s  0:20 left" in capsys.readouterr().err


def test_lines_are_rare_but_the_last_is_always_there(clock, capsys):
    bar = Progress("reading", 100)
    for step in range(1, 101):
        clock[0] += 1
        bar.update(step, line=True)
    bar.close()

    lines = capsys.readouterr().err.splitlines()
    assert [line.split()[1] for line in lines] == [f"{n}/100" for n in range(10, 101, 10)]


def test_the_last_line_is_said_once_and_not_of_short_work(clock, capsys):
    bar = Progress("reading", 100)
    clock[0] += 0.5
    bar.update(100, line=True)
    assert capsys.readouterr().err == ""

    bar = Progress("reading", 100)
    clock[0] += 2
    bar.update(100, line=True)
    bar.update(100, line=True)
    assert capsys.readouterr().err == "reading: 100/100  50 it/s  0:00 left\n"


def test_work_that_fails_leaves_the_cursor_of_the_terminal_shown(capsys, monkeypatch):
    monkeypatch.setattr(console.sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    with pytest.raises(KeyboardInterrupt), Progress("reading", 100) as bar:
        bar.update(1)
        raise KeyboardInterrupt

    hide, show = "\x1b[?25l", "\x1b[?25h"
    told = capsys.readouterr().err
    assert hide in told and told.rindex(show) > told.rindex(hide)


def test_the_rate_forgets_a_slow_start(clock, capsys):
    bar = Progress("training", 10_000)
    clock[0] += 100
    for step in range(1, 61):
        clock[0] += 1
        bar.update(10 * step, line=True)

    assert "510/10000  10 it/s" in capsys.readouterr().err


def test_a_program_with_a_log_of_its_own_takes_the_records(caplog):
    logger.addHandler(caplog.handler)
    try:
        tell_all()
    finally:
        logger.removeHandler(caplog.handler)
    assert [(each.levelname, each.message) for each in caplog.records] == [
        ("INFO", "news"),
        ("WARNING", "careful"),
    ]
