"""Few labels: SetFit in bert_tf, ordinary fine-tuning and setfit itself, on the same draws.

    python -m bert_tf.experiments.few_shot --data sst2 --checkpoint all-MiniLM-L6-v2 --out few_shot

In each of ten draws, as many rows of each label as `--per-label` says are drawn from
DATA/train.tsv, each method learns from them, and DATA/dev.tsv is scored. setfit 1.2 or later is
compared if it is installed. Results are in OUT/results.json, and a stopped command goes on where it
was. In the end a table is printed: the mean accuracy of each method with its standard error, and
the mean of its differences to few_shot.
"""

import csv
import functools
import importlib.util
import json
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bert_tf.cli.command import option
from bert_tf.errors import UserError
from bert_tf.experiments import program
from bert_tf.io.atomic import write_text

Rows = tuple[list[str], list[str]]


def main(argv: Sequence[str] | None = None) -> int:
    """Runs what is missing and prints the table; returns the exit code."""
    return program(
        "few_shot",
        __doc__,
        argv,
        _work,
        option("--data DIR", "holds train.tsv and dev.tsv", type=Path, required=True),
        option("--checkpoint PATH", "an embedder of sentence-transformers", required=True),
        option("--out DIR", "folder of the results", type=Path, required=True),
        option("--per-label N", "rows of each label (%(default)s)", default=8),
        option("--draws N", "number of random draws (%(default)s)", default=10),
        option("--text NAME", "column of the text (%(default)s)", default="text"),
        option("--label NAME", "column of the label (%(default)s)", default="label"),
        option("--epochs N", "epochs of fine-tuning (%(default)s)", default=20),
        stopped="stopped; start the same command again to go on",
    )


def _work(
    data: Path,
    checkpoint: str,
    out: Path,
    per_label: int,
    draws: int,
    text: str,
    label: str,
    epochs: int,
) -> None:
    train, dev = (_read(data / f"{split}.tsv", text, label) for split in ("train", "dev"))
    methods: dict[str, Callable[..., float]] = {
        "few_shot": functools.partial(_ours, few_shot=True),
        "fine-tuning": functools.partial(_ours, epochs=epochs, batch_size=8),
    }
    if importlib.util.find_spec("setfit") is not None:
        methods["setfit"] = functools.partial(_setfit, folder=out / "setfit")
    path = out / "results.json"
    found = json.loads(path.read_text()) if path.exists() else {}
    accuracies: dict[str, list[float]] = {name: [] for name in methods}
    for seed in range(draws):
        few = _drawn(train, per_label, seed)
        for name, method in methods.items():
            key = f"{name} {checkpoint} {per_label} {seed}"
            if key not in found:
                begin = time.monotonic()
                found[key] = method(checkpoint, few, dev, seed), time.monotonic() - begin
                write_text(path, json.dumps(found, indent=2))
            accuracies[name].append(found[key][0])
    print("| method | accuracy | less few_shot |\n|---|---|---|")
    for name, values in accuracies.items():
        less = np.subtract(values, accuracies["few_shot"])
        print(f"| {name} | {_mean(np.array(values))} | {_mean(less)} |")


def _read(path: Path, text: str, label: str) -> Rows:
    """The texts and the labels of a file."""
    try:
        with path.open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
        return [row[text] for row in rows], [row[label] for row in rows]
    except (OSError, KeyError) as error:
        raise UserError(
            f"{path}: no column or file {error}; give --data, --text and --label"
        ) from None


def _drawn(rows: Rows, count: int, seed: int) -> Rows:
    """`count` random rows of each label."""
    texts, labels = map(np.array, rows)
    source = np.random.default_rng(seed)
    chosen = [
        source.choice(np.flatnonzero(labels == label), count, replace=False)
        for label in np.unique(labels)
    ]
    places = source.permutation(np.concatenate(chosen))
    return texts[places].tolist(), labels[places].tolist()


def _ours(checkpoint: str, few: Rows, dev: Rows, seed: int, **options: Any) -> float:
    """The accuracy of a `TextClassifier`."""
    import keras

    from bert_tf import TextClassifier

    keras.utils.set_random_seed(seed)
    model = TextClassifier.from_checkpoint(checkpoint)
    model.fit(*few, seed=seed, verbose=0, **options)
    return model.evaluate(*dev, verbose=0)["accuracy"]


def _setfit(checkpoint: str, few: Rows, dev: Rows, seed: int, folder: Path) -> float:
    """The accuracy of setfit, with its defaults and the length that `TextClassifier` has."""
    from datasets import Dataset
    from setfit import SetFitModel, Trainer, TrainingArguments

    model = SetFitModel.from_pretrained(checkpoint)
    model.model_body.max_seq_length = 128
    arguments = TrainingArguments(str(folder), seed=seed, report_to="none", save_strategy="no")
    rows = Dataset.from_dict(dict(zip(("text", "label"), few, strict=True)))
    Trainer(model, arguments, train_dataset=rows).train()
    return float(np.mean(np.array(model.predict(dev[0])) == np.array(dev[1])))


def _mean(values: np.ndarray) -> str:
    """A mean and its standard error, in percent."""
    error = values.std(ddof=1) / len(values) ** 0.5 if len(values) > 1 else 0.0
    return f"{100 * values.mean():.1f} ± {100 * error:.1f}"


if __name__ == "__main__":
    sys.exit(main())
