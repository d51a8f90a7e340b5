"""Checkpoints that are cut short, changed, put together wrongly or malicious.

Each gives one line that names the file, and nothing in it is run.
"""

import os
import random
import shutil
import struct
from unittest import mock

import h5py
import numpy as np
import pytest
from google.protobuf import json_format
from tensorflow.core.protobuf.trackable_object_graph_pb2 import TrackableObjectGraph

from bert_tf import UserError
from bert_tf.checkpoints import conversion, native, reading, tensors, tf_files
from bert_tf.checkpoints.description import describe
from bert_tf.tasks import from_checkpoint
from bert_tf.text import Tokenizer
from tests.checkpoints import tiny_models as tiny

HUGGINGFACE = "huggingface_heads/BertForSequenceClassification"
FOLDERS = {
    "huggingface": HUGGINGFACE,
    "sharded": "huggingface_heads/sharded",
    "tensorflow_classes": "huggingface_tf/sharded",
    "tf1": "google_tiny_classifier",
    "model_garden": "model_garden_tiny_encoder",
    "tf_hub": "tf_hub_tiny",
}
CHANGES_A_FILE = 5


@pytest.fixture
def copy_of(tmp_path):
    """Copies a fixture to where it may be damaged."""

    def copy(name):
        if name != "bert_tf":
            return tiny.copied(FOLDERS[name], tmp_path / "copy")
        conversion.save(tiny.make("feature_tagger"), tmp_path / "copy", "bert_tf")
        return tmp_path / "copy"

    return copy


def told_in_one_line(folder):
    """Whether a checkpoint is refused, in one line."""
    try:
        tiny.load(folder)
        Tokenizer.from_checkpoint(folder)
    except UserError as error:
        assert "\n" not in str(error)
        return True
    return False


