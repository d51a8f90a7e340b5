"""Rows of Parquet and Arrow files, of Hugging Face's data sets, and of data frames.

All of these are tables of Arrow. Tables of files are memory-mapped: the package `datasets` copies
Parquet files once to Arrow files in its own cache (HF_HOME).
"""

import dataclasses
import difflib
import glob
import itertools
import json
import logging
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from bert_tf.console import Progress, logger
from bert_tf.data.tfds import SPLITS, one_line
from bert_tf.dependencies import optional
from bert_tf.errors import UserError
from bert_tf.io.atomic import make_folder
from bert_tf.io.remote import cache_folder, fetched, is_file

FORMATS = ("parquet", "datasets")

_READ = 1024  # rows that are in memory at a time
# The endings of files -> the loaders of `datasets` that read them.
_KINDS = {".parquet": "parquet", ".arrow": "arrow", ".feather": "arrow"}
# Where one split of a data set may be in a folder of Parquet files, in the order of preference.
_PLACES = ("{}.parquet", "{}[-_]*.parquet", "{}/*.parquet", "data/{}[-_]*.parquet")
# The prefix of a data set that is read as a stream, and a split of which the first rows are read.
_STREAM = "stream:/"
_FIRST_ROWS = re.compile(r"(.+)\[:(\d+)\]")
_SAVED = "state.json"  # what `Dataset.save_to_disk` writes next to the rows
# On the Hub: owner/name or name, a configuration, a revision.
_HUB = re.compile(
    r"(?:(?:hf|stream):/(?:datasets/)?)?((?:[\w.-]+/)?[\w.-]+?)(?:/([\w.-]+))?(?:@([\w./-]+))?"
)
_TEXT = re.compile(r"null|(large_)?string(_view)?|dictionary<values=(large_)?string.*")
_LIST = re.compile(r"(large_|fixed_size_)?list(_view)?<.*")
# Our names of inputs -> their names in public data sets.
_OTHER_NAMES = {
    "text_a": "sentence1",
    "text_b": "sentence2",
    "words": "tokens",
    "choices": "endings",
    "passages": "passage",
}

# A function of a row's number, from 0, and of its values by column.
Make = Callable[[int, dict[str, Any]], Any]


class ArrowRows(Sequence[Any]):
    """Rows of a table, made when they are read, and not kept. Slices are such rows too."""

    def __init__(self, table: Any, make: Make, first: int = 0):
        self._table, self._make, self._first = table, make, first
        self.classes: tuple[str, ...] = ()  # of all classes, if the rows are names of classes
        # The start and the rows of the block that the last row read by index is in.
        self._block: tuple[int, list[Any]] = (0, [])

    def __len__(self) -> int:
        return self._table.num_rows

    def __getitem__(self, place: Any) -> Any:
        places = range(len(self))[place]
        if isinstance(places, int):
            start, rows = self._block
            if not 0 <= places - start < len(rows):
                start = places // _READ * _READ
                rows = [*self[start : start + _READ]]
                self._block = start, rows
            return rows[places - start]
        if places.step != 1:
            return [self[each] for each in places]
        part = self._table.slice(places.start, len(places))
        return ArrowRows(part, self._make, self._first + places.start)

    def __iter__(self) -> Iterator[Any]:
        numbers = itertools.count(self._first)
        for batch in self._table.to_batches(max_chunksize=_READ):
            for row in batch.to_pylist():
                yield self._make(next(numbers), row)

    def map(self, function: Callable[[Any], Any]) -> "ArrowRows":
        make = self._make
        return ArrowRows(self._table, lambda *row: function(make(*row)), self._first)


