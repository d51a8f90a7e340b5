"""Conversion between formats: the same bits and outputs, and a line on what other programs lose."""

import json

import numpy as np
import pytest

from bert_tf.checkpoints import conversion, huggingface, reading
from bert_tf.checkpoints.description import describe
from bert_tf.cli.parser import main
from bert_tf.text import Tokenizer
from tests.checkpoints import tiny_models as tiny

OTHERS = ("huggingface", "tf1", "model_garden", "keras_hub")
FORMATS = ("bert_tf", *OTHERS)
POOLER = ("encoder/pooler/kernel", "encoder/pooler/bias")


@pytest.fixture(scope="module", params=tiny.KINDS)
def model(request):
    sizes = {"hidden_act": "gelu", "attention": "right_to_left", "layer_norm_eps": 1e-6}
    return tiny.make(request.param, num_hidden_layers=1, **sizes)


@pytest.fixture(scope="module")
def outputs(model):
    return tiny.outputs(model)


@pytest.mark.parametrize("to", FORMATS)
def test_a_model_comes_back_with_the_same_bits_outputs_and_description(
    tmp_path, model, outputs, to
):
    given = Tokenizer(tiny.PIECES, lower_case=False)
    conversion.save(model, tmp_path / "out", to, given)

    back, report = tiny.load(tmp_path / "out")

    assert (report.new, report.ignored, report.notes) == ((), (), ())
    tiny.assert_equal(back, model)
    for found, expected in zip(tiny.outputs(back), outputs, strict=True):
        np.testing.assert_array_equal(found, expected)
    described = describe(model, given)
    found = reading.find(tmp_path / "out")
    assert found.description.differing(described) == {}
    assert found.read_vocabulary() == tiny.PIECES


@pytest.mark.parametrize("through", OTHERS)
@pytest.mark.parametrize("kind", ["pretrainer", "classifier", "feature_tagger"])
def test_ours_converted_to_another_format_and_back_is_the_same_file(tmp_path, kind, through):
    model = tiny.make(kind)
    given = Tokenizer(tiny.PIECES)
    conversion.save(model, tmp_path / "ours", "bert_tf", given)

    conversion.convert(tmp_path / "ours", tmp_path / "theirs", through)
    conversion.convert(tmp_path / "theirs", tmp_path / "back", "bert_tf")

    for name in ("bert_tf.json", "model.safetensors", "vocab.txt"):
        before, after = (tmp_path / folder / name for folder in ("ours", "back"))
        assert before.read_bytes() == after.read_bytes(), name


@pytest.mark.parametrize("source", ["huggingface_heads/BertForPreTraining", "tf_hub_tiny"])
@pytest.mark.parametrize("to", FORMATS)
def test_what_others_wrote_is_converted_to_every_format(tmp_path, source, to):
    conversion.convert(tiny.FIXTURES / source, tmp_path / "out", to)

    tiny.assert_equal(tiny.load(tmp_path / "out")[0], tiny.load(tiny.FIXTURES / source)[0])


@pytest.mark.parametrize("to", FORMATS)
def test_weights_that_the_source_lacks_are_not_made_up(tmp_path, capsys, to):
    source = tiny.FIXTURES / "huggingface_heads" / "BertForMaskedLM"
    conversion.convert(source, tmp_path / "out", to)

    said = capsys.readouterr().err.splitlines()[0]
    assert said == f"{source}: 34 weights read; it has no {', '.join(POOLER)}"
    assert tiny.load(tmp_path / "out")[1].new == POOLER