@pytest.mark.parametrize("name", ["bert_tf", *FOLDERS])
def test_a_file_cut_short_anywhere_is_reported_in_one_line(copy_of, name):
    folder = copy_of(name)
    for file in sorted(file for file in folder.rglob("*") if file.is_file()):
        whole = file.read_bytes()
        for size in (0, 5, len(whole) // 2, len(whole) - 3):
            file.write_bytes(whole[:size])
            # A shorter text may be one too, and one of these is not read; no weights are.
            texts = ("vocab.txt", "saved_model.pb", "special_tokens_map.json")
            assert told_in_one_line(folder) or file.name in texts, (file, size)
        file.write_bytes(whole)


@pytest.mark.parametrize("name", ["bert_tf", *FOLDERS])
def test_a_path_that_is_not_a_regular_file_is_refused_without_waiting(copy_of, name):
    folder = copy_of(name)
    for file in sorted(file for file in folder.rglob("*") if file.is_file()):
        whole = file.read_bytes()
        for make in (os.mkfifo, lambda path: path.symlink_to("/dev/zero"), os.mkdir):
            file.unlink()
            make(file)
            # This one is not read.
            assert told_in_one_line(folder) or file.name == "special_tokens_map.json", file
            file.rmdir() if file.is_dir() else file.unlink()
            file.write_bytes(whole)


@pytest.mark.end_to_end
@pytest.mark.parametrize("name", ["bert_tf", *FOLDERS])
def test_a_changed_byte_never_raises_anything_else(copy_of, name):
    folder = copy_of(name)
    chance = random.Random(0)
    for file in sorted(file for file in folder.rglob("*") if file.is_file()):
        whole = file.read_bytes()
        for _ in range(CHANGES_A_FILE):
            changed = bytearray(whole)
            changed[chance.randrange(min(len(whole), 2000))] = chance.randrange(256)
            file.write_bytes(changed)
            told_in_one_line(folder)
        file.write_bytes(whole)


@pytest.mark.parametrize(
    "content",
    [
        b"\xff" * 8,
        struct.pack("<Q", 2**40) + b"{}",
        struct.pack("<Q", 4) + b"junk",
        struct.pack("<Q", 2) + b"[]",
        struct.pack("<Q", 58) + b'{"x":{"dtype":"F32","shape":[9],"data_offsets":[0,9999]}}  ',
        struct.pack("<Q", 66)
        + b'{"x":{"dtype":"F32","shape":[999999999999],"data_offsets":[0,4]}} 1234',
    ],
)
def test_a_header_that_lies_is_refused(copy_of, content):
    folder = copy_of("huggingface")
    (folder / "model.safetensors").write_bytes(content)

    tiny.refused("checkpoint is damaged: .*model.safetensors", reading.find, folder)


@pytest.mark.parametrize("name", ["../stolen", "/etc/passwd", "..", "a\\b", "a\0b", ""])
def test_an_index_cannot_name_a_file_outside_its_folder(copy_of, name):
    folder = copy_of("sharded")
    shutil.copy(folder / "model-00001-of-00002.safetensors", folder.parent / "stolen")
    tiny.change(folder / "model.safetensors.index.json", weight_map={"weight": name})

    tiny.refused("outside its folder|is not there|is a folder", reading.find, folder)


def test_a_file_that_the_index_names_and_that_is_missing_is_named(copy_of):
    folder = copy_of("sharded")
    (folder / "model-00002-of-00002.safetensors").unlink()

    tiny.refused(r"names model-00002-of-00002.safetensors, which is not", reading.find, folder)


def test_a_checkpoint_without_its_data_says_what_to_copy(copy_of):
    folder = copy_of("tf1")
    next(folder.glob("*.data-*")).unlink()

    told = r"there is no bert_model.ckpt.data-… next to .*; copy it too"
    tiny.refused(told, reading.find, folder)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("[" * 100_000, "is not JSON"),
        ("[1]", "is not a JSON object"),
        ('{"hidden_size": ' + "9" * 5000 + "}", "is not JSON"),
        ('{"hidden_dropout_prob": ' + "9" * 400 + "}", "is not JSON: .*a number is too large"),
        ('{"hidden_size": 1e400}', "hidden_size must be a whole number, not inf"),
        ('{"hidden_size": "8"}', "hidden_size must be a whole number, not '8'"),
        ('{"hidden_size": true}', "hidden_size must be a whole number, not True"),
        ('{"num_attention_heads": 5}', "is not a multiple of num_attention_heads"),
        ('{"hidden_act": "relu"}', "unknown hidden_act 'relu'"),
        ('{"hidden_act": ["gelu"]}', "hidden_act must be a text"),
        (
            '{"position_embedding_type": "relative_key"}',
            "position_embedding_type is 'relative_key'",
        ),
    ],
)
def test_an_invalid_configuration_is_reported_with_its_file(copy_of, content, told):
    folder = copy_of("huggingface")
    (folder / "config.json").write_text(content)

    assert "config.json" in tiny.refused(told, reading.find, folder)


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"vocab_size": 10**12}, r"weight embeddings.word_embeddings.weight .* \[14, 8\], but"),
        ({"hidden_size": 16}, r"word_embeddings.weight of .* shape \[14, 8\], .* \[14, 16\]"),
        ({"num_hidden_layers": 1}, "tensors for 2 or more layers, but its configuration says 1"),
        ({"num_hidden_layers": 3}, "tensors for 2 layers, but its configuration says 3"),
        ({"num_hidden_layers": 10**9}, "tensors for 2 layers, but .* says 1000000000"),
        ({"intermediate_size": 10**9}, "intermediate.dense.weight"),
        ({"max_position_embeddings": 512}, "position_embeddings.weight"),
        ({"id2label": {"0": "a"}}, "id2label is .*; it must have a text for each of the 3 cl"),
        ({"bert_tf": 3}, "the key bert_tf is damaged"),
        ({"bert_tf": {"encoder": []}}, "the key bert_tf is damaged"),
        ({"bert_tf": {"model": "os"}}, "names an unknown model 'os'"),
        ({"bert_tf": {"head": {"name": "x"}}}, "TextClassifier has no argument 'name'"),
        (
            {"bert_tf": {"head": {"num_classes": 10**12}}},
            "labels is 3, but num_classes is 1000000000000",
        ),
        (
            {"bert_tf": {"head": {"num_classes": 10**12}, "labels": []}},
            "num_classes is 1000000000000, which does not match",
        ),
        (
            {"bert_tf": {"labels": ["no"]}},
            "number of labels is 1, but num_classes is 3; copy the ch",
        ),
        ({"bert_tf": {"color": "red"}}, "unknown key 'color'"),
        ({"bert_tf": {"lower_case": "no"}}, "lower_case has the wrong type"),
    ],
)
def test_a_configuration_of_other_weights_is_noticed_before_anything_is_built(
    copy_of, monkeypatch, fields, told
):
    folder = copy_of("huggingface")
    tiny.change(folder / "config.json", **fields)
    monkeypatch.setattr(
        from_checkpoint, "encoder_for", mock.Mock(side_effect=AssertionError("built"))
    )

    tiny.refused(told, tiny.load, folder)


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"format": 3}, "was written by a later version of bert_tf"),
        ({"format": None}, "description is damaged: .* .format is not a positive number."),
        ({"labels": [1]}, "a label is not a string"),
        ({"labels": ["no", "yes"]}, "number of labels is 2, but num_classes is 3; copy the ch"),
        (
            {"head": {"num_classes": 3, "lstm_units": 10**9}},
            "lstm_units is 1000000000, which does not match",
        ),
        ({"head": {"num_classes": "x", "features": "last"}}, "num_classes is 'x'; copy the"),
        ({"head": {"num_classes": "x"}, "labels": []}, "num_classes has the unexpected value 'x'"),
        ({"head": {"num_classes": 3, "dropout": "x"}}, "dropout has the unexpected value 'x'"),
        ({"settings": {"max_length": 2.5}}, "damaged .max_length has the unexpected value 2.5"),
        ({"settings": {"max_length": 10**12}}, "longer than the model's 7 positions"),
        ({"settings": {"stride": "os"}}, "damaged .stride has the unexpected value 'os'"),
        ({"settings": {"dtype": "int8"}}, "TokenClassifier has no argument 'dtype'"),
        ({"settings": []}, "description is damaged: .* .settings has the wrong type"),
    ],
)
def test_our_own_description_is_not_trusted_either(copy_of, fields, told):
    folder = copy_of("bert_tf")
    tiny.change(folder / "bert_tf.json", **fields)

    tiny.refused(told, tiny.load, folder)