@dataclasses.dataclass(frozen=True)
class DataTable:
    """A table with named columns."""

    data: Any  # a `pyarrow.Table`
    source: str  # its name in messages

    @property
    def names(self) -> list[str]:
        return self.data.column_names

    def check(self, columns: Sequence[str]) -> None:
        """Raises UserError if a column is not there, or is there twice."""
        for name in columns:
            if self.names.count(name) > 1:
                raise UserError(f"{self.source}: two columns are named {name!r}; rename one")
            if name not in self.names:
                near = difflib.get_close_matches(name, self.names, 1, 0.5)
                nearest = f", of which {near[0]!r} is the nearest" if near else ""
                raise UserError(f"{self.source}: no column {name!r}; {self._columns}{nearest}")

    def check_texts(self, columns: Sequence[str], rank: int = 1) -> None:
        """Like `check`; the columns must also hold texts, or lists of texts if `rank` is 2."""
        self.check(columns)
        for name in columns:
            found = inner = self.data.schema.field(name).type
            if is_list := self._is_list(name):
                inner = found.value_type
            if is_list != (rank == 2) or not _TEXT.fullmatch(str(inner)):
                kind = "string" if rank == 1 else "list of strings"
                raise UserError(
                    f"{self.source}: the column {name!r} has the type {found}, not {kind}; "
                    f"{self._columns}"
                )

    def first_of(self, names: Sequence[str]) -> str | None:
        """The first of `names` that is the name of a column."""
        return next((name for name in names if name in self.names), None)

    def named(self) -> dict[str, str]:
        """The columns by their own names, and by our names of inputs where those differ."""
        named = {name: column for name, column in _OTHER_NAMES.items() if column in self.names}
        return named | {name: name for name in self.names}

    def classes(self, column: str) -> tuple[str, ...]:
        """The names of the classes of a column, or of its lists, if the data set knows them."""
        try:
            about = json.loads((self.data.schema.metadata or {})[b"huggingface"])
            feature = about["info"]["features"][column]
            feature = feature[0] if isinstance(feature, list) else feature.get("feature", feature)
            return tuple(feature["names"]) if feature["_type"] == "ClassLabel" else ()
        except (LookupError, TypeError, ValueError, AttributeError):
            return ()

    def rows(self, columns: Sequence[str], make: Make = lambda number, row: row) -> ArrowRows:
        """The named columns of every row. Class numbers become class names, and -1 becomes None."""
        known = {name: classes for name in columns if (classes := self.classes(name))}

        def named(number: int, row: dict[str, Any]) -> Any:
            return make(number, row | {name: _name(row[name], known[name]) for name in known})

        return ArrowRows(self.data.select(list(columns)), named if known else make)

    def column(self, name: str) -> ArrowRows:
        """The values of a column."""
        values = self.rows([name], lambda number, row: row[name])
        values.classes = self.classes(name)
        return values

    def labelled(self, column: str) -> "DataTable":
        """The rows that have a class, if only some have; a message counts the others."""
        if not self.classes(column) or self._is_list(column):
            return self
        compute = optional("pyarrow.compute", "datasets", self.source)
        has_class = compute.fill_null(compute.greater_equal(self.data[column], 0), False)
        lost = len(self.data) - (compute.sum(has_class).as_py() or 0)
        if lost in (0, len(self.data)):
            return self
        logger.warning(f"{self.source}: rows skipped because they have no label: {lost}")
        return dataclasses.replace(self, data=self.data.filter(has_class))

    def _is_list(self, column: str) -> bool:
        return bool(_LIST.fullmatch(str(self.data.schema.field(column).type)))

    @property
    def _columns(self) -> str:
        schema = self.data.schema
        return "the columns are " + ", ".join(f"{each.name} ({each.type})" for each in schema)


def _name(value: Any, classes: Sequence[str]) -> Any:
    if isinstance(value, list):
        return [_name(each, classes) for each in value]
    return classes[value] if isinstance(value, int) and 0 <= value < len(classes) else None


def reads(path: Path, file_format: str) -> bool:
    """Whether this module reads `path`, in a run whose `data.format` is `file_format`."""
    is_other = is_file(path) or path.suffix in (".tsv", ".csv", ".jsonl", ".json")
    return path.suffix in _KINDS or file_format in FORMATS and not is_other


def default_name(folder: Path, file_format: str, split: str) -> str:
    """The name of "train", "dev" or "test" in a folder, if none is configured."""
    if file_format == "datasets":
        return SPLITS[split]
    names = [place.format(name) for name in (split, SPLITS[split]) for place in _PLACES]
    return next((name for name in names if files_of(folder / name)), names[0])


def files_of(path: Path) -> list[Path]:
    """The file at `path`, the files that a glob matches, or those below a folder; [] if none."""
    path = fetched(path)
    found = [path] if path.exists() else map(Path, sorted(glob.glob(str(path), recursive=True)))
    each = [sorted(each.rglob("*")) if each.is_dir() else [each] for each in found]
    return [file for files in each for file in files if file.is_file()]


