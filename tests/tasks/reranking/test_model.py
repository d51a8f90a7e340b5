"""A re-ranker learns which passages answer a query, from single passages and from lists."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import bert_tf
from bert_tf.optimization import AdamW
from bert_tf.tasks import fitting
from bert_tf.tasks.reranking.losses import LOSSES, LambdaLoss, ListNetLoss
from tests.tasks import tiny_objects as tiny
from tests.tasks.refusals import refusal

QUERIES = ["the cat", "a dog", "the bird"]
PASSAGES = [["the cat sat", "a fish swam", "good"], ["the sea"], ["bad log", "a bird flew"]]
FORMS = ("keras", "bert_tf", "tf1", "model_garden")
RELEVANCE = [[2, 0, 1], [1], [0, 1]]


@pytest.fixture(scope="module")
def model():
    return tiny.reranker(initializer_range=0.5)


def pairs():
    """Every passage by itself; the good ones begin with a cat."""
    queries = ["the sea", "the sea", "a tree", "a tree"] * 4
    passages = [f"{('cat', 'dog')[i % 2]} {tiny.TEXTS[i]}" for i in range(16)]
    return (queries, passages), [(i + 1) % 2 for i in range(16)]


def lists():
    queries, passages = pairs()[0]
    return (queries[:8], [[passages[i], passages[i + 1]] for i in range(8)]), [
        [(i + 1) % 2, i % 2] for i in range(8)
    ]


def test_one_query_gives_one_answer_and_a_list_a_list(model):
    answers = model.predict(QUERIES, PASSAGES)
    for query, passages, answer in zip(QUERIES, PASSAGES, answers, strict=True):
        alone = model.predict(query, passages)
        assert alone["order"] == answer["order"]
        assert alone["scores"] == pytest.approx(answer["scores"], abs=1e-6)
        scores = answer["scores"]
        assert answer["order"] == sorted(range(len(passages)), key=lambda i: -scores[i])
        assert all(0 < score < 1 for score in scores)
    assert model.predict((QUERIES, PASSAGES)) == answers
    assert model.predict({"query": QUERIES, "passages": PASSAGES}) == answers
    assert model.predict(query=QUERIES[0], passages=PASSAGES[0]) == model.predict(
        QUERIES[0], PASSAGES[0]
    )
    assert model.predict([], []) == []


def test_scores_are_the_activation_of_the_logits(model):
    # The last two have the same sigmoid in float32.
    logits = tf.constant([[-1.0, 40.0, 50.0]])
    answer = model.decode(logits)
    np.testing.assert_allclose(answer["scores"], [[1 / (1 + np.e), 1, 1]], rtol=1e-6)
    same = tiny.reranker(activation="identity").decode(logits)
    np.testing.assert_array_equal(same["scores"], logits)
    for each in (answer, same):
        assert each["order"].numpy().tolist() == [[2, 1, 0]]


def test_passages_of_padding_are_last_with_no_score(model):
    given = [["", "the cat sat", "a dog"], ["", "", ""], ["the cat sat", "a dog", ""]]
    answer = model.serve(query=["the sea"] * 3, passages=given)
    (first, nothing, last), scores = answer["order"].numpy().tolist(), answer["scores"].numpy()
    assert (answer["order"].dtype, answer["scores"].dtype) == (tf.int32, tf.float32)
    assert nothing == [-1, -1, -1] and not scores[1].any()
    assert last[2] == -1 and scores[2, 2] == scores[0, 0] == 0
    assert first == [last[0] + 1, last[1] + 1, -1]
    np.testing.assert_allclose(scores[0, 1:], scores[2, :2], atol=1e-6)


@pytest.mark.end_to_end
def test_single_passages_are_learned_with_binary_cross_entropy():
    model = tiny.reranker()
    x, y = pairs()
    history = model.fit(
        x,
        y,
        epochs=10,
        batch_size=8,
        learning_rate=3e-3,
        validation_data=(x, y),
        validation_freq=10,
        verbose=0,
    ).history
    assert history["val_ndcg@10"][-1] == 1
    assert model.loss.name == "binary_cross_entropy"
    found = model.evaluate(x, y)
    assert found.keys() == {"ndcg@10", "mrr@10", "map", "loss"}
    assert {name: history[f"val_{name}"][-1] for name in found} == found


@pytest.mark.slow
def test_lists_are_learned_with_list_net():
    model = tiny.reranker()
    x, y = lists()
    model.fit(x, y, epochs=12, batch_size=4, learning_rate=3e-3, verbose=0)
    assert model.loss.name == "list_net"
    assert model.evaluate(x, y)["ndcg@10"] == 1
    assert model.predict("a mat", ["dog sat", "cat sat"])["order"] == [1, 0]


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["lambda_loss", LambdaLoss(), keras.losses.MeanSquaredError()])
def test_fit_takes_another_loss(loss):
    model = tiny.reranker()
    x, y = lists()
    model.fit(x, y, batch_size=4, loss=loss, verbose=0)
    assert model.loss is loss or model.loss.name == loss
    # The next call chooses its loss anew.
    model.fit(*pairs(), batch_size=4, verbose=0)
    assert model.loss.name == "binary_cross_entropy"


def test_lists_of_different_lengths_are_padded(model):
    rows = model.given((QUERIES, PASSAGES), RELEVANCE)
    examples = model.examples(rows)
    inputs, relevance = examples.take(np.array([2, 1]))
    np.testing.assert_array_equal(relevance, [[0, 1], [1, np.nan]])
    assert inputs["input_mask"].any(axis=2).tolist() == [[True, True], [True, False]]
    assert examples.lengths.tolist() == [len("[CLS] the cat [SEP] the cat sat [SEP]".split()), 7, 8]


@pytest.mark.parametrize("is_ragged", [False, True])
def test_a_dataset_holds_the_same(model, is_ragged):
    passages, relevance = tf.ragged.constant(PASSAGES), tf.ragged.constant(RELEVANCE)
    if not is_ragged:
        passages, relevance = passages.to_tensor(""), relevance.to_tensor(-1)
    (found,) = fitting.encoded_dataset(
        model,
        tf.data.Dataset.from_tensors(((QUERIES, passages), tf.cast(relevance, tf.float32) / 2)),
    )
    halves = [[each / 2 for each in row] for row in RELEVANCE]
    rows = model.given((QUERIES, PASSAGES), halves)
    inputs, targets = model.examples(rows).take(np.arange(3))
    mask = inputs["input_mask"]
    np.testing.assert_array_equal(found[0]["input_mask"], mask)
    for name, values in inputs.items():
        np.testing.assert_array_equal(found[0][name] * mask, values)
    np.testing.assert_array_equal(found[1], targets)


@pytest.mark.slow
def test_datasets_are_trained_and_evaluated():
    model = tiny.reranker()
    (queries, passages), relevance = pairs()
    single = tf.data.Dataset.from_tensor_slices(((queries, passages), relevance)).batch(8)
    model.fit(single, verbose=0)
    assert model.loss.name == "binary_cross_entropy"
    assert model.evaluate(single) == pytest.approx(model.evaluate((queries, passages), relevance))
    padded = tf.ragged.constant(PASSAGES).to_tensor(""), tf.ragged.constant(RELEVANCE).to_tensor()
    many = tf.data.Dataset.from_tensor_slices(((QUERIES, padded[0]), padded[1])).batch(2)
    model.fit(many, verbose=0)
    assert model.loss.name == "list_net"
    assert model.evaluate(many) == pytest.approx(model.evaluate((QUERIES, PASSAGES), RELEVANCE))


@pytest.mark.parametrize(
    "name",
    [
        each if each == "lambda_loss" else pytest.param(each, marks=pytest.mark.slow)
        for each in LOSSES
    ],
)
def test_accumulated_parts_make_the_same_update_as_the_whole_batch(name):
    model = tiny.reranker()
    halves = [[each / 2 for each in row] for row in RELEVANCE]
    rows = model.given((QUERIES, PASSAGES), halves)
    batch = model.examples(rows).take(np.arange(3))
    start, results = model.get_weights(), []
    for parts in (1, 2):
        model.set_weights(start)
        optimizer = AdamW(1e-3, epsilon=1e-3)
        model.compile(optimizer, LOSSES[name](), accumulation_steps=parts, run_eagerly=True)
        history = model.fit(*batch, batch_size=3, epochs=2, verbose=0).history
        results.append((history["loss"], model.get_weights()))
    (losses, weights), (other_losses, other_weights) = results
    assert other_losses == pytest.approx(losses, rel=1e-5)
    for one, other in zip(weights, other_weights, strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=2e-6)


@pytest.mark.slow
def test_rows_weigh_what_they_are_given():
    (queries, passages), relevance = lists()
    half = (queries[:4], passages[:4]), relevance[:4]
    cases = (((queries, passages), relevance, [1] * 4 + [0] * 4), (*half, None))
    changes = []
    for x, y, weights in cases:
        model = tiny.reranker()
        start = model.classifier.kernel.numpy()
        model.compile(keras.optimizers.SGD(0.1), ListNetLoss())
        model.fit(x, y, batch_size=8, sample_weight=weights, verbose=0)
        changes.append(model.classifier.kernel.numpy() - start)
    # As in Keras, rows without weight are counted.
    np.testing.assert_allclose(2 * changes[0], changes[1], rtol=1e-3, atol=1e-7)


def test_metrics_join_the_rows_of_a_query(model):
    queries = [q for q, group in zip(QUERIES, PASSAGES, strict=True) for _ in group]
    passages = [each for group in PASSAGES for each in group]
    relevance = [each for group in RELEVANCE for each in group]
    single = model.evaluate((queries, passages), relevance)
    together = model.evaluate((QUERIES, PASSAGES), RELEVANCE)
    for name in ("ndcg@10", "mrr@10", "map"):
        assert single[name] == pytest.approx(together[name])
    # Binary cross-entropy, the loss of single passages, does not take a relevance of 2.
    assert "loss" in together and "loss" not in single


@pytest.mark.parametrize(
    "form",
    ["huggingface", *(pytest.param(each, marks=pytest.mark.slow) for each in FORMS)],
)
def test_a_file_and_a_checkpoint_bring_it_back(model, form, tmp_path):
    if form == "keras":
        model.save(tmp_path / "model.keras")
    else:
        model.save_checkpoint(tmp_path / "model", form)
    (path,) = tmp_path.iterdir()
    same = bert_tf.load(path)
    assert type(same) is bert_tf.Reranker
    assert same.settings == model.settings
    assert np.array_equal(same.classifier.kernel.numpy(), model.classifier.kernel.numpy())
    assert not bert_tf.Reranker.from_checkpoint(path, activation="identity").predict([], [])


MISTAKES = {
    "numbers of rows": (
        ((QUERIES, PASSAGES[:2]), RELEVANCE),
        "the columns have different numbers of rows: 3 of query and 2 of passages",
    ),
    "not a number": (
        ((["a"], [["c", "d"]]), [[1, float("nan")]]),
        "relevance 0, entry 1 is nan, not a finite number",
    ),
    "one number": (
        ((["a"], [["c", "d"]]), [1]),
        "relevance 0 is 1; give one number for each passage",
    ),
    "outside": (
        ((["a", "b"], ["c", "d"]), [1, 3]),
        "row 1: relevance 3.0 is outside 0 to 1, which binary cross-entropy requires; scale it, or "
        "choose the loss mean_squared_error",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_one_sentence(mistake):
    arguments, expected = MISTAKES[mistake]
    assert refusal(tiny.reranker().fit, *arguments, verbose=0) == expected


def test_a_loss_of_lists_takes_no_single_passages():
    (queries, passages), relevance = pairs()
    expected = (
        "the loss list_net compares the passages of a query, but each query has one; give lists of "
        "passages, or choose the loss binary_cross_entropy or mean_squared_error"
    )
    fit = tiny.reranker().fit
    assert refusal(fit, (queries, passages), relevance, loss="list_net") == expected
    dataset = tf.data.Dataset.from_tensor_slices(((queries, passages), relevance)).batch(8)
    assert refusal(fit, dataset, loss="list_net") == expected


@pytest.mark.slow
def test_a_relevance_outside_0_to_1_in_a_dataset():
    (queries, passages), relevance = pairs()
    dataset = tf.data.Dataset.from_tensor_slices(
        ((queries, passages), [3.0, *relevance[1:]])
    ).batch(8)
    assert refusal(tiny.reranker().fit, dataset, verbose=0) == (
        "in the dataset, a relevance is outside 0 to 1, which binary cross-entropy requires; scale "
        "it, or choose the loss mean_squared_error"
    )
    tiny.reranker().fit(dataset, loss="mean_squared_error", verbose=0)


def test_other_settings_are_refused():
    assert refusal(tiny.reranker, activation="softmax") == (
        "activation must be 'sigmoid' or 'identity', got \"softmax\""
    )
    assert refusal(tiny.reranker().fit, *pairs(), loss="hinge").startswith("unknown loss 'hinge'")
    assert refusal(tiny.reranker().predict, "a", []) == ("passages 0 has 0; give one or more")
