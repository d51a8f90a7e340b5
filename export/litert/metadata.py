"""What a `.tflite` file says about its model, to bert_tf and to MediaPipe.

A `.tflite` file is a flatbuffer (`schema.fbs` in TensorFlow's `compiler/mlir/lite/schema/`). A ZIP
archive may follow it, with offsets from the start of the whole file. bert_tf adds:

- the metadata entry BERT_TF: the record (`bert_tf.asking.record`);
- the entry TFLITE_METADATA: the names of the tensors, the tokenizer and the labels, as a flatbuffer
  with the fields of MediaPipe's `tasks/metadata/metadata_schema.fbs`;
- the archive, uncompressed: `vocab.txt`, `labels.txt` and other texts, and last a SHA-256 of all
  bytes before it.

On a damaged model an interpreter may crash, which no Python code can catch. The SHA-256 finds the
damage first. It gives no protection against an attacker, who can compute it again.
"""

import hashlib
import io
import os
import zipfile
from collections.abc import Mapping
from typing import Any

from flatbuffers import Builder

from bert_tf.asking import record
from bert_tf.errors import UserError
from bert_tf.export.litert.tables import Byte, Fields, FlatTable, Placed, Word, add_bytes, add_table
from bert_tf.io.files import GRAPH, read_bytes

# Texts by name.
Texts = Mapping[str, str]
# Names in the archive, and the output whose values the lines of `labels.txt` name.
VOCABULARY_FILE, LABELS_FILE = "vocab.txt", "labels.txt"
_LABELLED = "probabilities"
_DIGEST_FILE = "sha256"

# Names of the entries.
_OURS, _MEDIAPIPE = "BERT_TF", "TFLITE_METADATA"

# The numbers of fields in schema.fbs: of a Model,
_VERSION, _SUBGRAPHS, _BUFFERS, _METADATA, _SIGNATURES = 0, 2, 4, 6, 7
# (operators, subgraphs, a description, indices of buffers, signatures)
_UNCHANGED = (1, _SUBGRAPHS, 3, 5, _SIGNATURES)
# of a Buffer, and of an entry of metadata,
_DATA, _NAME, _BUFFER = 0, 0, 1
# of a SubGraph, of a SignatureDef, and of the inputs and outputs of the latter.
_GRAPH_INPUTS, _GRAPH_OUTPUTS = 1, 2
_INPUTS, _OUTPUTS, _SUBGRAPH = 0, 1, 4
_KEY, _TENSOR = 0, 1
_MODEL_IDENTIFIER = b"TFL3"

# In metadata_schema.fbs: the types of a file, and the tokenizer among the types of a process unit.
_AXIS_LABELS, _VOCABULARY, _BERT_TOKENIZER = Byte(2), Byte(5), Byte(4)
_METADATA_IDENTIFIER = b"M001"
# The version of a model, and the first version of that schema that has tokenizers.
_MODEL_VERSION, _SCHEMA_VERSION = "1", "1.1.0"


def with_metadata(
    model: bytes,
    settings: Mapping[str, Any],
    files: Texts,
    about: tuple[str, str],
    inputs: Texts,
    outputs: Texts,
    for_mediapipe: bool = True,
) -> bytes:
    """Adds metadata and files, texts by name, to a `.tflite` model of less than 2 GB.

    The bytes of `model` stay, and weights keep their alignment. Tools show `about`, a name and a
    description. The outputs get the order of `outputs`, since apps that run a file in MediaPipe
    read the first one. Without a tokenizer (`for_mediapipe`) MediaPipe refuses the file.
    """
    graph = FlatTable.root(model)
    subgraph = graph.tables(_SUBGRAPHS)[0]
    infos = _in_order(graph, outputs, _OUTPUTS, _GRAPH_OUTPUTS)
    tensor_of = dict(zip(infos, subgraph.words(_GRAPH_OUTPUTS), strict=True))
    model = subgraph.with_words(_GRAPH_OUTPUTS, [tensor_of[each] for each in outputs])

    def tensor(name: str, description: str) -> Fields:
        has_labels = name == _LABELLED and LABELS_FILE in files
        labels = [{0: LABELS_FILE, 2: _AXIS_LABELS}] if has_labels else []
        return {0: name, 1: description, 6: labels}

    tokenizer = {0: _BERT_TOKENIZER, 1: {0: [{0: VOCABULARY_FILE, 2: _VOCABULARY}]}}
    own_inputs = _in_order(graph, inputs, _INPUTS, _GRAPH_INPUTS)
    about_graph = {
        2: [tensor(*each) for each in own_inputs.items()],
        3: [tensor(*each) for each in outputs.items()],
        5: [tokenizer] if for_mediapipe and VOCABULARY_FILE in files else [],
    }
    fields = {0: about[0], 1: about[1], 2: _MODEL_VERSION, 3: [about_graph], 7: _SCHEMA_VERSION}
    builder = Builder(0)
    builder.Finish(add_table(builder, fields), _METADATA_IDENTIFIER)
    mediapipe = bytes(builder.Output())
    ours = record.to_json(settings).encode()
    return _with_files(_with_entries(model, {_OURS: ours, _MEDIAPIPE: mediapipe}), files)