def read(path: Path) -> DataTable:
    """The rows of a file, a glob or a folder, or else of a split of the data set `path.parent`.

    Such a data set is a folder, or a name on the Hub, such as nyu-mll/glue/mnli@main with a
    configuration and a revision. `stream://nyu-mll/glue/mnli` is read as a stream: `datasets` keeps
    no file of it, and reads no more than the first 1,000 rows of the split train[:1000].
    """
    datasets = optional("datasets", "datasets", f"{path}: to read it, bert_tf")
    path = fetched(path)
    is_saved, folder = (path / _SAVED).is_file(), str(path.parent)
    files = [] if is_saved else [file for file in files_of(path) if file.suffix in _KINDS]
    named = _HUB.fullmatch(folder)
    is_split = path.suffix not in _KINDS and not path.exists()
    if not (files or is_saved or is_split and (path.parent.is_dir() or named)):
        kinds = ", ".join(_KINDS)
        raise UserError(f"{path}: no such file or split; files end in {kinds}; check data.path")
    log = logging.getLogger("datasets")
    level = log.level
    log.setLevel(logging.CRITICAL)  # the error below repeats its message
    try:
        if files:
            kind = _KINDS[files[0].suffix]
            found = datasets.load_dataset(kind, data_files=[*map(str, files)], split="train")
        elif is_saved:
            found = datasets.load_from_disk(str(path))
        elif path.parent.is_dir() or named is None:
            found = datasets.load_dataset(folder, split=path.name)
        else:
            name, configuration, revision = named.groups()
            is_stream = folder.startswith(_STREAM)
            first = _FIRST_ROWS.fullmatch(path.name) if is_stream else None
            split = first[1] if first else path.name
            found = datasets.load_dataset(
                name, configuration, revision=revision, split=split, streaming=is_stream
            )
            found = found.take(int(first[2])) if first else found
    # The Hub, files and the scripts of data sets fail in many ways.
    except Exception as error:
        cause: Any = error.__cause__ or error
        raise UserError(f"{path} cannot be read by datasets: {one_line(cause)}") from error
    finally:
        log.setLevel(level)
    return of_object(found, str(path))


def is_table(given: Any) -> bool:
    """Whether a value is a table with named columns: of pyarrow, pandas, polars or datasets."""
    is_named = any(hasattr(given, name) for name in ("columns", "column_names", "schema"))
    return hasattr(given, "__arrow_c_stream__") and is_named or _is_dataset(given)


def _is_dataset(given: Any) -> bool:
    return type(given).__module__.startswith("datasets.") and hasattr(given, "column_names")


def of_object(given: Any, source: str) -> DataTable:
    """The table of a value that passes `is_table`; `source` names it in messages."""
    pyarrow = optional("pyarrow", "datasets", f"{source} is a table, which")
    try:
        if not _is_dataset(given):
            is_plain = isinstance(given, pyarrow.Table)
            return DataTable(given if is_plain else pyarrow.table(given), source)
        if isinstance(given, Mapping):
            raise UserError(f"{source} has the splits {', '.join(given)}; give one of them")
        if not hasattr(given, "data"):
            return DataTable(_of_stream(given, source, pyarrow), source)
        # Rows that were selected or shuffled have indices, and are copied.
        is_whole = given._indices is None
        return DataTable(given.data.table if is_whole else given.with_format("arrow")[:], source)
    except pyarrow.ArrowException as error:
        raise UserError(f"{source} cannot be read as columns: {one_line(error)}") from error


def _of_stream(stream: Any, source: str, pyarrow: Any) -> Any:
    """The rows of an `IterableDataset`, in mapped files that vanish with the table."""
    ipc, parts, done = optional("pyarrow.ipc", "datasets", source), [], 0
    folder = cache_folder()
    make_folder(folder)
    try:
        with Progress(f"{source}, read once", None, unit="rows") as progress:
            if stream.features is None:
                batches = map(pyarrow.table, stream.iter(_READ))
            else:
                batches = stream.with_format("arrow").iter(_READ)
            # Without features, a column may be None in the first rows and have texts in later ones.
            for schema, tables in itertools.groupby(batches, lambda table: table.schema):
                with tempfile.NamedTemporaryFile(dir=folder, prefix="stream.") as file:
                    with ipc.new_file(file, schema) as writer:
                        for table in tables:
                            writer.write_table(table)
                            progress.update(done := done + len(table), line=True)
                    file.flush()
                    parts.append(ipc.open_file(pyarrow.memory_map(file.name)).read_all())
    # The Hub and the functions of a stream fail in many ways.
    except Exception as error:
        cause: Any = error.__cause__ or error
        raise UserError(f"{source} cannot be read as a stream: {one_line(cause)}") from error
    if not parts:
        raise UserError(f"{source} is a stream without rows")
    return pyarrow.concat_tables(parts, promote_options="default")
