"""A job's process ends with the one that started it, and says how it went."""

import signal
import sys

import pytest

from bert_tf.experiments.small import process

# On SIGTERM it creates the file `saved`, and ends.
SAVING = """
import os, signal, sys, time
def save(number, frame):
    open({saved!r}, "w").close()
    sys.exit({code})
signal.signal(signal.SIGTERM, save)
{then}
time.sleep(60)
"""


@pytest.fixture(autouse=True)
def heard():
    """Makes Ctrl-C work, even if a shell started the tests in the background to ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def python(text):
    return [sys.executable, "-c", text]


@pytest.mark.parametrize(
    ("end", "told"),
    [
        ("", None),
        ("raise SystemExit(2)", "failed with exit code 2"),
        ("raise SystemExit(137)", "failed with exit code 137"),
        ("os.kill(os.getpid(), 9)", f"was ended by signal 9 ({signal.strsignal(9)})"),
        ("os.kill(os.getpid(), 11)", f"was ended by signal 11 ({signal.strsignal(11)})"),
    ],
)
def test_the_outcome_of_a_command_is_reported(end, told):
    assert process.run(python(f"import os; {end}")) == told


@pytest.mark.parametrize("end", ["raise SystemExit(143)", "os.kill(os.getpid(), 15)"])
def test_a_command_that_sigterm_has_stopped_stops_all(end, capsys):
    with pytest.raises(SystemExit) as stopped:
        process.run(python(f"import os; {end}"))
    assert stopped.value.code == 143
    assert "stopped by SIGTERM; start the same command again" in capsys.readouterr().err


@pytest.mark.parametrize("end", ["raise SystemExit(130)", "os.kill(os.getpid(), 2)"])
def test_a_command_that_ctrl_c_has_stopped_stops_all(end):
    default = "import os, signal; signal.signal(signal.SIGINT, signal.SIG_DFL)"
    with pytest.raises(KeyboardInterrupt):
        process.run(python(f"{default}; {end}"))


@pytest.mark.parametrize(
    ("name", "code", "raised"),
    [
        ("SIGTERM", 143, SystemExit),
        ("SIGTERM", 0, SystemExit),
        ("SIGINT", 143, KeyboardInterrupt),
    ],
)
def test_what_stops_this_process_lets_the_command_save(tmp_path, name, code, raised):
    saved = tmp_path / "saved"
    then = f"os.kill(os.getppid(), signal.{name})"
    with pytest.raises(raised) as stopped:
        process.run(python(SAVING.format(saved=str(saved), code=code, then=then)))
    assert saved.exists()
    assert getattr(stopped.value, "code", 143) == 143


def test_the_previous_handler_of_sigterm_is_restored():
    before = signal.getsignal(signal.SIGTERM)
    process.run(python(""))
    assert signal.getsignal(signal.SIGTERM) == before
