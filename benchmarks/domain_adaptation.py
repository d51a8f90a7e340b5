"""What `bert-tf adapt` gives to a task of the same domain.

    python -m benchmarks.domain_adaptation --checkpoint FOLDER --novels FOLDER --out DIR

The domain is a folder of novels, one file a book. The last tenth of each book is held out. The
checkpoint goes on pre-training on the rest, and a classifier that names the book of a passage is
fine-tuned from both checkpoints, on the same passages and with the same seeds. Each result is kept
in DIR/results.json, so that the same command continues after a stop. At the end, a table with the
perplexity of held-out text and the accuracy is printed, mean and standard error over the seeds.
"""

import argparse
import json
import random
from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks import kept
from benchmarks.domain_vocabulary import classifier_accuracy, parser_on_novels, passages
from bert_tf.cli import command
from bert_tf.io.atomic import write_text

# The options on which the results depend.
_SETTINGS = (
    *("words", "steps", "masking", "learning_rate", "batch_size", "rows"),
    *("epochs", "classifier_learning_rate"),
)


def table(perplexity: dict[str, float], accuracy: dict[str, dict[str, float]]) -> str:
    """The results as Markdown.

    >>> print(table({"as it is": 20.0}, {"as it is": {"0": 0.5, "1": 0.7}}))
    | checkpoint | perplexity | accuracy |
    |---|---|---|
    | as it is | 20.0 | 60.0 ± 10.0 |
    """
    lines = ["| checkpoint | perplexity | accuracy |", "|---|---|---|"]
    for name, by_seed in accuracy.items():
        values = 100 * np.array([*by_seed.values()])
        error = values.std(ddof=1) / len(values) ** 0.5 if len(values) > 1 else 0.0
        lines.append(f"| {name} | {perplexity[name]:.1f} | {values.mean():.1f} ± {error:.1f} |")
    return "\n".join(lines)


def measure(arguments: argparse.Namespace) -> None:
    """Adapts the checkpoint, fine-tunes both, and prints the table."""
    from bert_tf.runs.adapting import adapt

    given = {name: getattr(arguments, name) for name in _SETTINGS}
    path = arguments.out / "results.json"
    results: dict[str, Any] = {"settings": given, "accuracy": {}}
    if path.exists():
        results = json.loads(path.read_text())
        kept.check(path, results["settings"], given)
    books = {file.stem: file.read_text("utf-8") for file in sorted(arguments.novels.iterdir())}
    cut = {name: passages(text, arguments.words) for name, text in books.items()}
    text = arguments.out / "text"
    text.mkdir(parents=True, exist_ok=True)
    for name, each in cut.items():
        (text / f"{name}.txt").write_text("\n\n".join(each[: len(each) * 9 // 10]), "utf-8")
    run = arguments.out / "adapted"
    metrics = adapt(
        arguments.checkpoint,
        [text],
        run,
        masking=arguments.masking,
        steps=arguments.steps,
        batch_size=arguments.batch_size,
        learning_rate=arguments.learning_rate,
    )
    perplexity = {"as it is": metrics["perplexity_before"], "adapted": metrics["perplexity"]}

    def drawn(first: bool) -> list[tuple[str, str]]:
        """Passages with their books: of the first nine tenths of each book, or of the last."""
        source, rows = random.Random(1), []
        for name, each in cut.items():
            at = len(each) * 9 // 10
            part = each[:at] if first else each[at:]
            count = min(len(part), -(-arguments.rows // len(cut)))
            rows += [(passage, name) for passage in source.sample(part, count)]
        source.shuffle(rows)
        return rows

    accuracy = results["accuracy"]
    for seed in arguments.seeds:
        for name, source in (("as it is", arguments.checkpoint), ("adapted", run)):
            by_seed = accuracy.setdefault(name, {})
            if str(seed) not in by_seed:
                rows = drawn(first=True), drawn(first=False)
                by_seed[str(seed)] = classifier_accuracy(source, seed, *rows, arguments)
                write_text(path, json.dumps(results, indent=2) + "\n")
    print(table(perplexity, accuracy))


def main(argv: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = parser_on_novels("benchmarks.domain_adaptation", __doc__ or "", [0, 1, 2])
    parser.add_argument("--steps", type=int, default=1000, help="of pre-training")
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--masking", type=float, default=0.3)
    parser.add_argument("--learning-rate", type=float, default=1e-4)
    stopped = "stopped; run the same command again to continue"
    return command.run("domain_adaptation", parser, argv, measure, stopped)


if __name__ == "__main__":
    raise SystemExit(main())
