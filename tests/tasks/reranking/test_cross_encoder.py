"""Cross-encoders of sentence-transformers answer as they do there (pinned, 1e-5)."""

import json
import shutil
from pathlib import Path

import pytest

import bert_tf
from tests.tasks import tiny_objects as tiny
from tests.tasks.refusals import refusal

# Made by tests/fixtures/make_cross_encoder.py.
FOLDER = Path(__file__).parents[2] / "fixtures" / "cross_encoder"
TOLERANCE = 1e-5


def change(folder, file, **fields):
    """Changes keys of a JSON file; None takes a key away."""
    content = json.loads((folder / file).read_text()) | fields
    kept = {name: value for name, value in content.items() if value is not None}
    (folder / file).write_text(json.dumps(kept))


@pytest.fixture
def copied(tmp_path):
    """A cross-encoder that may be changed."""
    return Path(shutil.copytree(FOLDER / "identity", tmp_path / "copied"))


@pytest.mark.parametrize("activation", ["sigmoid", "identity"])
def test_scores_and_order_are_those_of_the_reference(activation):
    expected = json.loads((FOLDER / activation / "answers.json").read_text())
    model = bert_tf.load(FOLDER / activation)
    assert type(model) is bert_tf.Reranker
    assert model.settings == {"activation": activation, "max_length": 24}
    found = model.predict(*([each[name] for each in expected] for name in ("query", "passages")))
    for one, answer in zip(found, expected, strict=True):
        assert one["scores"] == pytest.approx(answer["scores"], abs=TOLERANCE)
        assert one["order"] == answer["order"]


def without_files_of_version_6(folder):
    for name in ("config_sentence_transformers.json", "modules.json"):
        (folder / name).unlink()


def test_older_versions_name_the_activation_in_config_json(copied):
    without_files_of_version_6(copied)
    assert type(bert_tf.load(copied)) is bert_tf.TextRegressor
    # What versions 4 and 5 write, and what others wrote before.
    name = "torch.nn.modules.linear.Identity"
    for fields in (
        {"sentence_transformers": {"activation_fn": name, "version": "4.1.0"}},
        {"sentence_transformers": None, "sbert_ce_default_activation_function": name},
    ):
        change(copied, "config.json", **fields)
        model = bert_tf.load(copied)
        assert (type(model), model.activation) == (bert_tf.Reranker, "identity")


def test_without_an_activation_it_is_the_sigmoid(copied):
    change(copied, "config_sentence_transformers.json", activation_fn=None)
    assert bert_tf.load(copied).activation == "sigmoid"


def test_an_activation_that_is_not_known_is_refused_unless_another_is_given(copied):
    change(copied, "config_sentence_transformers.json", activation_fn="torch.nn.Tanh")
    assert refusal(bert_tf.load, copied) == (
        "activation must be 'sigmoid' or 'identity', got \"torch.nn.Tanh\""
    )
    assert bert_tf.load(copied, activation="identity").activation == "identity"
    assert bert_tf.Encoder.from_checkpoint(copied).config.hidden_size == 16


def test_a_tokenizer_without_a_length_takes_all_positions(copied):
    change(copied, "tokenizer_config.json", model_max_length=10**30)
    assert bert_tf.load(copied).max_length == 64
    change(copied, "tokenizer_config.json", model_max_length=512)
    assert bert_tf.load(copied).max_length == 64


def test_a_file_that_is_not_json_is_refused(copied):
    (copied / "config_sentence_transformers.json").write_text("{")
    assert "config_sentence_transformers.json" in refusal(bert_tf.load, copied)


def test_an_embedder_of_sentence_transformers_is_no_cross_encoder(copied):
    change(copied, "config_sentence_transformers.json", model_type="SentenceTransformer")
    (copied / "modules.json").unlink()
    assert type(bert_tf.load(copied)) is bert_tf.TextRegressor


@pytest.mark.slow
def test_the_head_of_any_checkpoint_with_one_label_is_taken(copied):
    without_files_of_version_6(copied)
    expected = json.loads((copied / "answers.json").read_text())[1]
    model = bert_tf.Reranker.from_checkpoint(copied, activation="identity", max_length=24)
    found = model.predict(expected["query"], expected["passages"])
    assert found["scores"] == pytest.approx(expected["scores"], abs=TOLERANCE)


@pytest.mark.slow
@pytest.mark.parametrize("activation", ["sigmoid", "identity"])
def test_sentence_transformers_answers_the_same_from_what_is_written(activation, tmp_path):
    library = pytest.importorskip("sentence_transformers", reason="it is not installed")
    model = tiny.reranker(initializer_range=0.5, activation=activation, max_length=12)
    query, passages = "the cat", ["the cat sat", "a dog ran under the log", "good " * 20]
    model.save_checkpoint(tmp_path / "out", "huggingface")
    theirs = library.CrossEncoder(str(tmp_path / "out"))
    found, pairs = model.predict(query, passages), [(query, each) for each in passages]
    assert theirs.max_seq_length == 12
    assert found["scores"] == pytest.approx(theirs.predict(pairs).tolist(), abs=TOLERANCE)
    assert found["order"] == [each["corpus_id"] for each in theirs.rank(query, passages)]
