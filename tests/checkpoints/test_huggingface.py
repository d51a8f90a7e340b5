"""Hugging Face folders: what transformers wrote is read, and what is written is what it writes.

The fixtures are of `tests/fixtures/make_huggingface_heads.py` and `make_huggingface_tf.py`.
"""

import json
import shutil

import numpy as np
import pytest
import safetensors.numpy
import tensorflow as tf

import bert_tf
from bert_tf.checkpoints import conversion, reading, tensors
from bert_tf.errors import UserError
from bert_tf.io.vocabulary import TokenizerSettings
from bert_tf.text import Tokenizer
from tests.checkpoints import test_others as others
from tests.checkpoints import tiny_models as tiny

FOLDER = tiny.FIXTURES / "huggingface_heads"
TENSORFLOW = tiny.FIXTURES / "huggingface_tf"
KINDS = {
    "encoder": "BertModel",
    "pretrainer": "BertForPreTraining",
    "masked_lm": "BertForMaskedLM",
    "classifier": "BertForSequenceClassification",
    "tokens": "BertForTokenClassification",
    "span": "BertForQuestionAnswering",
    "choice": "BertForMultipleChoice",
}


def test_a_file_of_a_tensorflow_class_is_read_where_a_torch_file_is_too(tmp_path):
    tiny.copied("huggingface_tf/BertModel", tmp_path)
    (tmp_path / "pytorch_model.bin").write_bytes(b"PK")

    tokenizer = Tokenizer.from_checkpoint(tmp_path)
    assert tiny.load(tmp_path)[1].ignored == ()
    assert (tokenizer.vocabulary, tokenizer.lower_case) == (tiny.PIECES, False)


def test_what_tensorflow_classes_wrote_converts_to_files_that_torch_reads(tmp_path):
    source = TENSORFLOW / "BertForSequenceClassification"
    conversion.convert(source, tmp_path / "out", "huggingface")

    ours = tensors.open_file(tmp_path / "out" / "model.safetensors").shapes
    assert ours == tensors.open_file(FOLDER / source.name / "model.safetensors").shapes
    assert reading.find(tmp_path / "out").description.labels == ("good", "bad", "neither")


@pytest.mark.parametrize("name", [each for each in others.TRANSFORMERS if each != "BertModel"])
def test_a_class_whose_head_is_not_among_the_weights_is_an_encoder(tmp_path, name):
    folder = tiny.copied(f"huggingface_heads/{name}", tmp_path / "headless")
    arrays = tensors.load(folder / "model.safetensors")
    encoder = {key: array for key, array in arrays.items() if key.startswith("bert.")}
    assert len(encoder) < len(arrays)
    tensors.save(folder / "model.safetensors", encoder)

    assert reading.find(folder).description.model == "Encoder"
    conversion.convert(folder, tmp_path / "out", "model_garden")
    assert reading.find(tmp_path / "out").description.model == "Encoder"


@pytest.mark.parametrize("architectures", [None, ["BertForNER"]])
@pytest.mark.parametrize("name", ["BertForSequenceClassification", "BertForTokenClassification"])
def test_without_a_known_class_the_pooler_distinguishes_texts_from_tokens(
    tmp_path, name, architectures
):
    tiny.copied(f"huggingface_heads/{name}", tmp_path)
    tiny.change(tmp_path / "config.json", architectures=architectures)

    assert reading.find(tmp_path).description.model == others.TRANSFORMERS[name]


def test_the_old_names_of_layer_norms_and_of_the_output_bias_are_read(tmp_path):
    folder = tiny.copied("huggingface_heads/BertForMaskedLM", tmp_path)
    arrays = tensors.load(folder / "model.safetensors")
    renamed = {
        name.replace("LayerNorm.weight", "LayerNorm.gamma")
        .replace("LayerNorm.bias", "LayerNorm.beta")
        .replace("cls.predictions.bias", "cls.predictions.decoder.bias"): array
        for name, array in arrays.items()
    }
    renamed["bert.embeddings.position_ids"] = np.arange(7)[None]
    renamed["cls.predictions.decoder.weight"] = arrays["bert.embeddings.word_embeddings.weight"]
    tensors.save(folder / "model.safetensors", renamed)

    model, report = tiny.load(folder)

    assert (report.new, report.ignored) == (others.POOLER, ())
    original = tiny.weights(tiny.load(FOLDER / "BertForMaskedLM")[0])
    for name in report.loaded:
        np.testing.assert_array_equal(tiny.weights(model)[name], original[name])


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_precision_weights_are_read(tmp_path, dtype):
    folder = tiny.copied("huggingface_heads/BertModel", tmp_path)
    arrays = tensors.load(folder / "model.safetensors")
    half = {name: tf.cast(array, dtype).numpy() for name, array in arrays.items()}
    tensors.save(folder / "model.safetensors", half)

    model, _ = tiny.load(folder)

    found = model.embeddings.word_embeddings.numpy()
    expected = half["embeddings.word_embeddings.weight"].astype(np.float32)
    np.testing.assert_array_equal(found, expected)


