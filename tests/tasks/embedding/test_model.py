"""Texts have vectors, whatever the checkpoint is of, and vectors are compared."""

import numpy as np
import pytest
import tensorflow as tf

import bert_tf
from bert_tf.export.precision import in_precision
from tests.checkpoints.tiny_embedders import change
from tests.tasks import tiny_objects as tiny
from tests.tasks.refusals import refusal

TEXTS = ["the cat sat", "a dog", "fish " * 40]


@pytest.fixture(scope="module")
def embedder():
    return tiny.embedder()


def test_vectors_are_an_array(embedder):
    vectors = embedder.predict(TEXTS)
    assert (vectors.dtype, vectors.shape) == (np.float32, (3, 16))
    np.testing.assert_allclose(embedder.predict(TEXTS[0]), vectors[0], atol=1e-6)
    np.testing.assert_allclose(embedder.predict(text=TEXTS), vectors, atol=1e-6)
    dataset = tf.data.Dataset.from_tensor_slices(TEXTS).batch(2)
    np.testing.assert_allclose(embedder.predict(dataset), vectors, atol=1e-6)


def test_normalized_vectors_have_length_one(embedder):
    model = bert_tf.TextEmbedder(embedder.encoder, tiny.tokenizer(), normalize=True)
    vectors = model(model.preprocessor()(TEXTS))
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)
    plain = embedder.predict(TEXTS)
    plain /= np.linalg.norm(plain, axis=1, keepdims=True)
    np.testing.assert_allclose(vectors, plain, atol=1e-6)


def test_similarity_is_the_cosine_of_texts_or_vectors(embedder):
    vectors = embedder.predict(TEXTS)
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    expected = unit @ unit.T
    np.testing.assert_allclose(embedder.similarity(TEXTS, TEXTS), expected, atol=1e-6)
    np.testing.assert_allclose(embedder.similarity(vectors, TEXTS), expected, atol=1e-6)
    assert embedder.similarity("the cat sat", TEXTS).shape == (1, 3)
    assert embedder.similarity(TEXTS, TEXTS).max() <= 1
    assert (embedder.similarity(np.zeros([1, 16], np.float32), TEXTS) == 0).all()


@pytest.mark.parametrize(
    "make",
    [
        tiny.answerer,
        *(pytest.param(each, marks=pytest.mark.slow) for each in (tiny.classifier, tiny.filler)),
    ],
)
def test_the_encoder_of_any_checkpoint_is_taken(make, tmp_path):
    labels = {"labels": ["a", "b"]} if make is tiny.classifier else {}
    model = make(**labels)
    model.save_checkpoint(tmp_path / "checkpoint")
    embedder = bert_tf.TextEmbedder.from_checkpoint(tmp_path / "checkpoint", max_length=32)
    same = bert_tf.TextEmbedder(model.encoder, tiny.tokenizer())
    inputs = same.preprocessor()(TEXTS)
    np.testing.assert_allclose(embedder(inputs), same(inputs), atol=1e-6)


SETTINGS = {
    "pooling": ["cls", "mean"],
    "normalize": True,
    "prompts": {"query": "the cat "},
    "default_prompt": "query",
    "include_prompt": False,
    "similarity_function": "dot",
    "max_length": 8,
}


@pytest.fixture(scope="module")
def whole():
    """A model of which every setting is another than the default."""
    dense = [{"units": 5, "activation": "GELU"}, {"units": 3, "bias": False}]
    return tiny.embedder(dense=dense, **SETTINGS)