@pytest.mark.parametrize(
    ("to", "kind", "sizes", "warnings"),
    [
        ("huggingface", "encoder", {"hidden_act": "gelu"}, []),
        ("huggingface", "masked_lm", {"attention": "left_to_right"}, []),
        (
            "huggingface",
            "classifier",
            {"attention": "left_to_right"},
            ["transformers will pool the first token, but a left-to-right model pools the last"],
        ),
        (
            "huggingface",
            "encoder",
            {"attention": "right_to_left"},
            ["transformers will use attention bidirectional, but the model has "
             "right_to_left"],
        ),
        (
            "model_garden",
            "choice",
            {"hidden_act": "gelu", "layer_norm_eps": 1e-6},
            ["Model Garden will use hidden_act gelu_new, but the model has gelu",
             "Model Garden will use layer_norm_eps 1e-12, but the model has 1e-06",
             "Model Garden does not read choice"],
        ),
        ("tf1", "feature_tagger", {}, ["google-research/bert does not read feature_classifier, "
                                       "lstm_0, lstm_1"]),
    ],
)  # fmt: skip
def test_what_the_formats_own_reader_does_differently_is_reported(
    tmp_path, capsys, to, kind, sizes, warnings
):
    conversion.save(tiny.make(kind, **sizes), tmp_path / "out", to)

    said = capsys.readouterr().err.splitlines()
    assert [line.partition(";")[0] for line in said] == [f"warning: {each}" for each in warnings]


def test_our_key_of_a_configuration_holds_only_what_the_format_cannot_say(tmp_path):
    model = tiny.make("classifier", hidden_act="gelu_new")
    conversion.save(model, tmp_path / "tf1", "tf1")
    conversion.save(model, tmp_path / "huggingface", "huggingface")

    tf1 = json.loads((tmp_path / "tf1" / "bert_config.json").read_text())
    assert tf1["bert_tf"] == {
        "head": {"num_classes": 3, "dropout": 0.3},
        "labels": list(tiny.LABELS),
        "settings": {"max_length": 7, "pair": None},
    }
    ours = json.loads((tmp_path / "huggingface" / "config.json").read_text())["bert_tf"]
    assert ours.keys() == {"settings"}


@pytest.mark.parametrize("piece", ["##d", "##D"])
def test_a_casing_known_only_from_the_vocabulary_is_written(tmp_path, piece):
    source = tiny.copied("google_tiny_classifier", tmp_path / "source")
    vocabulary = (source / "vocab.txt").read_text()
    (source / "vocab.txt").write_text(vocabulary.replace("##d", piece))
    conversion.convert(source, tmp_path / "out", "huggingface")

    written = json.loads((tmp_path / "out" / "tokenizer_config.json").read_text())
    assert written["do_lower_case"] is (piece == "##d")


def test_a_source_without_vocabulary_is_warned_of(tmp_path, capsys):
    conversion.convert(tiny.FIXTURES / "model_garden_tiny_encoder", tmp_path / "out", "tf1")

    assert "has no vocabulary, so" in capsys.readouterr().err
    assert not (tmp_path / "out" / "vocab.txt").exists()


@pytest.mark.parametrize(
    ("place", "to", "told"),
    [
        ("", "bert_tf", "exists already; choose another place"),
        ("x" * 300, "bert_tf", "cannot write .* .File name too long.; choose another"),
        ("out", "onnx", "unknown format 'onnx'; choose one of bert_tf, hugging"),
    ],
)
def test_an_unusable_path_or_format_is_refused(tmp_path, place, to, told):
    source = tiny.FIXTURES / "tf_hub_tiny"
    tiny.refused(told, conversion.convert, source, tmp_path / place, to)


def test_a_conversion_that_fails_leaves_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(huggingface, "_config", lambda *arguments: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        conversion.save(tiny.make("encoder"), tmp_path / "out", "huggingface")

    assert list(tmp_path.iterdir()) == []


def test_the_command_converts(tmp_path, capsys):
    source = str(tiny.FIXTURES / "google_tiny_squad")

    assert main(["convert", source, str(tmp_path / "out"), "--to", "huggingface"]) == 0

    assert capsys.readouterr().err == (
        f"{source}: 33 weights read; 82 slot variables of the optimizer skipped\n"
    )
    assert reading.find(tmp_path / "out").description.model == "QuestionAnswerer"


def test_the_command_reports_a_missing_checkpoint_in_one_line(tmp_path, capsys):
    missing = str(tmp_path / "missing")

    assert main(["convert", missing, str(tmp_path / "out"), "--to", "tf1"]) == 2
    assert capsys.readouterr().err == (
        f"bert-tf: error: checkpoint not found: {missing}; give a folder, or a name "
        "on the Hugging Face Hub such as google-bert/bert-base-uncased\n"
    )
