"""A SavedModel of strings, run by TensorFlow's C library without the Python part of TensorFlow.

Importing the Python part takes half of the time until `bert-tf predict` answers, and a third of its
memory. The interface is `tensorflow/c/c_api.h`, with `tf_tstring.h` for strings.
"""

import contextlib
import ctypes
import functools
import importlib.util
import mmap
import os
import re
import weakref
from collections.abc import Iterator, Mapping, Sequence
from ctypes import POINTER, c_char_p, c_int, c_int64, c_size_t, c_void_p
from pathlib import Path
from typing import Any, NamedTuple, Self, cast

import numpy as np

from bert_tf.asking import Answers, Outputs, Row, texts_of, without_nan
from bert_tf.asking import record as exports
from bert_tf.asking.record import Record, find_saved_model
from bert_tf.errors import UserError

# TensorFlow's numbers of types (`tensorflow/core/framework/types.proto`) that outputs may have.
_STRING = 7
_DTYPES: dict[int, type] = {
    **{1: np.float32, 2: np.float64, 3: np.int32, 4: np.uint8, 5: np.int16, 6: np.int8},
    **{9: np.int64, 10: np.bool_, 19: np.float16},
}
# `TF_Code`: the model refuses an input; there is too little memory.
_INVALID, _EXHAUSTED = 3, 8
_STRING_SIZE = 24  # bytes of a `TF_TString`
_LOG_LEVEL = re.compile(rb"_ZN4absl\d+lts_\d+14SetMinLogLevelENS0_18LogSeverityAtLeastE")


class _Output(ctypes.Structure):
    """`TF_Output`: one output of an operation of the graph."""

    _fields_ = (("operation", c_void_p), ("index", c_int))


class _Buffer(ctypes.Structure):
    """`TF_Buffer`: bytes that TensorFlow owns."""

    _fields_ = (("data", c_void_p), ("length", c_size_t), ("deallocator", c_void_p))


class _Tensor(NamedTuple):
    """An input or an output of a signature: its name in the graph, type, and number of axes."""

    name: str
    dtype: int
    rank: int


class _Signature(NamedTuple):
    inputs: dict[str, _Tensor]
    outputs: dict[str, _Tensor]


