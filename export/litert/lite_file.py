"""A LiteRT file of bert_tf: the network, and what is needed to ask it."""

import dataclasses
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

from bert_tf.checkpoints.description import Description, describe

SUFFIX = ".tflite"


@dataclasses.dataclass(frozen=True)
class LiteFile:
    """What a file holds.

    Attributes:
        model: the network, as an interpreter takes it.
        description: the task model.
        vocabulary: the pieces of its tokenizer.
        lengths: tokens of a row, of each signature.
        inputs: "ids" or "strings".
        precision: see `bert_tf.export.litert.saving.LiteForm`.
    """

    model: bytes
    description: Description
    vocabulary: tuple[str, ...]
    lengths: tuple[int, ...]
    inputs: str
    precision: str

    @classmethod
    def of(
        cls, model: Any, network: bytes, lengths: Sequence[int], inputs: str, precision: str
    ) -> Self:
        """The file of a task model and its converted network."""
        tokenizer = model.tokenizer
        description = describe(model, tokenizer)
        return cls(network, description, tokenizer.vocabulary, tuple(lengths), inputs, precision)

    @classmethod
    def read(cls, path: str | os.PathLike) -> Self:
        """TEMP"""
        import io
        import json
        import zipfile

        data = Path(path).read_bytes()
        z = zipfile.ZipFile(io.BytesIO(data))
        d = json.loads(z.read("bert_tf.json"))
        return cls(
            data,
            Description.from_dict(d["model"], Path(path)),
            tuple(z.read("vocab.txt").decode().split("\n")),
            tuple(d["lengths"]),
            d["inputs"],
            d["precision"],
        )

    def to_bytes(self) -> bytes:
        import io
        import json
        import zipfile

        out = io.BytesIO()
        out.write(self.model)
        with zipfile.ZipFile(out, "a") as z:
            z.writestr(
                "bert_tf.json",
                json.dumps(
                    {
                        "model": self.description.to_dict(),
                        "lengths": self.lengths,
                        "inputs": self.inputs,
                        "precision": self.precision,
                    }
                ),
            )
            z.writestr("vocab.txt", "\n".join(self.vocabulary))
        return out.getvalue()
