"""Combines the SQuAD predictions of several runs.

    python -m bert_tf.experiments.squad_ensemble runs/seven/trials/* --data squad/dev-v1.1.json \\
        --out answers.json

`bert-tf finetune` and `bert-tf evaluate` write the n best answers of a run to its folder
`predictions`. The runs may be of different models and vocabularies. The probability of an answer is
the mean over the runs, with 0 for a run that does not have it among its n best. The mean of the
runs' odds for no answer decides whether there is one. (The paper ensembles seven systems and does
not say how.)
"""

import json
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bert_tf.cli.command import option
from bert_tf.console import print_metrics
from bert_tf.errors import UserError
from bert_tf.experiments import program
from bert_tf.io.atomic import write_text
from bert_tf.io.json_files import read_json
from bert_tf.tasks.question_answering.metrics import (
    answer_metrics,
    answer_or_none_metrics,
    best_null_threshold,
)
from bert_tf.tasks.question_answering.squad import given_texts, read_squad


def main(argv: Sequence[str] | None = None) -> int:
    """Writes the answers; returns the exit code, see `bert_tf.cli.command`."""

    def work(**arguments: Any) -> None:
        if metrics := combine(**arguments):
            print_metrics(metrics)

    return program(
        "squad_ensemble",
        __doc__,
        argv,
        work,
        option("runs RUN", "a run folder of bert-tf finetune", nargs="+", type=Path),
        option("--out FILE", "the file of answers to write", type=Path, required=True),
        option(
            "--name NAME",
            "which predictions of the runs to combine: dev (the default), or for those of "
            "evaluate --data FILE, the name of FILE without .json, with other_ before it where "
            "it could be mistaken for a run's own",
            default="dev",
        ),
        option("--data FILE", "the SQuAD file, to score the answers", type=Path),
        option(
            "--null-threshold ODDS",
            "odds above which there is no answer; by default the best on --data",
            type=float,
        ),
    )


def combine(
    runs: Sequence[Path],
    out: Path,
    name: str = "dev",
    data: Path | None = None,
    null_threshold: float | None = None,
) -> dict[str, float]:
    """Writes the combined answers of `runs` to `out`, in the official format.

    >>> for run, likely in (("one", 0.9), ("two", 0.4)):
    ...     entries = [("the hills", likely), ("the sea", 1 - likely)]
    ...     n_best = {"q1": [{"text": text, "probability": share} for text, share in entries]}
    ...     Path(run, "predictions").mkdir(parents=True)
    ...     _ = Path(run, "predictions", "dev_nbest.json").write_text(json.dumps(n_best))
    >>> combine([Path("one"), Path("two")], Path("both.json"))
    {}
    >>> json.loads(Path("both.json").read_text())
    {'q1': 'the hills'}

    Args:
        null_threshold: odds above which there is no answer; None finds the best on `data`.

    Returns:
        The metrics of `bert_tf.tasks.question_answering.metrics`, which are also written to
        `metrics_file(out)`; none without `data`.

    Raises:
        UserError: a run has no such predictions, or those of other questions; `data` has no
            answers; runs that always answer are given a threshold.
    """
    best, odds = _combined(runs, name)
    rows = read_squad(data) if data else None
    if rows is not None and None in (rows.targets or [None]):
        raise UserError(f"{data} contains no answers; remove --data")
    given = {} if rows is None else given_texts(rows)
    if given and given.keys() != best.keys():
        raise UserError(
            f"{data} and the predictions {name} of {runs[0]} have different questions; give the "
            "file that was predicted"
        )
    answers = best
    metrics: dict[str, float] = {}
    if odds is None:
        if null_threshold is not None:
            raise UserError("these runs answer every question; remove --null-threshold")
        metrics = answer_metrics(given, best) if given else {}
    else:
        if null_threshold is None:
            if not given:
                raise UserError(
                    "these runs may leave a question unanswered; set --data or --null-threshold"
                )
            null_threshold = best_null_threshold(given, best, odds)
        answers = {id: "" if odds[id] > null_threshold else text for id, text in best.items()}
        if given:
            metrics = answer_or_none_metrics(given, answers, best, odds)
            metrics["null_threshold"] = null_threshold
    write_text(out, json.dumps(answers, indent=1, ensure_ascii=False) + "\n")
    if metrics:
        write_text(metrics_file(out), json.dumps(metrics, indent=2) + "\n")
    else:
        metrics_file(out).unlink(missing_ok=True)  # of earlier answers
    return metrics


def metrics_file(out: Path) -> Path:
    """The file next to the answers `out` that holds their metrics.

    >>> metrics_file(Path("both.json")).name
    'both.metrics.json'
    """
    return out.with_suffix(".metrics.json")


def _combined(runs: Sequence[Path], name: str) -> tuple[dict[str, str], dict[str, float] | None]:
    """By id, the best answer that is not "", and the odds of no answer, if the runs have them."""
    n_bests = [_read(run, f"{name}_nbest") for run in runs]
    have_odds = [run for run in runs if (run / f"predictions/{name}_null_odds.json").exists()]
    if have_odds and len(have_odds) < len(runs):
        (other, *_) = (run for run in runs if run not in have_odds)
        raise UserError(
            f"{have_odds[0]} may leave a question unanswered, but {other} may not; combine runs "
            "of one kind"
        )
    for run, n_best in zip(runs, n_bests, strict=True):
        if n_best.keys() != n_bests[0].keys():
            raise UserError(
                f"{run} and {runs[0]} answer different questions; evaluate both on the same file"
            )
    answers = {each: _most_probable([n_best[each] for n_best in n_bests]) for each in n_bests[0]}
    if not have_odds:
        return answers, None
    odds = [_read(run, f"{name}_null_odds") for run in runs]
    means = {each: sum(of_run[each] for of_run in odds) / len(odds) for each in answers}
    return answers, means


def _most_probable(n_bests: Sequence[Sequence[Mapping[str, Any]]]) -> str:
    """The text other than "" with the highest sum of probabilities; the first of equal ones."""
    sums: dict[str, float] = defaultdict(float)
    for entries in n_bests:
        for entry in entries:
            if entry["text"]:
                sums[entry["text"]] += entry["probability"]
    return max(sums, key=sums.__getitem__, default="")


def _read(run: Path, name: str) -> dict[str, Any]:
    path = run / "predictions" / f"{name}.json"
    if not path.is_file():
        raise UserError(
            f"{run} has no {path.relative_to(run)}; make it with bert-tf evaluate {run}"
        )
    return read_json(path)


if __name__ == "__main__":
    sys.exit(main())
