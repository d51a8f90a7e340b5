"""Folders of sentence-transformers: what its versions write is read, and a folder comes back."""

import json
import random
import shutil

import numpy as np
import pytest

import bert_tf
from bert_tf import UserError
from bert_tf.checkpoints import conversion, reading, tensors
from bert_tf.checkpoints.description import describe
from bert_tf.cli.parser import main
from bert_tf.text import Tokenizer
from tests.checkpoints import tiny_embedders as tiny
from tests.checkpoints import tiny_models

CONFIG, MODULES = "config_sentence_transformers.json", "modules.json"
TRANSFORMER, POOLING = "sentence_bert_config.json", "1_Pooling/config.json"
DENSE = "2_Dense/config.json"
LIBRARY = "sentence_transformers.models."
DEFAULTS = {
    "pooling": "mean",
    "normalize": False,
    "default_prompt": None,
    "include_prompt": True,
    "similarity_function": "cosine",
    "max_length": 12,
}
OLD_KEYS = {
    "pooling_mode_mean_tokens": True,
    "pooling_mode_cls_token": True,
    "pooling_mode_weightedmean_tokens": True,
    "pooling_mode_max_tokens": False,
}


def settings_of(folder):
    found = reading.find(folder).description
    assert found.model == "TextEmbedder"
    return found.settings


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("cls", {"pooling": "cls"}),
        ("max without prompt", {"pooling": "max", "include_prompt": False}),
        ("mean", {}),
        ("mean_sqrt_len_tokens", {"pooling": "mean_sqrt_len"}),
        ("weightedmean", {"pooling": "weighted_mean"}),
        ("lasttoken", {"pooling": "last_token"}),
        ("mean+cls", {"pooling": ["mean", "cls"]}),
        ("normalized", {"normalize": True}),
        ("default prompt", {"default_prompt": "query"}),
        ("dense", {"pooling": ["cls", "mean"], "normalize": True}),
        ("manhattan", {"similarity_function": "manhattan"}),
    ],
)
def test_what_version_6_writes_is_read(tmp_path, name, settings):
    found = settings_of(tiny.write(tmp_path, name))
    prompts = found.pop("prompts")
    assert (prompts["query"], prompts["document"]) == ("the good cat : ", "")
    assert found == DEFAULTS | settings


def test_dense_layers_are_read(tmp_path):
    found = reading.find(tiny.write(tmp_path, "dense")).description
    assert found.head["dense"] == [
        {"units": 5, "activation": "Tanh", "bias": True},
        {"units": 3, "activation": "Identity", "bias": False},
    ]


def old(folder):
    """Makes a folder one of version 2, whose files and keys have other names."""
    for module in (modules := json.loads((folder / MODULES).read_text())):
        module["type"] = LIBRARY + module["type"].rpartition(".")[2]
    modules[0]["path"] = "0_Transformer"
    (folder / MODULES).write_text(json.dumps(modules))
    (folder / POOLING).write_text(json.dumps({"word_embedding_dimension": 8} | OLD_KEYS))
    (folder / CONFIG).unlink()
    return folder


def test_what_older_versions_wrote_is_read(tmp_path):
    folder = old(tiny.write(tmp_path, "normalized", transformer="0_Transformer"))
    shutil.rmtree(folder / "2_Normalize")
    place = folder / "0_Transformer" / TRANSFORMER
    place.write_text(json.dumps({"max_seq_length": 9, "do_lower_case": False}))

    model = bert_tf.load(folder)
    expected = DEFAULTS | {"pooling": ["cls", "mean", "weighted_mean"], "normalize": True}
    assert model.settings == expected | {"prompts": {}, "max_length": 9}
    embedder = bert_tf.load(tiny.write(tmp_path / "new", "normalized"), max_length=9)
    tiny_models.assert_equal(model, embedder)


@pytest.mark.parametrize(
    ("said", "length"), [({"model_max_length": 1e30}, 16), ({"model_max_length": 7}, 7), ({}, 12)]
)
def test_the_longest_text_is_the_tokenizers(tmp_path, said, length):
    folder = tiny.write(tmp_path, "mean")
    tiny.change(folder / "tokenizer_config.json", **said)
    assert settings_of(folder)["max_length"] == length
    tiny.change(folder / TRANSFORMER, max_seq_length=99)
    assert settings_of(folder)["max_length"] == 16  # the encoder has no more positions


@pytest.mark.parametrize("lower_case", [True, False])
def test_the_transformers_casing_is_added_to_the_tokenizers(tmp_path, lower_case):
    folder = tiny.write(tmp_path, "mean")
    tiny.change(folder / "tokenizer_config.json", do_lower_case=lower_case)
    tiny.change(folder / TRANSFORMER, do_lower_case=True)
    found = reading.find(folder)
    assert found.description.lower_case is True
    settings = found.description.tokenizer_settings(found.read_vocabulary())
    assert settings.strips_accents is lower_case


def test_an_encoder_and_other_tasks_take_the_encoder_alone(tmp_path):
    folder = tiny.write(tmp_path, "dense")
    encoder = bert_tf.Encoder.from_checkpoint(folder)
    classifier = bert_tf.TextClassifier.from_checkpoint(folder, labels=["a", "b"])
    tiny_models.assert_equal(encoder, classifier.encoder)


