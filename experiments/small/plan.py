"""What the small tables are made of: every job, in an order in which each finds what it needs."""

import dataclasses
from pathlib import Path
from typing import NamedTuple

from bert_tf import config as configuration
from bert_tf.models.feature_tagger import FEATURES
from bert_tf.tasks.squad_ensemble import metrics_file

_HERE = Path(__file__).parent
# Steps of pre-training that figure 4 fine-tunes from, besides the last.
_EARLY_STEPS = (1000, 2000, 4000)
_SIZES = ("2x128x2", "4x128x2", "2x256x4")
_DIRECTIONS = ("left_to_right", "right_to_left")
# What a model needs that no checkpoint gives its sizes.
_START = ("num_hidden_layers", "hidden_size", "num_attention_heads", "initializer_range")

# Keys of a configuration and their values.
Settings = dict[str, object]


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


@dataclasses.dataclass(frozen=True)
class Job:
    """One command.

    Attributes:
        tables: the tables it is for; 4 stands for table 4, "figure 4" for the figure.
        module: what `python -m` runs.
        arguments: of the command.
        makes: what is there when it is done.
        is_run: whether that is in a run folder, which the report shows.
        stands_for: key of the paper's data in `bert_tf.report.paper.BENCHMARKS`, where the run is
            on others in their place.
    """

    tables: tuple[str, ...]
    module: str
    arguments: tuple[str, ...]
    makes: Path
    is_run: bool = False
    stands_for: str | None = None

    @property
    def name(self) -> str:
        """What it is called in messages."""
        return self.makes.parent.name if self.is_run else self.makes.name


def jobs(sources: Sources) -> list[Job]:
    """All jobs for which there are data."""
    return [*_preparation(sources), *_own(sources), *_published(sources)]


def _preparation(sources: Sources) -> list[Job]:
    data, out = sources.data, sources.out
    own = ("5", "6", "figure 4")
    corpus, vocabulary = out / "corpus.txt", out / "vocab.txt"
    novels, wikitext = str(data / "novels"), str(data / "wikitext2" / "train.txt")
    return [
        Job(
            own,
            "experiments.small.corpus",
            ("--novels", novels, "--wikitext", wikitext, "--out", str(corpus)),
            corpus,
        ),
        Job(
            own,
            "bert_tf",
            ("vocab", "--input", str(corpus), "--size", "8000", "--out", str(vocabulary)),
            vocabulary,
        ),
        Job(
            ("2", "5"),
            "experiments.squad.split_by_article",
            (
                *(str(data / "squad" / "dev-v1.1.json"), "--train", "38"),
                *("--out", str(out / "squad_by_article")),
            ),
            out / "squad_by_article" / "dev-v1.1.json",
        ),
    ]


