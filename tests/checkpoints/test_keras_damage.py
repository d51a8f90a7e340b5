"""`.keras` files that are damaged, of a later version, or malicious.

Each gives one line that names the file, and nothing in it is run.
"""

import copy
import io
import json
import re
import stat
import zipfile
import zlib

import h5py
import keras
import numpy as np
import pytest

import bert_tf
from bert_tf import UserError
from bert_tf.encoder.config import EncoderConfig
from bert_tf.encoder.encoder import Encoder
from bert_tf.models.pretrainer import PreTrainer
from bert_tf.tasks import keras_files
from bert_tf.text import Tokenizer
from tests.checkpoints import hostile_hdf5
from tests.checkpoints import tiny_models as tiny

CONFIG, WEIGHTS, VOCABULARY = "config.json", "model.weights.h5", "assets/vocab.txt"
SIZES = "config/encoder/config/config"
LOSS, METRICS = "compile_config/loss", "compile_config/metrics"
KERNEL = "classifier/vars/0"


@pytest.fixture(scope="module")
def entries(tmp_path_factory):
    """The files inside an intact `.keras` file, by their names."""
    path = tmp_path_factory.mktemp("keras") / "model.keras"
    model = bert_tf.TextClassifier(tiny.make("encoder"), Tokenizer(tiny.PIECES), tiny.LABELS)
    loss = keras.losses.sparse_categorical_crossentropy
    model.compile("sgd", loss, metrics=["accuracy", keras.metrics.AUC()])
    model.save(path)
    return read(path)


def read(path):
    """The files inside a `.keras` file, by their names."""
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def write(path, entries, compression=zipfile.ZIP_STORED):
    """Writes a `.keras` file of these entries; entries that are None are left out."""
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, content in entries.items():
            if content is not None:
                archive.writestr(name, content)
    return path


def configure(path, entries, places, value):
    """Writes a file with another value in its configuration; "/" separates the keys of a place."""
    config = json.loads(entries[CONFIG])
    *outer, last = places.split("/")
    inside = config
    for name in outer:
        inside = inside[name]
    inside[last] = copy.deepcopy(value)
    return write(path, entries | {CONFIG: json.dumps(config).encode()})


@pytest.fixture
def changed(entries, tmp_path):
    """Writes a file with some entries changed."""
    return lambda change, *options: write(tmp_path / "model.keras", entries | change, *options)


@pytest.fixture
def configured(entries, tmp_path):
    """Writes a file with another value in its configuration."""
    return lambda places, value: configure(tmp_path / "model.keras", entries, places, value)


def refused(path, told):
    """Asserts that a file is refused in one line, which names it."""
    assert str(path) in tiny.refused(told, bert_tf.load, path)


def node(class_name, module, config=None, registered=None, **more):
    names = {"module": module, "class_name": class_name, "registered_name": registered}
    return names | {"config": config or {}} | more


def test_the_good_file_is_good(entries, changed):
    model = bert_tf.load(changed({}))
    assert (model.labels, model.compiled) == (tiny.LABELS, True)
    again = bert_tf.load(changed({}, zipfile.ZIP_DEFLATED))
    tiny.assert_equal(again, model)


@pytest.mark.parametrize("make", [lambda encoder: encoder, PreTrainer])
def test_models_without_a_task_are_read_too(tmp_path, make):
    model = make(tiny.make("encoder"))
    model.save(tmp_path / "model.keras")
    same = keras_files.read(tmp_path / "model.keras")
    assert type(same) is type(model)
    tiny.assert_equal(same, model)