def test_a_cross_encoder_is_no_embedder(tmp_path):
    folder = tiny.write(tmp_path, "mean")
    tiny.change(folder / CONFIG, model_type="CrossEncoder")
    assert reading.find(folder).description.model == "Encoder"


def written(tmp_path):
    """A model with everything that the format has a place for, and its folder."""
    encoder = tiny_models.make("encoder")
    model = bert_tf.TextEmbedder(
        encoder,
        Tokenizer(tiny_models.PIECES, lower_case=False),
        pooling=["last_token", "cls"],
        normalize=True,
        dense=[{"units": 6, "activation": "GELU"}, {"units": 4, "bias": False}],
        prompts={"query": "a b "},
        default_prompt="query",
        include_prompt=False,
        similarity_function="dot",
        max_length=6,
    )
    model.save_checkpoint(tmp_path / "out", "sentence_transformers")
    return model, tmp_path / "out"


def test_a_model_comes_back_with_the_same_bits_and_settings(tmp_path):
    model, folder = written(tmp_path)
    back = bert_tf.load(folder)
    assert back.settings == model.settings
    assert back.head == model.head
    assert back.tokenizer.vocabulary == model.tokenizer.vocabulary
    tiny_models.assert_equal(model, back)
    found, described = reading.find(folder).description, describe(model, model.tokenizer)
    assert found.differing(described) == {}
    conversion.convert(folder, tmp_path / "ours", "bert_tf")
    conversion.convert(tmp_path / "ours", tmp_path / "again", "sentence_transformers")
    for path in folder.rglob("*.*"):
        again = tmp_path / "again" / path.relative_to(folder)
        assert again.read_bytes() == path.read_bytes(), path


def test_the_files_are_those_that_sentence_transformers_opens(tmp_path):
    """`test_in_sentence_transformers.py` opens them, where that library is installed."""
    model, folder = written(tmp_path)
    files = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    assert files >= {"config.json", "model.safetensors", "vocab.txt", "tokenizer_config.json"}
    found = {path: json.loads((folder / path).read_text()) for path in files if "json" in path}
    assert [(each["path"], each["type"]) for each in found[MODULES]] == [
        ("", "sentence_transformers.models.Transformer"),
        ("1_Pooling", "sentence_transformers.models.Pooling"),
        ("2_Dense", "sentence_transformers.models.Dense"),
        ("3_Dense", "sentence_transformers.models.Dense"),
        ("4_Normalize", "sentence_transformers.models.Normalize"),
    ]
    assert found[POOLING] == {
        "word_embedding_dimension": 8,
        "pooling_mode": ["lasttoken", "cls"],
        "include_prompt": False,
    }
    assert found[DENSE] == {
        "in_features": 16,
        "out_features": 6,
        "bias": True,
        "activation_function": "torch.nn.modules.activation.GELU",
    }
    assert found[TRANSFORMER] == {"max_seq_length": 6, "do_lower_case": False}
    assert found[CONFIG] == {
        "model_type": "SentenceTransformer",
        "prompts": {"query": "a b "},
        "default_prompt_name": "query",
        "similarity_fn_name": "dot",
        "bert_tf": {"tokenizer": {}},
    }
    first = tensors.load(folder / "2_Dense" / "model.safetensors")
    np.testing.assert_array_equal(first["linear.weight"].T, model.dense_layers[0].kernel)
    np.testing.assert_array_equal(first["linear.bias"], model.dense_layers[0].bias)
    assert tensors.load(folder / "3_Dense" / "model.safetensors").keys() == {"linear.weight"}


def test_the_command_converts(tmp_path):
    source = str(tiny.write(tmp_path / "source", "dense"))
    out = tmp_path / "out"
    assert main(["convert", source, str(out), "--to", "sentence_transformers"]) == 0
    assert reading.find(out).description.head == reading.find(source).description.head


def retyped(place, kind):
    return lambda found: [*found[:place], found[place] | {"type": kind}, *found[place + 1 :]]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (
            retyped(2, LIBRARY + "LSTM"),
            "lists the module .sentence_transformers.models.LSTM.; bert_tf",
        ),
        (retyped(2, "modeling.Dense"), r"lists the module .modeling.Dense.; bert_tf supports only"),
        (retyped(1, LIBRARY + "Dense"), r"lists Transformer, Dense, Dense, Dense, Normalize; bert"),
        (
            lambda found: [found[0]],
            "lists Transformer; bert_tf supports Transformer, Pooling, up to 16 Dense",
        ),
        (lambda found: [*found[:3], found[4], found[3]], "lists .*, in this order"),
        (
            lambda found: [*found[:2], *[found[2]] * 17],
            "lists 17 Dense modules; bert_tf supports at",
        ),
        (lambda found: [], "lists no module"),
        (lambda found: {}, "list of modules is not a JSON array"),
        (lambda found: [3], "is damaged: the entry 3 does not name a path and a type"),
        (lambda found: [{"path": "", "type": 3}], "does not name a path and a type"),
        (
            lambda found: [found[0], found[1] | {"path": "../x"}],
            "a folder outside the checkpoint: '../x'",
        ),
        (lambda found: [found[0], found[1] | {"path": "9_Pooling"}], "pooling configuration"),
    ],
)
def test_other_modules_are_refused_by_name(tmp_path, change, told):
    folder = tiny.write(tmp_path, "dense")
    modules = json.loads((folder / MODULES).read_text())
    (folder / MODULES).write_text(json.dumps(change(modules)))
    tiny_models.refused(told, reading.find, folder)


