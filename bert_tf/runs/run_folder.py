"""The folder of a run: its configuration, vocabulary, checkpoints, logs, metrics, predictions."""

import contextlib
import functools
import json
import os
import shutil
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Generic, TypeVar

from bert_tf.checkpoints.checkpoint import Checkpoint
from bert_tf.checkpoints.native import CHECKPOINTS
from bert_tf.checkpoints.of_run import BEST_FILE, RUN_FILE, step_folders
from bert_tf.checkpoints.of_run import METRICS_FILE as METRICS_FILE
from bert_tf.config.changes import difference, has_moved, tell_difference
from bert_tf.config.reading import load_config
from bert_tf.config.run import RunConfig
from bert_tf.console import logger
from bert_tf.errors import UserError
from bert_tf.io import locks
from bert_tf.io.atomic import clear_unfinished, locked, make_folder, write_text
from bert_tf.io.json_files import read_json
from bert_tf.io.refusals import explained
from bert_tf.io.remote import clear_unstored, fetched, local_path, remove, synchronize
from bert_tf.io.vocabulary import VOCABULARY_FILE
from bert_tf.runs.vocabulary import Find, Kind, find_initial, settle, with_tokenizer_of
from bert_tf.tasks import from_checkpoint
from bert_tf.training.distributed import Cluster
from bert_tf.training.evaluations import in_words

CONFIG_FILE = RUN_FILE
SEARCH_FILE = "search.tsv"  # a line for each trial of a search
SUMMARY_FILE = "summary.tsv"  # a line for each setting of a search
DIVERGED_FILE = "diverged.json"  # in a trial: what was no longer a number, and where
_LOGS = ("train", "dev", "trials")
_LOCK_FILE = ".lock"  # empty; the process that works on the run locks it
Config = TypeVar("Config", bound=RunConfig, covariant=True)


