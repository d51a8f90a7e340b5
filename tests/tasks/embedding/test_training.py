"""An embedder learns from every form of data, and is measured on it."""

import dataclasses
import json
from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf

import bert_tf
from bert_tf import MultipleNegativesRanking
from bert_tf.checkpoints import reading
from bert_tf.tasks.embedding.data import collection_of, numbered
from tests.tasks import tiny_objects as tiny
from tests.tasks.refusals import refusal

FIXTURES = Path(__file__).parents[2] / "fixtures"
ANCHORS = ["the cat sat", "a dog ran on the mat", "the bird flew", "fish", "a log", "the tree ."]
POSITIVES = ["cat", "dog", "bird", "fish swam", "log", "the tree sat under a good bird"]
NEGATIVES = ["dog ran", "cat", "fish swam", "bird", "tree", "sea"]


@pytest.fixture(scope="module")
def model():
    """An embedder that is measured, and not trained."""
    return tiny.embedder(normalize=True)


def losses_of(model, *data, **options) -> list[float]:
    """The loss of every step of `fit`."""
    found = []

    def note(batch, logs):
        found.append(logs["loss"])
        model.reset_metrics()

    callback = keras.callbacks.LambdaCallback(on_train_batch_end=note)
    model.fit(*data, callbacks=[callback], verbose=0, **options)
    return found


def weights_of(model) -> list[np.ndarray]:
    return [weight.numpy() for weight in model.trainable_weights]


@pytest.mark.end_to_end
def test_a_hundred_steps_are_those_of_sentence_transformers():
    expected = json.loads((FIXTURES / "embedding_training.json").read_text())
    checkpoint = reading.find(FIXTURES / "huggingface_answers" / "pretrained")
    off = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    encoder = bert_tf.Encoder(dataclasses.replace(checkpoint.encoder, **off))
    checkpoint.fill(encoder)
    tokenizer = bert_tf.Tokenizer.from_checkpoint(checkpoint)
    model = bert_tf.TextEmbedder(encoder, tokenizer, max_length=16)
    recipe = bert_tf.AdamW(bias_correction=True, clip_norm=None, **expected["recipe"])
    model.compile(recipe, MultipleNegativesRanking())
    columns = tuple(map(list, zip(*expected["rows"], strict=True)))
    options = {"batch_size": expected["batch"], "epochs": 10, "shuffle": False}
    found = losses_of(model, columns, **options)
    assert len(found) == 100 and found[-1] < found[0] / 2
    np.testing.assert_allclose(found, expected["losses"], atol=1e-5)


@pytest.mark.end_to_end
def test_parts_of_a_batch_give_the_gradient_of_the_whole():
    keras.utils.set_random_seed(0)
    encoder = tiny.encoder(hidden_dropout_prob=0.3, attention_probs_dropout_prob=0.2)
    model = bert_tf.TextEmbedder(encoder, tiny.tokenizer())
    model.compile(bert_tf.AdamW(1e-3), accumulation_steps=3)
    x, y = model.encode((tf.constant(ANCHORS + ["sea"]), tf.constant(POSITIVES + ["a sea"])))
    weights = [weight.value for weight in model.trainable_weights]
    draws = [variable for variable in model.variables if "seed" in variable.path]
    before = [variable.numpy() for variable in draws]
    cached = tf.function(lambda *batch: model.accumulated(None, (*batch, None), weights))
    found, loss = cached(x, y)
    after = [variable.numpy() for variable in draws]
    assert any((a != b).any() for a, b in zip(before, after, strict=True))

    for variable, value in zip(draws, before, strict=True):
        variable.assign(value)
    places = [range(part, 7, 3) for part in range(3)]
    with tf.GradientTape() as tape:
        parts = [{name: tf.gather(each, rows) for name, each in x.items()} for rows in places]
        vectors = tf.concat([model(part, training=True) for part in parts], axis=0)
        texts = tf.concat([tf.gather(y, rows) for rows in places], axis=0)
        whole = model.loss.call(texts, vectors)
    expected = tape.gradient(whole, weights)
    np.testing.assert_allclose(loss, whole, rtol=1e-6)
    for one, other in zip(found, expected, strict=True):
        one, other = (tf.convert_to_tensor(each).numpy() for each in (one, other))
        np.testing.assert_allclose(one, other, atol=2e-6 * max(abs(other).max(), 1e-3))
    assert all((a == v.numpy()).all() for a, v in zip(after, draws, strict=True))