@pytest.mark.parametrize(
    ("key", "value", "told"),
    [
        ("dense", [{"units": 10**9}], "its sizes require more than the"),
        ("dense", [node("Dense", "keras.layers", {"units": 4})], "dense layer 0 is {'module'"),
        ("dense", "x", "dense is 'x'; give a list"),
        ("pooling", node("Lambda", "keras.layers"), "'pooling' has an unexpected value"),
        ("pooling", ["mean"] * 10**5, "names; give each name only once"),
        (
            "prompts",
            node("__lambda__", "builtins", {"value": "x"}),
            "the prompt 'registered_name' is None",
        ),
        ("prompts", {"query": {"class_name": "Lambda"}}, "the prompt 'query' is {'class_name'"),
        ("include_prompt", "no", "include_prompt has the unexpected value 'no'"),
        ("default_prompt", "x", "default prompt 'x' does not exist; the"),
    ],
)
def test_nested_settings_of_an_embedder_are_not_trusted(tmp_path, key, value, told):
    path = tmp_path / "model.keras"
    dense = [{"units": 4}]
    embedder = bert_tf.TextEmbedder(tiny.make("encoder"), Tokenizer(tiny.PIECES), dense=dense)
    embedder.save(path)
    configure(path, read(path), f"config/{key}", value)
    refused(path, re.escape(told))


def test_a_file_of_a_later_format_says_so_whatever_else_is_in_it(configured):
    path = configured("config/format", 2)
    refused(path, "saved by a later bert_tf .format 2.; update bert_tf to load it")
    with pytest.raises(UserError, match="saved by a later bert_tf .format 2.; update bert_tf"):
        keras.saving.load_model(path)
    path = configured("config", {"format": 2, "blocks": [node("Block", "bert_tf.blocks")]})
    refused(path, "saved by a later bert_tf .format 2.; update bert_tf to load it")


@pytest.mark.parametrize(
    ("places", "value", "told"),
    [
        (f"{SIZES}/hidden_size", 10**9, "is damaged .its sizes require more than the 1[0-9]{3} w"),
        (f"{SIZES}/num_hidden_layers", 10**9, "its sizes require more"),
        (f"{SIZES}/num_hidden_layers", 3, "its sizes require more"),
        (f"{SIZES}/vocab_size", 10**12, "its sizes require more"),
        (f"{SIZES}/vocab_size", -1, "vocab_size must be at least 1, not -1"),
        (f"{SIZES}/vocab_size", "x", "vocab_size must be a whole number, not 'x'"),
        (f"{SIZES}/attention", "both", "attention"),
        ("config/labels", [str(each) for each in range(10**5)], "its sizes require more"),
        ("config/labels", ["a", "b"], "is damaged"),
        ("config/labels", [1, 2, 3], "labels is not a list of texts"),
        ("config/labels", {"a": 1}, "labels is not a list of texts"),
        ("config/pair", "yes", "pair has the unexpected value 'yes'"),
        ("config/max_length", 2.5, "max_length has the unexpected value 2.5"),
        ("config/max_length", 10**9, "max_length 1000000000 is longer than the model's 7"),
        ("config/dropout", [[[]]], "'dropout' has an unexpected value"),
        ("config/dropout", 2.5, "dropout must be less than 1, got 2.5"),
        ("config/dtype", "int8", "'int8' is not a dtype"),
        ("config/dtype", node("Policy", "os"), "names 'Policy' of 'os', which is not part"),
        ("config/format", "x", "format has the unexpected value 'x'"),
        ("config/lstm_units", 10**9, "is damaged"),
        ("config/frozen", ["encoder/layer_7"], "is damaged"),
        ("config/vocabulary", None, "is damaged .it holds no vocabulary."),
        ("config/vocabulary", "0" * 64, "is not the one that was saved"),
        ("config/encoder", None, "its configuration does not describe a model"),
        (SIZES, [], "has no encoder sizes"),
        ("config/activity_regularizer", node("L2", "keras"), "has an unexpected value"),
        ("config", None, "its configuration does not describe a model"),
        ("registered_name", "keras>Dense", "does not hold a bert_tf model; load it with keras.sav"),
        ("registered_name", "bert_tf>AdamW", "names 'TextClassifier' of .* is not part of a b"),
        ("class_name", "__lambda__", "contains code .'__lambda__'., which bert_tf never runs"),
        ("class_name", "Encoder", "names 'Encoder' of .* is not part of a bert_tf model"),
        ("config/encoder", node("system", "os"), "names 'system' of 'os', which is not part"),
        (LOSS, node("system", "os"), "names 'system' of 'os', which is not part"),
        (LOSS, node("function", "os", "system"), "names 'function' of 'os'"),
        (LOSS, node("eval", "builtins"), "names 'eval' of 'builtins'"),
        (LOSS, node("Popen", "subprocess"), "names 'Popen' of 'subprocess'"),
        (LOSS, node("__lambda__", "builtins", {"value": "4w"}), "contains code"),
        (METRICS, [node("Lambda", "keras.layers")], "contains code .'Lambda'., which"),
        (LOSS, node("StringLookup", "keras.layers"), "which is not part of a bert_tf model"),
        (LOSS, node("Encoder", "x", {}, "bert_tf>Encoder"), "is not part of a bert_tf model"),
        (
            LOSS,
            node("Mean", "keras.metrics", {}, build_config={"input_shape": [10**9]}),
            "'Mean' is an unexpected class",
        ),
        (
            METRICS,
            [node("MeanIoU", "keras.metrics", {"num_classes": 10**6})],
            "it has too many compile settings",
        ),
        (METRICS, [{}] * 2000, "it has too many compile settings"),
        (
            "compile_config/optimizer",
            node("AdamW", "x", {"exclude_from_weight_decay": [r"(\w+)+!"]}, "bert_tf>AdamW"),
            "which may take very long",
        ),
    ],
)
def test_a_configuration_is_not_trusted(configured, places, value, told):
    refused(configured(places, value), told)


