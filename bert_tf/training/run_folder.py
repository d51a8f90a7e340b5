"""The folder of a run: its configuration, vocabulary, checkpoints, logs, metrics, predictions."""

import contextlib
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

from bert_tf import config as configuration
from bert_tf.config import RunConfig
from bert_tf.errors import UserError
from bert_tf.files import clear_unfinished, locked, make_folder, read_text, write_text
from bert_tf.training.vocabulary import settle

CONFIG_FILE = "config.yaml"
VOCABULARY_FILE = "vocab.txt"
METRICS_FILE = "metrics.json"


class RunFolder:
    """One run on the disk.

    Attributes:
        path: the folder.
        config: what the run does.
    """

    def __init__(self, path: Path, config: RunConfig):
        self.path = path
        self.config = config
        self.vocabulary = path / VOCABULARY_FILE
        self.checkpoints = path / "checkpoints"
        self.tokens = path / "tokens"
        self.logs = path / "logs"
        self.predictions = path / "predictions"

    @classmethod
    def start(cls, path: str | os.PathLike, config: RunConfig) -> "RunFolder":
        """Makes the folder, or takes an interrupted run up again and clears what it left half-done.

        Raises:
            UserError: the folder cannot be written, or holds a run of another configuration.
        """
        path = Path(path)
        make_folder(path)
        config, vocabulary = settle(config)
        run = cls(path, config)
        for folder in (run.path, run.checkpoints, run.predictions):
            clear_unfinished(folder)
        if (path / CONFIG_FILE).exists():
            changed = configuration.difference(cls.open(path).config, config)
            if changed and run.checkpoints.exists():
                raise UserError(
                    f"{path} holds a run with another {', '.join(changed)}; choose another --out, "
                    "or set it as before to resume"
                )
            if not changed:
                return run
            # A run that never saved anything is begun anew, from the text on.
            shutil.rmtree(run.tokens, ignore_errors=True)
        write_text(run.vocabulary, vocabulary)
        write_text(path / CONFIG_FILE, config.to_yaml())
        return run

    @classmethod
    def open(cls, path: str | os.PathLike) -> "RunFolder":
        """A run that was started before.

        Raises:
            UserError: `path` is not a run folder.
        """
        path = Path(path)
        if not (path / CONFIG_FILE).is_file():
            raise UserError(f"{path} is not a run folder: it has no {CONFIG_FILE}")
        return cls(path, configuration.load(path / CONFIG_FILE))

    @contextlib.contextmanager
    def in_use(self) -> Iterator[None]:
        """While this process works on the run, so that no other does.

        Raises:
            UserError: another process is at it.
        """
        with locked(self.path) as held:
            if held is False:
                raise UserError(
                    f"another process is working on {self.path}; let it finish, or choose another "
                    "--out"
                )
            yield

    def write_metrics(self, metrics: Mapping[str, float]) -> None:
        """Writes `metrics.json`."""
        write_text(self.path / METRICS_FILE, json.dumps(dict(metrics), indent=2) + "\n")

    def read_metrics(self) -> dict[str, float] | None:
        """What `write_metrics` wrote; None before that."""
        path = self.path / METRICS_FILE
        return json.loads(read_text(path, "metrics")) if path.exists() else None
