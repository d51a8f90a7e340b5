"""A LiteRT file of bert_tf: the network, and what is needed to run it on strings."""

import dataclasses
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import bert_tf
from bert_tf.checkpoints.description import Description, describe, vocabulary_hash
from bert_tf.console import logger
from bert_tf.errors import UserError
from bert_tf.export.litert import mediapipe, metadata
from bert_tf.export.litert.form import DeviceForm, StringsForm
from bert_tf.export.litert.metadata import LABELS_FILE, VOCABULARY_FILE, ModelInfo, TensorInfo
from bert_tf.io.vocabulary import file_text

SUFFIX = ".tflite"
# What people read of an input or an output.
_DESCRIPTIONS = {
    "ids": "ids of the word pieces, padded with the id of [PAD]",
    "mask": "1 for word pieces, 0 for padding",
    "segment_ids": "0 for the first text, 1 for the second",
    "probabilities": "probabilities of the labels",
}


@dataclasses.dataclass(frozen=True)
class LiteFile:
    """What a file holds.

    Attributes:
        model: the file as an interpreter takes it.
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
        cls,
        model: Any,
        network: bytes,
        form: DeviceForm | StringsForm,
        lengths: Sequence[int],
        inputs: str,
        precision: str,
    ) -> Self:
        """The file of a task model.

        Args:
            model: the task model.
            network: as the converter returned it.
            form: what it answers.
            lengths: as above.
            inputs: as above.
            precision: as above.
        """
        description = describe(model, model.tokenizer)
        vocabulary = model.tokenizer.vocabulary
        settings = {
            "model": description.to_dict(),
            "lengths": [*lengths],
            "inputs": inputs,
            "precision": precision,
        }
        files = {VOCABULARY_FILE: file_text(vocabulary)}
        if model.labels:
            files[LABELS_FILE] = file_text(model.labels)
        names = form.inputs if isinstance(form, StringsForm) else ("ids", "mask", "segment_ids")
        about = f"exported by bert_tf {bert_tf.__version__}"
        if isinstance(form, StringsForm):
            about += "; its tokenizer requires the operations of TensorFlow Text"
        content = metadata.with_metadata(
            network,
            settings,
            files,
            ModelInfo(type(model).__name__, about),
            [_tensor(name) for name in names],
            [_tensor(name, bool(model.labels)) for name in form.outputs],
            for_mediapipe=_is_for_mediapipe(model, network, form),
        )
        return cls(content, description, vocabulary, tuple(lengths), inputs, precision)

    @classmethod
    def read(cls, path: str | os.PathLike) -> Self:
        """The file at `path`.

        Raises:
            UserError: there is no such file, it is damaged, or bert_tf did not write it.
        """
        opened = metadata.read(path)
        fields = _checked(opened.settings, path)
        description = Description.from_dict(fields["model"], Path(path))
        text = opened.files.get(VOCABULARY_FILE, "")
        vocabulary = tuple(text.removesuffix("\n").split("\n"))
        if vocabulary_hash(vocabulary) != description.vocabulary:
            raise UserError(f"{path} is damaged (its vocabulary does not match); export it again")
        lengths = tuple(fields["lengths"])
        return cls(
            opened.content,
            description,
            vocabulary,
            lengths,
            fields["inputs"],
            fields["precision"],
        )


def _is_for_mediapipe(model: Any, network: bytes, form: DeviceForm | StringsForm) -> bool:
    """Whether MediaPipe's classifier or embedder can run a file; if it might, says what it lacks.

    Other files have no tokenizer for it, so that it refuses them.
    """
    single = model.input_names == ("text",) and isinstance(form, DeviceForm)
    if not single or form.outputs.keys() not in ({"probabilities"}, {"embedding"}):
        return False
    obstacle = mediapipe.obstacle(network, model.tokenizer.lower_case)
    if obstacle is None:
        logger.warning(mediapipe.DIFFERENCES)
    else:
        logger.warning(f"MediaPipe cannot run the file: {obstacle}")
    return obstacle is None


def _tensor(name: str, has_labels: bool = False) -> TensorInfo:
    description = _DESCRIPTIONS.get(name, "")
    return TensorInfo(name, name, description, has_labels and name == "probabilities")


def _checked(settings: Mapping[str, Any], path: str | os.PathLike) -> Mapping[str, Any]:
    """The settings of a file. Raises UserError if one is missing, unknown or of a wrong kind."""
    kinds = {"model": dict, "lengths": list, "inputs": str, "precision": str}
    wrong = [name for name, kind in kinds.items() if not isinstance(settings.get(name), kind)]
    wrong += settings.keys() - kinds.keys()
    lengths = settings.get("lengths")
    if not wrong and not (lengths and all(type(each) is int and each > 0 for each in lengths)):
        wrong = ["lengths"]
    if wrong:
        raise UserError(f"{path} is damaged ({wrong[0]} is not as expected); export it again")
    return settings