def test_a_configuration_that_is_nested_without_end_is_refused(changed):
    deep = b'{"config": ' * 100_000 + b"1" + b"}" * 100_000
    refused(changed({CONFIG: deep}), "is damaged")
    deep = b'{"config": ' * 500 + b"{}" + b"}" * 500
    refused(changed({CONFIG: deep.replace(b"{", b'{"registered_name": "bert_tf>X", ', 1)}), "damag")


def another_shape(file, name):
    file[name] = np.zeros((8, 4), np.float32)


HOSTILE = hostile_hdf5.CHANGES | {another_shape: "is damaged", hostile_hdf5.objects: "is damaged"}


def test_weights_that_are_left_over_are_named(entries, changed, capsys):
    bert_tf.load(changed({}))
    assert "ignored" not in capsys.readouterr().err
    weights = io.BytesIO(entries[WEIGHTS])
    with h5py.File(weights, "r+") as file:
        file["encoder/adapter/vars/0"] = np.zeros(2, np.float32)
    bert_tf.load(path := changed({WEIGHTS: weights.getvalue()}))
    assert f"{path}: ignored: /encoder/adapter/vars/0\n" in capsys.readouterr().err


@pytest.mark.parametrize("change", HOSTILE, ids=lambda change: change.__name__)
def test_weights_are_not_trusted(entries, changed, change):
    weights = io.BytesIO(entries[WEIGHTS])
    with h5py.File(weights, "r+") as file:
        del file[KERNEL]
        change(file, KERNEL)
    refused(changed({WEIGHTS: weights.getvalue()}), HOSTILE[change])


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({CONFIG: None}, "is not the .keras file of a model: it has no config.json"),
        ({WEIGHTS: None}, "it has no model.weights.h5"),
        ({WEIGHTS: b"HDF"}, "is damaged"),
        ({CONFIG: b"[]"}, "its configuration does not describe a model"),
        ({CONFIG: b"{"}, "is damaged"),
        ({VOCABULARY: None}, "is damaged"),
        ({VOCABULARY: b"[UNK]\n"}, "is damaged .vocabulary .* lacks"),
        (
            {VOCABULARY: "\n".join((*tiny.PIECES[:-1], "!")).encode()},
            "is damaged .the vocabulary in the .keras file is not the one that was saved",
        ),
        ({"assets/../../../x": b""}, "'assets/../../../x' does not belong to a model"),
        ({"/tmp/x": b""}, "'/tmp/x' does not belong to a model"),
        ({"model.weights.npz": b""}, "'model.weights.npz' does not belong to a model"),
        ({"assets/x": bytes(2**25)}, "its configuration or its vocabulary is too long"),
    ],
)
def test_the_archive_is_not_trusted(changed, change, told):
    refused(changed(change), told)


