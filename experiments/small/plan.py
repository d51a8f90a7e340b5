"""What the small tables are made of: every job, in an order in which each finds what it needs.

Tables 5 and 6 and figure 4 are of our own pre-trainings and of what is fine-tuned from them; tables
1 to 4 and 7 are of a published checkpoint, fine-tuned or read.
"""

import itertools
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from bert_tf.config.reading import load_config
from bert_tf.console import logger
from bert_tf.errors import UserError
from bert_tf.experiments.small.job import Job, Settings, Sources, finetune_job, run_job
from bert_tf.experiments.squad_ensemble import metrics_file
from bert_tf.runs.run_folder import METRICS_FILE
from bert_tf.tasks.token_classification.model import FEATURES

TABLES = ("1", "2", "3", "4", "5", "6", "7", "figure 4")
_SIZES = ("2x128x2", "4x256x4")
# Prefixes of the names of sizes: with next sentence prediction, and without.
_OBJECTIVES = ("", "no_nsp_")
_DIRECTIONS = ("left_to_right", "right_to_left")
# Steps of pre-training that figure 4 fine-tunes from, besides the last.
_EARLY_STEPS = (1000, 2000)
# Settings of a model that starts without a checkpoint.
_NEW = ("num_hidden_layers", "hidden_size", "num_attention_heads", "initializer_range")

# The pre-trainings, and the tables that they are for.
_PRETRAININGS = {
    "bert": ("5", "6", "figure 4"),
    "left_to_right": ("5", "figure 4"),
    "no_nsp": ("5", "6", "figure 4"),
    "right_to_left": ("5",),
    **{f"{objective}{size}": ("6",) for objective in _OBJECTIVES for size in _SIZES},
}
# The tasks of each table.
_TASKS = {"5": ("sst2", "wnut17", "squad"), "6": ("sst2", "wnut17"), "figure 4": ("wnut17",)}


class _Start(NamedTuple):
    """A model that is fine-tuned on the tasks of some tables.

    Attributes:
        name: a part of the run's name, after the task's.
        tables: the tables.
        checkpoint: in the folder of the pre-trainings; None for random weights.
        settings: other settings.
    """

    name: str
    tables: tuple[str, ...]
    checkpoint: str | None
    settings: Settings = {}


_STARTS = (
    _Start("bert", ("5", "6", "figure 4"), "bert"),
    _Start("no_nsp", ("5", "6", "figure 4"), "no_nsp"),
    _Start("left_to_right", ("5", "figure 4"), "left_to_right"),
    _Start("bilstm", ("5",), "left_to_right", {"model.bilstm": "true"}),
    _Start("side_by_side", ("5",), "side_by_side"),
    _Start("from_scratch", ("5",), None),
    *(_Start(name, ("6",), name) for name in _PRETRAININGS if name.endswith(_SIZES)),
    *(
        _Start(f"{name}_{step}", ("figure 4",), f"{name}/checkpoints/step-{step:08d}")
        for name in ("bert", "no_nsp", "left_to_right")
        for step in _EARLY_STEPS
    ),
)
# The configuration of a run from a published checkpoint, which is also in its folder's name; the
# tables that it is for; the paper's data that its data stand for.
_PUBLISHED = (
    ("cola", ("1",), None),
    ("sst2", ("1",), None),
    ("squad", ("2",), "squad v1.1"),
    ("wnut17", ("3", "7"), "conll2003"),
    ("codah", ("4",), "swag"),
    *((f"wnut17_features_{features}", ("7",), None) for features in FEATURES),
)


def jobs(sources: Sources) -> list[Job]:
    """All jobs for which there are data."""
    return [
        *_preparation(sources),
        *_pretrainings(sources),
        *_finetunings(sources),
        *_runs_of_published(sources),
    ]


def choose(sources: Sources, names: Sequence[str]) -> list[Job]:
    """The jobs of the tables `names`; logs what is left out, and why.

    Raises:
        UserError: everything is left out.
    """
    possible = _tables(jobs(sources))
    # Any path will do: nothing is read.
    complete = Sources(*(path or sources.data for path in sources))
    lacking = [name for name, path in sources._asdict().items() if path is None]
    for name in lacking:
        kept = {job.makes for job in jobs(Sources(**complete._asdict() | {name: None}))}
        lost = _tables(job for job in jobs(complete) if job.makes not in kept)
        left_out = [
            f"a part of {_called(table)}" if table in possible else _called(table)
            for table in names
            if table in lost
        ]
        if left_out:
            logger.info(f"--{name} is not given; left out: {', '.join(left_out)}")
    tables = possible & set(names)
    if not tables:
        options = " and ".join(f"--{name}" for name in lacking)
        raise UserError(f"nothing is left of {', '.join(map(_called, names))}; give {options}")
    return [job for job in jobs(sources) if tables & set(job.tables)]


