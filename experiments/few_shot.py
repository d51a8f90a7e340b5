"""Few labels: SetFit in bert_tf, ordinary fine-tuning and setfit itself, on the same draws.

    python -m experiments.few_shot --data sst2 --checkpoint all-MiniLM-L6-v2 --out few_shot

In each of ten draws, as many rows of each label as `--per-label` says are drawn from
DATA/train.tsv, each method learns from them, and DATA/dev.tsv is scored. setfit 1.2 or later is
compared if it is installed. Results are in OUT/results.json, and a stopped command goes on where it
was. In the end a table is printed: the mean accuracy of each method with its standard error, and
the mean of its differences to few_shot.
"""

import argparse
import csv
import importlib.util
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from bert_tf.cli import command
from bert_tf.errors import UserError
from bert_tf.io.atomic import write_text

Rows = tuple[list[str], list[str]]


def main() -> int:
    """Runs what is missing and prints the table; returns the exit code."""
    parser = command.module_parser("experiments.few_shot", __doc__)
    parser.add_argument("--data", type=Path, required=True, help="holds train.tsv and dev.tsv")
    parser.add_argument("--checkpoint", required=True, help="an embedder of sentence-transformers")
    parser.add_argument("--out", type=Path, required=True, help="folder of the results")
    parser.add_argument("--per-label", type=int, default=8, help="rows of each label (%(default)s)")
    parser.add_argument("--draws", type=int, default=10, help="how many (%(default)s)")
    parser.add_argument("--text", default="text", help="column of the text (%(default)s)")
    parser.add_argument("--label", default="label", help="column of the label (%(default)s)")
    parser.add_argument("--epochs", type=int, default=20, help="of fine-tuning (%(default)s)")
    stopped = "stopped; start the same command again to go on"
    return command.run("few_shot", parser, None, _work, stopped)


def _work(given: argparse.Namespace) -> None:
    train, dev = (_read(given.data / f"{split}.tsv", given) for split in ("train", "dev"))
    methods: dict[str, Callable[[Rows, Rows, int], float]] = {
        "few_shot": lambda few, dev, seed: _ours(given, few, dev, seed, few_shot=True),
        "fine-tuning": lambda few, dev, seed: _ours(
            given, few, dev, seed, epochs=given.epochs, batch_size=8
        ),
    }
    if importlib.util.find_spec("setfit") is not None:
        methods["setfit"] = lambda few, dev, seed: _setfit(given, few, dev, seed)
    path = given.out / "results.json"
    found = json.loads(path.read_text()) if path.exists() else {}
    given.out.mkdir(parents=True, exist_ok=True)
    for seed in range(given.draws):
        few = _drawn(train, given.per_label, seed)
        for name, method in methods.items():
            key = f"{name} {given.checkpoint} {given.per_label} {seed}"
            if key not in found:
                begin = time.monotonic()
                found[key] = method(few, dev, seed), time.monotonic() - begin
                write_text(path, json.dumps(found, indent=2))
    accuracies = {
        name: np.array(
            [
                found[f"{name} {given.checkpoint} {given.per_label} {seed}"][0]
                for seed in range(given.draws)
            ]
        )
        for name in methods
    }
    print("| method | accuracy | less few_shot |\n|---|---|---|")
    for name, values in accuracies.items():
        print(f"| {name} | {_mean(values)} | {_mean(values - accuracies['few_shot'])} |")


def _read(path: Path, given: argparse.Namespace) -> Rows:
    """The texts and the labels of a file."""
    try:
        with path.open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
        return [row[given.text] for row in rows], [row[given.label] for row in rows]
    except (OSError, KeyError) as error:
        raise UserError(
            f"{path}: no column or file {error}; give --data, --text and --label"
        ) from None


def _drawn(rows: Rows, count: int, seed: int) -> Rows:
    """So many random rows of each label."""
    texts, labels = map(np.array, rows)
    source = np.random.default_rng(seed)
    chosen = [
        source.choice(np.flatnonzero(labels == label), count, replace=False)
        for label in np.unique(labels)
    ]
    places = source.permutation(np.concatenate(chosen))
    return texts[places].tolist(), labels[places].tolist()


def _ours(given: argparse.Namespace, few: Rows, dev: Rows, seed: int, **options: object) -> float:
    """The accuracy of a `TextClassifier`."""
    import keras

    from bert_tf import TextClassifier

    keras.utils.set_random_seed(seed)
    model = TextClassifier.from_checkpoint(given.checkpoint)
    model.fit(*few, seed=seed, verbose=0, **options)
    return model.evaluate(*dev, verbose=0)["accuracy"]


def _setfit(given: argparse.Namespace, few: Rows, dev: Rows, seed: int) -> float:
    """The accuracy of setfit, with its defaults and the length that `TextClassifier` has."""
    from datasets import Dataset
    from setfit import SetFitModel, Trainer, TrainingArguments

    model = SetFitModel.from_pretrained(given.checkpoint)
    model.model_body.max_seq_length = 128
    arguments = TrainingArguments(
        str(given.out / "setfit"), seed=seed, report_to="none", save_strategy="no"
    )
    rows = Dataset.from_dict(dict(zip(("text", "label"), few, strict=True)))
    Trainer(model, arguments, train_dataset=rows).train()
    return float(np.mean(np.array(model.predict(dev[0])) == np.array(dev[1])))


def _mean(values: np.ndarray) -> str:
    """A mean and its standard error, in percent."""
    error = values.std(ddof=1) / len(values) ** 0.5 if len(values) > 1 else 0.0
    return f"{100 * values.mean():.1f} ± {100 * error:.1f}"


if __name__ == "__main__":
    sys.exit(main())
