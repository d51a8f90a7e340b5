"""What is printed: results, news, warnings, and the progress of long work.

Results go to standard output. News and warnings are records of the logger `bert_tf`, which go to
standard error. Progress is a bar on a terminal, and a line now and then elsewhere.
"""

import collections
import contextlib
import json
import logging
import os
import re
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

from bert_tf.errors import named

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress

_LINE_SECONDS = 10.0  # without a terminal, the seconds between lines of progress
_SHORT_SECONDS = 1.0  # work that takes fewer seconds needs no line of progress
# The rate is measured over the last half minute, at ten moments.
_RATE_SECONDS, _RATE_MOMENTS = 30.0, 10
# Control characters, line separators, and characters that change the direction of the text.
_CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")


def escaped(text: str, kept: str = "") -> str:
    r"""`text` with \uXXXX for characters that control a terminal or its direction; `kept` stays."""
    return _CONTROLS.sub(lambda m: m[0] if m[0] in kept else f"\\u{ord(m[0]):04x}", text)


class _Console(logging.Handler):
    """Writes a record as a line to the current `sys.stderr`; warnings are marked."""

    def emit(self, record: logging.LogRecord) -> None:
        mark = "warning: " if record.levelno >= logging.WARNING else ""
        print(mark + escaped(named(record.getMessage()), "\n"), file=sys.stderr, flush=True)


# The news and warnings of bert_tf. A program with its own log replaces the handler.
logger = logging.getLogger("bert_tf")
logger.addHandler(_Console())
logger.setLevel(logging.INFO)
logger.propagate = False


def be_silent() -> None:
    """Prints nothing from now on, for processes that do the same work as one that prints."""
    logger.disabled = True


@contextlib.contextmanager
def news(shown: bool) -> Iterator[None]:
    """Inside the block, prints news and progress only if `shown`; warnings and results always."""
    before = logger.level
    logger.setLevel(logging.INFO if shown else logging.WARNING)
    try:
        yield
    finally:
        logger.setLevel(before)


@contextlib.contextmanager
def without_native_messages() -> Iterator[None]:
    """Drops what is written to standard error inside the block, as by libraries in C++."""
    sys.stderr.flush()
    try:
        kept = os.dup(2)
    except OSError:  # the process has no standard error
        yield
        return
    try:
        with open(os.devnull, "wb") as nothing:
            os.dup2(nothing.fileno(), 2)
        yield
    finally:
        sys.stderr.flush()
        os.dup2(kept, 2)
        os.close(kept)


def print_metrics(metrics: Mapping[str, float]) -> None:
    """Prints the result of a command as JSON, which people and programs can read."""
    if not logger.disabled:
        print(json.dumps(dict(metrics), indent=2), flush=True)


class Progress(contextlib.AbstractContextManager["Progress"]):
    """The progress of long work, with its rate and the time left. A `with` block closes it even if
    the work fails: a bar hides the cursor. `amount` is the number of units in the first n steps.
    """

    def __init__(
        self,
        title: str,
        total: int | None,
        start: int = 0,
        unit: str = "it",
        amount: Callable[[int], float] = float,
        shown: bool = True,
    ):
        self._shown = shown
        self._title, self._total = title, total
        self._unit, self._amount = unit, amount
        self._began = self._spoken = time.monotonic()
        self._said_last = False
        # (time, step) of the last few moments, so that a slow start does not affect the rate.
        self._moments = collections.deque([(self._spoken, start)])
        self._bar: RichProgress | None = None
        if shown and sys.stderr.isatty() and logger.isEnabledFor(logging.INFO):
            self._open_bar(start)

    def __exit__(self, *error: object) -> None:
        self.close()

    def update(
        self, step: int, metrics: Mapping[str, float] | None = None, line: bool = False
    ) -> None:
        """Shows that `step` steps are done. Without a bar, prints a line now and then if `line`."""
        text = "  ".join(f"{name} {value:.4g}" for name, value in (metrics or {}).items())
        rate, left = self._speed(step)
        if self._bar is not None:
            (task,) = self._bar.task_ids
            self._bar.update(task, completed=step, rate=rate, left=left, metrics=text)
            return
        if not self._shown:
            return
        now = time.monotonic()
        last = step == self._total and now - self._began >= _SHORT_SECONDS
        if last and not self._said_last or line and now - self._spoken >= _LINE_SECONDS:
            self._spoken, self._said_last = now, last
            done = f"{step}" if self._total is None else f"{step}/{self._total}"
            logger.info(f"{self._title}: {done}  {rate}  {left}  {text}".rstrip())

    def close(self) -> None:
        """Ends the bar, and shows the cursor again."""
        if self._bar is not None:
            self._bar.stop()

    def _speed(self, step: int) -> tuple[str, str]:
        now = time.monotonic()
        if now - self._moments[-1][0] >= _RATE_SECONDS / _RATE_MOMENTS:
            self._moments.append((now, step))
            if len(self._moments) > _RATE_MOMENTS:
                self._moments.popleft()
        then, before = self._moments[0]
        done = self._amount(step)
        rate = (done - self._amount(before)) / max(now - then, 1e-9)
        speed = f"{rate:,.0f} {self._unit}/s"
        if self._total is None:
            return speed, ""
        left = (self._amount(self._total) - done) / rate if rate else 0.0
        return speed, f"{clock(left)} left"

    def _open_bar(self, start: int) -> None:
        from rich import console, progress

        self._bar = bar = progress.Progress(
            progress.TextColumn("{task.description}"),
            progress.BarColumn(),
            progress.MofNCompleteColumn(),
            progress.TextColumn("{task.fields[rate]}"),
            progress.TextColumn("{task.fields[left]}  {task.fields[metrics]}"),
            console=console.Console(stderr=True),
        )
        bar.add_task(self._title, total=self._total, completed=start, rate="", left="", metrics="")
        bar.start()


@contextlib.contextmanager
def stages(unit: str = "it") -> Iterator[Callable[[str, int, int], None]]:
    """Yields a function that shows progress: a stage's name, the amount done, and the total."""
    shown: dict[str, Progress] = {}
    with contextlib.ExitStack() as open_one:

        def update(stage: str, done: int, total: int) -> None:
            if stage not in shown:
                open_one.close()
                shown[stage] = open_one.enter_context(Progress(stage, total, unit=unit))
            shown[stage].update(done, line=True)

        yield update


def clock(seconds: float) -> str:
    """A time as hours, minutes and seconds: 83 is 1:23."""
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"
