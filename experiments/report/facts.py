"""What a report reads from a run folder: settings, results, curves and the pre-training."""

import csv
import dataclasses
import os
from pathlib import Path

from bert_tf.checkpoints import of_run, reading
from bert_tf.config.run import PRETRAINING, PretrainingRun, RunConfig
from bert_tf.encoder.config import EncoderConfig
from bert_tf.errors import UserError
from bert_tf.experiments.report.paper import Benchmark, benchmark_of
from bert_tf.experiments.squad_ensemble import metrics_file
from bert_tf.io.json_files import read_json
from bert_tf.report.curves import Curves, read_curves
from bert_tf.runs.run_folder import CONFIG_FILE, SUMMARY_FILE, RunFolder
from bert_tf.runs.search import cell
from bert_tf.tasks import registry

BERT = "masked LM and next sentence (BERT)"
NO_NSP = "no next sentence"
LEFT_TO_RIGHT = "left-to-right, no next sentence"
RIGHT_TO_LEFT = "right-to-left, no next sentence"
SIDE_BY_SIDE = "both directions side by side"
NONE = "no pre-training"
# Appended to one of these if a BiLSTM was added for the task.
BILSTM = " + BiLSTM"
# In the order of the paper's table 5, followed by the objectives that it does not have.
OBJECTIVES = (
    *(BERT, NO_NSP, LEFT_TO_RIGHT, LEFT_TO_RIGHT + BILSTM),
    *(RIGHT_TO_LEFT, SIDE_BY_SIDE, NONE),
)
_ONE_WAY = {
    "left_to_right": LEFT_TO_RIGHT,
    "right_to_left": RIGHT_TO_LEFT,
    "side_by_side": SIDE_BY_SIDE,
}

# Metrics that are not shares.
_NOT_SHARES = ("loss", "masked_lm_loss", "next_sentence_loss", "perplexity", "perplexity_before")


@dataclasses.dataclass(frozen=True)
class RunOrigin:
    """The pre-training that a run started from.

    Attributes:
        objective: one of `OBJECTIVES`, or one of them with a BiLSTM; "" if it is not known.
        steps: the number of its updates; 0 without pre-training, None if it is not known.
        complete: whether these were all updates of the pre-training.
        perplexity: of the language model at its end, if it is known.
        folder: its run folder, or that of the joined checkpoint for two directions side by side.
    """

    objective: str
    steps: int | None = None
    complete: bool = True
    perplexity: float | None = None
    folder: Path | None = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class RunFacts:
    """A finished run.

    Attributes:
        name: of its folder.
        config: its configuration; for a search, that of the best trial.
        encoder: the sizes of the encoder that it trained.
        benchmark: what it is compared with.
        metrics: its results on its dev data; means if it was run with several seeds.
        deviations: the standard deviations of these means, over the sample of seeds.
        seeds: the number of runs that the metrics are the mean of.
        curves: what it logged in training ("train") and in evaluations ("dev").
        origin: its pre-training.
        ensemble: the metrics of the combined answers of its trials, from `ensemble.json`.
    """

    name: str
    config: RunConfig
    encoder: EncoderConfig
    benchmark: Benchmark
    metrics: dict[str, float]
    deviations: dict[str, float]
    seeds: int
    curves: dict[str, Curves]
    origin: RunOrigin
    ensemble: dict[str, float] | None = None

    @staticmethod
    def read(path: str | os.PathLike, stands_for: str | None = None) -> "RunFacts":
        """Reads the run folder at `path`.

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
        line = _kept_summary(run) or {}
        means = {key: line[key] for key in line if f"{key}_std" in line}
        deviations = {key: line[f"{key}_std"] for key in means}
        return RunFacts(
            name=run.path.resolve().name,
            config=config,
            encoder=encoder,
            benchmark=benchmark,
            metrics=metrics | {key: float(value) for key, value in means.items() if value},
            deviations={key: float(value) for key, value in deviations.items() if value},
            seeds=int(line.get("runs", 1)),
            curves={kind: read_curves(logs / kind) for kind in ("train", "dev")},
            origin=_origin_of(config, encoder),
            ensemble=read_json(together) if together.is_file() else None,
        )

    @property
    def start(self) -> str:
        """The name of the checkpoint that it started from."""
        checkpoint = self.config.source
        return Path(checkpoint).name if checkpoint else "random"

    @property
    def train_rows(self) -> int | None:
        """The number of first rows that it trained on; None if it trained on all."""
        return getattr(self.config.data, "train_rows", None)

    @property
    def features(self) -> str | None:
        """The activations of a frozen encoder that a tagger reads; None if all was trained."""
        return getattr(self.config.model, "features", None)

    @property
    def size(self) -> tuple[int, int, int]:
        """Layers, width and heads."""
        sizes = self.encoder
        return sizes.num_hidden_layers, sizes.hidden_size, sizes.num_attention_heads

    def value(self, metric: str) -> float | None:
        """A metric; shares are in percent."""
        value = self.metrics.get(metric)
        return None if value is None else self.scale(metric) * value

    def shown(self, metric: str) -> str:
        """The text of a metric in a table, with the deviation if there is one."""
        value, deviation = self.value(metric), self.deviations.get(metric)
        if value is None:
            return ""
        text = f"{value:.1f}"
        return text if deviation is None else f"{text} ± {self.scale(metric) * deviation:.1f}"

    def scale(self, metric: str) -> float:
        """The factor that makes a metric a percentage; SQuAD's metrics are percentages already."""
        task = self.config.task
        in_percent = task != PRETRAINING and registry.family(task).in_percent
        return 1.0 if in_percent or metric in _NOT_SHARES else 100.0


