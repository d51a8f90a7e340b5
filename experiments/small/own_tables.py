"""Tables 5 and 6 and figure 4: pre-trainings of our own, and what is fine-tuned from them."""

import itertools
from pathlib import Path
from typing import NamedTuple

from bert_tf.config.reading import load_config
from bert_tf.experiments.small.job import Job, Settings, Sources, finetune_job, run_job
from bert_tf.runs.run_folder import METRICS_FILE

_SIZES = ("2x128x2", "4x256x4")
# What names of sizes begin with: with next sentence prediction, and without.
_OBJECTIVES = ("", "no_nsp_")
_DIRECTIONS = ("left_to_right", "right_to_left")
# Steps of pre-training that figure 4 fine-tunes from, besides the last.
_EARLY_STEPS = (1000, 2000)
# What a model needs that no checkpoint gives its sizes.
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
    """What is fine-tuned on the tasks of some tables.

    Attributes:
        name: with the task's it names the run.
        tables: the tables.
        checkpoint: in the folder of the pre-trainings; None for random weights.
        settings: what is set besides.
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


def pretrainings(sources: Sources) -> list[Job]:
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


def finetunings(sources: Sources) -> list[Job]:
    """What starts from there, for tasks whose data were given."""
    made = []
    for start, task in itertools.product(_STARTS, _TASKS["5"]):
        tables = tuple(table for table in start.tables if task in _TASKS[table])
        if tables:
            config, run = f"own/{task}", sources.out / f"{task}_{start.name}"
            settings, needs = _starting_from(start, sources)
            made += finetune_job(sources, tables, config, run, settings, needs=(needs,))
    return made


def _starting_from(start: _Start, sources: Sources) -> tuple[Settings, Path]:
    """The settings of runs from there, and what must be there for them."""
    if start.checkpoint is None:
        model = load_config("small/pretraining/bert").model
        sizes = {f"model.{size}": getattr(model, size) for size in _NEW}
        vocabulary = sources.vocabulary
        return {"init.checkpoint": "null", "tokenizer.vocab": vocabulary} | sizes, vocabulary
    checkpoint = sources.pretraining / start.checkpoint
    # The folder of a run is there before the run is finished.
    needs = checkpoint / METRICS_FILE if start.checkpoint in _PRETRAININGS else checkpoint
    return {"init.checkpoint": checkpoint, **start.settings}, needs
