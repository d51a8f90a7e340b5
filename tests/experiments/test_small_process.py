"""A job's process ends with the one that started it, and says how it went."""

import signal
import sys

import pytest

from experiments.small import process

# Notes on SIGTERM that it has saved, in the file that is named, and ends as training does.
SAVING = """
import os, signal, sys, time
def save(number, frame):
    open({saved!r}, "w").close()
    sys.exit(143)
signal.signal(signal.SIGTERM, save)
{then}
time.sleep(60)
"""


@pytest.fixture(autouse=True)
def heard():
    """Ctrl-C is heard, even where a shell has started the tests in the background, deaf to it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def python(text):
    return [sys.executable, "-c", text]


def test_a_command_that_goes_well_says_nothing():
    assert process.run(python("")) is None


def test_how_a_command_failed_is_told():
    assert process.run(python("raise SystemExit(2)")) == "failed with exit code 2"
    assert process.run(python("raise SystemExit(137)")) == "failed with exit code 137"


@pytest.mark.parametrize("name", ["SIGKILL", "SIGSEGV"])
def test_a_signal_that_nobody_stops_with_is_a_failure(name):
    number = getattr(signal, name)
    told = process.run(python(f"import os; os.kill(os.getpid(), {int(number)})"))
    assert told == f"was ended by signal {int(number)} ({signal.strsignal(number)})"


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
    ("name", "raised"), [("SIGTERM", SystemExit), ("SIGINT", KeyboardInterrupt)]
)
def test_what_stops_this_process_lets_the_command_save(tmp_path, name, raised):
    saved = tmp_path / "saved"
    then = f"os.kill(os.getppid(), signal.{name})"
    with pytest.raises(raised):
        process.run(python(SAVING.format(saved=str(saved), then=then)))
    assert saved.exists()


def test_what_sigterm_did_before_it_does_again():
    before = signal.getsignal(signal.SIGTERM)
    process.run(python(""))
    assert signal.getsignal(signal.SIGTERM) == before


def test_a_command_that_ends_well_on_sigterm_stops_all():
    ends_well = (
        "import os, signal, sys, time\n"
        "signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))\n"
        "os.kill(os.getppid(), signal.SIGTERM)\n"
        "time.sleep(60)\n"
    )
    with pytest.raises(SystemExit) as stopped:
        process.run(python(ends_well))
    assert stopped.value.code == 143