def _logs(run: RunFolder[RunConfig]) -> Path:
    if not run.config.searched:
        return run.logs
    # Other folders may be among the trials.
    configs = sorted(run.trials.glob(f"*/{CONFIG_FILE}"))
    trials = [RunFolder.open(config.parent) for config in configs]
    best = [trial.logs for trial in trials if trial.config.train == run.trained_with.train]
    return best[0] if best else run.logs


def _origin_of(config: RunConfig, encoder: EncoderConfig) -> RunOrigin:
    """The pre-training of a fine-tuned run, if bert_tf made it or if there was none."""
    unknown = RunOrigin("")
    if config.task == PRETRAINING:
        return unknown
    checkpoint = config.source
    top = BILSTM if encoder.bilstm else ""
    if checkpoint is None:
        return RunOrigin(NONE + top, 0)
    path = Path(checkpoint)
    if encoder.attention == "side_by_side":
        return RunOrigin(SIDE_BY_SIDE + top, folder=path.resolve())
    step = _step(path)
    try:
        run = RunFolder.open(path if step is None else path.parent.parent)
        # Only the last checkpoint of a run by epochs says how many steps it has.
        total = run.config.train.steps or _step(of_run.newest(run.path))
    except UserError:
        return unknown
    if not isinstance(run.config, PretrainingRun):
        return unknown
    both_ways = BERT if run.config.data.next_sentence else NO_NSP
    objective = _ONE_WAY.get(encoder.attention, both_ways)
    perplexity = (run.read_metrics() or {}).get("perplexity")
    steps = total if step is None else step
    return RunOrigin(objective + top, steps, steps == total, perplexity, run.path.resolve())


def _step(checkpoint: Path) -> int | None:
    """The step of one checkpoint of a run; None for any other path."""
    number = checkpoint.name.removeprefix("step-")
    return int(number) if number != checkpoint.name and number.isdigit() else None


def _kept_summary(run: RunFolder[RunConfig]) -> dict[str, str] | None:
    """The line of `summary.tsv` of the setting that a search over seeds has kept."""
    path = run.path / SUMMARY_FILE
    if "seed" not in run.config.searched or not path.is_file():
        return None
    train = run.trained_with.train
    kept = {key: cell(getattr(train, key)) for key in run.config.searched if key != "seed"}
    with path.open(encoding="utf-8", newline="") as file:
        rows = csv.DictReader(file, delimiter="\t")
        return next((row for row in rows if kept.items() <= row.items()), None)
