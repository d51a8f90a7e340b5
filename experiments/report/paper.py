"""The paper's figures by benchmark (Devlin et al. 2019, tables 1 to 4), and a run's benchmark."""

import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from bert_tf.config.run import PRETRAINING, RunConfig
from bert_tf.tasks import registry
from bert_tf.tasks.question_answering import QuestionAnsweringData
from bert_tf.tasks.texts.text_files import tfds_glue_task
from bert_tf.tasks.token_classification import TokenClassificationData


class Benchmark(NamedTuple):
    """A column of the paper's tables, or data that the paper does not have.

    Attributes:
        title: its name in the report.
        metrics: the metrics to show, the main one first.
        source: the place of the figures in the paper; "" if it has none.
        results: these figures: a model, a split, and metrics in percent.
        stands_for: the title of the paper's data that this data replaces, if it does.
    """

    title: str
    metrics: tuple[str, ...]
    source: str = ""
    results: tuple[tuple[str, str, dict[str, float]], ...] = ()
    stands_for: str = ""

    @property
    def heading(self) -> str:
        """Its title, and the data that it replaces."""
        in_place = f", in place of {self.stands_for} ({self.source})"
        return self.title + (in_place if self.stands_for else "")


def _glue(title: str, metrics: tuple[str, ...], *values: tuple[float, ...]) -> Benchmark:
    """A column of table 1; `values` are those of its three models."""
    models = ("OpenAI GPT", "BERT-base", "BERT-large")
    results = [
        (model, "test", dict(zip(metrics, each, strict=True)))
        for model, each in zip(models, values, strict=True)
    ]
    return Benchmark(f"GLUE: {title}", metrics, "table 1", tuple(results))


BENCHMARKS = {
    "cola": _glue("CoLA", ("mcc",), (45.4,), (52.1,), (60.5,)),
    "sst2": _glue("SST-2", ("accuracy",), (91.3,), (93.5,), (94.9,)),
    "mrpc": _glue("MRPC", ("f1",), (82.3,), (88.9,), (89.3,)),
    "qqp": _glue("QQP", ("f1",), (70.3,), (71.2,), (72.1,)),
    "stsb": _glue("STS-B", ("spearman",), (80.0,), (85.8,), (86.5,)),
    "qnli": _glue("QNLI", ("accuracy",), (88.1,), (90.1,), (91.1,)),
    "rte": _glue("RTE", ("accuracy",), (56.0,), (66.4,), (70.1,)),
    "wnli": Benchmark("GLUE: WNLI", ("accuracy",)),
    "mnli": _glue(
        "MNLI", ("accuracy", "accuracy_mismatched"), (82.1, 81.4), (84.6, 83.4), (86.7, 85.9)
    ),
    "squad v1.1": Benchmark(
        "SQuAD v1.1",
        ("f1", "exact_match"),
        "table 2",
        (
            ("BERT-base", "dev", {"f1": 88.5, "exact_match": 80.8}),
            ("BERT-large", "dev", {"f1": 90.9, "exact_match": 84.1}),
            ("BERT-large, ensemble of 7", "dev", {"f1": 91.8, "exact_match": 85.8}),
            ("BERT-large, TriviaQA", "dev", {"f1": 91.1, "exact_match": 84.2}),
            ("BERT-large, ensemble, TriviaQA", "dev", {"f1": 92.2, "exact_match": 86.2}),
            ("BERT-large, ensemble, TriviaQA", "test", {"f1": 93.2, "exact_match": 87.4}),
        ),
    ),
    "squad v2.0": Benchmark(
        "SQuAD v2.0", ("f1", "exact_match"), "section 4.3", (("BERT-large", "test", {"f1": 83.1}),)
    ),
    "conll2003": Benchmark(
        "CoNLL-2003",
        ("f1",),
        "table 3",
        (
            ("BERT-base", "dev", {"f1": 96.4}),
            ("BERT-base", "test", {"f1": 92.4}),
            ("BERT-large", "dev", {"f1": 96.6}),
            ("BERT-large", "test", {"f1": 92.8}),
        ),
    ),
    "swag": Benchmark(
        "SWAG",
        ("accuracy",),
        "table 4",
        (
            ("BERT-base", "dev", {"accuracy": 81.6}),
            ("BERT-large", "dev", {"accuracy": 86.6}),
            ("BERT-large", "test", {"accuracy": 86.3}),
        ),
    ),
}
# Names of folders with the official files.
_SQUAD = re.compile(r"squad[-_ ]?(v?(1|1\.1|2|2\.0))?", re.IGNORECASE)
# The metrics of pre-training that are shown.
_PRETRAINING = ("masked_lm_accuracy", "next_sentence_accuracy", "perplexity")