def read(path: str | os.PathLike) -> tuple[bytes, dict[str, Any], dict[str, str]]:
    """A whole file, and the settings and the files that `with_metadata` added to it."""
    content = read_bytes(path, "LiteRT file", GRAPH)
    if content[4:8] != _MODEL_IDENTIFIER:
        raise UserError(f"{path} is not a .tflite file, or it is damaged; export or copy it again")
    # zipfile, json and flatbuffers have no common class of errors for damaged files.
    try:
        text = _settings(content)
        if text is None:
            raise UserError(
                f"{path} does not hold a bert_tf model; write one with bert-tf export SRC --out "
                "MODEL.tflite --format litert"
            )
        return content, record.from_json(text, path), _files(content)
    except UserError:
        raise
    except Exception as error:
        why = " ".join((str(error) or type(error).__name__).split())[:200]
        raise UserError(f"{path} is damaged ({why}); export or copy it again") from None


def _in_order(model: FlatTable, given: Texts, of_signature: int, of_graph: int) -> dict[str, str]:
    """The inputs or outputs in the order of the first subgraph, by which MediaPipe counts them."""
    signatures = [each for each in model.tables(_SIGNATURES) if each.word(_SUBGRAPH) == 0]
    if not signatures:
        raise ValueError("the first subgraph of the model has no signature")
    names = {each.word(_TENSOR): each.text(_KEY) for each in signatures[0].tables(of_signature)}
    if {*names.values()} != given.keys():
        raise ValueError(f"the model has {sorted(names.values())}, not {sorted(given)}")
    ordered = [names[tensor] for tensor in model.tables(_SUBGRAPHS)[0].words(of_graph)]
    return {name: given[name] for name in ordered}


def _with_entries(model: bytes, entries: Mapping[str, bytes]) -> bytes:
    """A model with entries of metadata.

    A new outermost table refers to what is in the old flatbuffer, whose offsets are relative.
    """
    old = FlatTable.root(model)
    builder = Builder(len(model) + sum(map(len, entries.values())) + 2**16)
    # A builder counts offsets from the end; a vector's content follows four bytes of its length.
    start = add_bytes(builder, model) - 4

    def kept(position: int) -> Placed:
        return Placed(start - position)

    buffers: list[Fields | Placed] = [kept(each.position) for each in old.tables(_BUFFERS)]
    metadata: list[Fields | Placed] = [kept(each.position) for each in old.tables(_METADATA)]
    for name, content in entries.items():
        metadata.append({_NAME: name, _BUFFER: Word(len(buffers))})
        buffers.append({_DATA: content})
    targets = {number: old.target(number) for number in _UNCHANGED}
    unchanged = {number: kept(place) for number, place in targets.items() if place is not None}
    version = Word(old.word(_VERSION))
    fields = {**unchanged, _VERSION: version, _BUFFERS: buffers, _METADATA: metadata}
    builder.Finish(add_table(builder, fields), _MODEL_IDENTIFIER)
    return bytes(builder.Output())


def _with_files(model: bytes, files: Texts) -> bytes:
    """A model with an archive of files. The last file is the SHA-256 of all bytes before it."""
    stream = io.BytesIO()
    stream.write(model)
    with zipfile.ZipFile(stream, "w") as archive:
        for name, text in files.items():
            # Without a time: the same model gives the same bytes.
            archive.writestr(zipfile.ZipInfo(name), text.encode())
        with stream.getbuffer() as so_far:
            digest = hashlib.sha256(so_far).hexdigest()
        archive.writestr(zipfile.ZipInfo(_DIGEST_FILE), digest)
    return stream.getvalue()


def _settings(content: bytes) -> bytes | None:
    """The JSON in a file; None if it has none. Raises any exception if the file is damaged."""
    model = FlatTable.root(content)
    entries = model.tables(_METADATA)
    if len(entries) > 64:  # TensorFlow's converter writes two
        raise ValueError("it has too many metadata entries")
    for entry in entries:
        if entry.content(_NAME) == _OURS.encode():
            return model.tables(_BUFFERS)[entry.word(_BUFFER)].content(_DATA)
    return None


def _files(content: bytes) -> dict[str, str]:
    """The texts in a file's archive. Raises any exception if model, archive or text is damaged."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = archive.infolist()
        if any(each.compress_type != zipfile.ZIP_STORED for each in members):
            raise ValueError("its files are compressed")
        # Members that overlap would take many times the file's size.
        if sum(each.file_size for each in members) > len(content):
            raise ValueError("the files in it are larger than the whole")
        files = {each.filename: archive.read(each).decode() for each in members}
        if len(files) < len(members):
            raise ValueError("it contains a file twice")
        digest = archive.getinfo(_DIGEST_FILE)
    with memoryview(content)[: digest.header_offset] as before:
        if files.pop(_DIGEST_FILE) != hashlib.sha256(before).hexdigest():
            raise ValueError("its SHA-256 is wrong")
    return files