def test_the_tokenizer_is_read_from_tokenizer_json_where_there_is_no_vocab_txt():
    found = Tokenizer.from_checkpoint(FOLDER / "BertModel")

    assert found.vocabulary == tiny.PIECES
    assert not found.lower_case


WHOLE = {"special_tokens": "whole", "longest_word": 100, "normalizer": "huggingface"}


@pytest.mark.parametrize(
    ("fields", "settings"),
    [
        ({"do_lower_case": True}, {}),
        ({"do_lower_case": True, "strip_accents": False}, {"strip_accents": False}),
        (
            {"strip_accents": True, "tokenize_chinese_chars": False},
            {"strip_accents": True, "split_chinese": False},
        ),
        (
            {"added_tokens_decoder": {"14": {"content": "[E11]"}}},
            {"added_tokens": ["[E11]"]},
        ),
    ],
)
def test_texts_are_read_as_the_tokenizers_files_say(tmp_path, fields, settings):
    tiny.copied("huggingface_heads/BertModel", tmp_path)
    tiny.change(tmp_path / "tokenizer_config.json", **fields)

    assert reading.find(tmp_path).description.tokenizer == WHOLE | settings
    found = Tokenizer.from_checkpoint(tmp_path).settings
    assert found.besides_casing == WHOLE | settings
    assert found.lower_case is fields.get("do_lower_case", False)


def test_added_tokens_follow_the_vocabulary(tmp_path):
    tiny.copied("huggingface_heads/BertModel", tmp_path)
    added = tmp_path / "added_tokens.json"
    added.write_text(json.dumps({"[E12]": 15, "[E11]": 14}))
    found = Tokenizer.from_checkpoint(tmp_path)
    assert found.vocabulary == (*tiny.PIECES, "[E11]", "[E12]")
    assert found.tokenize("a[E12] [SEP]").numpy().tolist() == [5, 15, 3]

    added.write_text(json.dumps({"[E11]": 12}))
    with pytest.raises(UserError, match=r"added token '\[E11\]' has the id 12, which another"):
        Tokenizer.from_checkpoint(tmp_path)


def test_an_added_token_with_normalized_false_is_found_as_it_is_written(tmp_path):
    tiny.copied("huggingface_heads/BertModel", tmp_path)
    decoder = {"14": {"content": "[E11]", "normalized": False, "lstrip": True}}
    tiny.change(
        tmp_path / "tokenizer_config.json", do_lower_case=True, added_tokens_decoder=decoder
    )
    assert reading.find(tmp_path).notes == ()
    found = Tokenizer.from_checkpoint(tmp_path)
    assert found.settings.exact_tokens == ("[E11]",)
    assert found.tokenize("a [E11][e11]").numpy().tolist()[:3] == [5, 14, 1]

    tiny.change(
        tmp_path / "tokenizer_config.json",
        added_tokens_decoder={"5": {"content": "a", "normalized": False}},
    )
    with pytest.raises(UserError, match="'a' with normalized false is also in the vocabulary"):
        Tokenizer.from_checkpoint(tmp_path)


def test_special_tokens_without_ids_and_special_tokens_that_are_split(tmp_path):
    tiny.copied("huggingface_heads/BertModel", tmp_path)
    map_file = tmp_path / "special_tokens_map.json"
    map_file.write_text(
        '{"additional_special_tokens": [{"content": "[E11]"}], "bos_token": "[CLS]"}'
    )
    found = Tokenizer.from_checkpoint(tmp_path)
    assert (found.vocabulary[-1], found.settings.exact_tokens) == ("[E11]", ("[E11]",))

    tiny.change(tmp_path / "tokenizer_config.json", split_special_tokens=True)
    found = Tokenizer.from_checkpoint(tmp_path).settings
    assert (found.special_tokens, found.exact_tokens) == ("text", ())