def test_it_learns_pairs_and_measures_them():
    model = tiny.embedder()
    before = model.evaluate((ANCHORS, POSITIVES))
    assert list(before) == ["ndcg@10", "mrr@10", "recall@10", "recall@100", "map"]
    history = model.fit(
        (ANCHORS, POSITIVES),
        epochs=6,
        batch_size=6,
        learning_rate=1e-2,
        seed=0,
        validation_data=((ANCHORS, POSITIVES), None),
        verbose=0,
    ).history
    assert history["loss"][-1] < history["loss"][0] / 2
    assert history["val_mrr@10"][-1] == model.evaluate((ANCHORS, POSITIVES))["mrr@10"]
    assert history["val_mrr@10"][-1] > before["mrr@10"]


FORMS = {
    "negatives": ((ANCHORS, POSITIVES, NEGATIVES), None, MultipleNegativesRanking(symmetric=True)),
    "cosent": ((ANCHORS, POSITIVES), [0.5, 0.1, 1, 0, 0.5, 0.25], bert_tf.CoSENT()),
    "labels": (ANCHORS, ["a", "b", "a", "b", "b", "c"], bert_tf.BatchAllTriplet()),
}
MORE_FORMS = {
    "regression": ((ANCHORS, POSITIVES), [1, -1, 1, 0, 1, 0.5], bert_tf.CosineRegression()),
    "contrastive": ((ANCHORS, POSITIVES), [0, 1, 0, 1, 0, 1], bert_tf.OnlineContrastive()),
    "teacher": (ANCHORS, np.eye(6, 16), bert_tf.Distillation()),
    "one_text": (ANCHORS, None, bert_tf.Matryoshka(MultipleNegativesRanking(), [16, 4])),
}


@pytest.mark.end_to_end
@pytest.mark.parametrize(
    ("x", "y", "loss"),
    [
        *(pytest.param(*form, id=name) for name, form in FORMS.items()),
        *(pytest.param(*f, id=name, marks=pytest.mark.slow) for name, f in MORE_FORMS.items()),
    ],
)
def test_rows_and_datasets_of_every_form_are_learned_alike(x, y, loss):
    model, same = tiny.embedder(), tiny.embedder()
    for each in (model, same):
        each.compile(bert_tf.AdamW(1e-2), loss, run_eagerly=True)
    first, second = losses_of(model, x, y, batch_size=3, shuffle=False)
    assert first > 0 and second > 0
    if isinstance(y, list) and isinstance(y[0], str):
        # A dataset has texts of a class in its own batches, and no partners.
        x, y = ANCHORS[:5] * 2, y[:5] * 2
    columns = dict(zip("abc", x, strict=False)) if isinstance(x, tuple) else x
    rows = columns if y is None else (columns, y)
    dataset = tf.data.Dataset.from_tensor_slices(rows).batch(3)
    found = losses_of(same, dataset)
    if loss.takes != "labels":
        np.testing.assert_allclose(found, [first, second], rtol=1e-5)
        for one, other in zip(weights_of(model), weights_of(same), strict=True):
            np.testing.assert_allclose(one, other, atol=1e-5)


def test_the_default_loss_is_that_of_the_form():
    model = tiny.embedder()
    for x, y, loss in [
        ((ANCHORS, POSITIVES), None, "MultipleNegativesRanking"),
        ((ANCHORS, POSITIVES), [0.5] * 6, "CoSENT"),
        (ANCHORS, [0, 1, 0, 1, 0, 1], "BatchAllTriplet"),
        (ANCHORS, np.zeros([6, 16]), "Distillation"),
        (ANCHORS, None, "MultipleNegativesRanking"),
    ]:
        model.learn_from(model.given(x, y))
        model.compile("sgd")
        assert type(model.loss).__name__ == loss
        model._compiled_by_fit = True


