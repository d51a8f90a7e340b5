"""Which recipe of fine-tuning is best on average: BERT's own, with one part changed at a time.

    python -m benchmarks.recipes --checkpoint FOLDER --out runs/recipes --seeds 0 1 2 \
        --configs experiments/ner/wnut17.yaml experiments/swag/codah.yaml \
        --data DATA/wnut17 DATA/codah --set train.epochs=3 train.batch_size=16

Each recipe is trained on each task with each seed and scored on the dev file. Each run is a run
folder in `--out`; started again with the same arguments, the script does the rest. Seeds are
paired: the head, the rows and their order are the same for all recipes. The table has the mean over
the seeds of the metric that decides, in percent, and the mean difference to the first recipe with
its standard error.
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
from bert_tf import runs
from bert_tf.cli import command
from bert_tf.config.reading import load_config_for
from bert_tf.config.run import FinetuningRun
from bert_tf.errors import UserError
from bert_tf.tasks import registry

# Changes of the section `train`; `epochs` and `learning_rate` are factors, `reinitialized` is a
# number of top layers.
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
    "adapter of rank 8, ten times the rate": {"lora": 8, "learning_rate": 10},
    "all of transformers'": {
        "bias_correction": True,
        "adam_epsilon": 1e-8,
        "decay_after_warmup": True,
        "group_by_length": False,
    },
}


def main() -> int:
    """Runs what is not done yet, prints the table; gives the exit code (`bert_tf.cli.command`)."""
    parser = command.module_parser("benchmarks.recipes", __doc__)
    parser.add_argument("--configs", type=existing, nargs="+", required=True, help="YAML files")
    parser.add_argument("--data", type=existing, nargs="+", required=True, help="their folders")
    parser.add_argument("--checkpoint", type=existing, required=True, help="what they start from")
    parser.add_argument("--recipes", nargs="+", choices=[*RECIPES], default=[*RECIPES])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--set", nargs="+", default=[], help="settings laid over the YAML files")
    stopped = "stopped; start it again to do the rest"
    return command.run("recipes", parser, None, compare, stopped)


def compare(arguments: argparse.Namespace) -> None:
    """Trains all models, and prints how the recipes differ."""
    if len(arguments.configs) != len(arguments.data):
        raise UserError("--data needs one folder for each file of --configs")
    scores: dict[str, dict[str, list[float]]] = {}
    for seed in arguments.seeds:
        for path, data in zip(arguments.configs, arguments.data, strict=True):
            for recipe in arguments.recipes:
                found = score(arguments, path, data, recipe, seed)
                scores.setdefault(path.stem, {}).setdefault(recipe, []).append(100 * found)
    Console(width=110).print(table(scores))


def score(arguments: argparse.Namespace, path: Path, data: Path, recipe: str, seed: int) -> float:
    """The deciding metric of a run, which is trained unless that was done."""
    changes = dict(RECIPES[recipe])
    checkpoint = arguments.checkpoint
    if layers := changes.pop("reinitialized", 0):
        checkpoint = reinitialized(checkpoint, layers, seed, arguments.out)
    settings = {"data.path": data.absolute(), "init.checkpoint": checkpoint.absolute()}
    # The dev file is scored once, at the end.
    settings |= {"train.seed": seed, "train.eval_steps": 1_000_000, "data.test": ""}
    given = [*arguments.set, *(f"{key}={value}" for key, value in settings.items())]
    config = load_config_for("benchmarks.recipes", FinetuningRun, path, given)
    if config.searched:
        raise UserError(f"train.{next(iter(config.searched))} is a list; take one value with --set")
    for key in changes.keys() & {"epochs", "learning_rate"}:
        changes[key] *= getattr(config.train, key)
    given += [f"train.{key}={value}" for key, value in changes.items()]
    config = load_config_for("benchmarks.recipes", FinetuningRun, path, given)
    name = recipe.replace(",", "").replace(" ", "_").replace("'", "")
    folder = arguments.out / path.stem / f"{name}_seed{seed}"
    done = folder / "metrics.json"
    metrics = json.loads(done.read_text()) if done.exists() else runs.finetune(config, folder)
    return metrics[registry.family(config.task).task_class().best_metric_of(config)]


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