def test_a_description_without_a_format_is_damaged_and_not_of_the_future(copy_of):
    folder = copy_of("bert_tf")
    tiny.change(folder / "bert_tf.json", "format")

    told = "description is damaged: .*bert_tf.json .format is not a pos"
    tiny.refused(told, reading.find, folder)


@pytest.mark.parametrize("architectures", [[[]], [None], {"a": 1}, 3, "BertModel"])
def test_architectures_that_are_no_list_of_names_are_refused(copy_of, architectures):
    folder = copy_of("huggingface")
    tiny.change(folder / "config.json", architectures=architectures)

    tiny.refused("config.json: architectures is .*; it must be a list with", reading.find, folder)


@pytest.mark.parametrize(
    "architectures",
    [None, [], ["Foo"], ["BertForQuestionAnswering"], ["BertForSequenceClassification", "X"]],
)
def test_the_weights_decide_where_architectures_do_not_and_a_line_says_so(copy_of, architectures):
    folder = copy_of("huggingface")
    tiny.change(folder / "config.json", architectures=architectures)

    found = reading.find(folder)
    assert found.description.model == "TextClassifier"
    assert "by its weights it is opened as TextClassifier" in found.notes[0]

    tiny.change(folder / "config.json", "architectures")
    assert reading.find(folder).notes == ()


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        *(
            ({"id2label": names}, "id2label is .*; it must have a text for each of the 3 classes")
            for names in (
                {"0": None, "1": "b", "2": "c"},
                {"0": ["a"], "1": "b", "2": "c"},
                {"0": 0.5, "1": "b", "2": "c"},
                {"0": "a", "1": "b", "2": "c", "3": "d"},
                {"0": "a", "1": "b", "2": "c", "x": "d"},
                {"00": "a", "1": "b", "2": "c"},
                ["a", "b", "c"],
                [],
                3,
            )
        ),
        ({"label2id": 3}, "label2id is 3, which contradicts id2label"),
        ({"label2id": {"good": 1, "bad": 0, "neither": 2}}, "label2id is .*, which contradicts"),
    ],
)
def test_invalid_or_contradictory_labels_are_refused(copy_of, fields, told):
    folder = copy_of("huggingface")
    tiny.change(folder / "config.json", **fields)

    assert "config.json" in tiny.refused(told, reading.find, folder)


