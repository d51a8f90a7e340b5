"""DistilBERT and ELECTRA: written and read, trained, exported, and what is refused by its key.

That they compute what transformers computes is tested in test_others.py.
"""

import json
import shutil

import numpy as np
import pytest

import bert_tf
from bert_tf import EncoderConfig, UserError
from bert_tf.checkpoints import conversion, reading, tensors
from bert_tf.checkpoints.description import describe
from bert_tf.cli.parser import main
from tests import tiny as small
from tests.checkpoints import test_others as others
from tests.checkpoints import tiny_models as tiny

FOLDER = tiny.FIXTURES / "huggingface_heads"
SIZES = {"DistilBert": tiny.DISTILBERT, "Electra": tiny.ELECTRA}
KINDS = {
    "encoder": "Model",
    "masked_lm": "ForMaskedLM",
    "filler": "ForMaskedLM",
    "classifier": "ForSequenceClassification",
    "tokens": "ForTokenClassification",
    "span": "ForQuestionAnswering",
    "choice": "ForMultipleChoice",
}
TEXTS = ["a b c", "d ab .", "c d"]
CLASSIFIERS = ["DistilBertForSequenceClassification", "ElectraForSequenceClassification"]


@pytest.mark.parametrize("family", SIZES)
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_written_has_the_tensors_that_transformers_writes(tmp_path, kind, family):
    name = family + KINDS[kind]
    # In the fixture, ELECTRA's classifier has embeddings of the encoder's width.
    sizes = SIZES[family] | ({"embedding_size": 0} if name in CLASSIFIERS else {})
    conversion.save(tiny.make(kind, **sizes), tmp_path / "out", "huggingface")

    ours, theirs = (
        tensors.open_file(folder / "model.safetensors").shapes
        for folder in (tmp_path / "out", FOLDER / name)
    )
    assert ours.keys() == theirs.keys()
    classes = {"classifier.weight", "classifier.bias"}
    assert all(ours[each] == theirs[each] for each in ours.keys() - classes)
    written = json.loads((tmp_path / "out" / "config.json").read_text())
    config = json.loads((FOLDER / name / "config.json").read_text())
    assert (written["architectures"], written["model_type"]) == ([name], config["model_type"])
    # Only labels and bert_tf's own keys may be missing in the file of transformers.
    assert written.keys() - config.keys() <= {"bilstm", "bert_tf", "label2id", "id2label"}


@pytest.mark.parametrize("family", SIZES)
@pytest.mark.parametrize("kind", ["encoder", "pretrainer", "classifier", "follower", "embedder"])
def test_a_model_comes_back_as_it_was(tmp_path, kind, family):
    model = tiny.make(kind, **SIZES[family])
    to = "sentence_transformers" if kind == "embedder" else "huggingface"
    conversion.save(model, tmp_path / "out", to)

    back, report = tiny.load(tmp_path / "out")
    assert (report.new, report.ignored, report.notes) == ((), (), ())
    tiny.assert_equal(back, model)
    assert reading.find(tmp_path / "out").description.differing(describe(model)) == {}


@pytest.mark.parametrize("to", ["tf1", "model_garden"])
def test_formats_that_have_only_bert_refuse_the_others(tmp_path, to):
    told = "has no electra, only bert; choose huggingface or bert_tf"
    tiny.refused(told, conversion.save, tiny.make("encoder", **tiny.ELECTRA), tmp_path / "a", to)