BERT = {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True}
UNSTRIPPED = BERT | {"lowercase": False, "strip_accents": False}
LOWERCASE, STRIP, NFC, NFD = ({"type": name} for name in ("Lowercase", "Strip", "NFC", "NFD"))
WORDS = [{"type": "WhitespaceSplit"}, {"type": "Punctuation", "behavior": "Isolated"}]


def sequence(part: str, *steps: dict) -> dict:
    return {part: {"type": "Sequence", f"{part.replace('_', '')}s": [*steps]}}


def with_tokenizer_json(folder, fields):
    """A copy of BertModel whose settings are only in tokenizer.json."""
    tiny.copied("huggingface_heads/BertModel", folder)
    (folder / "tokenizer_config.json").write_text("{}")
    tiny.change(folder / "tokenizer.json", **fields)
    return folder


# What tokenizers 0.23.3 gives for such steps equals these settings on 9,400 texts of WNUT 17,
# WikiText-2 and SQuAD, in ids and offsets.
@pytest.mark.parametrize(
    ("fields", "lower_case", "settings"),
    [
        (sequence("normalizer", NFC, BERT | {"lowercase": True}), True, {}),
        (
            sequence("normalizer", UNSTRIPPED, STRIP, LOWERCASE),
            True,
            {"strip_accents": False},
        ),
        (
            sequence("normalizer", UNSTRIPPED | {"handle_chinese_chars": False}),
            False,
            {"split_chinese": False},
        ),
        (sequence("pre_tokenizer", *WORDS), False, {}),
        (sequence("pre_tokenizer", {"type": "BertPreTokenizer"}, WORDS[0]), False, {}),
    ],
)
def test_steps_of_tokenizer_json_that_amount_to_berts_are_read(
    tmp_path, fields, lower_case, settings
):
    found = reading.find(with_tokenizer_json(tmp_path, fields))
    assert (found.notes, found.description.tokenizer) == ((), WHOLE | settings)
    assert Tokenizer.from_checkpoint(found).lower_case is lower_case


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"normalizer": {"type": "NFKC"}}, "normalizer: NFKC is {'type': 'NFKC'}; bert_tf cleans"),
        ({"normalizer": {"type": "Later"}}, "normalizer: Later is {'type': 'Later'}; bert_tf"),
        (sequence("normalizer", BERT | {"lowercase": True}, NFC), "normalizer is {.*decomposes"),
        (sequence("normalizer", NFD), "normalizer is {.*decomposes"),
        (sequence("normalizer", {"type": "StripAccents"}, NFD), "normalizer is {.*decomposes"),
        ({"pre_tokenizer": {"type": "Whitespace"}}, "pre_tokenizer: Whitespace is {"),
        ({"pre_tokenizer": None}, "pre_tokenizer is None; bert_tf cuts words as"),
        ({"pre_tokenizer": WORDS[0]}, "pre_tokenizer is {'type': 'WhitespaceSplit'}; bert_tf"),
        (
            sequence("pre_tokenizer", WORDS[0], WORDS[1] | {"behavior": "Removed"}),
            "Punctuation: behavior is 'Removed'",
        ),
        (
            {"post_processor": {"type": "ByteLevel"}},
            "post_processor is {'type': 'ByteLevel'}; bert_",
        ),
        ({"post_processor": {"type": "TemplateProcessing"}}, "post_processor is {'type': 'Templ"),
        (
            {"post_processor": {"type": "BertProcessing", "sep": ["</s>", 3], "cls": ["[CLS]", 2]}},
            "post_processor is {'type': 'BertProcessing'",
        ),
        ({"model": {"type": "BPE"}}, "model: type is 'BPE'; bert_tf reads only WordPiece"),
        ({"model": {"unk_token": "<unk>"}}, "model: unk_token is '<unk>'; bert_tf supports only"),
        ({"model": {"continuing_subword_prefix": ""}}, "continuing_subword_prefix is ''; bert_tf"),
        (
            {"added_tokens": [{"id": 14, "content": "x", "single_word": True}]},
            "added_tokens: single_word is True; bert_tf finds added tokens inside words",
        ),
    ],
)
def test_steps_of_tokenizer_json_that_differ_are_refused_with_the_tokenizer(tmp_path, fields, told):
    folder = with_tokenizer_json(tmp_path, fields)
    assert reading.find(folder).description.model == "Encoder"
    tiny.refused(told, Tokenizer.from_checkpoint, folder)


def test_what_steps_of_tokenizer_json_do_differently_is_printed(tmp_path):
    steps = sequence("normalizer", NFD, LOWERCASE, {"type": "StripAccents"})
    notes = reading.find(with_tokenizer_json(tmp_path, steps)).notes
    assert len(notes) == 2
    assert "drops all marks" in notes[0] and "keeps control characters" in notes[1]