def test_each_text_is_encoded_once_and_known_by_its_number(model):
    rows = model.given((["cat", "dog"], ["cat", "fish"], ["dog", "cat"]))
    examples = model.examples(rows)
    inputs, texts = examples.take(np.array([1, 0]))
    assert texts.tolist() == [[1, 2, 0], [0, 0, 1]]
    assert inputs["input_word_ids"].shape == (2, 3, 3)
    assert examples.lengths.tolist() == [9, 9]
    assert len(examples.encoded.lengths) == 3


def test_a_labelled_text_comes_with_the_next_one_of_its_label(model):
    rows = model.given(["cat", "dog", "a cat", "the cat", "fish"], [1, 0, 1, 1, 2])
    _, texts = numbered(rows)
    assert texts.tolist() == [[0, 2], [1, 1], [2, 3], [3, 0], [4, 4]]


def test_batches_are_not_of_similar_length():
    model = tiny.embedder()
    texts = ["cat " * (1 + i % 2 * 9) + f"{'dog ' * (i // 2)}" for i in range(12)]
    examples = model.examples(model.given(texts))
    batches = model._batches(examples, 4, 0, 0, True)
    masks = [x["input_mask"] for x, _ in batches.take(3).as_numpy_iterator()]
    spread = [np.ptp(mask[:, 0].sum(axis=1)) for mask in masks]
    assert min(spread) > 5


def test_groups_of_texts_have_the_vectors_of_the_texts(model):
    inputs, _ = model.encode((tf.constant(ANCHORS), tf.constant(POSITIVES)))
    vectors = model(inputs)
    assert vectors.shape == (6, 2, 16)
    np.testing.assert_allclose(vectors[:, 0], model.predict(ANCHORS), atol=1e-6)
    np.testing.assert_allclose(vectors[:, 1], model.predict(POSITIVES), atol=1e-6)


def test_pairs_with_scores_are_measured_by_correlation(model):
    cosines = np.diag(model.similarity(ANCHORS, POSITIVES))
    metrics = model.evaluate((ANCHORS, POSITIVES), cosines)
    assert list(metrics) == ["spearman", "pearson"]
    np.testing.assert_allclose(list(metrics.values()), 1, atol=1e-6)
    metrics = model.evaluate((ANCHORS, POSITIVES), -cosines)
    np.testing.assert_allclose(list(metrics.values()), -1, atol=1e-6)


def test_an_anchor_has_to_find_its_positives_among_all_other_texts(model):
    # Each text finds itself, but a text is not found by itself.
    metrics = model.evaluate((["cat", "dog"], ["cat sat", "dog"], ["fish", "cat sat"]))
    rows = model.given((["cat", "dog", "cat"], ["cat sat", "dog", "log"]))
    collection = collection_of(rows)
    assert collection.queries == {"0": "cat", "1": "dog"}
    assert collection.passages == {"1": "dog", "2": "cat sat", "3": "log"}
    assert collection.relevant == {"0": {"2": 1, "3": 1}, "1": {"1": 1}}
    assert set(model.infer(rows).found["1"]) == {"2", "3"}
    assert 0 <= metrics["map"] <= 1


def test_labelled_texts_find_those_of_their_label(model):
    rows = model.given(["cat", "a cat", "dog", "fish"], ["c", "c", "d", "c"])
    collection = collection_of(rows)
    assert collection.relevant == {
        "0": {"1": 1, "3": 1},
        "1": {"0": 1, "3": 1},
        "3": {"0": 1, "1": 1},
    }
    assert len(collection.passages) == 4
    assert list(model.evaluate(["cat", "a cat", "dog"], ["c", "c", "d"]))[0] == "ndcg@10"


def test_vectors_of_a_teacher_are_measured_by_their_error(model):
    assert model.evaluate(ANCHORS, model.predict(ANCHORS))["loss"] < 1e-10
    assert model.evaluate(ANCHORS) == {}


