"""Tables 1 to 4 and 7: a published checkpoint, fine-tuned or read."""

from bert_tf.config.reading import load_config
from bert_tf.experiments.small.job import Job, Sources, finetune_job
from bert_tf.experiments.squad_ensemble import metrics_file
from bert_tf.runs.run_folder import METRICS_FILE
from bert_tf.tasks.token_classification.model import FEATURES

# The configuration of a run, which names its folder; the tables that it is for; the paper's data
# that its own stand for.
_ROWS = (
    ("cola", ("1",), None),
    ("sst2", ("1",), None),
    ("squad", ("2",), "squad v1.1"),
    ("wnut17", ("3", "7"), "conll2003"),
    ("codah", ("4",), "swag"),
    *((f"wnut17_features_{features}", ("7",), None) for features in FEATURES),
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
            f"checkpoint/{name}",
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
    seeds = load_config("small/checkpoint/squad").search["seed"]
    trials = [str(run / "trials" / f"seed={seed}") for seed in seeds]
    gold = sources.squad / "dev-v1.1.json"
    return Job(
        ("2",),
        "bert_tf.experiments.squad_ensemble",
        (*trials, "--data", str(gold), "--out", str(answers)),
        metrics_file(answers),
        needs=(run / METRICS_FILE, gold),
    )