def test_keys_that_are_unknown_are_printed_once_and_prefixes_of_weights_are_taken_off(
    tmp_path, capsys
):
    tiny.copied("huggingface_heads/BertForSequenceClassification", tmp_path)
    tiny.change(tmp_path / "config.json", spare=3, nothing=None, num_beams=4)
    weights = safetensors.numpy.load_file(tmp_path / "model.safetensors")
    renamed = {f"module.{name}": each for name, each in weights.items()}
    safetensors.numpy.save_file(renamed, tmp_path / "model.safetensors", {"format": "pt"})
    bert_tf.load(tmp_path)
    assert capsys.readouterr().err.count("spare = 3 is not known and has no effect") == 1


def test_an_added_token_whose_id_is_no_number_is_left_out(tmp_path):
    tiny.copied("huggingface_heads/BertModel", tmp_path)
    decoder = {"9" * 5000: {"content": "[E11]"}, "x": {"content": "[E12]"}}
    tiny.change(tmp_path / "tokenizer_config.json", added_tokens_decoder=decoder)
    assert Tokenizer.from_checkpoint(tmp_path).vocabulary == tiny.PIECES


@pytest.mark.parametrize("longest", [0, 1000, "100", True])
def test_a_longest_word_that_no_tokenizer_has_is_refused(tmp_path, longest):
    tiny.copied("huggingface_heads/BertModel", tmp_path)
    path = tmp_path / "tokenizer.json"
    fields = json.loads(path.read_text())
    fields["model"]["max_input_chars_per_word"] = longest
    path.write_text(json.dumps(fields))
    with pytest.raises(UserError, match="longest_word of the tokenizer is"):
        reading.find(tmp_path)


@pytest.mark.parametrize("form", ["huggingface", "bert_tf", "tf1", "model_garden"])
def test_a_tokenizers_settings_pass_through_every_format(tmp_path, form):
    settings = TokenizerSettings(
        lower_case=True, strip_accents=False, split_chinese=False, added_tokens=("[E11]",)
    )
    tokenizer = Tokenizer.of((*tiny.PIECES[:-1], "[E11]"), settings)
    conversion.save(tiny.make("encoder"), tmp_path / "out", form, tokenizer)
    assert Tokenizer.from_checkpoint(tmp_path / "out").settings == settings


def test_words_that_another_program_cuts_are_refused(tmp_path):
    tiny.copied("huggingface_heads/BertModel", tmp_path)
    tiny.change(tmp_path / "tokenizer_config.json", word_tokenizer_type="mecab")
    with pytest.raises(UserError, match="word_tokenizer_type is 'mecab'; bert_tf has only BERT's"):
        Tokenizer.from_checkpoint(tmp_path)


def test_a_head_reads_as_many_tokens_as_its_tokenizer_says(tmp_path):
    tiny.copied("huggingface_heads/BertForSequenceClassification", tmp_path)
    for longest, expected in ((7, 7), (10**30, 128), (10**6, None)):
        tiny.change(tmp_path / "tokenizer_config.json", model_max_length=longest)
        model = bert_tf.load(tmp_path)
        positions = model.encoder.config.max_position_embeddings
        assert model.max_length == min(expected or positions, positions)


def write_ignored_weight(folder):
    path = folder / "model.safetensors"
    weights = safetensors.numpy.load_file(path) | {"spare": np.zeros(2, np.float32)}
    safetensors.numpy.save_file(weights, path, {"format": "pt"})


def test_load_reports_what_a_checkpoint_has_besides_its_weights(tmp_path, capsys):
    tiny.copied("huggingface_heads/BertForSequenceClassification", tmp_path)
    bert_tf.load(tmp_path)
    assert "weights loaded" not in capsys.readouterr().err
    write_ignored_weight(tmp_path)
    bert_tf.load(tmp_path)
    assert "ignored: spare" in capsys.readouterr().err


def test_weights_that_are_no_numbers_are_refused(tmp_path):
    tiny.copied("huggingface_heads/BertForSequenceClassification", tmp_path)
    path = tmp_path / "model.safetensors"
    weights = safetensors.numpy.load_file(path)
    weights["classifier.bias"][0] = np.nan
    safetensors.numpy.save_file(weights, path, {"format": "pt"})
    with pytest.raises(UserError, match="the weight classifier.bias contains NaN or infinity"):
        bert_tf.load(tmp_path)


