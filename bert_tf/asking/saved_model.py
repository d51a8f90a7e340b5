"""A SavedModel, queried without importing Keras if it takes strings."""

import functools
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Self

import tensorflow as tf

from bert_tf.asking import Answers, Outputs, Row, texts_of, without_nan
from bert_tf.asking import record as exports
from bert_tf.asking.record import Record, find_saved_model
from bert_tf.io.refusals import is_out_of_memory

# The function by which bert_tf answers strings with an export that takes ids.
NETWORK = "network"


def tensors_of(rows: Sequence[Row], ranks: Mapping[str, int]) -> dict[str, tf.Tensor]:
    """A batch of rows as string tensors; lists are padded with ""."""
    texts = texts_of(rows, ranks)
    return {name: tf.constant(values, tf.string, shape) for name, (values, shape) in texts.items()}


class SavedModel(Answers):
    """A SavedModel, as TensorFlow loads it, that answers rows of strings."""

    def __init__(self, path: str, loaded: Any, record: Record | None = None):
        self.path, self.record = path, record
        # The signatures keep their variables alive only through the loaded object.
        self.loaded = loaded

    @classmethod
    def load(cls, path: str | os.PathLike) -> Self:
        register_ops()
        found = find_saved_model(os.fspath(path))
        record = Record.of_saved_model(found)
        try:
            return cls(found, tf.saved_model.load(found), record)
        # The errors of TensorFlow in a damaged SavedModel have no common class.
        except Exception as error:
            if is_out_of_memory(error):
                raise
            raise exports.not_loaded(found, error) from None

    @property
    def takes_ids(self) -> bool:
        return self.record is not None and self.record.inputs == "ids"

    def specs(self, signature: str) -> dict[str, tf.TensorSpec]:
        """The inputs of a signature, sorted by their names."""
        if signature not in self.loaded.signatures:
            raise exports.no_signature(self.path, signature, self.loaded.signatures)
        specs = self.loaded.signatures[signature].structured_input_signature[1]
        return {name: specs[name] for name in sorted(specs)}

    def ranks(self, signature: str) -> dict[str, int]:
        specs = self.specs(signature)
        for name, spec in specs.items():
            if spec.dtype != tf.string or spec.shape.rank not in (1, 2):
                raise exports.no_text(self.path, signature, name, spec.dtype.name)
        return {name: spec.shape.rank for name, spec in specs.items()}

    def signature_names(self) -> tuple[str, ...]:
        return tuple(self.loaded.signatures)

    def output_names(self) -> set[str]:
        return set(self.loaded.signatures["serving_default"].structured_outputs)

    def call(self, signature: str, tensors: Mapping[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        return self.loaded.signatures[signature](**tensors)

    def ask(self, signature: str, rows: Sequence[Row]) -> Outputs:
        outputs = self.call(signature, tensors_of(rows, self.ranks(signature)))
        return without_nan({name: each.numpy() for name, each in outputs.items()}, self.path)


class SavedNetwork:
    """Runs a SavedModel that takes ids, as the network of a task model."""

    reads_rows: ClassVar[bool] = True

    def __init__(self, saved: SavedModel):
        self._saved = saved  # keeps the variables of the function alive

    def __call__(self, inputs: Mapping[str, tf.Tensor], training: bool = False) -> Any:
        return getattr(self._saved.loaded, NETWORK)(dict(inputs))

    # The network of a `MaskedLM` fills the gaps itself.
    fill_gaps = __call__

    def function(self, compute: Callable[[Any], Any]) -> Callable[[Any], Any]:
        return compute


@functools.cache
def register_ops() -> None:
    """Registers the operations of TensorFlow Text, whose Python part would import Keras."""
    for library in exports.operation_libraries():
        tf.load_op_library(str(library))
