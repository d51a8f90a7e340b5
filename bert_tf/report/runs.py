"""What a report reads from a run folder."""

import dataclasses
import os
from collections.abc import Sequence
from pathlib import Path

from bert_tf.checkpoints import reading
from bert_tf.config.run import PRETRAINING, RunConfig
from bert_tf.encoder.config import EncoderConfig
from bert_tf.errors import UserError
from bert_tf.io.json_files import read_json
from bert_tf.report.curves import Curves, read_curves
from bert_tf.report.origin import Origin, origin_of
from bert_tf.report.paper import Benchmark, benchmark_of
from bert_tf.runs.run_folder import CONFIG_FILE, RunFolder
from bert_tf.runs.search import kept_summary
from bert_tf.tasks import registry
from bert_tf.tasks.question_answering.squad_ensemble import metrics_file

# Metrics that are no shares.
_NOT_SHARES = ("loss", "masked_lm_loss", "next_sentence_loss", "perplexity")


@dataclasses.dataclass(frozen=True)
class Repeated:
    """The results of the best setting of a search over several seeds.

    Attributes:
        runs: how many seeds.
        means, deviations: by metric; the deviation is that of the sample.
    """

    runs: int
    means: dict[str, float]
    deviations: dict[str, float]


@dataclasses.dataclass(frozen=True, kw_only=True)
class RunFacts:
    """A finished run.

    Attributes:
        name: of its folder.
        config: what it did; of a search, its best trial.
        encoder: the sizes of what it trained.
        benchmark: what it is compared with.
        metrics: on its dev data.
        repeated: the same over several seeds, if it was run so.
        curves: what it logged while training ("train") and evaluating ("dev").
        ensemble: metrics of the answers of its trials together, if they are in `ensemble.json`.
    """

    name: str
    config: RunConfig
    encoder: EncoderConfig
    benchmark: Benchmark
    metrics: dict[str, float]
    repeated: Repeated | None
    curves: dict[str, Curves]
    ensemble: dict[str, float] | None = None

    @staticmethod
    def read(path: str | os.PathLike, stands_for: str | None = None) -> "RunFacts":
        """The facts of the run folder at `path`: `TracedFacts` where its pre-training is known.

        Args:
            path: the folder.
            stands_for: see `benchmark_of`.

        Raises:
            UserError: that is no run folder, or its run has not finished.
        """
        run = RunFolder.open(path)
        metrics = run.read_metrics()
        if metrics is None:
            raise UserError(
                f"{path} has no metrics.json yet; let the run finish, or remove it from the command"
            )
        config = run.trained_with
        benchmark = benchmark_of(config, stands_for)
        logs = _logs(run)
        encoder = reading.find(run.path).encoder
        together = metrics_file(run.path / "ensemble.json")
        facts = RunFacts(
            name=run.path.resolve().name,
            config=config,
            encoder=encoder,
            benchmark=benchmark,
            metrics=metrics,
            repeated=_repeated(run),
            curves={kind: read_curves(logs / kind) for kind in ("train", "dev")},
            ensemble=read_json(together) if together.is_file() else None,
        )
        origin = origin_of(config, encoder)
        return facts if origin is None else TracedFacts(**vars(facts), origin=origin)

    @property
    def start(self) -> str:
        """Name of the checkpoint that it started from."""
        checkpoint = self.config.source
        return Path(checkpoint).name if checkpoint else "random"

    @property
    def train_rows(self) -> int | None:
        """To how many of the first rows its training data was cut; None where it had all."""
        return getattr(self.config.data, "train_rows", None)

    @property
    def seeds(self) -> int:
        """How many runs its metrics are the mean of."""
        return self.repeated.runs if self.repeated else 1

    def value(self, metric: str) -> float | None:
        """A metric, shares in percent: the mean over the seeds where there are several."""
        value = self.metrics.get(metric)
        if self.repeated is not None:
            value = self.repeated.means.get(metric, value)
        return None if value is None else self.scale(metric) * value

    def shown(self, metric: str) -> str:
        """The same for a table, with the deviation where there is one."""
        value = self.value(metric)
        if value is None:
            return ""
        deviation = None if self.repeated is None else self.repeated.deviations.get(metric)
        text = f"{value:.1f}"
        return text if deviation is None else f"{text} ± {self.scale(metric) * deviation:.1f}"

    def scale(self, metric: str) -> float:
        """What a metric is multiplied with to be in percent; SQuAD's are in percent already."""
        task = self.config.task
        in_percent = task != PRETRAINING and registry.family(task).in_percent
        return 1.0 if in_percent or metric in _NOT_SHARES else 100.0


@dataclasses.dataclass(frozen=True, kw_only=True)
class TracedFacts(RunFacts):
    """A finished run whose pre-training is known: a run of bert_tf, or none.

    Attributes:
        origin: the pre-training.
    """

    origin: Origin


def training_parts(facts: Sequence[RunFacts]) -> list[str]:
    """Which runs trained on the first rows of their data only; the paper's had all."""
    parts: dict[tuple[str, int], list[str]] = {}
    for each in facts:
        if each.train_rows is not None:
            parts.setdefault((each.benchmark.title, each.train_rows), []).append(each.name)
    return [
        f"{title}: these were trained on the first {rows:,} rows only: {', '.join(names)}."
        for (title, rows), names in parts.items()
    ]


def _logs(run: RunFolder[RunConfig]) -> Path:
    """What a run has logged; of a search, its best trial."""
    if not run.config.search:
        return run.logs
    # Whatever else somebody keeps there.
    configs = sorted(run.trials.glob(f"*/{CONFIG_FILE}"))
    trials = [RunFolder.open(config.parent) for config in configs]
    best = [trial.logs for trial in trials if trial.config.train == run.trained_with.train]
    return best[0] if best else run.logs


def _repeated(run: RunFolder[RunConfig]) -> Repeated | None:
    """The line in `summary.tsv`, which a search over seeds has, of the setting that is kept."""
    best = kept_summary(run)
    if best is None:
        return None
    found = {key: value for key, value in best.items() if value}
    return Repeated(
        runs=int(best["runs"]),
        means={key: float(value) for key, value in found.items() if f"{key}_std" in best},
        deviations={
            key.removesuffix("_std"): float(value)
            for key, value in found.items()
            if key.endswith("_std")
        },
    )
