"""A SavedModel that takes texts."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import tensorflow as tf

from bert_tf.data.json_lines import whole_text
from bert_tf.errors import UserError
from bert_tf.progress import say

_FILE = "saved_model.pb"
# The folders of an export of kind hub.
_PAIR = ("preprocessor", "encoder")
_DAMAGE = (tf.errors.OpError, OSError, ValueError, KeyError)


class Model:
    """One signature of a SavedModel.

    Attributes:
        ranks: name of each input -> 1 where it is a text, 2 where it is a list of texts.
    """

    def __init__(self, loaded: object, signature: str, ranks: Mapping[str, int]):
        # The signature keeps its variables alive only through the loaded object.
        self._loaded = loaded
        self._signature = loaded.signatures[signature]
        self.ranks = dict(ranks)

    @classmethod
    def load(cls, path: str, signature: str) -> "Model":
        """Loads the SavedModel at `path`, or the newest of the versions that are there.

        Raises:
            UserError: there is none, it is damaged, or it has no such signature of texts.
        """
        import tensorflow_text  # noqa: F401  registers the ops of the tokenizer

        try:
            path = _find(path)
        except OSError as error:  # a text in its place may be too long for a name
            raise UserError(
                f"SavedModel cannot be read: {path} ({error.strerror or error}); name the folder "
                "of one, made with python -m export"
            ) from None
        try:
            loaded = tf.saved_model.load(path)
        except _DAMAGE as error:
            raise UserError(f"SavedModel is damaged: {path} ({error}); export it again") from None
        if signature not in loaded.signatures:
            known = ", ".join(loaded.signatures)
            raise UserError(f"{path} has no signature {signature!r}; it has {known}")
        specs = loaded.signatures[signature].structured_input_signature[1]
        for name, spec in specs.items():
            if spec.dtype != tf.string or spec.shape.rank not in (1, 2):
                raise UserError(
                    f"{path}: signature {signature} takes {name} as {spec.dtype.name}; predict "
                    "asks models that take texts"
                )
        return cls(loaded, signature, {name: specs[name].shape.rank for name in sorted(specs)})

    @property
    def takes_one_text(self) -> bool:
        """Whether a line of text is a whole input."""
        return list(self.ranks.values()) == [1]

    def __call__(self, rows: Sequence[Mapping[str, str | list[str]]]) -> dict[str, np.ndarray]:
        """The outputs for a batch of rows, each [batch, ...].

        Args:
            rows: a text, or list of texts, under each input's name; lists are padded with "".
        """
        batch = {}
        for name, rank in self.ranks.items():
            values = [row[name] for row in rows]
            if rank == 2:
                width = max(map(len, values))
                values = [each + [""] * (width - len(each)) for each in values]
            encoded = tf.nest.map_structure(lambda text: whole_text(text).encode(), values)
            shape = [len(rows), *([width] if rank == 2 else [])]
            batch[name] = tf.constant(encoded, tf.string, shape)
        return {name: value.numpy() for name, value in self._signature(**batch).items()}


def _find(path: str) -> str:
    """The folder of the SavedModel at `path`, in which versions may stand as servers have them."""
    folder = Path(path)
    if (folder / _FILE).is_file():
        return path
    found = (each.parent for each in folder.glob(f"*/{_FILE}"))
    versions = [each for each in found if each.name.isdecimal()]
    if versions:
        newest = max(versions, key=lambda version: int(version.name))
        say(f"{path}: asking version {newest.name}, the newest")
        return str(newest)
    if all((folder / name).is_dir() for name in _PAIR):
        raise UserError(
            f"{path} is a pair for TF Hub, which gives no answers; load its preprocessor and its "
            "encoder with hub.load, or export another kind"
        )
    if folder.exists():
        made = f"export it first: python -m export {path} --out ANOTHER_FOLDER"
    else:
        made = f"make one with python -m export RUN --out {path}"
    raise UserError(f"no SavedModel at {path}; {made}")
