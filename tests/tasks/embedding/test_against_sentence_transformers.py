"""Vectors, similarities and activations are those of sentence-transformers, in every form."""

import functools

import numpy as np
import pytest
import tensorflow as tf

import bert_tf
from bert_tf.tasks.embedding import similarity
from bert_tf.tasks.embedding.pooling import ACTIVATIONS, POOLING_MASK, pool, without_prompt
from tests.checkpoints import tiny_embedders as tiny
from tests.tasks.refusals import refusal

SIMILARITIES = ("cosine", "dot", "euclidean", "manhattan")
# Our name of a pooling -> the folders that end in it.
POOLINGS = {
    "cls": ["cls"],
    "max": ["max"],
    "mean": ["mean"],
    "mean_sqrt_len_tokens": ["mean_sqrt_len"],
    "weightedmean": ["weighted_mean"],
    "lasttoken": ["last_token"],
    "mean+cls": ["mean", "cls"],
    tiny.ALL: ["cls", "max", "mean", "mean_sqrt_len", "weighted_mean", "last_token"],
}


def inputs_of(model, prompt, include_prompt):
    """The inputs of the model for all texts, with a prompt."""
    preprocess = model.preprocessor()
    text = model.prompts.get(prompt or model.default_prompt, "")
    inputs = preprocess([text + each for each in tiny.TEXTS])
    if text and not include_prompt:
        length = tf.reduce_sum(preprocess([text])["input_mask"]) - 1  # without [SEP]
        inputs[POOLING_MASK] = without_prompt(inputs["input_mask"], length)
    return inputs


@pytest.fixture(scope="module", params=["padded", "unpadded"])
def with_mean(request, tmp_path_factory):
    """The model of the folder with the mean, in both layouts."""
    folder = tiny.write(tmp_path_factory.mktemp("mean"), "mean")
    return bert_tf.load(folder, layout=request.param)


@pytest.fixture(scope="module")
def inputs(with_mean):
    """A prompt and whether it counts -> the inputs of the model."""
    return functools.cache(functools.partial(inputs_of, with_mean))


@pytest.mark.parametrize("include_prompt", [True, False])
@pytest.mark.parametrize("name", POOLINGS)
def test_every_pooling_gives_its_vectors(with_mean, inputs, name, include_prompt):
    vectors = tiny.GOLDEN[f"vectors/{name}" + ("" if include_prompt else " without prompt")]
    for prompt in (None, "query") if include_prompt else ("query", "long"):
        found = pool(with_mean.encoder, inputs(prompt, include_prompt), POOLINGS[name])
        expected = vectors[tiny.PROMPTS.index(prompt)]
        np.testing.assert_allclose(found, expected, atol=tiny.TOLERANCE)


def test_a_row_in_which_no_token_counts_has_the_vector_0(with_mean, inputs):
    given = inputs(None, True)
    nothing = given | {POOLING_MASK: tf.zeros_like(given["input_mask"])}
    for mode in ("max", "mean", "mean_sqrt_len", "weighted_mean", "last_token"):
        assert not np.any(pool(with_mean.encoder, nothing, [mode])), mode


@pytest.mark.parametrize("layout", ["padded", "unpadded"])
@pytest.mark.parametrize("name", ["normalized", "default prompt", "dense"])
def test_a_folder_gives_its_vectors(tmp_path, name, layout):
    model = bert_tf.load(tiny.write(tmp_path, name), layout=layout)
    assert type(model) is bert_tf.TextEmbedder and model.encoder.layout == layout
    expected = tiny.GOLDEN[f"vectors/{name}"]
    found = model(inputs_of(model, None, include_prompt=True))
    assert (found.dtype, model.width) == (tf.float32, expected.shape[-1])
    np.testing.assert_allclose(found, expected[0], atol=tiny.TOLERANCE)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A model with all poolings, in which prompts do not count; it has two prompts."""
    folder = tiny.write(tmp_path_factory.mktemp("all"), f"{tiny.ALL} without prompt")
    prompts = {"query": "the good cat : ", "joined": "dog"}
    config = folder / "config_sentence_transformers.json"
    tiny.change(config, prompts=prompts, default_prompt_name="query")
    return bert_tf.load(folder)


@pytest.fixture(scope="module")
def served(model, tmp_path_factory):
    out = tmp_path_factory.mktemp("export") / "saved"
    model.export(out)
    return bert_tf.load(out)


@pytest.mark.end_to_end
@pytest.mark.parametrize("form", ["model", "served"])
def test_texts_get_the_prompt_that_is_named_or_the_default_one(request, form):
    answering = request.getfixturevalue(form)
    vectors = tiny.GOLDEN[f"vectors/{tiny.ALL} without prompt"]
    for prompt, place in ((None, "query"), ("joined", "joined")):
        expected = vectors[tiny.PROMPTS.index(place)]
        found = answering.predict(tiny.TEXTS, prompt=prompt, verbose=0)
        np.testing.assert_allclose(found, expected, atol=tiny.TOLERANCE)
    one = answering.predict(tiny.TEXTS[0], prompt="joined")
    np.testing.assert_allclose(one, expected[0], atol=tiny.TOLERANCE)
    said = "no prompt 'passage'; the prompts are joined, query"
    assert refusal(answering.predict, tiny.TEXTS, prompt="passage") == said
    assert refusal(answering.predict, []) == "there are no texts; give at least one"


@pytest.mark.end_to_end
def test_an_export_compares_texts_and_vectors_as_the_model_does(model, served):
    vectors = served.predict(tiny.TEXTS)
    expected = model.similarity(vectors, vectors[:2])
    np.testing.assert_allclose(served.similarity(vectors, vectors[:2]), expected, atol=1e-6)
    found = served.similarity(tiny.TEXTS, tiny.TEXTS[:2])
    np.testing.assert_allclose(found, expected, atol=1e-5)
    rows = [{"text_a": text, "text_b": tiny.TEXTS[1]} for text in tiny.TEXTS]
    assert {*served.signature_names()} == {*model.signature_names()}
    answered = served.ask("similarity", rows)["similarity"]
    np.testing.assert_allclose(answered, expected[:, 1], atol=1e-5)
    said = refusal(served.similarity, vectors[:, :3], vectors[:1])
    assert said.startswith("vectors of shapes [6, 3] and [1, 48] cannot be compared; give [n, wid")


@pytest.mark.parametrize("name", SIMILARITIES)
def test_similarities_are_those_of_vectors(name):
    vectors = tiny.GOLDEN[f"vectors/{name}"][0]
    found = similarity.of_all(name, vectors, vectors[:2])
    np.testing.assert_allclose(found, tiny.GOLDEN[f"similarity/{name}"], atol=tiny.TOLERANCE)
    pairs = similarity.pairwise(name, vectors, vectors[::-1])
    np.testing.assert_allclose(pairs, tiny.GOLDEN[f"pairs/{name}"], atol=tiny.TOLERANCE)


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations_are_those_of_torch(name):
    found = ACTIVATIONS[name](tf.constant(tiny.GOLDEN["activations/x"]))
    np.testing.assert_allclose(found, tiny.GOLDEN[f"activations/{name}"], atol=1e-6)
