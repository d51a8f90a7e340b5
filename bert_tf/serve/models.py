"""The models that a server answers with: their names, their versions, and how these are loaded.

Names, version folders, states and labels are those of TensorFlow Serving.
Source: tensorflow/serving, `g3doc/serving_config.md` and `apis/get_model_status.proto`.
"""

import contextlib
import dataclasses
import functools
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from bert_tf import compat
from bert_tf.asking import Answers, Outputs, Row, rows_of, without_nan
from bert_tf.asking.frozen import FrozenTask, frozen_kind
from bert_tf.asking.record import FILE, versions
from bert_tf.asking.row_files import misfit
from bert_tf.asking.saved_model import SavedModel, tensors_of
from bert_tf.checkpoints.description import Description
from bert_tf.console import logger
from bert_tf.errors import UserError
from bert_tf.io.files import is_there
from bert_tf.io.json_files import as_json
from bert_tf.io.remote import fetched, local_path
from bert_tf.io.vocabulary import VOCABULARY_FILE, read_vocabulary
from bert_tf.serve.batching import BatchQueue, Columns
from bert_tf.serve.rest import question
from bert_tf.text import Tokenizer

# A name is part of an address.
_NAME = re.compile(r"[^/:=\s]+")
# Seconds between two looks for new versions.
_POLL = 1.0


class NotFound(UserError):
    """There is no such model, version or label."""


class NotReady(UserError):
    """The model is being loaded, or cannot be loaded."""


@dataclasses.dataclass(frozen=True)
class Source:
    """Where a model's versions are, and which to load: the newest ones (0 is all) or `numbers`."""

    name: str
    path: str
    newest: int = 1
    numbers: tuple[int, ...] = ()
    labels: Mapping[str, int] = dataclasses.field(default_factory=dict)

    def versions(self) -> dict[int, Path]:
        """The versions that are to be loaded, by their numbers."""
        path = local_path(self.path)
        if is_there(path / FILE):
            return {int(path.name) if path.name.isdecimal() else 1: path}
        found = {int(each.name): each for each in versions(path)}
        chosen = self.numbers or sorted(found)[-self.newest :]
        return {number: found[number] for number in chosen if number in found}


def sources(models: Sequence[str]) -> list[Source]:
    """The sources in the arguments of `bert-tf serve`: PATH, NAME=PATH, or a file NAME.config."""
    found: list[Source] = []
    for each in models:
        name, separator, path = each.partition("=")
        if os.path.exists(each) or not separator or "/" in name:
            name, path = "", each
        if path.endswith(".config"):
            found += _configured(path)
        else:
            found.append(Source(name or _default_name(path), path))
    for source in found:
        if not _NAME.fullmatch(source.name):
            raise UserError(
                f"{source.name!r} cannot be the name of a model; give another one, as in "
                f"NAME={source.path}"
            )
        if source.path.endswith(".tflite"):
            raise UserError(
                f"{source.path} is a LiteRT file, which is for phones; serve the run or the "
                "checkpoint that it was exported from"
            )
        same = [other.path for other in found if other.name == source.name]
        if len(same) > 1:
            raise UserError(
                f"{' and '.join(same)} would both be called {source.name}; name one of them, as in "
                f"NAME={same[-1]}"
            )
    return found


def _default_name(path: str) -> str:
    """The name of the folder; that of the folder above, where it is the number of a version."""
    place = local_path(path).resolve() if os.path.exists(path) else local_path(path)
    if place.name.isdecimal() and is_there(place / FILE):
        place = place.parent
    return place.stem if place.suffix == ".keras" else place.name


def _configured(path: str) -> list[Source]:
    from google.protobuf import text_format
    from tensorflow_serving.config import model_server_config_pb2

    try:
        text = fetched(path, is_file=True).read_text(encoding="utf-8")
        config = text_format.Parse(text, model_server_config_pb2.ModelServerConfig())
    except (OSError, ValueError, text_format.ParseError) as error:
        raise UserError(f"{path} cannot be read as a ModelServerConfig: {error}") from None
    found = []
    for model in config.model_config_list.config:
        policy = model.model_version_policy
        newest = 0 if policy.HasField("all") else max(policy.latest.num_versions, 1)
        numbers = tuple(policy.specific.versions)
        labels = dict(model.version_labels)
        found.append(Source(model.name, model.base_path, newest, numbers, labels))
    if not found:
        raise UserError(f"{path} names no models; fill in its model_config_list")
    return found