class SessionModel(Answers):
    """A SavedModel that answers rows of strings; see `bert_tf.asking.Answers`.

    Args:
        path: its folder.
        library: TensorFlow's C library.
        record: what the SavedModel says about its model, if anything.
    """

    def __init__(self, path: str, library: ctypes.CDLL, record: Record | None):
        self.path, self._library, self.record = path, library, record
        self._graph = c_void_p(library.TF_NewGraph())
        options = c_void_p(library.TF_NewSessionOptions())
        found = library.TF_NewBuffer()
        tags = (c_char_p * 1)(b"serve")
        arguments = (options, None, os.fsencode(path), tags, 1, self._graph, found)
        try:
            loaded = _checked(library, library.TF_LoadSessionFromSavedModel, *arguments)
            self._session = c_void_p(loaded)
            closing = weakref.finalize(self, _close, library, self._session, self._graph)
            closing.atexit = False
            meta_graph = ctypes.string_at(found.contents.data, found.contents.length)
            self._signatures = dict(_signatures(memoryview(meta_graph)))
        except (ValueError, LookupError) as error:
            raise exports.not_loaded(path, error) from None
        finally:
            library.TF_DeleteBuffer(found)
            library.TF_DeleteSessionOptions(options)

    @classmethod
    def load(cls, path: str | os.PathLike) -> Self | None:
        """The SavedModel at `path`, or the newest version of it there.

        None if TensorFlow's C library is not where TensorFlow 2.20 and 2.21 for Linux have it, if
        the SavedModel takes ids, or if it returns numbers of rare types.

        Raises:
            UserError: the SavedModel is damaged, or a later version of bert_tf exported it.
        """
        found = find_saved_model(os.fspath(path))
        record = Record.of_saved_model(found)
        library = c_library()
        if library is None or (record is not None and record.inputs == "ids"):
            return None
        model = cls(found, library, record)
        outputs = (each for one in model._signatures.values() for each in one.outputs.values())
        return model if all(each.dtype in {_STRING, *_DTYPES} for each in outputs) else None

    def ranks(self, signature: str) -> dict[str, int]:
        if signature not in self._signatures:
            raise exports.no_signature(self.path, signature, self._signatures)
        inputs = self._signatures[signature].inputs
        for name, each in inputs.items():
            if each.dtype != _STRING or each.rank not in (1, 2):
                dtype = np.dtype(_DTYPES[each.dtype]).name if each.dtype in _DTYPES else each.dtype
                raise exports.no_text(self.path, signature, name, str(dtype))
        return {name: inputs[name].rank for name in sorted(inputs)}

    def signature_names(self) -> tuple[str, ...]:
        return tuple(self._signatures)

    def ask(self, signature: str, rows: Sequence[Row]) -> Outputs:
        texts = texts_of(rows, self.ranks(signature)).items()
        return self._run(signature, {n: _of_strings(self._library, *each) for n, each in texts})

    def _run(self, signature: str, given: Mapping[str, int]) -> Outputs:
        """Runs the graph on tensors of the C library, which are deleted afterwards."""
        inputs, outputs = self._signatures[signature]
        run, library = self._library.TF_SessionRun, self._library
        sources = (_Output * len(inputs))(*(self._place(inputs[name]) for name in given))
        targets = (_Output * len(outputs))(*map(self._place, outputs.values()))
        tensors = (c_void_p * len(given))(*given.values())
        found = (c_void_p * len(outputs))()
        counts = len(given), targets, found, len(outputs)
        try:
            _checked(library, run, self._session, None, sources, tensors, *counts, None, 0, None)
            arrays = [_array(library, c_void_p(each)) for each in found]
        except _StatusError as error:
            if error.code == _INVALID:
                raise UserError(f"{self.path}: {error}") from None
            raise exports.not_loaded(self.path, error) from None
        finally:
            for each in (*tensors, *found):
                library.TF_DeleteTensor(c_void_p(each))
        return without_nan(dict(zip(outputs, arrays, strict=True)), self.path)

    def count_cut(self, columns: Sequence[Sequence[Any]]) -> tuple[int, str]:
        """As `FrozenTask.count_cut`. Loads TensorFlow's Python part only if a text may be cut."""
        if self.record is not None and self.record.may_cut(columns):
            with contextlib.suppress(UserError):  # for a class that only another package knows
                return self._frozen.count_cut(columns)
        return 0, ""

    @functools.cached_property
    def _frozen(self) -> Any:
        from bert_tf.asking.frozen import FrozenTask

        return FrozenTask(self.path, cast(Any, self))

    def _place(self, tensor: _Tensor) -> _Output:
        name, _, index = tensor.name.partition(":")
        operation = self._library.TF_GraphOperationByName(self._graph, name.encode())
        return _Output(operation, int(index or 0))


def _close(library: ctypes.CDLL, session: c_void_p, graph: c_void_p) -> None:
    _checked(library, library.TF_CloseSession, session)
    _checked(library, library.TF_DeleteSession, session)
    library.TF_DeleteGraph(graph)


@functools.cache
def c_library() -> ctypes.CDLL | None:
    """TensorFlow's C library with the operations of TensorFlow Text; None where it is not found."""
    package = importlib.util.find_spec("tensorflow")
    for folder in (package and package.submodule_search_locations) or ():
        if not (found := sorted(Path(folder).glob("libtensorflow_cc.so.*"))):
            continue
        for framework in sorted(Path(folder).glob("libtensorflow_framework.so.*")):
            _log_as_python(framework)
        library = ctypes.CDLL(str(found[0]))
        for name, kind in _RESULTS.items():
            getattr(library, name).restype = kind
        for operations in exports.operation_libraries():
            _checked(library, library.TF_LoadLibrary, os.fsencode(operations))
        return library
    return None


_RESULTS: dict[str, Any] = {
    "TF_AllocateTensor": c_void_p,
    "TF_Dim": c_int64,
    "TF_GraphOperationByName": c_void_p,
    "TF_LoadLibrary": c_void_p,
    "TF_LoadSessionFromSavedModel": c_void_p,
    "TF_Message": c_char_p,
    "TF_NewBuffer": POINTER(_Buffer),
    "TF_NewGraph": c_void_p,
    "TF_NewSessionOptions": c_void_p,
    "TF_NewStatus": c_void_p,
    "TF_StringGetDataPointer": c_void_p,
    "TF_StringGetSize": c_size_t,
    "TF_TensorByteSize": c_size_t,
    "TF_TensorData": c_void_p,
}


