"""Tables 1 to 4 and 7: a published checkpoint, fine-tuned or read."""

from pathlib import Path
from typing import NamedTuple

from bert_tf.config.reading import load_config
from bert_tf.experiments.small.job import Job, Sources
from bert_tf.experiments.small.tasks import finetune_job
from bert_tf.experiments.squad_ensemble import metrics_file
from bert_tf.runs.run_folder import METRICS_FILE
from bert_tf.tasks.token_classification.model import FEATURES

_CONFIGS = Path(__file__).parent / "checkpoint"


class _Row(NamedTuple):
    """A run; see `Job`.

    Attributes:
        config: name of its file, and of its folder.
        tables: what it is for.
        stands_for: the paper's data that its own stand for.
    """

    config: str
    tables: tuple[str, ...]
    stands_for: str | None = None


_ROWS = (
    _Row("cola", ("1",)),
    _Row("sst2", ("1",)),
    _Row("squad", ("2",), "squad v1.1"),
    _Row("wnut17", ("3", "7"), "conll2003"),
    _Row("codah", ("4",), "swag"),
    *(_Row(f"wnut17_features_{features}", ("7",)) for features in FEATURES),
)


def runs_of_published(sources: Sources) -> list[Job]:
    """What starts from the checkpoint, where one was given, for tasks whose data were."""
    if sources.checkpoint is None:
        return []
    made = []
    for name, tables, stands_for in _ROWS:
        made += finetune_job(
            sources,
            tables,
            _CONFIGS / f"{name}.yaml",
            sources.out / f"published_{name}",
            {"init.checkpoint": sources.checkpoint},
            given=(sources.checkpoint,),
            stands_for=stands_for,
        )
    return [*made, _ensemble(sources)]


def _ensemble(sources: Sources) -> Job:
    """The answers of all seeds of table 2 together."""
    run = sources.out / "published_squad"
    # Where the report looks for it.
    answers = run / "ensemble.json"
    seeds = load_config(_CONFIGS / "squad.yaml").search["seed"]
    trials = [str(run / "trials" / f"seed={seed}") for seed in seeds]
    gold = sources.squad / "dev-v1.1.json"
    return Job(
        ("2",),
        "bert_tf.experiments.squad_ensemble",
        (*trials, "--data", str(gold), "--out", str(answers)),
        metrics_file(answers),
        needs=(run / METRICS_FILE, gold),
    )