def test_numbers_are_labels_and_numbers_of_other_names_do_not_matter(copy_of):
    folder = copy_of("huggingface")
    ids = {"LABEL_0": 0, "LABEL_1": 1, "LABEL_2": "2"}
    tiny.change(folder / "config.json", id2label={"0": 2, "1": 1, "2": 0}, label2id=ids)

    assert reading.find(folder).description.labels == ("2", "1", "0")


def test_a_key_that_is_there_twice_is_refused(copy_of):
    path = copy_of("huggingface") / "config.json"
    path.write_text(path.read_text().replace('"0": "good"', '"0": "good", "0": "bad"'))

    tiny.refused("config.json .the key '0' occurs twice.", reading.find, path)


@pytest.mark.parametrize(
    "nodes",
    [
        [],
        [{"children": [{"node_id": 7, "local_name": "weights"}]}],
        [{"children": [{"node_id": 1, "local_name": "weights"}]},
         {"children": [{"node_id": 2, "local_name": "encoder/pooler/bias"}]},
         {}],
        [{"children": [{"node_id": 1, "local_name": "weights"}]},
         {"children": [{"node_id": 2, "local_name": "encoder/pooler/bias"}]},
         {"attributes": [{"checkpoint_key": "no such tensor"}]}],
    ],
)  # fmt: skip
def test_an_encoder_for_hub_with_other_objects_than_ours_is_damaged(tmp_path, nodes):
    model = tiny.make("encoder")
    for name in ("assets", "variables"):
        (tmp_path / name).mkdir()
    native.write(tmp_path / "assets", model, describe(model))
    (tmp_path / "saved_model.pb").write_bytes(b"")
    graph = TrackableObjectGraph()
    json_format.ParseDict({"nodes": nodes}, graph)
    objects = {tf_files.OBJECT_GRAPH: graph.SerializeToString()}
    tf_files.write_named(tmp_path / "variables" / "variables", objects)

    tiny.refused("checkpoint is damaged: .*variables .its object graph", reading.find, tmp_path)


def test_a_casing_of_two_values_is_damage(copy_of):
    folder = copy_of("tf_hub")
    prefix = folder / "variables" / "variables"
    found = tf_files.open_prefix(prefix)
    arrays = {name: found.read(name) for name in found.shapes}
    arrays["do_lower_case/.ATTRIBUTES/VARIABLE_VALUE"] = np.array([True, False])
    tf_files.write_named(prefix, arrays)

    tiny.refused(r"damaged: .*do_lower_case.* has shape \[2\]", reading.find, folder)