@pytest.mark.parametrize(
    ("name", "dropout"),
    [
        ("DistilBertForSequenceClassification", 0.25),
        ("DistilBertForQuestionAnswering", 0.15),
        ("DistilBertForMultipleChoice", 0.2),
        ("DistilBertForTokenClassification", None),
        ("ElectraForMultipleChoice", 0.3),
        ("BertForQuestionAnswering", None),
    ],
)
def test_the_dropout_of_a_head_is_that_of_its_class(tmp_path, name, dropout):
    folder = tiny.copied(f"huggingface_heads/{name}", tmp_path / "in")
    tiny.change(folder / "config.json", classifier_dropout=0.4)
    assert reading.find(folder).description.head["dropout"] == dropout
    conversion.convert(folder, tmp_path / "out", "huggingface")
    assert reading.find(tmp_path / "out").description.head["dropout"] == dropout
    if dropout and name == "DistilBertForQuestionAnswering":
        model, _ = tiny.load(folder)
        inputs = {each: np.ones((1, 7), np.int32) for each in tiny.INPUTS}
        training = [model(inputs, training=True)["start"].numpy() for _ in range(8)]
        assert any(not np.array_equal(each, training[0]) for each in training)


def test_keys_that_config_json_leaves_out_have_the_defaults_of_transformers(tmp_path):
    folder = tiny.copied("huggingface_heads/DistilBertModel", tmp_path / "distilbert")
    path = folder / "config.json"
    # transformers takes BERT's names of these three too.
    tiny.change(path, "dim", "n_layers", hidden_size=8, num_hidden_layers=2, layer_norm_eps=0.5)
    assert reading.find(folder).encoder == reading.find(FOLDER / "DistilBertModel").encoder
    tiny.change(path, "num_hidden_layers")
    tiny.refused("for 2 layers, but its configuration says 6", reading.find, folder)
    folder = tiny.copied("huggingface_heads/ElectraModel", tmp_path / "electra")
    tiny.change(folder / "config.json", "embedding_size")
    tiny.refused(r"shape \[14, 6\], but .* has shape \[14, 128\]", reading.find, folder)


@pytest.mark.parametrize(
    ("problem", "labels", "model"),
    [
        ("multi_label_classification", 3, "MultiLabelClassifier"),
        ("regression", 3, "MultiTargetRegressor"),
        ("regression", 1, "TextRegressor"),
    ],
)
@pytest.mark.parametrize("name", CLASSIFIERS)
def test_the_problem_type_chooses_the_task(tmp_path, name, problem, labels, model):
    folder = tiny.copied(f"huggingface_heads/{name}", tmp_path)
    arrays = tensors.load(folder / "model.safetensors")
    last = "classifier" if name.startswith("Distil") else "classifier.out_proj"
    arrays |= {f"{last}.{part}": arrays[f"{last}.{part}"][:labels] for part in ("weight", "bias")}
    tensors.save(folder / "model.safetensors", arrays)
    id2label = {str(number): f"label {number}" for number in range(labels)}
    tiny.change(folder / "config.json", problem_type=problem, id2label=id2label)
    assert type(tiny.load(folder)[0]).__name__ == model


@pytest.mark.end_to_end
@pytest.mark.parametrize("name", CLASSIFIERS)
def test_answers_are_the_same_in_every_form(tmp_path, name):
    model = bert_tf.load(FOLDER / name)
    expected = [answer["probabilities"] for answer in model.predict(TEXTS, verbose=0)]
    model.save(tmp_path / "model.keras")
    model.export(tmp_path / "saved_model")
    model.export(tmp_path / "model.tflite", format="litert")
    for path in ("model.keras", "saved_model", "model.tflite"):
        found = bert_tf.load(tmp_path / path).predict(TEXTS, verbose=0)
        for answer, right in zip(found, expected, strict=True):
            assert answer["probabilities"] == pytest.approx(right, abs=tiny.TOLERANCE)


