"""What hard negatives give: an embedder trained on pairs, and on the same pairs with negatives.

    python -m benchmarks.hard_negatives --checkpoint FOLDER --squad FILE --out DIR

The pairs are questions of SQuAD with their contexts. Those of the first 38 articles are trained on,
and all contexts of the others are searched. `bert-tf mine` finds the negatives among the contexts
of the training articles. Both ways of training have the same questions, settings and seeds. Each
result is kept in DIR/results.json, so that the same command continues after a stop. At the end, a
table of nDCG@10 and MRR@10 is printed, mean and standard error over the seeds.
"""

import argparse
import json
import random
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import kept
from benchmarks.arguments import existing
from bert_tf.cli import command
from bert_tf.io.atomic import write_text

_TRAINED_ON = 38
_METRICS = ("ndcg@10", "mrr@10")


def pairs_of(articles: Sequence[dict]) -> list[tuple[str, str]]:
    """Each question with its context.

    >>> pairs_of([{"paragraphs": [{"context": "a cat", "qas": [{"question": "who"}]}]}])
    [('who', 'a cat')]
    """
    return [
        (row["question"].strip(), paragraph["context"])
        for article in articles
        for paragraph in article["paragraphs"]
        for row in paragraph["qas"]
    ]


def table(scores: dict[str, list[dict[str, float]]]) -> str:
    """The results as Markdown.

    >>> seeds = [{"ndcg@10": 0.5, "mrr@10": 0.25}, {"ndcg@10": 0.6, "mrr@10": 0.25}]
    >>> print(table({"pairs": seeds}))
    | trained on | ndcg@10 | mrr@10 |
    |---|---|---|
    | pairs | 55.0 ± 5.0 | 25.0 ± 0.0 |
    """
    lines = [f"| trained on | {' | '.join(_METRICS)} |", "|---|---|---|"]
    for name, runs in scores.items():
        cells = []
        for metric in _METRICS:
            values = 100 * np.array([run[metric] for run in runs])
            error = values.std(ddof=1) / len(values) ** 0.5 if len(values) > 1 else 0.0
            cells.append(f"{values.mean():.1f} ± {error:.1f}")
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def searched(model: Any, asked: Sequence[tuple[str, str]], contexts: Iterable[str]) -> Any:
    """The metrics of a search for the contexts of questions among all contexts."""
    from bert_tf.retrieval.collection import Collection
    from bert_tf.retrieval.evaluation import evaluate_retrieval

    passages = {f"p{number}": context for number, context in enumerate(contexts)}
    ids = {context: name for name, context in passages.items()}
    queries = {f"q{number}": question for number, (question, _) in enumerate(asked)}
    relevant = {f"q{number}": {ids[context]: 1} for number, (_, context) in enumerate(asked)}
    metrics, _ = evaluate_retrieval(
        lambda texts, _: model.predict([*texts], verbose=0), Collection(passages, queries, relevant)
    )
    return metrics


def measure(arguments: argparse.Namespace) -> None:
    """Trains and measures in each way, and prints the table."""
    import keras

    import bert_tf
    from bert_tf.asking.mine import mine
    from bert_tf.tasks.embedding import files

    articles = json.loads(arguments.squad.read_text(encoding="utf-8"))["data"]
    train, test = pairs_of(articles[:_TRAINED_ON]), pairs_of(articles[_TRAINED_ON:])
    source = random.Random(0)
    chosen = source.sample(train, min(arguments.rows, len(train)))
    asked = source.sample(test, min(arguments.asked, len(test)))
    given = {name: getattr(arguments, name) for name in ("rows", "asked", "negatives", "epochs")}
    given |= {"margin": arguments.margin, "batch_size": arguments.batch_size}
    path, data, mined = (
        arguments.out / name for name in ("results.json", "pairs.jsonl", "mined.jsonl")
    )
    results = {"settings": given, "scores": {}}
    if path.exists():
        results = json.loads(path.read_text())
        kept.check(path, results["settings"], given)
    arguments.out.mkdir(parents=True, exist_ok=True)
    if not mined.exists():
        lines = (json.dumps({"query": query, "positive": text}) for query, text in chosen)
        write_text(data, "".join(f"{line}\n" for line in lines))
        corpus = arguments.out / "corpus.jsonl"
        texts = dict.fromkeys(context for _, context in train)
        write_text(corpus, "".join(json.dumps({"text": text}) + "\n" for text in texts))
        mine(
            arguments.checkpoint,
            data,
            mined,
            str(corpus),
            arguments.negatives,
            margin=arguments.margin,
        )
    columns = files.read(mined, "jsonl").values
    ways = {"nothing": (), "pairs": columns[:2], "pairs and negatives": columns}
    scores = results["scores"]
    for seed in arguments.seeds:
        for name, rows in ways.items():
            of_way = scores.setdefault(name, {})
            if str(seed) in of_way or of_way and not rows:  # the checkpoint is the same each time
                continue
            keras.utils.set_random_seed(seed)
            model = bert_tf.TextEmbedder.from_checkpoint(arguments.checkpoint, max_length=128)
            if rows:
                options = {"epochs": arguments.epochs, "batch_size": arguments.batch_size}
                model.fit(tuple(rows), learning_rate=arguments.learning_rate, verbose=0, **options)
            found = searched(model, asked, dict.fromkeys(context for _, context in test))
            of_way[str(seed)] = {metric: found[metric] for metric in _METRICS}
            write_text(path, json.dumps(results, indent=2) + "\n")
    print(table({name: [*of_way.values()] for name, of_way in scores.items()}))


def main(argv: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = command.module_parser("benchmarks.hard_negatives", __doc__)
    parser.add_argument("--checkpoint", type=existing, required=True)
    parser.add_argument("--squad", type=existing, required=True, help="dev-v1.1.json")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--rows", type=int, default=1000, help="questions to train on")
    parser.add_argument("--asked", type=int, default=1000, help="questions to search for")
    parser.add_argument("--negatives", type=int, default=1)
    parser.add_argument("--margin", type=float, default=0.05)
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--learning-rate", type=float, default=2e-5)
    parser.add_argument("--seeds", type=int, nargs="*", default=[0, 1, 2])
    stopped = "stopped; run the same command again to continue"
    return command.run("hard_negatives", parser, argv, measure, stopped)


if __name__ == "__main__":
    raise SystemExit(main())