def _own(sources: Sources) -> list[Job]:
    """Tables 5 and 6 and figure 4: pre-trainings of our own, and what is fine-tuned from them."""
    out = sources.out
    pretrained = out / "pretraining"
    tuned: list[Job] = []

    def pretrain(name: str, *tables: str) -> Job:
        settings = {"data.path": out / "corpus.txt", "tokenizer.vocab": out / "vocab.txt"}
        config = _HERE / "pretraining" / f"{name}.yaml"
        return _run(tables, "pretrain", config, pretrained / name, settings)

    def finetune(
        task: str,
        name: str,
        tables: tuple[str, ...],
        checkpoint: Path | str,
        settings: Settings | None = None,
    ) -> None:
        path = _data_path(task, sources)
        if path is not None:
            keys = {"data.path": path, "init.checkpoint": checkpoint} | (settings or {})
            config, run = _HERE / "own" / f"{task}.yaml", out / f"{task}_{name}"
            tuned.append(_run(tables, "finetune", config, run, keys))

    model = configuration.load(_HERE / "pretraining" / "bert.yaml").model
    from_scratch = {f"model.{size}": getattr(model, size) for size in _START}
    from_scratch["tokenizer.vocab"] = out / "vocab.txt"
    tasks = ("sst2", "wnut17", "squad")
    short = ("sst2", "wnut17")
    for task in tasks:
        tables = ("5", "6") if task in short else ("5",)
        tables += ("figure 4",) if task == "wnut17" else ()
        finetune(task, "bert", tables, pretrained / "bert")
        finetune(task, "no_nsp", ("5",), pretrained / "no_nsp")
        left = pretrained / "left_to_right"
        tables = ("5", "figure 4") if task == "wnut17" else ("5",)
        finetune(task, "left_to_right", tables, left)
        finetune(task, "bilstm", ("5",), left, {"model.bilstm": "true"})
        finetune(task, "side_by_side", ("5",), pretrained / "side_by_side")
        finetune(task, "from_scratch", ("5",), "null", from_scratch)
    for size in _SIZES:
        for task in short:
            finetune(task, size, ("6",), pretrained / size)
    for objective in ("bert", "left_to_right"):
        for step in _EARLY_STEPS:
            checkpoint = pretrained / objective / "checkpoints" / f"step-{step:08d}"
            name = f"{objective}_{step}"
            finetune("wnut17", name, ("figure 4",), checkpoint)
    joined = pretrained / "side_by_side"
    both = [str(pretrained / way) for way in _DIRECTIONS]
    return [
        pretrain("bert", "5", "6", "figure 4"),
        pretrain("left_to_right", "5", "figure 4"),
        pretrain("no_nsp", "5"),
        pretrain("right_to_left", "5"),
        Job(("5",), "experiments.pretraining.side_by_side", (*both, "--out", str(joined)), joined),
        *(pretrain(size, "6") for size in _SIZES),
        *tuned,
    ]


def _published(sources: Sources) -> list[Job]:
    """Tables 1 to 4 and 7: a published checkpoint, fine-tuned or read."""
    if sources.checkpoint is None:
        return []
    made = []

    def finetune(config: str, *tables: str, stands_for: str | None = None) -> None:
        path = _data_path(config.split("_features")[0], sources)
        if path is not None:
            settings = {"data.path": path, "init.checkpoint": sources.checkpoint}
            run = sources.out / f"published_{config}"
            file = _HERE / "checkpoint" / f"{config}.yaml"
            job = _run(tables, "finetune", file, run, settings)
            made.append(dataclasses.replace(job, stands_for=stands_for))

    finetune("cola", "1")
    finetune("sst2", "1")
    finetune("squad", "2", stands_for="squad v1.1")
    # Where the report looks for it.
    ensemble = sources.out / "published_squad" / "ensemble.json"
    seeds = configuration.load(_HERE / "checkpoint" / "squad.yaml").search["seed"]
    trials = [str(sources.out / "published_squad" / "trials" / f"seed={seed}") for seed in seeds]
    gold = str(sources.out / "squad_by_article" / "dev-v1.1.json")
    made.append(
        Job(
            ("2",),
            "bert_tf.tasks.squad_ensemble",
            (*trials, "--data", gold, "--out", str(ensemble)),
            metrics_file(ensemble),
        )
    )
    finetune("wnut17", "3", "7", stands_for="conll2003")
    finetune("codah", "4", stands_for="swag")
    for features in FEATURES:
        finetune(f"wnut17_features_{features}", "7")
    return made


def _run(tables: tuple[str, ...], command: str, config: Path, run: Path, settings: Settings) -> Job:
    given = (f"{key}={value}" for key, value in settings.items())
    arguments = (command, str(config), "--out", str(run), "--set", *given)
    return Job(tables, "bert_tf", arguments, run / "metrics.json", is_run=True)


def _data_path(task: str, sources: Sources) -> Path | None:
    """The folder of a task's data; None where it was not given."""
    if task in ("cola", "sst2"):
        folder = {"cola": "CoLA", "sst2": "SST-2"}[task]
        return None if sources.glue is None else sources.glue / folder
    return sources.out / "squad_by_article" if task == "squad" else sources.data / task
