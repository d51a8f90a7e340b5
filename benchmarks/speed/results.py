"""What was measured: kept in files, shown as tables and as a picture."""

import dataclasses
import json
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich.table import Table

from benchmarks import kept
from benchmarks.speed.works import PRECISIONS, PREDICT, SHARE_OF_PEAK, WORKS
from bert_tf.errors import UserError
from bert_tf.io.atomic import atomic_path, write_text
from bert_tf.report.plots import new_figure, to_png

OURS = "bert_tf"
# The commit of code that is in no checkout.
UNKNOWN = "unknown"


@dataclasses.dataclass(frozen=True)
class Measured:
    """One contestant.

    Attributes:
        name: what it is called.
        seconds: of each step.
        memory: the peak of its process in GiB.
    """

    name: str
    seconds: list[float]
    memory: float

    @property
    def median(self) -> float:
        """Seconds of a step."""
        return statistics.median(self.seconds)

    @property
    def is_ours(self) -> bool:
        """Whether it is bert_tf."""
        return self.name.startswith(OURS)


@dataclasses.dataclass(frozen=True)
class Result:
    """All contestants of one work in one precision, measured side by side.

    Attributes:
        work: its name in `WORKS`.
        precision: the precision.
        contestants: ours first.
        settings: what it was measured with, of JSON's types.
        share_of_peak: share of the machine's measured peak of matrix products that our fastest
            reaches; None where that was not measured.
        left_out: why a contestant was not measured, by its name.
    """

    work: str
    precision: str
    contestants: list[Measured]
    settings: dict[str, Any]
    share_of_peak: float | None = None
    left_out: dict[str, str] = dataclasses.field(default_factory=dict)

    def save(self, folder: Path) -> None:
        """Writes it into the folder."""
        write_text(
            self.path(folder, self.work, self.precision), json.dumps(dataclasses.asdict(self))
        )

    @classmethod
    def read(cls, path: Path) -> "Result":
        """Reads what `save` wrote, whatever it was measured with."""
        fields = json.loads(path.read_text())
        contestants = [Measured(**each) for each in fields.pop("contestants")]
        return cls(contestants=contestants, **fields)

    @classmethod
    def load(cls, path: Path, settings: dict[str, Any]) -> "Result":
        """Reads what `save` wrote.

        Raises:
            UserError: it was measured with other settings, or with code that no commit identifies.
        """
        result = cls.read(path)
        kept.check(path, result.settings, settings)
        if settings["commit"] == UNKNOWN or settings["commit"].endswith("-dirty"):
            raise UserError(
                f"{path} is of commit {settings['commit']}, which may be other code than now; "
                "remove it or choose another --out"
            )
        return result

    @staticmethod
    def path(folder: Path, work: str, precision: str) -> Path:
        """Where `save` writes it."""
        return folder / f"{work}-{precision}.json"

    def ratio(self, each: Measured) -> float | None:
        """How many times as fast as the fastest peer it is; None where there is no peer."""
        peers = [peer for peer in self.contestants if not peer.is_ours]
        return min(p.median for p in peers) / each.median if peers else None

    @property
    def ours(self) -> Measured:
        """Our fastest contestant."""
        return min((e for e in self.contestants if e.is_ours), key=lambda each: each.median)

    def table(self) -> Table:
        """Every contestant with its ratio to the fastest peer, and below it who was left out."""
        work = WORKS[self.work]
        title = f"{self.work}, {self.precision}, batch {work.batch}"
        table = Table("contestant", "ms", "quartiles", "sequences/s", "GiB", "ratio")
        table.title = title + (f" x {work.length}" if work.length else "")
        table.caption = "\n".join(f"left out: {name}; {why}" for name, why in self.left_out.items())
        for each in self.contestants:
            low, high = np.percentile(each.seconds, [25, 75]) * 1e3
            ratio = self.ratio(each)
            table.add_row(
                each.name,
                f"{each.median * 1e3:.1f}",
                f"{low:.1f}-{high:.1f}",
                f"{work.batch / each.median:.2f}",
                f"{each.memory:.2f}",
                "" if ratio is None else f"{ratio:.2f}",
            )
        return table


def summary(results: Sequence[Result]) -> Table:
    """A line for every goal: ours, the fastest peer, their ratio, what it must be and the aim.

    Memory, in GiB, is compared with that of the peer with the least. Ours is the memory of our
    fastest contestant in training, and of `PREDICT` in answering.
    """
    table = Table(
        "work", "precision", "ours/s", "compared with", "theirs/s", "ratio", "goal", "memory, GiB"
    )
    for result in results:
        work, ours = WORKS[result.work], result.ours
        number = PRECISIONS.index(result.precision)
        peers = [each for each in result.contestants if not each.is_ours]
        if not peers:
            continue
        best = min(peers, key=lambda each: each.median)
        answering = next((e for e in result.contestants if e.name == PREDICT), ours)
        least = min(each.memory for each in peers)
        share, (must, aim) = answering.memory / least, work.memory
        memory = f"{answering.memory:.2f} of {least:.2f}: {share:.2f} of {must} / {aim}"
        memory += _outcome(share <= must, share <= aim)
        ratio = best.median / ours.median
        table.add_row(
            result.work,
            result.precision,
            f"{work.batch / ours.median:.2f}",
            best.name,
            f"{work.batch / best.median:.2f}",
            f"{ratio:.2f}",
            reached(ratio, work.must[number], work.aim[number]),
            memory,
        )
        if result.share_of_peak is not None:
            share, goal = result.share_of_peak, SHARE_OF_PEAK[number]
            verdict = "" if goal is None else f"{goal:.2f}" + _outcome(share >= goal, True)
            table.add_row(
                result.work, result.precision, "", "matmul peak", "", f"{share:.2f}", verdict, ""
            )
    return table


def reached(ratio: float, must: float, aim: float) -> str:
    """A goal, and how far it is met, for a table."""
    return f"{must:.2f} / {aim:.2f}" + _outcome(ratio >= must, ratio >= aim)


def _outcome(is_met: bool, is_aim_met: bool) -> str:
    return " missed" if not is_met else "" if is_aim_met else " met"


def draw(results: Sequence[Result], path: Path) -> None:
    """A PNG with the sequences a second of every contestant.

    There is a row for each work and a column for each precision.
    """
    works = list(dict.fromkeys(result.work for result in results))
    precisions = list(dict.fromkeys(result.precision for result in results))
    # Bars are equally high in all panels.
    bars = [max(len(r.contestants) for r in results if r.work == work) for work in works]
    size = 5.5 * len(precisions), sum(0.5 + 0.2 * each for each in bars)
    figure, panels = new_figure(
        len(works), len(precisions), figsize=size, squeeze=False, height_ratios=bars
    )
    for result in results:
        panel = panels[works.index(result.work), precisions.index(result.precision)]
        batch = WORKS[result.work].batch
        names = [each.name for each in result.contestants]
        rates = [batch / each.median for each in result.contestants]
        quartiles = np.array([np.percentile(e.seconds, [75, 25]) for e in result.contestants])
        spread = np.abs(batch / quartiles.T - np.array(rates))
        colours = ["C1" if each.is_ours else "C0" for each in result.contestants]
        panel.barh(names, rates, xerr=spread, color=colours, ecolor="0.3")
        panel.invert_yaxis()
        title = WORKS[result.work].title
        panel.set_title(f"{title}, {result.precision}: sequences/s", fontsize="medium", loc="right")
        panel.tick_params(labelsize="small")
    with atomic_path(path) as new:
        new.write_bytes(to_png(figure))