class Servable(Answers):
    """A version, as `bert_tf.load` opens it, whose rows may be computed with those of others."""

    def __init__(self, name: str, number: int, path: Path, queue: Callable[..., BatchQueue]):
        self.name, self.number, self.path = name, number, path
        self.saved = SavedModel.load(path)
        self.task = FrozenTask.of(self.saved)
        message = compat.SavedModel.FromString((path / FILE).read_bytes())
        self.signature_defs = dict(message.meta_graphs[0].signature_def)
        self.queue = queue(self._compute, self._growing_lists())
        try:
            for signature, rows in self.examples.items():
                body = {"signature_name": signature, "instances": rows}
                self.submit(signature, question(body, self.signatures).columns).result()
            # `/v1/embeddings` counts tokens; the first call is slow.
            if self.kind == "TextEmbedder":
                self.count_tokens([""])
        except BaseException:
            self.queue.close()
            raise

    @functools.cached_property
    def signatures(self) -> dict[str, dict[str, tf.TensorSpec]]:
        return {name: self.saved.specs(name) for name in self.saved.signature_names()}

    @functools.cached_property
    def examples(self) -> dict[str, list[dict[str, Any]]]:
        found = warm_up_rows(self.path)
        return {name: rows for name, rows in found.items() if name in self.signatures and rows}

    @functools.cached_property
    def tokenizer(self) -> Tokenizer | None:
        """The tokenizer that is in the graph; None if the export does not say which it is."""
        record = self.saved.record
        file = self.path / "assets" / VOCABULARY_FILE
        if record is None or not is_there(file):
            return None
        description = Description.from_dict(record.model, self.path)
        pieces = read_vocabulary(file)
        settings = description.tokenizer_settings(pieces)
        if self.kind == "MaskedLM":  # its texts hold [MASK]
            settings = dataclasses.replace(settings, special_tokens="whole")
        return _tokenizer(tuple(pieces), settings)

    @functools.cached_property
    def kind(self) -> str | None:
        """The class of the task model; None for an export without a task."""
        with contextlib.suppress(UserError):
            if "serving_default" in self.signatures:
                return self.task.task_class().__name__
        return None

    @property
    def settings(self) -> Mapping[str, Any]:
        return self.task.settings

    def description(self) -> dict[str, Any]:
        """The facts that the page and other clients need for requests, as JSON data."""
        specs = self.signatures.get("serving_default", {})
        inputs = {name: (spec.dtype.name, spec.shape.rank) for name, spec in specs.items()}
        examples, record = self.examples.get("serving_default", []), self.saved.record
        if self.saved.takes_ids:  # `predict` takes texts
            ranks, examples = self.task.ranks("serving_default"), []
            inputs = {name: ("string", rank) for name, rank in ranks.items()}
        return {
            "name": self.name,
            "version": self.number,
            "task": self.kind,
            "inputs": [
                {"name": name, "dtype": dtype, "is_list": rank == 2}
                for name, (dtype, rank) in inputs.items()
            ],
            "examples": examples,
            "signatures": sorted(self.signatures),
            "max_length": max(record.lengths) if record else None,
            "precision": record.precision if record else None,
            "vectors": self.settings.get("vectors"),
        }

    def count_tokens(self, texts: Sequence[str]) -> int:
        """How many pieces the texts have; 0 if the export does not say how they are cut."""
        return 0 if self.tokenizer is None else len(self.tokenizer.tokenize(texts).flat_values)

    def count_texts(self, signature: str, columns: Columns) -> int:
        """How many texts a model reads for columns: each one of a list, unless it is words."""
        texts = [column for column in columns.values() if column.dtype == object]
        if self.saved.record is None or signature == "words" or not texts:
            return 0
        return max(column.size for column in texts)

    def tokens(self, row: Mapping[str, Any]) -> dict[str, Any] | None:
        """A row's pieces, the tokens of its longest input, and how many of these are cut."""
        tokenizer, record = self.tokenizer, self.saved.record
        if tokenizer is None or record is None:
            return None
        settings, most = self.settings, max(record.lengths)
        form = settings.get("hypothesis_template", "{}")
        found: dict[str, list[list[str]]] = {}
        for name, value in row.items():
            texts = [value] if isinstance(value, str) else [form.replace("{}", v) for v in value]
            ids = tokenizer.tokenize(texts).to_list()
            found[name] = [[tokenizer.vocabulary[each] for each in text] for text in ids]
        total = 1 + sum(1 + max(map(len, texts), default=0) for texts in found.values())
        cuts = self.task.task_class().cuts_texts and settings.get("long_text") != "windows"
        cut = max(total - most, 0) if cuts else 0
        return {"pieces": found, "count": total, "cut": cut, "max_length": most}

    def ranks(self, signature: str) -> dict[str, int]:
        return self.saved.ranks(signature)

    def signature_names(self) -> tuple[str, ...]:
        return self.saved.signature_names()

    def ask(self, signature: str, rows: Sequence[Row]) -> Outputs:
        return Asking(self).ask(signature, rows)

    def submit(self, signature: str, columns: Columns) -> Future[Outputs]:
        """The future outputs for columns of one row or more; see `BatchQueue.submit`."""
        lengths = np.zeros(len(next(iter(columns.values()))), int)
        for column in columns.values():
            if column.dtype == object:
                of_texts = np.vectorize(len, otypes=[int])(column)
                lengths += of_texts.reshape(len(lengths), -1).sum(axis=1)
        return self.queue.submit(signature, columns, lengths.tolist())

    def predict(
        self, rows: Sequence[Row], options: Mapping[str, Any], asking: "Asking | None" = None
    ) -> list[Any]:
        """The answers of the task model's `predict`, as JSON data."""
        if self.kind is None:
            raise UserError(
                f"{self.name} has no task that bert_tf knows; send the request to "
                f"/v1/models/{self.name}:predict"
            )
        cls, ranks = self.task.task_class(), self.task.ranks("serving_default")
        for number, row in enumerate(rows, start=1):
            if not isinstance(row, Mapping) or row.keys() != ranks.keys():
                names = " and ".join(ranks)
                raise UserError(f"row {number} must be an object with {names}, and nothing else")
            if (name := misfit(row, ranks)) is not None:
                kind = "a text" if ranks[name] == 1 else "a list of texts"
                raise UserError(f"row {number}: {name} must be {kind}")
        unknown = [name for name in options if name not in cls.answer_options]
        if unknown:
            known = ", ".join(cls.answer_options) or "none"
            raise UserError(f"a {cls.__name__} has no option {unknown[0]!r}; it has {known}")
        if not rows:
            return []
        columns = {name: [row[name] for row in rows] for name in ranks}
        x = columns if len(columns) > 1 else next(iter(columns.values()))
        if self.saved.takes_ids:  # the queue joins rows of texts only
            return [_plain(each) for each in self.task.predict(x, verbose=0, **options)]
        return [_plain(each) for each in cls.answers(asking or self, x, verbose=0, **options)]

    def _compute(self, signature: str, columns: Columns) -> Outputs:
        specs = self.signatures[signature]
        tensors = {name: tf.constant(columns[name], spec.dtype) for name, spec in specs.items()}
        outputs = {name: each.numpy() for name, each in self.saved.call(signature, tensors).items()}
        # In a model that another program exported, NaN may be intended.
        return without_nan(outputs, self.name) if self.saved.record else outputs

    def _growing_lists(self) -> dict[str, list[tuple[str, ...]]] | None:
        """Signature -> the outputs that are as long as the longest list of a batch."""
        if self.saved.record is None:
            return None
        found = {}
        for name in self.saved.signature_names():
            shapes = self.saved.loaded.signatures[name].output_shapes
            growing = {key for key, shape in shapes.items() if None in tuple(shape)[1:2]}
            found[name] = [group for group in self.saved.record.lists if growing >= {*group}]
        return found


