"""How much of a teacher's score its students keep, with distillation and with labels alone.

    python -m benchmarks.distillation --config experiments/ner/wnut17.yaml --checkpoint FOLDER \
        --layers 3 2 --seeds 0 1 2 --out runs/distillation \
        --set data.path=wnut17 train.learning_rate=5e-5

For each seed, the checkpoint is fine-tuned as the YAML file says: the teacher. For each number of
layers, a student that starts from layers of the teacher is trained in several ways, with the same
data, epochs and seed: on the labels alone, also on the teacher's outputs, and also on its relations
or its hidden states. Each run is a run folder in `--out`; started again with the same arguments,
the script does what is left. The table has mean and standard deviation over the seeds of the task's
main metric, on the dev file.
"""

import argparse
import json
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

import bert_tf
from benchmarks.arguments import existing
from bert_tf import runs
from bert_tf.cli import command
from bert_tf.config import yaml_files
from bert_tf.config.reading import load_config_for
from bert_tf.config.run import FinetuningRun
from bert_tf.errors import UserError
from bert_tf.io.atomic import write_text
from bert_tf.tasks import registry

# The distillation settings of each way; None trains on the labels alone.
WAYS: dict[str, dict[str, float] | None] = {
    "labels alone": None,
    "soft targets": {},
    "soft targets, relations": {"relations": 1.0},
    "soft targets, hidden states, attention": {"hidden": 1.0, "attention": 1.0},
}


def main() -> int:
    """Runs what is not done yet, prints the table; gives the exit code (`bert_tf.cli.command`)."""
    parser = command.module_parser("benchmarks.distillation", __doc__)
    parser.add_argument("--config", type=existing, required=True, help="YAML of a fine-tuning")
    parser.add_argument("--checkpoint", type=existing, required=True, help="what it starts from")
    parser.add_argument("--layers", type=int, nargs="+", default=[3, 2], help="of the students")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--ways", nargs="+", choices=[*WAYS], default=[*WAYS])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--set", nargs="+", default=[], help="settings laid over the YAML file")
    stopped = "stopped; start it again to do the rest"
    return command.run("distillation", parser, None, compare, stopped)


def compare(arguments: argparse.Namespace) -> None:
    """Trains all models, and prints how much of its teacher's score each student keeps."""
    changes = [*arguments.set, f"init.checkpoint={arguments.checkpoint.absolute()}"]
    first = load_config_for("benchmarks.distillation", FinetuningRun, arguments.config, changes)
    if first.searched:
        raise UserError(
            f"train.{next(iter(first.searched))} is a list; take one value, as in --set "
            "train.learning_rate=5e-5"
        )
    metric = registry.family(first.task).task_class().best_metric_of(first)
    scores: dict[tuple[str, str], list[float]] = {}
    for seed in arguments.seeds:
        plan = Plan(first, arguments.out / f"seed{seed}", seed)
        teacher = plan.teacher()[metric]
        scores.setdefault(("teacher", ""), []).append(teacher)
        for layers in arguments.layers:
            for way in arguments.ways:
                found = plan.student(layers, way)[metric]
                scores.setdefault((f"{layers} layers", way), []).append(found)
    Console(width=110).print(table(scores, metric))


class Plan:
    """The runs of one seed.

    Args:
        config: the teacher's configuration.
        folder: where the runs are.
        seed: the seed of all runs.
    """

    def __init__(self, config: FinetuningRun, folder: Path, seed: int):
        self._config, self._folder, self._seed = config, folder, seed

    def teacher(self) -> dict[str, float]:
        """The metrics of the teacher."""
        return self._metrics("teacher", {})

    def student(self, layers: int, way: str) -> dict[str, float]:
        """The metrics of a student."""
        start = self._folder / f"start{layers}"
        if not start.exists():
            teacher = bert_tf.load(self._folder / "teacher")
            teacher.student(layers).save_checkpoint(start)
        changes: dict[str, Any] = {"init": {"checkpoint": str(start.absolute())}}
        losses = WAYS[way]
        if losses is not None:
            teacher_run = str((self._folder / "teacher").absolute())
            changes["distillation"] = {"teacher": teacher_run} | losses
        name = f"{layers} layers {way}".replace(",", "").replace(" ", "_")
        return self._metrics(name, changes)

    def _metrics(self, name: str, changes: dict[str, Any]) -> dict[str, float]:
        """The metrics of a run; trains it unless that is done."""
        done = self._folder / name / "metrics.json"
        if done.exists():
            return json.loads(done.read_text())
        values = self._config.model_dump(mode="json") | changes
        values["train"] |= {"seed": self._seed}
        path = self._folder / f"{name}.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        write_text(path, yaml_files.write(values))
        config = load_config_for("benchmarks.distillation", FinetuningRun, path)
        return runs.finetune(config, self._folder / name)


def table(scores: dict[tuple[str, str], list[float]], metric: str) -> Table:
    """Mean and standard deviation over the seeds, and the share of the teacher's score."""
    teacher = scores["teacher", ""]
    found = Table("model", "trained on", metric, "of the teacher's", "seeds")
    for (model, way), values in scores.items():
        shares = [100 * value / best for value, best in zip(values, teacher, strict=True)]
        kept = _in_words(shares, 1) + " %"
        found.add_row(model, way, _in_words(values, 4), kept, str(len(values)))
    return found


def _in_words(values: Sequence[float], digits: int) -> str:
    """The mean, with the standard deviation if there is more than one value."""
    mean = f"{statistics.fmean(values):.{digits}f}"
    return mean if len(values) < 2 else f"{mean} ± {statistics.stdev(values):.{digits}f}"


if __name__ == "__main__":
    sys.exit(main())