def test_an_output_matrix_that_is_not_the_word_embeddings_is_warned_of(tmp_path):
    tiny.copied("huggingface_heads/BertForMaskedLM", tmp_path)
    tiny.change(tmp_path / "config.json", tie_word_embeddings=False)

    assert tiny.load(tmp_path)[1].notes == (
        "warning: config.json: tie_word_embeddings is False; a separate output matrix is ignored; "
        "the word embeddings are used instead",
    )


def test_a_head_for_several_labels_at_once_is_known_by_its_problem_type(tmp_path):
    tiny.copied("huggingface_heads/BertForSequenceClassification", tmp_path)
    tiny.change(tmp_path / "config.json", problem_type="multi_label_classification")
    model, report = tiny.load(tmp_path)

    assert (type(model).__name__, report.new, report.ignored) == ("MultiLabelClassifier", (), ())
    description = reading.find(tmp_path).description
    assert len(description.labels or range(description.head["num_classes"])) == len(model.labels)


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_written_has_the_tensors_that_transformers_writes(tmp_path, kind):
    conversion.save(tiny.make(kind), tmp_path / "out", "huggingface")

    ours = tensors.open_file(tmp_path / "out" / "model.safetensors").shapes
    theirs = tensors.open_file(FOLDER / KINDS[kind] / "model.safetensors").shapes
    classes = {"classifier.weight", "classifier.bias"}
    assert ours.keys() == theirs.keys()
    for name in ours.keys() - classes:
        assert ours[name] == theirs[name], name
    config = json.loads((tmp_path / "out" / "config.json").read_text())
    assert config["architectures"] == [KINDS[kind]]
    assert config["model_type"] == "bert"


@pytest.mark.parametrize(
    ("kind", "architecture"), [("masked_lm", "BertLMHeadModel"), ("encoder", "BertModel")]
)
def test_left_to_right_attention_is_written_as_a_decoder(tmp_path, kind, architecture):
    model = tiny.make(kind, attention="left_to_right")
    conversion.save(model, tmp_path / "out", "huggingface")

    config = json.loads((tmp_path / "out" / "config.json").read_text())
    assert (config["is_decoder"], config["architectures"]) == (True, [architecture])
    # transformers pools the first token.
    own = {"encoder": {"pools_first": False}} if kind == "encoder" else None
    assert config.get("bert_tf") == own


def test_labels_and_tokenizer_are_written(tmp_path):
    given = Tokenizer(tiny.PIECES, lower_case=False)
    model = tiny.make("classifier")
    conversion.save(model, tmp_path / "out", "huggingface", given)

    config = json.loads((tmp_path / "out" / "config.json").read_text())
    assert config["id2label"] == {"0": "nay", "1": "yea", "2": "perhaps"}
    assert config["label2id"] == {"nay": 0, "yea": 1, "perhaps": 2}
    assert (tmp_path / "out" / "vocab.txt").read_text().split("\n")[:-1] == list(tiny.PIECES)
    fields = json.loads((tmp_path / "out" / "tokenizer_config.json").read_text())
    assert fields["do_lower_case"] is False
    assert fields["model_max_length"] == 7


def test_a_torch_file_without_torch_is_told_in_one_line(tmp_path, monkeypatch):
    shutil.copy(FOLDER / "BertModel" / "config.json", tmp_path)
    (tmp_path / "pytorch_model.bin").write_bytes(b"PK")
    monkeypatch.setitem(__import__("sys").modules, "torch", None)

    tiny.refused("torch is not installed; install torch, or convert", reading.find, tmp_path)


def test_torch_weights_are_read(tmp_path):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    shutil.copy(FOLDER / "BertModel" / "config.json", tmp_path)
    arrays = tensors.load(FOLDER / "BertModel" / "model.safetensors")
    torch.save(
        {name: torch.tensor(array) for name, array in arrays.items()},
        tmp_path / "pytorch_model.bin",
    )

    tiny.assert_equal(tiny.load(tmp_path)[0], tiny.load(FOLDER / "BertModel")[0])


def test_a_torch_file_that_would_run_code_is_refused_and_runs_none(tmp_path):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    ran = tmp_path / "ran"

    class Hostile:
        def __reduce__(self):
            return (ran.touch, ())

    shutil.copy(FOLDER / "BertModel" / "config.json", tmp_path)
    torch.save({"weight": Hostile()}, tmp_path / "pytorch_model.bin")

    tiny.refused("not a file that contains only torch weights", reading.find, tmp_path)
    assert not ran.exists()