class Asking:
    """A servable for one request, which can cancel its waiting rows."""

    def __init__(self, servable: Servable):
        self._servable, self._given_up = servable, False
        self._future: Future[Outputs] | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._servable, name)

    def ask(self, signature: str, rows: Sequence[Row]) -> Outputs:
        tensors = tensors_of(rows, self._servable.ranks(signature))
        columns = {name: each.numpy() for name, each in tensors.items()}
        self._future = self._servable.submit(signature, columns)
        if self._given_up:
            self._future.cancel()
        return self._future.result()

    def give_up(self) -> None:
        """Rows that wait are not computed; whoever waits for them gets a CancelledError."""
        self._given_up = True
        if self._future is not None:
            self._future.cancel()


def _plain(value: Any) -> Any:
    """An answer with lists for arrays."""
    if isinstance(value, Mapping):
        return {name: _plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return as_json(value) if hasattr(value, "dtype") else value


# Several models may share a tokenizer, whose first call takes seconds.
_tokenizer = functools.lru_cache(maxsize=8)(Tokenizer.of)


def warm_up_rows(folder: Path) -> dict[str, list[dict[str, Any]]]:
    """Signature -> the rows that an export's warm-up file holds for it; {} without the file."""
    from tensorflow_serving.apis import prediction_log_pb2

    path = folder / "assets.extra" / "tf_serving_warmup_requests"
    found: dict[str, list[dict[str, Any]]] = {}
    if not is_there(path):
        return found
    try:
        for record in tf.data.TFRecordDataset(str(path)):
            log = prediction_log_pb2.PredictionLog.FromString(record.numpy()).predict_log.request
            columns = {name: as_json(tf.make_ndarray(each)) for name, each in log.inputs.items()}
            rows = rows_of([*columns.values()], [*columns])
            found[log.model_spec.signature_name] = rows
    # TensorFlow and protobuf have no common class of errors in damaged files.
    except Exception as error:
        raise UserError(f"{path} is damaged ({error}); export the model again") from None
    return found


@dataclasses.dataclass
class _Version:
    """A version as `model_version_status` shows it, and the files of one that was not loaded."""

    number: int
    state: str = "LOADING"
    error: str = ""
    servable: Servable | None = None
    files: frozenset = frozenset()


class Models:
    """All models of a server, by name. A thread looks for new versions and loads them."""

    def __init__(self, found: Sequence[Source], queue: Callable[..., BatchQueue] = BatchQueue):
        self.sources = {source.name: source for source in found}
        self._queue = queue
        self._versions: dict[str, dict[int, _Version]] = {name: {} for name in self.sources}
        self._closed = threading.Event()
        self._files = contextlib.ExitStack()

    def prepare(self) -> None:
        """Exports models that are not SavedModels yet, to folders that `close` removes."""
        for name, source in self.sources.items():
            if frozen_kind(source.path):
                continue
            folder = Path(tempfile.mkdtemp(prefix="bert-tf-serve-"))
            self._files.callback(shutil.rmtree, folder, ignore_errors=True)
            logger.info(f"{source.path}: exporting it to serve it")
            # A separate process frees all memory of the export when it ends.
            export = [sys.executable, "-m", "bert_tf", "--quiet", "export", source.path, "--out"]
            done = subprocess.Popen([*export, str(folder / "1")], stderr=subprocess.PIPE, text=True)
            # These are called in reverse order.
            self._files.callback(done.wait)
            self._files.callback(done.kill)
            if self._closed.is_set():
                self._files.close()
            lines = done.communicate()[1].strip().splitlines() or ["the export was stopped"]
            if done.returncode:
                raise UserError(lines[-1].removeprefix("bert-tf: error: "))
            self.sources[name] = dataclasses.replace(source, path=str(folder))

    def load(self) -> None:
        """Loads the versions that are there now; raises UserError for a model without any."""
        for name, source in self.sources.items():
            self.refresh(name)
            states = self._versions[name].values()
            if not any(each.servable for each in states):
                reasons = [each.error for each in states] or [f"{source.path} has no versions"]
                raise UserError(reasons[-1])

    def watch(self) -> None:
        """Loads new versions and drops old ones until the server is closed."""
        said: dict[str, str] = {}
        while not self._closed.wait(_POLL):
            for name in self.sources:
                try:
                    self.refresh(name)
                    said.pop(name, None)
                except (OSError, UserError) as error:  # the folder cannot be read now
                    if said.get(name) != str(error):
                        logger.warning(f"{name}: {error}")
                    said[name] = str(error)

    def refresh(self, name: str) -> None:
        """Loads the versions of a model that are new, then drops those that are not wanted."""
        known, wanted = self._versions[name], self.sources[name].versions()
        for number, path in sorted(wanted.items()):
            before = known.get(number)
            if before is not None and before.state != "END":
                continue
            stats = ((file, file.lstat()) for file in fetched(path).rglob("*"))
            files = frozenset((str(each), stat.st_size, stat.st_mtime_ns) for each, stat in stats)
            # A version that failed to load may not have been fully copied then.
            if before is not None and before.error and before.files == files:
                continue
            version = known[number] = _Version(number, files=files)
            try:
                version.servable = Servable(name, number, path, self._queue)
                version.state = "AVAILABLE"
                logger.info(f"{name}: version {number} is loaded from {path}")
            # A version that is damaged may fail in any way. The others stay.
            except Exception as error:
                known_kind = isinstance(error, UserError)
                version.error = str(error) if known_kind else str(UserError(repr(error)))
                version.state = "END"
                logger.warning(f"{name}: version {number} cannot be loaded: {version.error}")
        available = {number for number, each in known.items() if each.servable}
        # The last version stays until another one is there.
        if not available & wanted.keys():
            return
        for number in available - wanted.keys():
            version = known[number]
            servable, version.servable, version.state = version.servable, None, "END"
            if servable is not None:
                servable.queue.close()
                logger.info(f"{name}: version {number} is unloaded")

    def find(
        self, name: str | None, number: int | None = None, label: str | None = None
    ) -> Servable:
        """A loaded version: that of a number or of a label, or the newest."""
        if name is None and len(self.sources) == 1:
            (name,) = self.sources
        if name is None:
            raise NotFound(f'"model" is missing; the models are {", ".join(self.sources)}')
        if name not in self.sources:
            there = ", ".join(self.sources)
            raise NotFound(f"Servable not found for request: Latest({name}); there are {there}")
        if label is not None:
            if label not in self.sources[name].labels:
                raise NotFound(f"Unrecognized servable version label: {label}")
            number = self.sources[name].labels[label]
        known = list(self._versions[name].values())  # a thread adds to them
        loaded = {each.number: found for each in known if (found := each.servable)}
        if number is None and loaded:
            return loaded[max(loaded)]
        if number in loaded:
            return loaded[number]
        if not known or any(each.state == "LOADING" for each in known):
            raise NotReady(f"{name} is being loaded; send the request again later")
        which = f"Latest({name})" if number is None else f"Specific({name}, {number})"
        raise NotFound(f"Servable not found for request: {which}")

    def servables(self) -> Iterator[Servable]:
        """The newest version of each model that is loaded."""
        for name in self.sources:
            with contextlib.suppress(NotFound, NotReady):
                yield self.find(name)

    def status(self, name: str, number: int | None = None) -> list[dict[str, Any]]:
        """`model_version_status` of a model, its newest version first, or of one version."""
        found = list(self._versions.get(name, {}).values())
        if name in self.sources and not found and number is None:
            found = [_Version(1, "START")]
        shown = [each for each in found if number in (None, each.number)]
        if not shown:
            raise NotFound(f"Could not find any versions of model {name}")
        return [
            {
                "version": str(each.number),
                "state": each.state,
                "status": {
                    "error_code": "UNKNOWN" if each.error else "OK",
                    "error_message": each.error,
                },
            }
            for each in sorted(shown, key=lambda each: -each.number)
        ]

    def close(self) -> None:
        self._closed.set()
        for known in self._versions.values():
            for version in list(known.values()):
                if (servable := version.servable) is not None:
                    servable.queue.close()
        self._files.close()
