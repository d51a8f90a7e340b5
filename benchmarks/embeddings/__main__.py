"""Vectors of texts compared with sentence-transformers: accuracy, fine-tuning and speed.

    python -m benchmarks.embeddings --checkpoint FOLDER --sts STS --squad dev-v1.1.json --out DIR
    python -m benchmarks.embeddings … --parts finetuning --tasks STS-B --seeds 3 --epochs 4
    python -m benchmarks.embeddings … --parts accuracy --rows 100

FOLDER is a download of sentence-transformers/all-MiniLM-L6-v2, or another folder of
sentence-transformers; STS holds sts-train.csv, sts-dev.csv and sts-test.csv of the STS benchmark.

Accuracy: the largest difference of the vectors of all sentences of STS-B test, Spearman's
correlation on STS-B dev and test, and the search of SQuAD's questions in its paragraphs.
Fine-tuning: STS-B train with CoSENT, measured on STS-B test; and the questions of SQuAD's first 38
articles with MultipleNegativesRanking, measured by the search in the last 10; and the sentences of
STS-B train with themselves, without their scores (SimCSE). Both sides have the same rows, seeds,
batches, hyper-parameters and optimizer. They differ only if a batch has equal texts: bert_tf leaves
these out of its loss, and sentence-transformers draws another row. The table has mean and standard
error over the seeds.
Speed: texts a second in batches of 1 and 32, of STS-B sentences and of SQuAD paragraphs, in
float32; median of steps that take turns. The peer runs once with all threads and once with one: on
a machine with other work, PyTorch's threads wait for each other, and one thread was seen to be ten
times as fast as two. Ratios are to the faster one. Before and after the turns, the script measures
how busy the machine is while all contestants sleep. It marks figures of a busy machine as invalid.

Each contestant has processes of its own. Every result is kept in `--out` with its settings; started
again with the same settings, the script does what is left. It writes `table.md` and `table.json`.
"""

import argparse
import hashlib
import importlib.metadata
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.markdown import Markdown

from benchmarks import kept
from benchmarks.allocation import environment
from benchmarks.arguments import existing
from benchmarks.embeddings import data
from benchmarks.embeddings.data import Pairs
from benchmarks.embeddings.sides import OURS, SERVED, THEIRS
from benchmarks.speed.turns import Contestant, take_turns
from benchmarks.speed.works import ways
from bert_tf.cli import command
from bert_tf.console import logger
from bert_tf.errors import UserError
from bert_tf.io.atomic import make_folder, write_text
from bert_tf.report import commit, cores, processor
from bert_tf.retrieval.collection import Collection
from bert_tf.retrieval.evaluation import evaluate_retrieval
from bert_tf.tasks.texts.metrics import regression_metrics

SIDES = (OURS, THEIRS)
PARTS = ("accuracy", "finetuning", "speed")
# The tasks of fine-tuning -> the loss of each.
TASKS = {"STS-B": "cosent", "SQuAD": "ranking", "SimCSE": "ranking"}
RETRIEVAL = ("ndcg@10", "mrr@10", "recall@10")
BATCHES = (1, 32)
# Articles of SQuAD that are trained on; the others are searched in.
TRAIN_ARTICLES = 38
# More other work than this spoils figures of speed.
MOST_BUSY = 0.1
# A difference above this is not noise of float32.
TOLERANCE = 1e-3
THREADS = len(os.sched_getaffinity(0))
PACKAGES = ("tensorflow", "torch", "transformers", "sentence-transformers")

Line = tuple[str, str, str]


def main() -> int:
    """Does what is not done yet, prints the table; returns the code of `bert_tf.cli.command`."""
    parser = command.module_parser("benchmarks.embeddings", __doc__)
    parser.add_argument("--checkpoint", type=existing, required=True, help="its folder")
    parser.add_argument("--sts", type=existing, required=True, help="a folder of sts-*.csv")
    parser.add_argument("--squad", type=existing, required=True, help="dev-v1.1.json")
    parser.add_argument("--out", type=Path, required=True, help="where results are kept")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=list(TASKS))
    parser.add_argument("--seeds", type=int, default=3, help="fine-tunings of a side (%(default)s)")
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--learning-rate", type=float, default=2e-5)
    parser.add_argument(
        "--max-length", type=int, default=128, help="tokens of a text in fine-tuning (%(default)s)"
    )
    parser.add_argument("--train-rows", type=int, help="only the first so many pairs")
    parser.add_argument("--rows", type=int, help="measure only on the first so many")
    parser.add_argument("--rounds", type=int, default=10, help="turns of each, for speed")
    parser.add_argument("--steps", type=int, default=20, help="steps of a turn")
    return command.run("embeddings", parser, None, _work, "stopped; started again, it goes on")