@pytest.mark.end_to_end
@pytest.mark.parametrize("family", SIZES)
def test_a_run_fine_tunes_it(tmp_path, family):
    fields = SIZES[family] | {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    vocabulary = bert_tf.Tokenizer(small.VOCABULARY)
    config = EncoderConfig(len(small.VOCABULARY), max_position_embeddings=32, **fields)
    conversion.save(bert_tf.Encoder(config), tmp_path / "start", "huggingface", vocabulary)
    path = small.write_finetuning(tmp_path)
    text = path.read_text().replace(small.MODEL, "init: {checkpoint: start}\n")
    path.write_text(text.replace("vocab: vocab.txt", "lower_case: true").replace("8, b", "1, b"))
    assert main(["finetune", str(path), "--out", str(tmp_path / "run")]) == 0
    assert bert_tf.load(tmp_path / "run").encoder.config == config


@pytest.mark.end_to_end
def test_an_embedder_of_sentence_transformers_may_be_a_distilbert(tmp_path):
    tiny.copied("huggingface_heads/DistilBertModel", tmp_path)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(FOLDER / CLASSIFIERS[0] / name, tmp_path)
    kinds = {"": "base.modules.transformer.Transformer"}
    kinds["1_Pooling"] = "sentence_transformer.modules.pooling.Pooling"
    modules = [{"path": p, "type": f"sentence_transformers.{k}"} for p, k in kinds.items()]
    (tmp_path / "modules.json").write_text(json.dumps(modules))
    (tmp_path / "1_Pooling").mkdir()
    pooling = {"embedding_dimension": 8, "pooling_mode": "mean"}
    (tmp_path / "1_Pooling" / "config.json").write_text(json.dumps(pooling))

    found = bert_tf.load(tmp_path).predict("a b cd", verbose=0)
    # sentence-transformers 6.2.0 and transformers 5.24.0, from these files.
    expected = [0.12523, -1.07786, -0.39859, 1.63395, 0.52342, 0.63774, -0.86316, -0.35181]
    np.testing.assert_allclose(found, expected, atol=tiny.TOLERANCE)


def test_load_says_that_a_discriminator_is_an_encoder():
    told = "discriminator of an ELECTRA, which bert_tf reads as an encoder, without the head that"
    assert "start training" in tiny.refused(told, bert_tf.load, FOLDER / "ElectraForPreTraining")


@pytest.mark.parametrize(
    ("name", "fields", "told"),
    [
        ("BertModel", {"model_type": "roberta"}, "model_type is 'roberta'; bert_tf reads only"),
        (
            "BertModel",
            {"model_type": ["bert"]},
            r"model_type is \"\['bert'\]\"; bert_tf reads only",
        ),
        ("BertModel", {"position_embedding_type": "relative_key"}, "type is 'relative_key'"),
        ("BertLMHeadModel", {"add_cross_attention": True}, "add_cross_attention is True"),
        ("DistilBertModel", {"is_encoder_decoder": True}, "is_encoder_decoder is True"),
        ("BertModel", {"pruned_heads": {"0": [1]}}, "pruned_heads is {'0': .1.}"),
        ("ElectraForMultipleChoice", {"summary_type": "last"}, "summary_type is 'last'"),
        ("ElectraForMultipleChoice", {"summary_activation": "tanh"}, "activation is 'tanh'"),
    ],
)
def test_another_architecture_is_refused_by_the_key_that_says_so(tmp_path, name, fields, told):
    folder = tiny.copied(f"huggingface_heads/{name}", tmp_path)
    tiny.change(folder / "config.json", **fields)
    assert "config.json: " in tiny.refused(told, reading.find, folder)


def test_keys_with_their_usual_values_are_read(tmp_path):
    usual = {"position_embedding_type": None, "add_cross_attention": False, "pruned_heads": {}}
    folder = tiny.copied("huggingface_heads/BertModel", tmp_path)
    tiny.change(folder / "config.json", embedding_size=3, **usual)
    assert type(tiny.load(folder)[0]).__name__ == others.TRANSFORMERS["BertModel"]


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"type_vocab_size": 0}, "type_vocab_size is 0, but the model_type is bert"),
        ({"model_type": "distilbert"}, "it must be 0 for distilbert, and above 0 for all others"),
        ({"embedding_size": 4}, "embedding_size is 4, but the embeddings of a bert are as wide"),
        ({"model_type": "elektra"}, "unknown model_type 'elektra'; did you mean electra?"),
    ],
)
def test_a_model_has_the_parts_of_its_type(fields, told):
    with pytest.raises(UserError, match=told):
        EncoderConfig(**fields)
