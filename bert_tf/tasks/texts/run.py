"""The common base of runs on texts: reading files, and writing predictions."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bert_tf.config.run import FinetuningRun
from bert_tf.data.columns import Columns, Target
from bert_tf.errors import UserError
from bert_tf.io.atomic import write_text
from bert_tf.io.remote import is_file
from bert_tf.tasks.from_checkpoint import OF_VECTORS
from bert_tf.tasks.task import Task, indexed
from bert_tf.tasks.task_model import TaskModel
from bert_tf.tasks.texts import TextData, TextRun, glue, text_files
from bert_tf.tasks.texts.glue import GLUE


class TextTask(Task):
    """A task on one text or two: see `bert_tf.tasks.texts.text_files` for what can be read."""

    config: TextRun
    data: TextData
    has_classes = True  # whether a row has the name of a class, or a number

    def __init__(self, config: FinetuningRun, labels: Sequence[str] | None = None):
        super().__init__(config, labels)
        task = text_files.glue_task(self.data)
        if task and bool(GLUE[task].classes) != self.has_classes:
            kinds, right = "labels, not numbers", "classification"
            if self.has_classes:
                kinds, right = "numbers, not labels", "regression"
            raise UserError(f"{task} predicts {kinds}; set task: {right}")

    @classmethod
    def best_metric_of(cls, config: Any) -> str:
        task = text_files.glue_task(config.data)
        return GLUE[task].metrics[0] if task else cls.best_metric

    def files(self, split: str) -> dict[str, Path]:
        # With TFDS a path is the name and the split.
        self.check_format()
        return text_files.find_files(self.data, split)

    def sources(self, split: str) -> list[Path]:
        paths = super().sources(split)  # files of MRPC may be made of Microsoft's files
        if self.data.format != "mrpc":
            return paths
        return [source for path in paths for source in glue.mrpc_sources(path)]

    def test_files(self) -> dict[str, Path]:
        return self.files("test")

    def is_taken(self, name: str) -> bool:
        # GLUE's server has names of its own for the predictions on its test data.
        task = text_files.glue_task(self.data)
        return super().is_taken(name) or bool(task) and name in GLUE[task].submissions.values()

    def training_rows(self) -> Columns:
        (path,) = self.files("train").values()
        rows = self._read(path)
        self.prepare(rows)
        return rows.first(self.data.train_rows)

    def settings(self) -> dict[str, Any]:
        pair = len(text_files.text_columns(self.data)) == 2
        # The pooling of the initial checkpoint, or by default the mean if few texts are learned.
        is_few = getattr(self.config.train, "few_shot", False)
        pooling = {name: self.initial[name] for name in OF_VECTORS if name in self.initial}
        pooling = pooling or ({"pooling": "mean"} if is_few else {})
        own = {"pair": pair, "max_length": self.config.train.max_length}
        own |= self.config.model.long_texts(self.initial)
        return own | pooling if self.has_classes else own

    def read(self, path: Path) -> Columns:
        rows = self._read(path)
        if rows.targets is not None:
            self.target.numbers(rows)
        return rows

    def score(self, model: TaskModel, predictions: Any, rows: Columns) -> dict[str, float]:
        metrics = super().score(model, predictions, rows)
        benchmark = self._benchmark(rows.path)
        if not benchmark or not metrics:
            return metrics
        return {name: metrics[name] for name in (*GLUE[benchmark].metrics, "loss")}

    def write_predictions(
        self, model: TaskModel, predictions: Any, rows: Columns, folder: Path, name: str
    ) -> None:
        """Writes GLUE's form. Predictions for a test file of GLUE, unless it is the dev file, get
        the names that GLUE's server expects.
        """
        is_dev = name in {f"dev{ending}" for ending in self.files("dev")}
        submitted = None if is_dev else self._submitted(rows)
        words = self.words(predictions, submitted is not None)
        write_text(folder / f"{submitted or name}.tsv", indexed(words))

    def prepare(self, rows: Any) -> None:
        """Takes from the training data what the run needs, such as the labels."""

    def label_of(self, row: Mapping[str, Any], place: str, is_table: bool) -> Any:
        """The label of a row of a table or of JSON lines, before it is checked."""
        return row.get(self.data.label_column)

    @property
    @abstractmethod
    def target(self) -> Target:
        """The type of the labels, with the classes that are known by now."""

    @abstractmethod
    def words(self, predictions: Any, submitted: bool) -> list[str]:
        """Predictions as words in a file; `submitted` ones are for GLUE's server."""

    def _read(self, path: Path) -> Columns:
        needs_labels = self.needs_labels(path)
        rows = text_files.read(path, self.data, self.target, needs_labels, self.label_of)
        if needs_labels:
            rows.known_targets()
        return rows

    def _benchmark(self, path: Path | None) -> str:
        if path is None:
            return ""
        if self.data.format == "tfds":
            return "" if is_file(path) else text_files.tfds_glue_task(str(path.parent))
        return glue.benchmark_at(path, text_files.glue_task(self.data))

    def _submitted(self, rows: Columns) -> str | None:
        """The name of the predictions for `rows` at GLUE's server; None if it does not take them,
        or if it would replace those for the run's own test files.
        """
        path = rows.path
        if path is None:
            return None
        submitted = _submission(path, self._benchmark(path))
        own = self.test_files().values()
        if path.resolve() in {each.resolve() for each in own}:
            return submitted
        task = text_files.glue_task(self.data)
        return None if submitted in [_submission(each, task) for each in own] else submitted


def _submission(path: Path, task: str) -> str | None:
    return GLUE[task].submissions.get(path.stem) if task else None
