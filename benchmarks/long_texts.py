"""What windows give: texts of 1,000 words read from their start, at both ends, or in windows.

    python -m benchmarks.long_texts --checkpoint FOLDER --novels FOLDER --out DIR

Two tasks, each with every way of `long_text` and every seed, from the same checkpoint:

- `authors`: which author wrote an excerpt. Files are called Author_Title_Year.txt. Of each author
  with two novels or more, the oldest novel is for training, and the next one for evaluation.
- `made`: random words of the vocabulary, the last ten of which are the label. Only a model that
  reads the end of a text can learn it.

Each accuracy is written to DIR/results.json as soon as it is known, and a later run in the same
folder computes what is missing. No times are measured.
"""

import argparse
import json
import random
import statistics
from collections.abc import Sequence
from pathlib import Path

from benchmarks import kept
from benchmarks.arguments import existing
from benchmarks.domain_vocabulary import columns, passages
from bert_tf.cli import command
from bert_tf.errors import UserError
from bert_tf.io.atomic import write_text

WAYS = {
    "truncate": {"long_text": "truncate"},
    "head_and_tail": {"long_text": "head_and_tail"},
    **{
        f"windows_{pooling}": {"long_text": "windows", "window_pooling": pooling}
        for pooling in ("mean", "max", "attention")
    },
}
_LABELS = ("good", "bad")
# Texts with their labels, for training or for evaluation.
Rows = list[tuple[str, str]]


def authors(folder: Path, words: int, rows: int) -> tuple[Rows, Rows]:
    """Excerpts of the first and of the second novel of each author with two or more."""
    novels: dict[str, list[Path]] = {}
    for file in sorted(folder.glob("*.txt"), key=lambda each: each.stem.split("_")[-1]):
        novels.setdefault(file.stem.split("_")[0], []).append(file)
    parts: tuple[Rows, Rows] = ([], [])
    for author, files in novels.items():
        if len(files) < 2:
            continue
        for part, file in zip(parts, files[:2], strict=True):
            excerpts = passages(file.read_text(encoding="utf-8"), words)
            chosen = random.Random(0).sample(excerpts, min(rows, len(excerpts)))
            part.extend((text, author) for text in chosen)
    if not parts[0]:
        raise UserError(f"{folder} has no author with two novels; call files Author_Title_Year.txt")
    return parts


def made(vocabulary: Sequence[str], words: int, rows: int) -> tuple[Rows, Rows]:
    """Random words with a label at the end, `rows` of each label in both parts."""
    known = [each for each in vocabulary if each.isalpha() and each not in _LABELS]

    def drawn(seed: int) -> Rows:
        source = random.Random(seed)
        return [
            (" ".join([*source.choices(known, k=words - 10), *[label] * 10]), label)
            for _ in range(rows)
            for label in _LABELS
        ]

    return drawn(0), drawn(1)


def measure(arguments: argparse.Namespace) -> None:
    """Trains and measures what is missing, and prints a table."""
    import keras

    import bert_tf

    names = ("words", "rows", "max_length", "stride", "epochs", "batch_size", "learning_rate")
    settings = {name: getattr(arguments, name) for name in names}
    settings["checkpoint"] = str(arguments.checkpoint)
    path = arguments.out / "results.json"
    found: dict[str, dict] = {"settings": settings, "accuracy": {}}
    if path.exists():
        found = json.loads(path.read_text(encoding="utf-8"))
        kept.check(path, found["settings"], settings)
    vocabulary = bert_tf.Tokenizer.from_checkpoint(arguments.checkpoint).vocabulary
    data = {
        "authors": lambda: authors(arguments.novels, arguments.words, arguments.rows),
        "made": lambda: made(vocabulary, arguments.words, arguments.rows),
    }
    for task in arguments.tasks:
        train, asked = data[task]()
        for way in arguments.ways:
            known = found["accuracy"].setdefault(f"{task} {way}", {})
            for seed in map(str, arguments.seeds):
                if seed in known:
                    continue
                keras.utils.set_random_seed(int(seed))
                stride = {"stride": arguments.stride} if way.startswith("windows") else {}
                clf = bert_tf.TextClassifier.from_checkpoint(
                    arguments.checkpoint, max_length=arguments.max_length, **stride, **WAYS[way]
                )
                clf.fit(
                    *columns(train),
                    epochs=arguments.epochs,
                    batch_size=arguments.batch_size,
                    learning_rate=arguments.learning_rate,
                    verbose=0,
                )
                score = clf.evaluate(*columns(asked), verbose=0)["accuracy"]
                known[seed] = float(score)
                write_text(path, json.dumps(found, indent=2) + "\n")
    print("| task and way | accuracy | standard error | seeds |\n|---|---|---|---|")
    for name, scores in found["accuracy"].items():
        values = list(scores.values())
        error = statistics.stdev(values) / len(values) ** 0.5 if len(values) > 1 else float("nan")
        print(f"| {name} | {statistics.mean(values):.3f} | {error:.3f} | {len(values)} |")


def main(argv: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = command.module_parser("benchmarks.long_texts", __doc__)
    parser.add_argument("--checkpoint", type=existing, required=True)
    parser.add_argument("--novels", type=existing, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument(
        "--tasks", nargs="+", choices=("authors", "made"), default=["authors", "made"]
    )
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=list(WAYS))
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--words", type=int, default=1000, help="words of a text")
    parser.add_argument(
        "--rows", type=int, default=60, help="texts of a label to train on, and to ask"
    )
    parser.add_argument(
        "--max-length", type=int, default=128, help="tokens of an input or a window"
    )
    parser.add_argument("--stride", type=int, default=96, help="of windows")
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--learning-rate", type=float, default=5e-5)
    return command.run("long_texts", parser, argv, measure, "stopped; the results so far are kept")


if __name__ == "__main__":
    raise SystemExit(main())
