"""What a job is: one command, with what it reads and what it makes."""

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from bert_tf.config.reading import load_config
from bert_tf.config.run import RunConfig
from bert_tf.runs.run_folder import METRICS_FILE

# Keys of a configuration and their values.
Settings = Mapping[str, object]


class Sources(NamedTuple):
    """Where the data are.

    Attributes:
        data: holds novels, wikitext2, wnut17, codah and squad.
        out: the folder of all results.
        glue: holds GLUE's folders CoLA and SST-2; None leaves them out.
        checkpoint: a published checkpoint; None leaves out what starts from it.
    """

    data: Path
    out: Path
    glue: Path | None = None
    checkpoint: Path | None = None

    @property
    def corpus(self) -> Path:
        """The text of our own pre-trainings."""
        return self.out / "corpus.txt"

    @property
    def vocabulary(self) -> Path:
        """The vocabulary of our own pre-trainings."""
        return self.out / "vocab.txt"

    @property
    def pretraining(self) -> Path:
        """The folder of the runs of our own pre-trainings."""
        return self.out / "pretraining"

    @property
    def squad(self) -> Path:
        """The folder with the two parts of SQuAD's dev file, one for training."""
        return self.out / "squad_by_article"


@dataclasses.dataclass(frozen=True)
class Job:
    """One command.

    Attributes:
        tables: the tables it is for; 4 stands for table 4, "figure 4" for the figure.
        module: what `python -m` runs.
        arguments: of the command.
        makes: the path that exists when it is done.
        given: the paths that it reads and no job makes.
        needs: the paths that it reads and other jobs make.
        is_run: whether `makes` is in a run folder, which the report shows.
        stands_for: if the run is on data in place of the paper's, the key of the paper's data in
            `bert_tf.experiments.report.paper.BENCHMARKS`.
    """

    tables: tuple[str, ...]
    module: str
    arguments: tuple[str, ...]
    makes: Path
    given: tuple[Path, ...] = ()
    needs: tuple[Path, ...] = ()
    is_run: bool = False
    stands_for: str | None = None

    @property
    def name(self) -> str:
        """What it is called in messages."""
        return self.makes.parent.name if self.is_run else self.makes.name

    def config(self) -> RunConfig:
        """The configuration of its run."""
        _, file, _, _, _, *settings = self.arguments
        return load_config(file, settings)


# The data of a task: a field of `Sources`, the folder in it, and the files that are read.
_DATA = {
    "cola": ("glue", "CoLA", ("train.tsv", "dev.tsv")),
    "sst2": ("glue", "SST-2", ("train.tsv", "dev.tsv")),
    "wnut17": (
        "data",
        "wnut17",
        ("wnut17train.conll", "emerging.dev.conll", "emerging.test.annotated"),
    ),
    "codah": ("data", "codah", ("train.tsv", "dev.tsv")),
    "squad": ("squad", "", ("train-v1.1.json", "dev-v1.1.json")),
}


def run_job(
    tables: tuple[str, ...], command: str, config: str, run: Path, settings: Settings, **more: Any
) -> Job:
    """A run of `bert-tf`.

    Args:
        tables: see `Job`.
        command: pretrain or finetune.
        config: the name of its configuration in `experiments/small`.
        run: the run folder.
        settings: laid over the configuration.
        **more: other fields of `Job`.
    """
    values = (f"{key}={value}" for key, value in settings.items())
    arguments = (command, f"small/{config}", "--out", str(run), "--set", *values)
    return Job(tables, "bert_tf", arguments, run / METRICS_FILE, is_run=True, **more)


def finetune_job(
    sources: Sources,
    tables: tuple[str, ...],
    config: str,
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
    holder, name, files = _DATA[config.rpartition("/")[2].partition("_")[0]]
    source = getattr(sources, holder)
    if source is None:
        return []
    folder = source / name
    read = tuple(folder / file for file in files)
    if holder == "squad":
        needs += read
    else:
        given += read
    settings = {"data.path": folder, **settings}
    more = {"given": given, "needs": needs, "stands_for": stands_for}
    return [run_job(tables, "finetune", config, run, settings, **more)]