def _log_as_python(framework: Path) -> None:
    """Obeys TF_CPP_MIN_LOG_LEVEL, which only the Python part of TensorFlow reads."""
    with (
        open(framework, "rb") as file,
        mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data,
    ):
        found = _LOG_LEVEL.search(data)
        name = found[0].decode() if found else ""
    library = ctypes.CDLL(str(framework))
    level = os.environ.get("TF_CPP_MIN_LOG_LEVEL", "0")
    if name and level.isdecimal():
        getattr(library, name)(c_int(int(level)))


class _StatusError(ValueError):
    """An error of TensorFlow, with its `TF_Code`."""

    def __init__(self, code: int, message: str):
        super().__init__(message)
        self.code = code


def _checked(library: ctypes.CDLL, function: Any, *arguments: Any) -> Any:
    """The result of a function whose last argument is a `TF_Status`; raises the error in it."""
    status = c_void_p(library.TF_NewStatus())
    try:
        result = function(*arguments, status)
        if code := library.TF_GetCode(status):
            message = library.TF_Message(status).decode("utf-8", "replace")
            raise MemoryError(message) if code == _EXHAUSTED else _StatusError(code, message)
        return result
    finally:
        library.TF_DeleteStatus(status)


def _of_strings(library: ctypes.CDLL, values: Sequence[bytes], shape: Sequence[int]) -> int:
    """A string tensor of some shape; `values` are in row-major order."""
    size = c_size_t(_STRING_SIZE * len(values))
    tensor = library.TF_AllocateTensor(_STRING, (c_int64 * len(shape))(*shape), len(shape), size)
    start = library.TF_TensorData(c_void_p(tensor)) or 0
    for place, value in enumerate(values):
        string = c_void_p(start + _STRING_SIZE * place)
        library.TF_StringInit(string)
        library.TF_StringCopy(string, value, c_size_t(len(value)))
    return tensor


def _array(library: ctypes.CDLL, tensor: c_void_p) -> np.ndarray:
    """A copy of a tensor as an array; strings are bytes."""
    shape = [library.TF_Dim(tensor, axis) for axis in range(library.TF_NumDims(tensor))]
    dtype, start = library.TF_TensorType(tensor), library.TF_TensorData(tensor) or 0
    if dtype != _STRING:
        data = ctypes.string_at(start, library.TF_TensorByteSize(tensor)) if start else b""
        return np.frombuffer(data, _DTYPES[dtype]).reshape(shape).copy()
    found = np.empty(int(np.prod(shape)), object)
    for place in range(found.size):
        string = c_void_p(start + _STRING_SIZE * place)
        size = library.TF_StringGetSize(string)
        found[place] = ctypes.string_at(library.TF_StringGetDataPointer(string), size)
    return found.reshape(shape)


def _signatures(meta_graph: memoryview) -> Iterator[tuple[str, _Signature]]:
    """The signatures of a serialized `MetaGraphDef`, without that of the initialization."""
    for number, value in _fields(meta_graph):
        if number == 5:  # signature_def
            name, definition = _entry(value)
            signature = _Signature({}, {})
            for side, pair in _fields(definition):
                if side in (1, 2):  # inputs, outputs
                    key, info = _entry(pair)
                    signature[side - 1][key] = _tensor(info)
            if not name.startswith("__"):
                yield name, signature


def _tensor(info: memoryview) -> _Tensor:
    """A serialized `TensorInfo`."""
    fields = dict(_fields(info))
    axes = [number for number, _ in _fields(fields.get(3, memoryview(b"")))]
    return _Tensor(str(fields.get(1, b""), "utf-8"), fields.get(2, 0), axes.count(2))


def _entry(pair: memoryview) -> tuple[str, memoryview]:
    """An entry of a serialized map from texts to messages."""
    fields = dict(_fields(pair))
    return str(fields.get(1, b""), "utf-8"), fields.get(2, memoryview(b""))


def _fields(message: memoryview) -> Iterator[tuple[int, Any]]:
    """The numbers and values of a message's fields (protobuf.dev/programming-guides/encoding).

    TensorFlow's own types of messages cannot be imported without all of TensorFlow.
    """
    place = 0

    def varint() -> int:
        nonlocal place
        value = shift = 0
        while True:
            byte = message[place]
            place, value, shift = place + 1, value | (byte & 0x7F) << shift, shift + 7
            if byte < 0x80:
                return value

    while place < len(message):
        key = varint()
        kind = key & 7
        if kind == 0:
            yield key >> 3, varint()
            continue
        size = varint() if kind == 2 else {1: 8, 5: 4}[kind]
        yield key >> 3, message[place : place + size]
        place += size
