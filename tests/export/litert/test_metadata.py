"""Metadata of `.tflite` files: the round trip, other readers, and damage of every kind."""

import hashlib
import io
import json
import random
import struct
import zipfile

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.lite.python import schema_py_generated as schema

from bert_tf.errors import UserError
from bert_tf.export.litert import metadata
from bert_tf.export.litert.metadata import read, with_metadata
from tests import tiny
from tests.export.litert import networks

SETTINGS = {"class": "TextClassifier", "labels": [*networks.LABELS], "max_length": 16, "é": 0.5}


@pytest.fixture(scope="module")
def model():
    return networks.converted(networks.Network())


@pytest.fixture(scope="module")
def content(model):
    return networks.described(model, settings=SETTINGS)


@pytest.fixture
def path(content, tmp_path):
    path = tmp_path / "reviews.tflite"
    path.write_bytes(content)
    return path


def entries(content):
    """The entries of metadata by name, read by TensorFlow's generated code."""
    root = schema.Model.GetRootAs(content)
    found = [root.Metadata(number) for number in range(root.MetadataLength())]
    return {each.Name(): root.Buffers(each.Buffer()).DataAsNumpy().tobytes() for each in found}


def zipped(content, change=lambda files: files, compression=zipfile.ZIP_STORED):
    """A file with a changed archive, and with the right SHA-256 of the bytes before its entry."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        files = {each.filename: archive.read(each) for each in archive.infolist()}
        end = min(each.header_offset for each in archive.infolist())
    del files["sha256"]
    stream = io.BytesIO()
    stream.write(content[:end])
    with zipfile.ZipFile(stream, "w", compression) as archive:
        for name, each in change(files).items():
            archive.writestr(name, each)
        archive.writestr("sha256", hashlib.sha256(stream.getvalue()).hexdigest())
    return stream.getvalue()


def test_all_comes_back(path, content):
    opened, settings, files = read(path)

    assert opened == content
    assert settings == SETTINGS
    assert files == {
        "vocab.txt": "".join(f"{piece}\n" for piece in tiny.VOCABULARY),
        "labels.txt": "bad\nfair\ngood\n",
    }


def test_the_same_is_written_again(model, content):
    assert networks.described(model, settings=SETTINGS) == content


def test_a_program_without_bert_tf_finds_the_settings_and_the_files(path, content):
    assert json.loads(entries(content)[b"BERT_TF"]) == {**SETTINGS, "format": 1}
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        assert archive.namelist() == ["vocab.txt", "labels.txt", "sha256"]
        assert archive.read("labels.txt") == b"bad\nfair\ngood\n"
        # The offsets count from the start of the file, and a file can be mapped into memory.
        for each in archive.infolist():
            header = content[each.header_offset : each.header_offset + 30]
            start = each.header_offset + 30 + sum(struct.unpack("<HH", header[26:]))
            assert content[start : start + each.file_size] == archive.read(each)
    # Android's reader looks for the end record in the last 22 bytes.
    assert content[-22:-18] == b"PK\x05\x06"


def test_what_the_converter_wrote_stays(model, content):
    before, after = entries(model), entries(content)

    assert b"min_runtime_version" in before
    assert {name: after[name] for name in before} == before
    assert after.keys() - before.keys() == {b"BERT_TF", b"TFLITE_METADATA"}
    assert after[b"TFLITE_METADATA"][4:8] == b"M001"


def test_weights_keep_their_alignment(model, content):
    def places(data):
        root = schema.Model.GetRootAs(data)
        buffers = [root.Buffers(number) for number in range(root.BuffersLength())]
        return [each._tab.Vector(each._tab.Offset(4)) for each in buffers if each.DataLength()]

    before, after = places(model), places(content)

    assert len(before) > 5
    # The two entries of bert_tf come last.
    assert len({new - old for old, new in zip(before, after[:-2], strict=True)}) == 1
    assert (after[0] - before[0]) % 16 == after[-1] % 16 == after[-2] % 16 == 0
    # The weights are there once.
    assert len(content) - len(model) < 4000


def test_the_network_computes_the_same(model, content):
    ids = np.random.default_rng(0).integers(5, 20, [1, networks.LENGTH], np.int32)
    inputs = {"ids": ids, "mask": np.ones_like(ids), "segment_ids": np.zeros_like(ids)}

    before = networks.interpreter(model).get_signature_runner()(**inputs)
    after = networks.interpreter(content).get_signature_runner()(**inputs)

    np.testing.assert_array_equal(after[networks.OUTPUT], before[networks.OUTPUT])


def test_several_signatures_stay(tmp_path):
    model = networks.converted_for_lengths(networks.Network(), (8, 16), tmp_path / "model")

    loaded = networks.interpreter(networks.described(model))

    assert {*loaded.get_signature_list()} == {"length_8", "length_16"}


def test_inputs_that_the_model_does_not_have_are_refused(model):
    inputs = dict.fromkeys(["ids", "mask", "types"], "")

    with pytest.raises(ValueError, match="the model has .*'segment_ids'.*, not .*'types'"):
        with_metadata(model, {}, {}, ("a", "b"), inputs, {networks.OUTPUT: ""})


def test_a_model_without_signatures_is_refused():
    function = networks.serving(networks.Echo()).get_concrete_function()
    model = tf.lite.TFLiteConverter.from_concrete_functions([function]).convert()

    with pytest.raises(ValueError, match="has no signature"):
        networks.described(model)


def test_another_programs_file_is_refused(model, tmp_path):
    path = tmp_path / "other.tflite"
    path.write_bytes(model)

    with pytest.raises(
        UserError, match="other.tflite does not hold a bert_tf model; write one with "
    ):
        read(path)


def test_what_is_no_tflite_file_is_refused(tmp_path):
    path = tmp_path / "model.tflite"
    with pytest.raises(UserError, match=f"file not found: {path}"):
        read(path)
    for content in (b"TFL3", b"PK\x03\x04" * 20, bytes(100)):
        path.write_bytes(content)
        with pytest.raises(UserError, match="model.tflite is not a .tflite file, or it is damaged"):
            read(path)
    path.write_bytes(b"")
    with pytest.raises(UserError, match="file is empty"):
        read(path)
    with pytest.raises(UserError, match="is a folder, not a file"):
        read(tmp_path)


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        (b"[1, 2]", r"is damaged \(its settings are not a JSON object"),
        (b'{"format": 1, "a": "\xff"}', r"is damaged \(.*codec can't decode"),
        (b"[" * 100_000, r"is damaged \(.*recursion"),
        (b'{"format": 2}', r"by a later bert_tf \(format 2\); update bert_tf"),
    ],
)
def test_settings_that_bert_tf_did_not_write_are_refused(model, path, settings, why):
    changed = metadata._with_entries(model, {"BERT_TF": settings})
    path.write_bytes(metadata._with_files(changed, {}))

    with pytest.raises(UserError, match=rf"reviews.tflite .*{why}"):
        read(path)


def test_too_many_entries_are_refused(model, path):
    path.write_bytes(metadata._with_entries(model, {f"entry {n}": b"" for n in range(70)}))

    with pytest.raises(UserError, match="too many metadata entries"):
        read(path)


@pytest.mark.parametrize(
    ("change", "compression", "why"),
    [
        (lambda files: {**files, "notes": b"\xff"}, zipfile.ZIP_STORED, "codec can't decode"),
        (lambda files: files, zipfile.ZIP_DEFLATED, "its files are compressed"),
        (lambda files: {**files, "sha256": b""}, zipfile.ZIP_STORED, "it contains a file twice"),
    ],
)
@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_an_archive_that_bert_tf_did_not_write_is_refused(path, content, change, compression, why):
    path.write_bytes(zipped(content, change, compression))

    with pytest.raises(UserError, match=rf"reviews.tflite is damaged \(.*{why}"):
        read(path)


def test_another_archive_with_the_right_sum_is_read(path, content):
    path.write_bytes(zipped(content, lambda files: files | {"notes": b"more"}))

    _, _, files = read(path)
    assert files["notes"] == "more"


def test_a_changed_weight_is_found(path, content):
    weights = networks.Network().words.numpy().tobytes()
    place = content.index(weights)
    path.write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])

    with pytest.raises(
        UserError, match=r"damaged \(its SHA-256 is wrong\); export or copy it agai"
    ):
        read(path)


def test_a_cut_file_is_found(path, content):
    end = len(content)
    for size in [*range(1, 200), *range(200, end, 97), *range(end - 99, end)]:
        path.write_bytes(content[:size])
        with pytest.raises(UserError):
            read(path)


def test_whatever_has_changed_is_found_or_changes_nothing(path, content):
    """Some bytes of the archive's headers, such as a time, have no meaning for the content."""
    source = random.Random(0)
    _, *whole = read(path)
    start = content.index(b"PK\x03\x04")
    headers = content.index(b"sha256") - 30  # the header of the SHA-256, and all after it
    places = [source.randrange(start) for _ in range(100)]
    places += [*range(64), *range(start, len(content))]
    for place in places:
        changed = bytearray(content)
        changed[place] ^= 1 << source.randrange(8)
        path.write_bytes(changed)
        try:
            opened, *said = read(path)
        except UserError as error:
            assert "reviews.tflite" in str(error)
        else:
            assert place >= headers
            assert said == whole
            networks.interpreter(opened).allocate_tensors()
