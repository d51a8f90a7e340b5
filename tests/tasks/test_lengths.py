"""How many tokens a model reads: what is cut is said once, with the number of inputs."""

import json
import re

import pytest

import bert_tf
from bert_tf.cli.parser import main
from tests import tiny
from tests.checkpoints import tiny_models
from tests.tasks import tiny_objects

LONG, SHORT = "the cat sat on the mat " * 8, "the cat sat"


@pytest.mark.parametrize(
    ("make", "columns", "cut"),
    [
        # [CLS] and [SEP] leave room for 6 pieces, and for 5 of a pair.
        (tiny_objects.classifier, [["cat " * 6, "cat " * 7, LONG, SHORT]], 2),
        (tiny_objects.regressor, [["cat " * 3, "cat " * 3], ["dog " * 2, b"dog " * 3]], 1),
        (tiny_objects.chooser, [["cat"] * 2, [["a", LONG], ["a", "dog ran"]]], 1),
        (tiny_objects.reranker, [[LONG, "cat"], [[], ["a"]]], 1),
        # Each text is read alone.
        (tiny_objects.embedder, [[LONG, SHORT, "a"], [LONG, "a", LONG]], 2),
        (
            lambda **given: tiny_objects.embedder(
                prompts={"q": "the dog : "}, default_prompt="q", **given
            ),
            [["cat", "cat " * 4]],
            1,
        ),
    ],
)
def test_rows_with_more_tokens_than_are_read_are_counted(make, columns, cut):
    assert make(max_length=8).count_cut(columns)[0] == cut


def test_models_that_read_windows_cut_nothing():
    for make in (tiny_objects.answerer, tiny_objects.tagger, tiny_objects.filler):
        assert make().count_cut([[LONG]])[0] == 0


@pytest.mark.end_to_end
def test_what_is_cut_is_said_once_in_each_call(capsys):
    model = tiny_objects.classifier(max_length=8)
    texts, labels = [LONG, SHORT] * 2, ["good", "bad"] * 2
    said = "2 of 4 inputs have more than 8 tokens (max_length); the ends of their texts are not"
    validation = ([LONG], ["good"])
    for call in (
        lambda: model.fit(texts, labels, epochs=2, verbose=0, validation_data=validation),
        lambda: model.predict(texts, verbose=0),
        lambda: model.evaluate(texts, labels, verbose=0),
    ):
        call()
        assert capsys.readouterr().err.count(" inputs have more than") == 1
    model.predict(texts, verbose=0)
    assert said in capsys.readouterr().err
    model.predict([SHORT], verbose=0)
    assert capsys.readouterr().err == ""


def test_the_command_line_says_once_what_is_cut(tmp_path, capsys):
    model = tiny_objects.classifier(max_length=8)
    model.name_classes(["bad", "good"])
    model.save(tmp_path / "model.keras")
    file = tmp_path / "texts.txt"
    file.write_text(f"{LONG}\n{SHORT}\n{LONG}\n", encoding="utf-8")
    assert main(["predict", str(tmp_path / "model.keras"), "--input", str(file)]) == 0
    assert capsys.readouterr().err.count("2 of 3 inputs have more than 8 tokens") == 1


def test_a_head_of_a_checkpoint_that_names_no_length_reads_all_positions(tmp_path, capsys):
    encoder = tiny_objects.encoder(max_position_embeddings=160)
    model = bert_tf.TextClassifier(encoder, tiny.tokenizer(), ["bad", "good"])
    model.save_checkpoint(tmp_path / "theirs", "huggingface")
    config = tmp_path / "theirs" / "config.json"
    own = json.loads(config.read_text())
    del own["bert_tf"]
    config.write_text(json.dumps(own))
    fields = tmp_path / "theirs" / "tokenizer_config.json"
    for longest, expected in ((10**30, 160), (96, 96)):
        tiny_models.change(fields, model_max_length=longest)
        assert bert_tf.load(tmp_path / "theirs").max_length == expected
        said = f"reads {expected} tokens of an input, special ones included\n"
        assert capsys.readouterr().err.endswith(said)
        # A later `fit` keeps that length, and a new head has its own.
        again = bert_tf.TextClassifier.from_checkpoint(tmp_path / "theirs")
        new = bert_tf.TextRegressor.from_checkpoint(tmp_path / "theirs")
        assert (again.max_length, new.max_length) == (expected, 128)
        capsys.readouterr()


def test_a_check_says_what_a_checkpoint_becomes(tmp_path, capsys):
    tiny_models.copied("huggingface_heads/BertForSequenceClassification", tmp_path)
    tiny_models.change(tmp_path / "config.json", spare=3)
    assert main(["convert", str(tmp_path), "--check"]) == 0
    said = dict(re.findall(r"(\w+) +(.+)\n", capsys.readouterr().out))
    assert said["format"] == "transformers"
    assert said["head"].startswith("TextClassifier of ")
    assert said["length"] == "7 tokens of an input"
    assert said["lost"] == "config.json: spare = 3 is not known and has no effect"
    assert said["tokenizer"].startswith("14 pieces, lower_case false, ")
    assert said["next"] == f"bert-tf predict {tmp_path} --input FILE"

    tiny_models.change(tmp_path / "tokenizer_config.json", word_tokenizer_type="mecab")
    assert main(["convert", str(tmp_path), "--check"]) == 2
    error = capsys.readouterr().err
    assert "word_tokenizer_type is 'mecab'; bert_tf has only BERT's own" in error
    assert error.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--check", "--to", "tf1"], "--check writes nothing; remove DST and --to, or --check"),
        ([], "the following arguments are required: DST; see bert-tf convert --help"),
    ],
)
def test_a_check_writes_nothing(arguments, told, capsys):
    assert main(["convert", "a", *arguments]) == 2
    assert told in capsys.readouterr().err


@pytest.mark.end_to_end
@pytest.mark.parametrize("form", ["huggingface", "tf1", "model_garden", "sentence_transformers"])
def test_every_format_says_once_what_it_ignores(tmp_path, capsys, form):
    make = tiny_objects.embedder if form == "sentence_transformers" else tiny_objects.regressor
    make().save_checkpoint(tmp_path / "theirs", form)
    file = "bert_config.json" if form in ("tf1", "model_garden") else "config.json"
    tiny_models.change(tmp_path / "theirs" / file, spare=3)
    capsys.readouterr()
    bert_tf.load(tmp_path / "theirs")
    assert capsys.readouterr().err.count("spare = 3 is not known and has no effect") == 1
    assert main(["export", str(tmp_path / "theirs"), "--out", str(tmp_path / "out")]) == 0
    assert capsys.readouterr().err.count("spare = 3 is not known and has no effect") == 1
