"""`.keras` files that are damaged, of a later version, or made with ill will.

Each gives one line that names the file, and nothing in it is run.
"""

import copy
import io
import json
import re
import zipfile

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
from tests.checkpoints import tiny_models as tiny

CONFIG, WEIGHTS, VOCABULARY = "config.json", "model.weights.h5", "assets/vocab.txt"
SIZES = ("config", "encoder", "config", "config")
COMPILED = ("compile_config",)
KERNEL = "classifier/vars/0"


@pytest.fixture(scope="module")
def entries(tmp_path_factory):
    """The files inside a good one, by their names."""
    path = tmp_path_factory.mktemp("keras") / "model.keras"
    model = bert_tf.TextClassifier(tiny.make("encoder"), Tokenizer(tiny.PIECES), tiny.LABELS)
    loss = keras.losses.sparse_categorical_crossentropy
    model.compile("sgd", loss, metrics=["accuracy", keras.metrics.AUC()])
    model.save(path)
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


@pytest.fixture
def changed(entries, tmp_path):
    """Writes a file of which something is different."""

    def write(change, compression=zipfile.ZIP_STORED):
        path = tmp_path / "model.keras"
        with zipfile.ZipFile(path, "w", compression) as archive:
            for name, content in {**entries, **change}.items():
                if content is not None:
                    archive.writestr(name, content)
        return path

    return write


@pytest.fixture
def configured(entries, changed):
    """Writes a file whose configuration has another value somewhere."""

    def write(*places, value):
        config = json.loads(entries[CONFIG])
        inside = config
        for name in places[:-1]:
            inside = inside[name]
        inside[places[-1]] = copy.deepcopy(value)
        return changed({CONFIG: json.dumps(config).encode()})

    return write


def refused(path, told, read=bert_tf.load):
    """That a file is refused in one line, which names it."""
    with pytest.raises(UserError, match=told) as error:
        read(path)
    (line,) = str(error.value).splitlines()
    assert str(path) in line


def node(class_name, module, config=None, registered=None, **more):
    names = {"module": module, "class_name": class_name, "registered_name": registered}
    return names | {"config": config or {}} | more