def benchmark_of(config: RunConfig, stands_for: str | None = None) -> Benchmark:
    """The benchmark that a run is compared with.

    Data is the paper's if its format, its name in TFDS or the names of its files say so. Other data
    is compared with the paper only if the caller names the benchmark that it replaces.

    Args:
        stands_for: for data that the paper does not have, the key in `BENCHMARKS` of the paper's.
    """
    if stands_for is not None:
        paper = BENCHMARKS[stands_for]
        own = benchmark_of(config)
        return own._replace(source=paper.source, results=paper.results, stands_for=paper.title)
    known = BENCHMARKS.get(_name(config))
    if known is not None:
        return known
    is_pretraining = config.task == PRETRAINING
    metrics = _PRETRAINING if is_pretraining else registry.family(config.task).metrics
    return Benchmark(_title(config, map(_last, _paths(config))), metrics)


def distinct_benchmarks(runs: Sequence[tuple[Benchmark, RunConfig]]) -> list[Benchmark]:
    """The benchmark of each run, with other titles for data of one name in different folders."""
    places: dict[str, set[tuple[str, ...]]] = {}
    for benchmark, config in runs:
        if benchmark not in BENCHMARKS.values():
            places.setdefault(benchmark.title, set()).add(_paths(config))
    distinct = []
    for benchmark, config in runs:
        alike = places.get(benchmark.title, ())
        if len(alike) > 1:
            paths = [path for each in alike for path in each]
            names = dict(zip(paths, distinct_names(paths), strict=True))
            title = _title(config, [names[path] for path in _paths(config)])
            benchmark = benchmark._replace(title=title)
        distinct.append(benchmark)
    return distinct


def distinct_names(folders: Sequence[str | os.PathLike]) -> list[str]:
    """The name of each folder, with the parent folders that distinguish it from the others.

    >>> distinct_names(["first/bert", "second/bert", "second/tuned"])
    ['first/bert', 'second/bert', 'tuned']
    """
    paths = [Path(folder).resolve().parts for folder in folders]
    names = []
    for own in paths:
        others = {each for each in paths if each != own}
        depth = 1
        while depth < len(own) and any(each[-depth:] == own[-depth:] for each in others):
            depth += 1
        names.append(Path(*own[-depth:]).as_posix())
    return names


def _title(config: RunConfig, names: Iterable[str]) -> str:
    return f"{config.task.replace('_', ' ').capitalize()}: {', '.join(names)}"


def _paths(config: RunConfig) -> tuple[str, ...]:
    path = config.data.path
    return path if isinstance(path, tuple) else (path,)


def _name(config: RunConfig) -> str:
    """The key of the data in `BENCHMARKS`, if the data says itself that it is the paper's."""
    data = config.data
    if data.format == "tfds":
        name = str(data.path)
        versions = {"squad/v1.1": "squad v1.1", "squad/v2.0": "squad v2.0"}
        return versions.get(name) or tfds_glue_task(name) or name.partition("/")[0]
    if isinstance(data, QuestionAnsweringData) and data.format == "squad":
        # Other data sets have similar names: squad_it, squadshifts.
        is_official = _SQUAD.fullmatch(_last(data.path)) and not data.train_rows
        version = "v2.0" if data.unanswerable else "v1.1"
        return f"squad {version}" if is_official else ""
    if isinstance(data, TokenClassificationData) and data.format == "conll":
        return "conll2003" if data.train == "eng.train" else ""
    return data.format


def _last(path: str) -> str:
    return str(path).rstrip("/").rpartition("/")[2]