def test_a_compiled_embedder_is_saved_with_its_loss(tmp_path):
    model = tiny.embedder()
    loss = bert_tf.Matryoshka(MultipleNegativesRanking(scale=10, symmetric=True), [16, 4])
    model.compile(bert_tf.AdamW(1e-3), loss, accumulation_steps=2)
    model.optimizer.build(model.trainable_variables)
    model.save(tmp_path / "model.keras")
    again = bert_tf.load(tmp_path / "model.keras")
    assert again.accumulation_steps == 2
    assert again.loss.get_config() == loss.get_config()


@pytest.mark.bfloat16
def test_its_vectors_are_float32_in_mixed_precision():
    encoder = bert_tf.Encoder(tiny.encoder().config, dtype="mixed_bfloat16")
    model = bert_tf.TextEmbedder(encoder, tiny.tokenizer())
    model.compile(bert_tf.AdamW(1e-2), run_eagerly=True, accumulation_steps=2)
    assert np.isfinite(losses_of(model, (ANCHORS, POSITIVES), batch_size=4)).all()
    assert model(model.encode((tf.constant(ANCHORS),) * 2)[0]).dtype == tf.float32


def test_what_cannot_be_learned_is_refused():
    model = tiny.embedder()
    pairs = ANCHORS, POSITIVES
    said = "the columns have different numbers of rows: 6 of text_1 and 1 of text_2"
    assert refusal(model.fit, (ANCHORS, ["cat"])) == said
    assert refusal(model.fit, ([], [])) == "there are no rows; give at least one"
    said = "CosineRegression takes scores from -1 to 1, but score 2 is 3; rescale the scores"
    scores = [0, 0, 3, 0, 0, 0]
    assert refusal(model.fit, pairs, scores, loss=bert_tf.CosineRegression()) == said
    said = "OnlineContrastive takes the scores 0 and 1, but score 2 is 3; rescale the scores"
    assert refusal(model.fit, pairs, scores, loss=bert_tf.OnlineContrastive()) == said
    assert refusal(model.fit, pairs, [0, "x", 1, 0, 1, 1]) == "score 1 is 'x', not a finite number"
    said = "MultipleNegativesRanking takes the negatives of a pair from the other rows of its batch"
    assert refusal(model.fit, pairs, batch_size=1).startswith(said)
    assert refusal(model.fit, (["cat"], ["dog"])).startswith(said)
    said = (
        "the loss CoSENT takes pairs with scores, but the data are texts, or anchors with their "
        "positives, without targets; choose another, such as MultipleNegativesRanking"
    )
    assert refusal(model.fit, pairs, loss=bert_tf.CoSENT()) == said
    said = (
        "vector 0 of the teacher has the shape [3], but the vectors of this model have 16 "
        "dimensions; choose a teacher of that width"
    )
    assert refusal(model.fit, ANCHORS, np.zeros([6, 3])) == said
    said = "all texts of the data have the same label; give texts with at least two labels"
    assert refusal(model.fit, ANCHORS, ["a"] * 6) == said
    said = "each label of the data has only one text; give at least two texts per label"
    assert refusal(model.fit, ANCHORS, POSITIVES).startswith(said)
    said = "rows of 3 texts take no targets"
    assert refusal(model.fit, (*pairs, NEGATIVES), [1] * 6).startswith(said)
    assert "cannot weight them" in refusal(model.fit, pairs, sample_weight=[1] * 6)
    assert "class_weight is for classes" in refusal(model.fit, pairs, class_weight={0: 1})
    assert "dims contain 32, but the vectors have only 16" in refusal(
        model.fit, pairs, loss=bert_tf.Matryoshka(MultipleNegativesRanking(), [32])
    )
    assert "cannot be trained with the loss 'mse'" in refusal(model.compile, "adam", "mse")
    said = "no two texts of the data have the same label"
    assert refusal(model.evaluate, ANCHORS, POSITIVES).startswith(said)
    model.compile("adam", bert_tf.CoSENT())
    said = "loss has no effect on a compiled model"
    assert refusal(model.fit, pairs, loss=bert_tf.CoSENT()).startswith(said)
    dataset = tf.data.Dataset.from_tensor_slices({"a": ANCHORS, "b": POSITIVES})
    assert "the loss CoSENT takes pairs with scores" in refusal(model.fit, dataset.batch(2))