def test_the_good_file_is_good(entries, changed):
    model = bert_tf.load(changed({}))
    assert (model.labels, model.compiled) == (tiny.LABELS, True)
    again = bert_tf.load(changed({}, zipfile.ZIP_DEFLATED))
    for ours, theirs in zip(model.weights, again.weights, strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("make", [lambda encoder: encoder, PreTrainer])
def test_models_without_a_task_are_read_too(tmp_path, make):
    model = make(tiny.make("encoder"))
    model.save(tmp_path / "model.keras")
    same = keras_files.read(tmp_path / "model.keras")
    assert type(same) is type(model)
    for ours, theirs in zip(model.weights, same.weights, strict=True):
        np.testing.assert_array_equal(ours, theirs)


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
    with zipfile.ZipFile(path) as archive:
        entries = {name: archive.read(name) for name in archive.namelist()}
    config = json.loads(entries[CONFIG])
    config["config"][key] = value
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in (entries | {CONFIG: json.dumps(config).encode()}).items():
            archive.writestr(name, content)
    refused(path, re.escape(told))


def test_a_file_of_a_later_format_says_so_whatever_else_is_in_it(configured):
    path = configured("config", "format", value=2)
    refused(path, "saved by a later bert_tf .format 2.; update bert_tf to load it")
    with pytest.raises(UserError, match="saved by a later bert_tf .format 2.; update bert_tf"):
        keras.saving.load_model(path)
    path = configured("config", value={"format": 2, "blocks": [node("Block", "bert_tf.blocks")]})
    refused(path, "saved by a later bert_tf .format 2.; update bert_tf to load it")


@pytest.mark.parametrize(
    ("places", "value", "told"),
    [
        ((*SIZES, "hidden_size"), 10**9, "is damaged .its sizes require more than the 1[0-9]{3} w"),
        ((*SIZES, "num_hidden_layers"), 10**9, "its sizes require more"),
        ((*SIZES, "num_hidden_layers"), 3, "its sizes require more"),
        ((*SIZES, "vocab_size"), 10**12, "its sizes require more"),
        ((*SIZES, "vocab_size"), -1, "vocab_size must be at least 1, not -1"),
        ((*SIZES, "vocab_size"), "x", "vocab_size must be a whole number, not 'x'"),
        ((*SIZES, "attention"), "both", "attention"),
        (("config", "labels"), [str(each) for each in range(10**5)], "its sizes require more"),
        (("config", "labels"), ["a", "b"], "is damaged"),
        (("config", "labels"), [1, 2, 3], "labels is not a list of texts"),
        (("config", "labels"), {"a": 1}, "labels is not a list of texts"),
        (("config", "pair"), "yes", "pair has the unexpected value 'yes'"),
        (("config", "max_length"), 2.5, "max_length has the unexpected value 2.5"),
        (("config", "max_length"), 10**9, "max_length 1000000000 is longer than the model's 7"),
        (("config", "dropout"), [[[]]], "'dropout' has an unexpected value"),
        (("config", "dropout"), 2.5, "dropout must be less than 1, got 2.5"),
        (("config", "dtype"), "int8", "'int8' is not a dtype"),
        (("config", "dtype"), node("Policy", "os"), "names 'Policy' of 'os', which is not part"),
        (("config", "format"), "x", "format has the unexpected value 'x'"),
        (("config", "lstm_units"), 10**9, "is damaged"),
        (("config", "frozen"), ["encoder/layer_7"], "is damaged"),
        (("config", "vocabulary"), None, "is damaged .it holds no vocabulary."),
        (("config", "vocabulary"), "0" * 64, "is not the one that was saved"),
        (("config", "encoder"), None, "its configuration does not describe a model"),
        (("config", "encoder", "config", "config"), [], "has no encoder sizes"),
        (("config", "activity_regularizer"), node("L2", "keras"), "has an unexpected value"),
        (("config",), None, "its configuration does not describe a model"),
        (
            ("registered_name",),
            "keras>Dense",
            "does not hold a bert_tf model; load it with keras.sav",
        ),
        (("registered_name",), "bert_tf>AdamW", "names 'TextClassifier' of .* is not part of a b"),
        (("class_name",), "__lambda__", "contains code .'__lambda__'., which bert_tf never runs"),
        (("class_name",), "Encoder", "names 'Encoder' of .* is not part of a bert_tf model"),
        (("config", "encoder"), node("system", "os"), "names 'system' of 'os', which is not part"),
        ((*COMPILED, "loss"), node("system", "os"), "names 'system' of 'os', which is not part"),
        ((*COMPILED, "loss"), node("function", "os", "system"), "names 'function' of 'os'"),
        ((*COMPILED, "loss"), node("eval", "builtins"), "names 'eval' of 'builtins'"),
        ((*COMPILED, "loss"), node("Popen", "subprocess"), "names 'Popen' of 'subprocess'"),
        ((*COMPILED, "loss"), node("__lambda__", "builtins", {"value": "4w"}), "contains code"),
        (
            (*COMPILED, "metrics"),
            [node("Lambda", "keras.layers")],
            "contains code .'Lambda'., which",
        ),
        (
            (*COMPILED, "loss"),
            node("StringLookup", "keras.layers"),
            "which is not part of a bert_tf model",
        ),
        (
            (*COMPILED, "loss"),
            node("Encoder", "x", {}, "bert_tf>Encoder"),
            "is not part of a bert_tf model",
        ),
        (
            (*COMPILED, "loss"),
            node("Mean", "keras.metrics", {}, build_config={"input_shape": [10**9]}),
            "'Mean' is an unexpected class",
        ),
        (
            (*COMPILED, "metrics"),
            [node("MeanIoU", "keras.metrics", {"num_classes": 10**6})],
            "it has too many compile settings",
        ),
        ((*COMPILED, "metrics"), [{}] * 2000, "it has too many compile settings"),
        (
            (*COMPILED, "optimizer"),
            node("AdamW", "x", {"exclude_from_weight_decay": [r"(\w+)+!"]}, "bert_tf>AdamW"),
            "which may take very long",
        ),
    ],
)
def test_a_configuration_is_not_trusted(configured, places, value, told):
    refused(configured(*places, value=value), told)


def test_a_configuration_that_is_nested_without_end_is_refused(changed):
    deep = b'{"config": ' * 100_000 + b"1" + b"}" * 100_000
    refused(changed({CONFIG: deep}), "is damaged")
    deep = b'{"config": ' * 500 + b"{}" + b"}" * 500
    refused(changed({CONFIG: deep.replace(b"{", b'{"registered_name": "bert_tf>X", ', 1)}), "damag")


def link(file):
    file[KERNEL] = h5py.ExternalLink("/etc/passwd", "x")


def cycle(file):
    file[KERNEL] = file["/"]


def data_elsewhere(file):
    file.create_dataset(KERNEL, (8, 3), "f4", external=[("/etc/passwd", 0, 96)])


def bomb(file):
    file.create_dataset(KERNEL, (2**20, 2**10), "f4", chunks=(2**10, 2**10), compression="gzip")


def not_stored(file):
    file.create_dataset(KERNEL, (2**20, 2**10), "f4")


def virtual(file):
    file.create_virtual_dataset(KERNEL, h5py.VirtualLayout((2**20, 2**10), "f4"))


def texts(file):
    file[KERNEL] = ["text"] * 3


def another_shape(file):
    file[KERNEL] = np.zeros((8, 4), np.float32)


def nested(file):
    file.create_group("a/" * 200)
    file[KERNEL] = np.zeros((8, 3), np.float32)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (link, "a weight is in the wrong place"),
        (cycle, "a weight is in two places"),
        (data_elsewhere, "a weight is in the wrong place"),
        (bomb, "its weights are larger than the file"),
        (not_stored, "its weights are larger than the file"),
        (virtual, "a weight is in the wrong place"),
        (texts, "a weight is not a number"),
        (another_shape, "is damaged"),
        (nested, "its weights are nested too deeply"),
    ],
)
def test_weights_are_not_trusted(entries, changed, change, told):
    weights = io.BytesIO(entries[WEIGHTS])
    with h5py.File(weights, "r+") as file:
        del file[KERNEL]
        change(file)
    refused(changed({WEIGHTS: weights.getvalue()}), told)


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
    with zipfile.ZipFile(tmp_path / "model.keras") as archive:
        entries = {name: archive.read(name) for name in archive.namelist()}
    for units, told in (
        (10**6, "its sizes require more"),
        (0, "lstm_units has the unexpected value 0"),
        ("x", "lstm_un"),
    ):
        fields = json.loads(entries[CONFIG])
        fields["config"]["lstm_units"] = units
        with zipfile.ZipFile(tmp_path / "model.keras", "w") as archive:
            for name, content in (entries | {CONFIG: json.dumps(fields)}).items():
                archive.writestr(name, content)
        refused(tmp_path / "model.keras", told)