@pytest.mark.parametrize(
    ("name", "to"),
    [
        ("model.keras", None),
        ("checkpoint", "bert_tf"),
        ("huggingface", "huggingface"),
        ("sentence_transformers", "sentence_transformers"),
    ],
)
def test_files_keep_its_settings_and_weights(tmp_path, whole, name, to):
    if to is None:
        whole.save(tmp_path / name)
    else:
        whole.save_checkpoint(tmp_path / name, to)
    again = bert_tf.load(tmp_path / name)
    assert type(again) is bert_tf.TextEmbedder
    assert (again.settings, again.head, again.width) == (SETTINGS, whole.head, 3)
    for ours, theirs in zip(again.weights, whole.weights, strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.bfloat16
def test_a_model_rebuilt_around_another_encoder_is_the_same_but_for_its_weights(whole):
    again = whole.rebuilt(whole.encoder.copied(layout="padded"))
    assert (again.settings, again.head) == (SETTINGS, whole.head)
    half = in_precision(whole, "bfloat16")
    inputs = whole.preprocessor()(TEXTS)
    np.testing.assert_allclose(half(inputs), whole(inputs), atol=0.05)


def test_settings_given_replace_those_of_the_checkpoint(tmp_path, whole):
    whole.save_checkpoint(tmp_path / "checkpoint")
    load = bert_tf.TextEmbedder.from_checkpoint
    given = {"dense": (), "pooling": "last_token", "prompts": None, "default_prompt": None}
    model = load(tmp_path / "checkpoint", **given)
    assert model.settings == SETTINGS | {
        "pooling": "last_token",
        "prompts": {},
        "default_prompt": None,
    }
    said = refusal(load, tmp_path / "checkpoint", pooling="mean")
    assert said.endswith("remove pooling and dense, or set them as in the checkpoint")


def test_a_checkpoint_that_claims_other_dense_layers_than_it_has_is_refused(tmp_path, whole):
    whole.save_checkpoint(tmp_path / "checkpoint")
    path = tmp_path / "checkpoint" / "bert_tf.json"
    for dense, said in (
        ([{"units": 10**9}], "weight dense_0/kernel of"),
        ([*whole.head["dense"], {"units": 3}], "lacks the weight dense_2/kernel"),
        (3, "is damaged (dense is 3; give a list of at most 16 layers); copy it again"),
    ):
        change(path, head={"dense": dense})
        assert said in refusal(bert_tf.load, tmp_path / "checkpoint")


def test_one_token_is_enough_for_poolings_that_read_no_other(embedder):
    """The last block then computes nothing for the others; with `mean` it computes them all."""
    inputs = embedder.preprocessor()(TEXTS)
    for one in (["cls"], ["last_token"], ["last_token", "cls"], ["pooled"]):
        model = bert_tf.TextEmbedder(embedder.encoder, tiny.tokenizer(), pooling=[*one, "mean"])
        alone = bert_tf.TextEmbedder(embedder.encoder, tiny.tokenizer(), pooling=one)
        found = alone(inputs)
        np.testing.assert_allclose(found, model(inputs)[:, : found.shape[1]], atol=1e-6)


def test_mistakes_are_one_sentence(embedder):
    said = "unknown pooling 'median'; choose one of cls, max, mean, mean_sqrt_len, weighted_mean, "
    assert refusal(tiny.embedder, pooling="median").startswith(said)
    assert refusal(tiny.embedder, pooling=[]).startswith(
        "pooling is []; give one or more of cls, max"
    )
    assert refusal(tiny.embedder, pooling=3).startswith(
        "pooling is 3; give one or more of cls, max"
    )
    assert "8 names; give each name only once" in refusal(tiny.embedder, pooling=["cls"] * 8)
    assert refusal(embedder.predict, ["a", 3]) == "text 1 is 3, not a string"
    assert refusal(embedder.predict, []) == "there are no texts; give at least one"
    assert refusal(embedder.similarity, [], TEXTS) == "there are no texts; give at least one"
    said = "no prompt 'query'; the model has no prompts"
    assert refusal(embedder.predict, TEXTS, prompt="query") == said
    ids = embedder.preprocessor()(TEXTS)
    said = "prompt is for strings, not for ids; remove it"
    assert refusal(embedder.predict, ids, prompt="query") == said
    said = "vectors of shapes [1, 3] and [3, 16] cannot be compared; give [n, width] and [m, width]"
    assert refusal(embedder.similarity, np.zeros([1, 3], np.float32), TEXTS).startswith(said)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"dense": [{"units": 0}]}, "units of dense layer 0 is 0; give a layer such as"),
        ({"dense": [{"units": -1}]}, "units of dense layer 0 is -1; give a layer such as"),
        ({"dense": [{"units": 4, "bias": 1}]}, "bias of dense layer 0 is 1; give a layer such as"),
        ({"dense": [{"units": 4}, {}]}, "units of dense layer 1 is None; give a layer such as"),
        (
            {"dense": [{"units": 4, "x": 1}]},
            "dense layer 0 is {'units': 4, 'x': 1}; give a layer such as",
        ),
        ({"dense": [3]}, "dense layer 0 is 3; give a layer such as"),
        ({"dense": 3}, "dense is 3; give a list of at most 16 layers"),
        ({"dense": [{"units": 4}] * 17}, "dense is [{'units': 4}, "),
        (
            {"dense": [{"units": 4, "activation": "Hardshrink"}]},
            "unknown activation 'Hardshrink' of dense layer 0; choose one of Identity, Tanh, ReLU",
        ),
        (
            {"prompts": ["query"]},
            'prompts is [\'query\']; give a dict of names and texts, such as {"query": "query: "}',
        ),
        (
            {"prompts": {"query": 3}},
            "the prompt 'query' is 3; its name and its text must be strings",
        ),
        ({"prompts": {"": "x"}}, "the prompt '' is 'x'; its name and its text must be strings"),
        (
            {"prompts": {"serving_default": "x"}},
            "the name 'serving_default' is reserved for a signature; give the prompt another name",
        ),
        (
            {"prompts": {"a": ""}, "default_prompt": "b"},
            "the default prompt 'b' does not exist; the prompts are a",
        ),
        ({"similarity_function": "maxsim"}, "unknown similarity function 'maxsim'; choose one of"),
    ],
)
def test_settings_that_are_none_are_refused(settings, said):
    assert refusal(tiny.embedder, **settings).startswith(said)