def _work(arguments: argparse.Namespace) -> None:
    make_folder(arguments.out)
    bench = Bench(arguments)
    table: dict[str, list[Line]] = {}
    for part in arguments.parts:
        table[part] = {"accuracy": accuracy, "finetuning": finetuning, "speed": speed}[part](bench)
    markdown = _markdown(table)
    write_text(arguments.out / "table.md", markdown)
    write_text(
        arguments.out / "table.json",
        json.dumps({"machine": _machine(), "table": table}, indent=1) + "\n",
    )
    Console(width=100).print(Markdown(markdown))


class Bench:
    """The data, and how a contestant is run.

    Args:
        arguments: of the command.
    """

    def __init__(self, arguments: argparse.Namespace):
        self.arguments = arguments
        rows = arguments.rows
        self.sts = {
            split: data.read_sts(arguments.sts / f"sts-{split}.csv")
            for split in ("train", "dev", "test")
        }
        for split in ("dev", "test"):
            self.sts[split] = self.sts[split].head(rows)
        articles = data.read_articles(arguments.squad)
        self.training = {
            "STS-B": self.sts["train"],
            "SQuAD": data.pairs_of(articles[:TRAIN_ARTICLES]),
            "SimCSE": data.alone(self.sts["train"]),
        }
        self.squad = data.collection_of(articles, rows)
        self.last_articles = data.collection_of(articles[TRAIN_ARTICLES:], rows)
        files = (*sorted(arguments.sts.glob("sts-*.csv")), arguments.squad)
        self.read = {
            "checkpoint": _checksum(sorted(arguments.checkpoint.rglob("*.safetensors"))),
            "data": _checksum(files),
            "rows": rows,
        }

    def settings(self, side: str, length: int | None) -> dict[str, Any]:
        """The settings that a contestant is opened with; threads are TensorFlow's defaults."""
        threads = {"threads": THREADS, "intra_op": THREADS, "inter_op": THREADS}
        checkpoint = str(self.arguments.checkpoint.resolve())
        return {"side": side, "checkpoint": checkpoint, "length": length, **threads}

    def kept(self, name: str, settings: dict[str, Any], measure: Callable[[], Any]) -> Any:
        """The result of `measure`, read from an earlier call if there was one.

        Raises:
            UserError: it was measured with other settings.
        """
        path = self.arguments.out / f"{name}.json"
        settings = self.read | settings | _machine()
        if not path.exists():
            done = {"settings": settings, "commit": commit() or "unknown", "found": measure()}
            write_text(path, json.dumps(done, indent=1) + "\n")
        result = json.loads(path.read_text())
        kept.check(path, result.get("settings", {}), settings)
        return result["found"]

    def vectors(
        self,
        settings: dict[str, Any],
        texts: Sequence[str],
        pairs: Pairs | None = None,
        training: dict[str, Any] | None = None,
    ) -> Callable[[Sequence[str], str | None], np.ndarray]:
        """The vectors of texts from one side, which is first fine-tuned on `pairs` if given.

        Returns:
            A function that gives the vectors of any of these texts.
        """
        texts = list(dict.fromkeys(texts))
        with tempfile.TemporaryDirectory() as folder:
            scratch = Path(folder)
            job = {"settings": settings, "vectors": str(scratch / "vectors.npy")}
            job["texts"] = _written(scratch / "texts.json", texts)
            if pairs is not None:
                job |= {"pairs": _written(scratch / "pairs.json", pairs), "training": training}
            run_job(job, scratch)
            vectors = np.load(scratch / "vectors.npy")
        place = {text: number for number, text in enumerate(texts)}
        return lambda asked, prompt=None: vectors[[place[text] for text in asked]]


def run_job(job: dict[str, Any], scratch: Path) -> None:
    """Runs `benchmarks.embeddings.job`.

    Raises:
        UserError: it failed.
    """
    path = _written(scratch / "job.json", job)
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.embeddings.job", path], env=environment()
    )
    if done.returncode:
        raise UserError(f"{job['settings']['side']} failed, as said above; mend it and start again")


# ---- Accuracy -------------------------------------------------------------------------------