def test_a_missing_weight_is_named(copy_of):
    folder = copy_of("huggingface")
    arrays = tensors.load(folder / "model.safetensors")
    del arrays["bert.encoder.layer.1.output.LayerNorm.weight"]
    tensors.save(folder / "model.safetensors", arrays)

    tiny.refused("lacks the weight encoder.layer.1.output.LayerNorm.weight", reading.find, folder)


def test_weights_of_another_model_are_told(copy_of):
    folder = copy_of("huggingface")
    tensors.save(folder / "model.safetensors", {"transformer.wte.weight": np.zeros([2, 2])})

    tiny.refused("contains no weights of a BERT encoder", reading.find, folder)


def change_weights(folder, change):
    """Changes all weights of a checkpoint of any format; returns whether there were any."""
    for file in sorted(folder.rglob("*.safetensors")):
        arrays = tensors.load(file)
        tensors.save(file, {name: change(array) for name, array in arrays.items()})
    for file in sorted(folder.rglob("*.h5")):
        with h5py.File(file, "r+") as opened:
            for each in tensors.datasets(opened, 2**30):
                name, array = each.name, change(each[()])
                del opened[name]
                opened[name] = array
    for file in sorted(folder.rglob("*.index")):
        prefix = file.with_suffix("")
        found = tf_files.open_prefix(prefix)
        arrays = {name: found.read(name) for name in found.shapes}
        texts = {tf_files.OBJECT_GRAPH: arrays.pop(tf_files.OBJECT_GRAPH, b"")}
        changed = {name: change(array) if array.ndim else array for name, array in arrays.items()}
        for each in file.parent.glob(f"{prefix.name}.data-*"):
            each.unlink()
        tf_files.write_named(prefix, changed | {n: text for n, text in texts.items() if text})


@pytest.mark.parametrize("name", ["bert_tf", *FOLDERS])
@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda array: array.astype(np.int8), "is of type int8, but bert_tf reads only floating-p"),
        (lambda array: np.full_like(array, np.nan), "the weight .* contains NaN or infinity"),
        (lambda array: np.full_like(array, -np.inf), "the weight .* contains NaN or infinity"),
    ],
)
def test_integer_and_non_finite_weights_are_refused(copy_of, name, change, told):
    folder = copy_of(name)
    change_weights(folder, change)

    tiny.refused(told, tiny.load, folder)
    tiny.refused(told, conversion.convert, folder, folder.parent / "new", "bert_tf")


@pytest.mark.parametrize("wrapper", ["module.", "_orig_mod.", "model.", "module._orig_mod.net."])
def test_prefixes_that_training_tools_add_to_names_are_removed(copy_of, wrapper):
    folder = copy_of("huggingface")
    expected, _ = tiny.load(folder)
    arrays = tensors.load(folder / "model.safetensors")
    arrays = {wrapper + name: array for name, array in arrays.items()}
    tensors.save(folder / "model.safetensors", arrays | {"more": np.ones(2, np.float32)})

    model, report = tiny.load(folder)
    assert report.new == () and report.ignored == ("more",)
    tiny.assert_equal(model, expected)


def test_a_damaged_vocabulary_does_not_stand_in_the_way_of_the_weights(copy_of):
    folder = copy_of("tf1")
    (folder / "vocab.txt").write_text("[PAD]\n\n")

    tiny.load(folder)
    tiny.refused("lacks .UNK., .*lines 1 to 2 were read", Tokenizer.from_checkpoint, folder)


@pytest.mark.parametrize(
    "fields",
    [
        {"model": {"type": "WordPiece", "vocab": {"a": 0, "b": 2}}},
        {"model": {"type": "WordPiece", "vocab": ["a"]}},
        {"model": []},
        {"added_tokens": [1]},
    ],
)
def test_a_tokenizer_json_of_another_kind_is_refused(copy_of, fields):
    folder = copy_of("huggingface")
    tiny.change(folder / "tokenizer.json", **fields)

    told = "is not a WordPiece tokenizer with an id for every piece"
    tiny.refused(told, Tokenizer.from_checkpoint, folder)
