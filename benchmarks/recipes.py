"""Which recipe of fine-tuning is best on average: BERT's own, with one part changed at a time.

    python -m benchmarks.recipes --checkpoint FOLDER --data DATA --glue GLUE --squad SQUAD \
        --out runs/recipes

The tasks and their settings are those of `benchmarks.quality`, as are the folders. Each recipe is
trained on each task with each seed and scored on the dev file. Each run is a run folder in `--out`;
started again with the same arguments, the script does the rest. Seeds are paired: the head, the
rows and their order are the same for all recipes. The table has the mean over the seeds of the
metric that decides, in percent, and the mean difference to the first recipe with its standard
error.
"""

import argparse
import json
import statistics
import sys
from pathlib import Path
from typing import Any

import keras
from rich.console import Console
from rich.table import Table

import bert_tf
from benchmarks.arguments import existing
from benchmarks.quality.tasks import AS_TRANSFORMERS, QualityTask, tasks
from bert_tf import runs
from bert_tf.cli import command
from bert_tf.config.reading import load_config_for
from bert_tf.config.run import FinetuningRun
from bert_tf.errors import UserError

# Settings that are factors in a recipe.
FACTORS = {"epochs", "learning_rate"}
# Changes of the section `train`; `reinitialized` is a number of top layers.
RECIPES: dict[str, dict[str, Any]] = {
    "BERT's": {},
    "bias correction": {"bias_correction": True},
    "bias correction, decay after the warm-up": {
        "bias_correction": True,
        "decay_after_warmup": True,
    },
    "rows at random": {"group_by_length": False},
    "layer decay 0.9": {"layer_decay": 0.9},
    "twice the epochs": {"epochs": 2},
    "top layer new": {"reinitialized": 1},
    "adapter of rank 8, four times the rate": {"lora": 8, "learning_rate": 4},
    "adapter of rank 8, ten times the rate": {"lora": 8, "learning_rate": 10},
    "the same with bias correction": {"lora": 8, "learning_rate": 10, "bias_correction": True},
    "all of transformers'": AS_TRANSFORMERS,
}


def main() -> int:
    """Runs what is not done yet, prints the table; gives the exit code (`bert_tf.cli.command`)."""
    parser = command.module_parser("benchmarks.recipes", __doc__)
    parser.add_argument("--checkpoint", type=existing, required=True, help="what they start from")
    parser.add_argument("--data", type=Path, default=Path("data"), help="holds wnut17 and codah")
    parser.add_argument("--glue", type=Path, default=Path("glue"), help="holds SST-2 and CoLA")
    parser.add_argument("--squad", type=Path, default=Path("squad"), help="SQuAD split by article")
    parser.add_argument("--tasks", nargs="+", metavar="NAME", help="some of the tasks")
    parser.add_argument("--recipes", nargs="+", choices=[*RECIPES], default=[*RECIPES])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--out", type=Path, required=True)
    stopped = "stopped; start it again to do the rest"
    return command.run("recipes", parser, None, compare, stopped)


def compare(arguments: argparse.Namespace) -> None:
    """Trains all models, and prints how the recipes differ."""
    known = tasks(*(path.resolve() for path in (arguments.data, arguments.glue, arguments.squad)))
    names = arguments.tasks or [*known]
    if unknown := {*names} - {*known}:
        raise UserError(f"unknown --tasks {', '.join(unknown)}; choose of {', '.join(known)}")
    scores: dict[str, dict[str, list[float]]] = {}
    for seed in arguments.seeds:
        for name in names:
            for recipe in arguments.recipes:
                folder = arguments.out / name.replace(" ", "_")
                found = score(known[name], recipe, seed, folder, arguments.checkpoint)
                scores.setdefault(name, {}).setdefault(recipe, []).append(found)
    Console(width=120).print(table(scores))


def score(task: QualityTask, recipe: str, seed: int, folder: Path, checkpoint: Path) -> float:
    """The deciding metric of a run in percent; the run is trained unless that was done."""
    changes = dict(RECIPES[recipe])
    if layers := changes.pop("reinitialized", 0):
        checkpoint = reinitialized(checkpoint, layers, seed, folder.parent)
    changes |= {key: changes[key] * task.settings[key] for key in FACTORS & {*changes}}
    data = task.without_test(folder / "data")
    given = task.overrides(str(checkpoint.absolute()), seed, data.absolute(), changes)
    config = load_config_for("benchmarks.recipes", FinetuningRun, task.config, given)
    name = recipe.replace(",", "").replace(" ", "_").replace("'", "")
    run = folder / f"{name}_seed{seed}"
    done = run / "metrics.json"
    metrics = json.loads(done.read_text()) if done.exists() else runs.finetune(config, run)
    return task.percent * metrics[task.metric]


def reinitialized(checkpoint: Path, layers: int, seed: int, out: Path) -> Path:
    """A copy of a checkpoint whose top layers are drawn anew (Zhang et al. 2021, section 4)."""
    folder = out / f"top{layers}_seed{seed}"
    if not folder.exists():
        model = bert_tf.TextEmbedder.from_checkpoint(checkpoint)
        width = model.encoder.config.initializer_range
        source = keras.random.SeedGenerator(seed)
        draw = keras.initializers.TruncatedNormal(stddev=width, seed=source)
        for block in model.encoder.blocks[-layers:]:
            for weight in block.weights:
                if "kernel" in weight.name:
                    weight.assign(draw(weight.shape))
                else:
                    weight.assign(keras.ops.full(weight.shape, float("gamma" in weight.name)))
        model.save_checkpoint(folder)
    return folder


def table(scores: dict[str, dict[str, list[float]]]) -> Table:
    """A line for each recipe: for each task the mean, and the difference to the first recipe."""
    found = Table("recipe", *scores, "mean difference")
    first = next(iter(next(iter(scores.values()))))
    for recipe in next(iter(scores.values())):
        cells, means = [], []
        for each in scores.values():
            values, base = each[recipe], each[first]
            differences = [one - other for one, other in zip(values, base, strict=True)]
            means.append(statistics.fmean(differences))
            error = statistics.stdev(differences) / len(values) ** 0.5 if len(values) > 1 else 0.0
            cells.append(f"{statistics.fmean(values):.1f} ({means[-1]:+.1f} ± {error:.1f})")
        found.add_row(recipe, *cells, f"{statistics.fmean(means):+.2f}")
    return found


if __name__ == "__main__":
    sys.exit(main())