def _tables(some: Iterable[Job]) -> set[str]:
    """The tables that have a run among these."""
    return {table for job in some if job.is_run for table in job.tables}


def _called(table: str) -> str:
    return table if table.startswith("figure") else f"table {table}"


def _preparation(sources: Sources) -> list[Job]:
    """Corpus, vocabulary, and SQuAD's dev file in two."""
    own = ("5", "6", "figure 4")
    corpus, vocabulary, parts = sources.corpus, sources.vocabulary, sources.squad
    novels, wikitext = sources.data / "novels", sources.data / "wikitext2" / "train.txt"
    squad = sources.data / "squad" / "dev-v1.1.json"
    return [
        Job(
            own,
            "bert_tf.experiments.small.corpus",
            ("--novels", str(novels), "--wikitext", str(wikitext), "--out", str(corpus)),
            corpus,
            given=(novels, wikitext),
        ),
        Job(
            own,
            "bert_tf",
            ("vocab", "--input", str(corpus), "--size", "8000", "--out", str(vocabulary)),
            vocabulary,
            needs=(corpus,),
        ),
        Job(
            ("2", "5"),
            "bert_tf.experiments.squad.split_by_article",
            (str(squad), "--train", "38", "--out", str(parts)),
            # The file that is written last.
            parts / "dev-v1.1.json",
            given=(squad,),
        ),
    ]


def _pretrainings(sources: Sources) -> list[Job]:
    """The pre-trainings, and two of them side by side."""
    folder, needs = sources.pretraining, (sources.corpus, sources.vocabulary)
    settings = {"data.path": sources.corpus, "tokenizer.vocab": sources.vocabulary}
    made = []
    for name, tables in _PRETRAININGS.items():
        config, run = f"pretraining/{name}", folder / name
        made.append(run_job(tables, "pretrain", config, run, settings, needs=needs))
    ways, joined = [folder / way for way in _DIRECTIONS], folder / "side_by_side"
    join = Job(
        ("5",),
        "bert_tf.experiments.pretraining.side_by_side",
        (*map(str, ways), "--out", str(joined)),
        joined,
        needs=tuple(way / METRICS_FILE for way in ways),
    )
    return [*made, join]


def _finetunings(sources: Sources) -> list[Job]:
    """The fine-tunings from `_STARTS`, for tasks whose data were given."""
    made = []
    for start, task in itertools.product(_STARTS, _TASKS["5"]):
        tables = tuple(table for table in start.tables if task in _TASKS[table])
        if tables:
            config, run = f"own/{task}", sources.out / f"{task}_{start.name}"
            settings, needs = _starting_from(start, sources)
            made += finetune_job(sources, tables, config, run, settings, needs=(needs,))
    return made


def _starting_from(start: _Start, sources: Sources) -> tuple[Settings, Path]:
    """The settings of runs from a start, and the path that they need."""
    if start.checkpoint is None:
        model = load_config("small/pretraining/bert").model
        sizes = {f"model.{size}": getattr(model, size) for size in _NEW}
        vocabulary = sources.vocabulary
        return {"init.checkpoint": "null", "tokenizer.vocab": vocabulary} | sizes, vocabulary
    checkpoint = sources.pretraining / start.checkpoint
    # The folder of a run is there before the run is finished.
    needs = checkpoint / METRICS_FILE if start.checkpoint in _PRETRAININGS else checkpoint
    return {"init.checkpoint": checkpoint, **start.settings}, needs


def _runs_of_published(sources: Sources) -> list[Job]:
    """The runs from the published checkpoint, if it was given, for tasks whose data were given."""
    if sources.checkpoint is None:
        return []
    made = []
    for name, tables, stands_for in _PUBLISHED:
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
    """The job that combines the answers of all seeds of table 2."""
    run = sources.out / "published_squad"
    # The report looks for the answers there.
    answers = run / "ensemble.json"
    seeds = load_config("small/checkpoint/squad").searched["seed"]
    trials = [str(run / "trials" / f"seed={seed}") for seed in seeds]
    gold = sources.squad / "dev-v1.1.json"
    return Job(
        ("2",),
        "bert_tf.experiments.squad_ensemble",
        (*trials, "--data", str(gold), "--out", str(answers)),
        metrics_file(answers),
        needs=(run / METRICS_FILE, gold),
    )