class RunFolder(Generic[Config]):
    """One run on the disk."""

    def __init__(self, path: Path, config: Config, find: Find = find_initial):
        self.path = path
        self.config = config
        self._find = find
        self.vocabulary = path / VOCABULARY_FILE
        self.checkpoints = path / CHECKPOINTS
        self.tokens = path / "tokens"
        self.tokens_source = path / "tokens.source"  # the fingerprint of what they were made of
        self.logs = path / "logs"
        self.predictions = path / "predictions"
        self.trials = path / "trials"

    @functools.cached_property
    def initial(self) -> Checkpoint | None:
        """The checkpoint that the weights start from, opened once; None where all are new."""
        return self._find(self.config)

    @staticmethod
    def start(
        path: str | os.PathLike, config: Kind, find: Find = find_initial
    ) -> "RunFolder[Kind]":
        """Makes the folder, or resumes an interrupted run and clears what it left half-done.

        A run that has saved something goes on with its own vocabulary; one that has saved nothing
        starts anew if the configuration or the vocabulary has changed.
        """
        path = fetched(path, without=CHECKPOINTS)
        make_folder(path)
        run = RunFolder(path, config, find)
        for folder in (run.path, run.checkpoints, run.predictions):
            clear_unfinished(folder)
        clear_unstored(run.checkpoints, "step-")
        before = RunFolder.open(path).config if (path / CONFIG_FILE).exists() else None
        if before is not None and run.has_saved:
            # The file that its vocabulary was copied from may be gone.
            run.config = with_tokenizer_of(before, config)
            if changed := tell_difference(before, run.config):
                raise UserError(
                    f"{path} holds a run with a different {changed}; choose another --out, or "
                    "restore the old value to resume"
                )
            if before.searched != config.searched or has_moved(before, run.config):
                write_text(path / CONFIG_FILE, run.config.to_yaml())
            return run
        run.config, vocabulary = settle(config, lambda _: run.initial)
        if before is not None:
            is_same = before.searched == config.searched and not difference(before, run.config)
            file = run.vocabulary
            if is_same and file.is_file() and file.read_bytes() == vocabulary.encode():
                return run
            run._clear()
        write_text(run.vocabulary, vocabulary)
        write_text(path / CONFIG_FILE, run.config.to_yaml())
        return run

    @staticmethod
    def open(path: str | os.PathLike) -> "RunFolder[RunConfig]":
        """A run that was started before."""
        path = fetched(path, without=CHECKPOINTS)
        try:
            is_run = (path / CONFIG_FILE).is_file()
        except OSError as error:
            raise UserError(f"run folder cannot be read: {path} ({error.strerror})") from None
        if not is_run:
            raise UserError(f"{path} is not a run folder: it has no {CONFIG_FILE}")
        return RunFolder(path, load_config(path / CONFIG_FILE))

    @staticmethod
    @contextlib.contextmanager
    def shared(
        path: str | os.PathLike, config: Kind, cluster: Cluster
    ) -> Iterator["RunFolder[Kind]"]:
        """The run that all processes of a cluster work on; only the chief starts it, and writes."""
        started: list[RunFolder[Kind]] = []
        with contextlib.ExitStack() as stack:

            def begin() -> None:
                make_folder(local_path(path))
                stack.enter_context(RunFolder.in_use(path))
                started.append(RunFolder.start(path, config))

            cluster.from_chief(begin)
            yield started[0] if started else RunFolder._of_chief(path, config)

    @staticmethod
    def _of_chief(path: str | os.PathLike, config: Kind) -> "RunFolder[Kind]":
        """The run that the chief has started, for another process."""
        try:
            theirs = RunFolder.open(path).config
        except UserError:
            raise UserError(
                f"{path} is not the chief's folder; all workers need the same folder, on a shared "
                "file system"
            ) from None
        run = RunFolder(local_path(path), config)
        settled, _ = settle(config, lambda _: run.initial)
        changed = difference(theirs, settled)
        if changed or not isinstance(theirs, type(config)):
            raise UserError(
                f"this worker and the chief have a different {', '.join(changed)}; give all "
                "workers the same"
            )
        run.config = theirs
        return run

    @staticmethod
    @contextlib.contextmanager
    def in_use(path: str | os.PathLike) -> Iterator[None]:
        """Locks the run in the folder `path` for this process."""
        path = local_path(path)
        lock = path / _LOCK_FILE
        with explained(path):
            lock.touch()
        with locked(lock) as held:
            if held is False:
                raise UserError(
                    f"another process is writing to {path}; let it finish, or choose another --out"
                )
            with locks.held(path, is_folder=True):
                try:
                    yield
                except BaseException:
                    with contextlib.suppress(UserError):
                        synchronize(path)
                    raise
                synchronize(path)

    @property
    def has_saved(self) -> bool:
        """Whether the run or one of its trials has saved a checkpoint or a result."""
        return _has_saved(self.path) or any(map(_has_saved, self.trials.glob("*")))

    @property
    def trained_with(self) -> RunConfig:
        """The configuration that trained the kept weights; after a search, the best trial's."""
        return from_checkpoint.trained_with(self.path)

    def finish(self, metrics: Mapping[str, float], updated: float | None = None) -> None:
        """Writes the final metrics, which mark a run as finished; `updated` is a `monotonic()`."""
        self.write_metrics(metrics)
        logger.info(f"{self.path}: " + in_words(metrics))
        if updated is not None:
            passed = f"{time.monotonic() - updated:.1f} s"
            logger.info(f"{self.path}: {METRICS_FILE} written {passed} after the last update")

    def write_metrics(self, metrics: Mapping[str, float], of: str | None = None) -> None:
        """Writes `metrics.json`; for data other than the run's own, next to their predictions."""
        path = self.path / METRICS_FILE if of is None else self.predictions / f"{of}_{METRICS_FILE}"
        write_text(path, json.dumps(dict(metrics), indent=2) + "\n")

    def read_metrics(self) -> dict[str, float] | None:
        """What `write_metrics` wrote; None before that. Raises UserError where it is damaged."""
        path = self.path / METRICS_FILE
        if not path.exists():
            return None
        metrics = read_json(path)
        numbers = metrics.values() if isinstance(metrics, dict) else [None]
        if not all(type(number) in (int, float) for number in numbers):
            raise UserError(
                f"{path} does not hold the metrics of a run; remove it, and repeat the command "
                "that made the run"
            )
        return metrics

    def _clear(self) -> None:
        """Removes the files of a run that saved nothing; its tokens are checked when used again."""
        for name in (BEST_FILE, SEARCH_FILE, SUMMARY_FILE, DIVERGED_FILE):
            remove(self.path / name)
            (self.path / name).unlink(missing_ok=True)
        # Removes only what runs write: the user may keep other files in the folder.
        trials = [config.parent for config in self.trials.glob(f"*/{CONFIG_FILE}")]
        for folder in (*trials, *(self.logs / name for name in _LOGS)):
            remove(folder)
            shutil.rmtree(folder, ignore_errors=True)


def _has_saved(folder: Path) -> bool:
    """Whether a run has a checkpoint, or has ended: its checkpoints may have been removed since."""
    ended = any((folder / name).exists() for name in (METRICS_FILE, DIVERGED_FILE))
    return ended or bool(step_folders(folder / CHECKPOINTS))