@pytest.mark.parametrize(
    ("file", "fields", "told"),
    [
        (
            POOLING,
            {"pooling_mode": "median"},
            "pooling_mode is 'median'; it must be one or more of cls, max",
        ),
        (POOLING, {"pooling_mode": ["mean", 3]}, r"pooling_mode is \['mean', 3\]"),
        (POOLING, {"pooling_mode": []}, r"pooling is \[\]"),
        (POOLING, {"embedding_dimension": 9}, "embedding_dimension is 9, but the encoder's vec"),
        (POOLING, {"include_prompt": "no"}, "include_prompt must be true or false, not 'no'"),
        (DENSE, {"activation_function": "torch.nn.modules.activation.Hardshrink"}, "unknown acti"),
        (DENSE, {"activation_function": "os.Tanh"}, "unknown activation_function 'os.Tanh'; bert"),
        (DENSE, {"in_features": 8}, "in_features is 8, but the input vectors have 16 dimensions"),
        (DENSE, {"out_features": -1}, "out_features must be at least 1, not -1"),
        (DENSE, {"out_features": 10**9}, "in_features is 5, but the input vectors have 1000"),
        (DENSE, {"use_residual": True}, "use_residual is True; bert_tf does not support it"),
        (DENSE, {"module_input_name": "token_embeddings"}, "module_input_name is 'token_embeddin"),
        ("4_Normalize/config.json", {"module_output_name": "x"}, "module_output_name is 'x'; bert"),
        ("3_Dense/config.json", {"out_features": 10**9}, "weight 3_Dense/linear.weight of .* has"),
        ("3_Dense/config.json", {"bias": True}, "lacks the weight 3_Dense/linear.bias"),
        (CONFIG, {"similarity_fn_name": "maxsim"}, "unknown similarity function 'maxsim'; choose"),
        (CONFIG, {"default_prompt_name": "x"}, "default prompt 'x' does not exist; the"),
        (CONFIG, {"prompts": ["query"]}, "prompts must be an object, not"),
        (CONFIG, {"prompts": {"query": 3}}, "the prompt 'query' is 3; its name and its text"),
        (
            CONFIG,
            {"prompts": {"similarity": ""}},
            "the name 'similarity' is reserved for a signature",
        ),
        (CONFIG, {"truncate_dim": "x"}, "truncate_dim must be a whole number, not 'x'"),
        (TRANSFORMER, {"max_seq_length": 0}, "max_seq_length is 0; it must be at least 1"),
        (TRANSFORMER, {"max_seq_length": "x"}, "max_seq_length must be a whole number, not 'x'"),
        (
            TRANSFORMER,
            {"transformer_task": "fill-mask"},
            "transformer_task is 'fill-mask'; bert_tf supports only",
        ),
        (TRANSFORMER, {"processing_kwargs": {"text": {"max_length": 3}}}, "processing_kwargs is"),
    ],
)
def test_what_a_file_says_is_checked(tmp_path, file, fields, told):
    folder = tiny.write(tmp_path, "dense")
    tiny.change(folder / file, **fields)
    assert str(folder) in tiny_models.refused(told, reading.find, folder)


def test_a_damaged_file_is_one_sentence(tmp_path):
    """Bytes that are lost or changed give a folder that opens, or a sentence that names a file."""
    source, draw = tiny.write(tmp_path / "source", "dense"), random.Random(0)
    refused = 0
    for file in (MODULES, POOLING, DENSE, CONFIG, TRANSFORMER):
        whole = (source / file).read_bytes()
        for _ in range(12):
            start = draw.randrange(len(whole))
            stop = start + draw.choice([0, 1, len(whole)])
            damaged = whole[:start] + draw.choice([b"", b"{", b"9", b"\xff"]) + whole[stop:]
            (source / file).write_bytes(damaged)
            try:
                reading.find(source)
            except UserError as error:
                assert "\n" not in str(error)
                refused += 1
        (source / file).write_bytes(whole)
    assert refused > 30


def test_models_that_the_format_has_no_place_for_are_refused(tmp_path):
    classifier = tiny_models.make("classifier")
    pooled = bert_tf.TextEmbedder(tiny_models.make("encoder"), None, pooling="pooled")
    for model, told in (
        (classifier, "sentence_transformers can store only TextEmbedder, not TextCl"),
        (pooled, "no module for the pooling 'pooled'; choose another pool"),
    ):
        tiny_models.refused(told, conversion.save, model, tmp_path / "out", "sentence_transformers")
    assert list(tmp_path.iterdir()) == []