def test_what_unpacks_to_too_much_is_refused(changed):
    refused(
        changed({"assets/x": bytes(2**20)}, zipfile.ZIP_DEFLATED), "assets/x is too large when unp"
    )


def test_an_archive_whose_list_lies_about_sizes_is_not_unpacked(changed, entries):
    path = changed({})
    packed = zlib.compressobj(9, zlib.DEFLATED, -15)
    bomb = b"".join(packed.compress(bytes(2**20)) for _ in range(256)) + packed.flush()
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in entries.items():
            archive.writestr(name, bomb if name == WEIGHTS else content)
        listed = archive.getinfo(WEIGHTS)
        listed.compress_type, listed.file_size, listed.compress_size = 8, 2**28, 2**24
    refused(path, "is damaged .its list of files gives them more bytes than it has.")


def test_a_link_in_an_archive_is_refused(entries, tmp_path):
    path = write(tmp_path / "model.keras", entries | {VOCABULARY: None})
    with zipfile.ZipFile(path, "a") as archive:
        link = zipfile.ZipInfo(VOCABULARY)
        link.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(link, "/etc/passwd")
    refused(path, "is damaged .assets/vocab.txt is a link.")


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda array: array.astype(np.int32), "the weight /classifier/vars/0 is of type int32"),
        (lambda array: array * np.inf, "the weight classifier/kernel contains NaN or infinity"),
    ],
)
def test_weights_are_finite_numbers(entries, changed, change, told):
    weights = io.BytesIO(entries[WEIGHTS])
    with h5py.File(weights, "r+") as file:
        array = file[KERNEL][()]
        del file[KERNEL]
        file[KERNEL] = change(array)
    refused(changed({WEIGHTS: weights.getvalue()}), told)


def test_a_changed_byte_of_a_weight_is_noticed(changed, entries):
    path = changed({})
    content = bytearray(path.read_bytes())
    kernel = bert_tf.load(path).classifier.kernel.numpy().tobytes()
    assert content.count(kernel) == 1
    content[content.index(kernel)] ^= 1
    path.write_bytes(content)
    refused(path, "is damaged .Bad CRC-32 for file 'model.weights.h5'.; save or copy it again")


@pytest.mark.parametrize("share", [0, 0.1, 0.5, 0.9, 0.999])
def test_a_file_that_is_cut_short_is_damaged(changed, share):
    path = changed({})
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    refused(path, "is damaged")


def test_a_model_without_a_vocabulary_cannot_be_loaded_as_a_task(tmp_path):
    bert_tf.MultipleChoice(tiny.make("encoder"), None).save(tmp_path / "model.keras")
    refused(tmp_path / "model.keras", "is damaged .it holds no vocabulary.")


def test_wide_heads_on_features_are_as_large_as_they_say(tmp_path):
    config = EncoderConfig(**tiny.make("encoder").config.to_dict() | {"num_hidden_layers": 1})
    model = bert_tf.TokenClassifier(
        Encoder(config), Tokenizer(tiny.PIECES), ["O", "B-x"], features="last", lstm_units=3
    )
    model.save(tmp_path / "model.keras")
    assert bert_tf.load(tmp_path / "model.keras").head["lstm_units"] == 3
    entries = read(tmp_path / "model.keras")
    for units, told in (
        (10**6, "its sizes require more"),
        (0, "lstm_units has the unexpected value 0"),
        ("x", "lstm_un"),
    ):
        refused(configure(tmp_path / "model.keras", entries, "config/lstm_units", units), told)
