"""Contestants in processes of their own that work only when it is their turn.

A process that waits for its turn sleeps on its standard input, so that libraries do not disturb
each other's threads, and what slows the machine down for a while slows all of them down.
"""

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.allocation import environment
from benchmarks.memory import peak_bytes


class Job(NamedTuple):
    """What a contestant's module prepares.

    Attributes:
        step: does the work once.
        outputs: what it computed last, to compare with the others'; None where that is not done.
        resize: changes how many rows and tokens of each a step has; None where they are fixed.
    """

    step: Callable[[], None]
    outputs: Callable[[], np.ndarray] | None = None
    resize: Callable[[int, int], None] | None = None


class Ended(SystemExit):
    """The process of a contestant ended; unless it is caught, the program ends with the message."""


class Contestant:
    """The parent's side of one process.

    Args:
        module: the module to run, which calls `serve`.
        settings: the input of the module, as plain data: with its `name`, and with `environment`,
            variables to start it with, if it needs any.
        scratch: a folder for its outputs.
    """

    def __init__(self, module: str, settings: dict[str, Any], scratch: Path):
        self.name = settings["name"]
        self._outputs = scratch / f"{self.name.replace(' ', '_')}.npy"
        self._process = subprocess.Popen(
            [sys.executable, "-m", module, json.dumps(settings | {"out": str(self._outputs)})],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment(settings.get("environment")),
        )
        self.seconds: list[float] = []
        self.memory = 0.0

    def turn(self, steps: int) -> None:
        """Lets it do `steps` steps; their times go to `seconds`."""
        answer = self._ask(str(steps))
        self.seconds += answer["seconds"]
        self.memory = answer["memory"]

    def resize(self, batch: int, length: int) -> None:
        """Sets the rows of a step and the tokens of each row; forgets the times so far."""
        self._ask(f"size {batch} {length}")
        self.seconds.clear()

    def outputs(self) -> np.ndarray:
        """What it computed last."""
        self._ask("outputs")
        return np.load(self._outputs)

    def median(self) -> float:
        """Seconds of a step."""
        return statistics.median(self.seconds)

    def close(self) -> None:
        """Ends the process."""
        self._process.stdin.close()
        self._process.wait()

    def _ask(self, question: str) -> dict[str, Any]:
        self._process.stdin.write(question + "\n")
        self._process.stdin.flush()
        for line in self._process.stdout:
            if line.startswith("{"):
                return json.loads(line)
        raise Ended(f"{self.name} ended; its own message is above")


def take_turns(contestants: list[Contestant], rounds: int, steps: int) -> None:
    """`rounds` times `steps` steps of each, in an order that changes, after a warm-up of each."""
    for each in contestants:
        each.turn(3)
        each.seconds.clear()
    for number in range(rounds):
        shift = number % len(contestants)
        for each in contestants[shift:] + contestants[:shift]:
            each.turn(steps)


def serve(prepare: Callable[[dict[str, Any]], Job]) -> None:
    """The child's side: prepares its job, then answers on standard output until input ends.

    Memory is the peak of the process in GiB.
    """
    settings = json.loads(sys.argv[1])
    job = prepare(settings)
    for line in sys.stdin:
        if line.strip() == "outputs":
            np.save(settings["out"], job.outputs())
            print("{}", flush=True)
            continue
        if line.startswith("size"):
            job.resize(*map(int, line.split()[1:]))
            print("{}", flush=True)
            continue
        seconds = []
        for _ in range(int(line)):
            began = time.perf_counter()
            job.step()
            seconds.append(time.perf_counter() - began)
        memory = peak_bytes() / 2**30
        print(json.dumps({"seconds": seconds, "memory": memory}), flush=True)