def accuracy(bench: Bench) -> list[Line]:
    """The vectors of the checkpoint as it is."""
    test = [*bench.sts["test"].first, *bench.sts["test"].second]
    found, arrays = {}, {}

    def measure(side: str) -> dict[str, float]:
        texts = [*test, *bench.sts["dev"].first, *bench.sts["dev"].second]
        for collection in (bench.squad, bench.last_articles):
            texts += [*collection.queries.values(), *collection.passages.values()]
        embed = bench.vectors(bench.settings(side, None), texts)
        np.save(_vectors_file(bench, side), embed(test))
        metrics = {f"STS-B {split}": spearman(embed, bench.sts[split]) for split in ("dev", "test")}
        metrics |= searched(embed, bench.squad, "SQuAD")
        return metrics | searched(embed, bench.last_articles, "SQuAD, last articles")

    for side in SIDES:
        logger.info(f"accuracy of {side}")
        settings = bench.settings(side, None)
        found[side] = bench.kept(f"accuracy-{_slug(side)}", settings, lambda s=side: measure(s))
        arrays[side] = np.load(_vectors_file(bench, side))
    difference = np.abs(arrays[OURS] - arrays[THEIRS]).max()
    largest = ("largest difference of a vector, STS-B test", f"{difference:.1e}", "")
    return [largest, *((name, *(f"{found[s][name]:.4f}" for s in SIDES)) for name in found[OURS])]


def spearman(embed: Callable, pairs: Pairs) -> float:
    """Spearman's correlation of the cosines of pairs with their scores."""
    first, second = (embed(column, None) for column in (pairs.first, pairs.second))
    lengths = np.linalg.norm(first, axis=1) * np.linalg.norm(second, axis=1)
    cosines = (first * second).sum(axis=1) / lengths
    return regression_metrics(cosines, np.array(pairs.scores))["spearman"]


def searched(embed: Callable, collection: Collection, name: str) -> dict[str, float]:
    """The measures of a search by cosine."""
    metrics, _ = evaluate_retrieval(embed, collection)
    return {f"{name} {measure}": metrics[measure] for measure in RETRIEVAL}


def _vectors_file(bench: Bench, side: str) -> Path:
    return bench.arguments.out / f"vectors-{_slug(side)}.npy"


# ---- Fine-tuning ----------------------------------------------------------------------------


def finetuning(bench: Bench) -> list[Line]:
    """Means and standard errors over the seeds."""
    given, lines = bench.arguments, []
    for task in given.tasks:
        found: dict[str, list[dict[str, float]]] = {side: [] for side in SIDES}
        for seed in range(given.seeds):
            for side in SIDES:
                logger.info(f"fine-tuning of {side} on {task}, seed {seed}")
                found[side].append(finetuned(bench, side, task, seed))
        for name in found[OURS][0]:
            columns = ([each[name] for each in found[side]] for side in SIDES)
            lines.append((f"{name}, fine-tuned", *map(_mean_and_error, columns)))
    return lines


def finetuned(bench: Bench, side: str, task: str, seed: int) -> dict[str, float]:
    """The measures of one side after a fine-tuning."""
    given = bench.arguments
    pairs = bench.training[task].head(given.train_rows)
    training = {
        "loss": TASKS[task],
        "epochs": given.epochs,
        "batch_size": given.batch_size,
        "learning_rate": given.learning_rate,
        "seed": seed,
    }
    settings = bench.settings(side, given.max_length)

    def measure() -> dict[str, float]:
        if task != "SQuAD":
            test = bench.sts["test"]
            embed = bench.vectors(settings, [*test.first, *test.second], pairs, training)
            name = "STS-B test" if task == "STS-B" else f"STS-B test, {task}"
            return {name: spearman(embed, test)}
        searches = bench.last_articles
        texts = [*searches.queries.values(), *searches.passages.values()]
        embed = bench.vectors(settings, texts, pairs, training)
        return searched(embed, searches, "SQuAD, last articles")

    with_data = settings | training | {"train_rows": len(pairs.first)}
    return bench.kept(f"{task}-{_slug(side)}-{seed}", with_data, measure)


# ---- Speed ----------------------------------------------------------------------------------


def speed(bench: Bench) -> list[Line]:
    """Texts a second, of `predict` and of an export, and their ratios to the peer's faster way."""
    texts = {
        "STS-B sentences": [*bench.sts["test"].first, *bench.sts["test"].second],
        "SQuAD paragraphs": list(bench.squad.passages.values()),
    }
    lines = []
    for name, rows in texts.items():
        for batch in BATCHES:
            logger.info(f"speed: {name}, batch {batch}")
            turns = {"rounds": bench.arguments.rounds, "steps": bench.arguments.steps}
            found = bench.kept(
                f"speed-{_slug(name)}-{batch}",
                turns | {"threads": THREADS},
                lambda rows=rows, batch=batch: timed(bench, rows, batch),
            )
            lines.append(speed_line(f"{name}, batch {batch}, texts/s", batch, found))
    return lines


