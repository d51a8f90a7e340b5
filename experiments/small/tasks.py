"""The tasks that are fine-tuned on, and where their data are."""

from pathlib import Path
from typing import NamedTuple

from bert_tf.experiments.small.job import Job, Settings, Sources, run_job


class _Data(NamedTuple):
    """The data of a task.

    Attributes:
        source: what of `Sources` holds them.
        folder: where they are in that.
        files: those that runs read.
    """

    source: str
    folder: str
    files: tuple[str, ...]


_DATA = {
    "cola": _Data("glue", "CoLA", ("train.tsv", "dev.tsv")),
    "sst2": _Data("glue", "SST-2", ("train.tsv", "dev.tsv")),
    "wnut17": _Data(
        "data", "wnut17", ("wnut17train.conll", "emerging.dev.conll", "emerging.test.annotated")
    ),
    "codah": _Data("data", "codah", ("train.tsv", "dev.tsv")),
    "squad": _Data("squad", "", ("train-v1.1.json", "dev-v1.1.json")),
}


def finetune_job(
    sources: Sources,
    tables: tuple[str, ...],
    config: Path,
    run: Path,
    settings: Settings,
    given: tuple[Path, ...] = (),
    needs: tuple[Path, ...] = (),
    stands_for: str | None = None,
) -> list[Job]:
    """The fine-tuning for the task that the file's name begins with; none without its data.

    Args:
        sources: where the data are.
        tables, given, needs, stands_for: see `Job`; the task's files need not be among them.
        config, run, settings: see `run_job`.
    """
    data = _DATA[config.stem.partition("_")[0]]
    source = getattr(sources, data.source)
    if source is None:
        return []
    folder = source / data.folder
    files = tuple(folder / name for name in data.files)
    if data.source == "squad":
        needs += files
    else:
        given += files
    settings = {"data.path": folder, **settings}
    more = {"given": given, "needs": needs, "stands_for": stands_for}
    return [run_job(tables, "finetune", config, run, settings, **more)]