def speed_line(name: str, batch: int, found: dict[str, Any]) -> Line:
    """A line of the table of what `timed` found."""
    rates = {side: batch / quartiles[1] for side, quartiles in found["seconds"].items()}
    peer = max((side for side in rates if side.startswith(THEIRS)), key=rates.__getitem__)
    ours = "; ".join(
        f"{way} {rates[side]:.1f} ({rates[side] / rates[peer]:.2f}x)"
        for side, way in ((OURS, "predict"), (SERVED, "SavedModel"))
    )
    if found["busy"] > MOST_BUSY:
        name += f" (NOT VALID: other work took {found['busy']:.0%} of the machine)"
    return name, ours, f"{rates[peer]:.1f}{peer.removeprefix(THEIRS)}"


def timed(bench: Bench, texts: Sequence[str], batch: int) -> dict[str, Any]:
    """Three quartiles of the seconds of a step by side, and how busy the machine was.

    Raises:
        UserError: the sides compute other vectors.
    """
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        export = str(scratch / "export")
        run_job({"settings": bench.settings(OURS, None), "export": export}, scratch)
        common = {"texts": _written(scratch / "texts.json", list(texts)), "batch": batch}
        # As docs/how_to/serving.md advises.
        *_, advised = ways(THREADS)
        theirs = bench.settings(THEIRS, None)
        contestants = [
            Contestant("benchmarks.embeddings.contestant", settings | common, scratch)
            for settings in (
                bench.settings(OURS, None) | {"name": OURS},
                advised | {"side": SERVED, "model": export, "name": SERVED},
                theirs | {"name": THEIRS},
                theirs | {"name": f"{THEIRS}, one thread", "threads": 1},
            )
        ]
        for each in contestants:
            each.turn(1)
        expected, *others = (each.outputs() for each in contestants)
        difference = max(np.abs(each - expected).max() for each in others)
        if not difference <= TOLERANCE:
            raise UserError(f"the sides compute other vectors: they differ by {difference:.2g}")
        busy = _busy()
        take_turns(contestants, bench.arguments.rounds, bench.arguments.steps)
        busy = max(busy, _busy())
        for each in contestants:
            each.close()
    seconds = {
        each.name: np.percentile(each.seconds, [25, 50, 75]).tolist() for each in contestants
    }
    return {"seconds": seconds, "busy": busy}


def _busy(seconds: float = 3.0) -> float:
    """The share of the machine's processors that works while this process sleeps (proc(5))."""

    def ticks() -> tuple[int, int]:
        line = Path("/proc/stat").read_text(encoding="utf-8").partition("\n")[0]
        user, nice, system, idle, waiting, *others = map(int, line.split()[1:9])
        return idle + waiting, user + nice + system + idle + waiting + sum(others)

    idle, total = ticks()
    time.sleep(seconds)
    idle_then, total_then = ticks()
    return 1 - (idle_then - idle) / max(total_then - total, 1)


# ---- Results --------------------------------------------------------------------------------


def _markdown(table: dict[str, list[Line]]) -> str:
    found = _machine()
    about = [f"{name} {version}" for name, version in found["versions"].items()]
    lines = [
        f"{found['processor']}, {'with' if found['amx'] else 'without'} AMX, {found['cores']} "
        f"cores; bert_tf {commit() or 'unknown'}, {', '.join(about)}",
        "",
        f"| | {OURS} | {THEIRS} |",
        "|---|---|---|",
        *(f"| {' | '.join(line)} |" for part in table.values() for line in part),
    ]
    return "\n".join(lines) + "\n"


def _machine() -> dict[str, Any]:
    try:
        versions = {name: importlib.metadata.version(name) for name in PACKAGES}
    except importlib.metadata.PackageNotFoundError as error:
        raise UserError(f"{error.name} is not installed; the extra bench has it") from None
    about = {"processor": processor(), "cores": cores()}
    return about | {"amx": _has_amx(), "versions": versions}


def _has_amx() -> bool:
    cpuinfo = Path("/proc/cpuinfo")
    return cpuinfo.is_file() and " amx_tile" in cpuinfo.read_text(encoding="utf-8")


def _mean_and_error(values: Sequence[float]) -> str:
    mean = f"{statistics.mean(values):.4f}"
    if len(values) == 1:
        return mean
    return f"{mean} ± {statistics.stdev(values) / len(values) ** 0.5:.4f}"


def _checksum(files: Sequence[Path]) -> str:
    """The checksum of the bytes of some files, one after the other."""
    if not files:
        raise UserError("--checkpoint holds no *.safetensors; name a folder that does")
    digest = hashlib.sha256()
    for file in files:
        digest.update(file.read_bytes())
    return digest.hexdigest()[:16]


def _written(path: Path, content: Any) -> str:
    """Writes JSON; returns the path."""
    write_text(path, json.dumps(content))
    return str(path)


def _slug(name: str) -> str:
    return name.replace(", ", "-").replace(" ", "-")


if __name__ == "__main__":
    sys.exit(main())
