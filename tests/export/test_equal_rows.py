"""Rows with the same token ids have the same scores, and equal scores are in order of position."""

import itertools

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.retrieval.search import exact_search
from bert_tf.text.parts import as_first, first_equal, map_rows
from tests.tasks import tiny_objects as tiny

# The same tokens in two spellings, at many places of a batch, between texts of other lengths.
SAME = ("the cat sat", "The  CAT sat")
OTHERS = ("a dog ran under the log", "fish", "a bird flew over the sea .")
TEXTS = [SAME[i % 2] if i % 3 else OTHERS[i % 9 // 3] for i in range(33)]
ARE_SAME = np.array([text in SAME for text in TEXTS])
PLACES = np.flatnonzero(ARE_SAME).tolist()


WAYS = ("python", "saved_model", "ids", "strings")


@pytest.fixture
def served(models, loaded, lite):
    """Gives a function from string tensors to the answers of a family, called in one of `WAYS`."""

    def serve(family, way):
        if way == "python":
            return models(family).serve
        if way == "saved_model":
            return loaded(family).serve
        return lite(family, **({} if way == "ids" else {"inputs": way})).serve

    return serve


@pytest.mark.end_to_end
@pytest.mark.parametrize("way", WAYS)
def test_equal_passages_are_ranked_in_their_order(served, way):
    serve = served("reranking", way)
    lists = [TEXTS, TEXTS[::-1]]
    found = serve({"query": tf.constant(["who sat", "a dog"]), "passages": tf.constant(lists)})
    for passages, order, scores in zip(
        lists, found["order"].numpy().tolist(), found["scores"].numpy().tolist(), strict=True
    ):
        same = [place for place, text in enumerate(passages) if text in SAME]
        assert len({scores[place] for place in same}) == 1
        assert [place for place in order if place in same] == same


@pytest.mark.end_to_end
@pytest.mark.parametrize("way", WAYS)
def test_the_first_of_equal_choices_is_chosen(served, way):
    serve = served("multiple_choice", way)
    for count in (2, 5, 9, 17):
        choices = [[SAME[i % 2] for i in range(count)]]
        found = serve({"context": tf.constant(["the"]), "choices": tf.constant(choices)})
        assert found["choice"].numpy().tolist() == [0]
        assert len({*found["probabilities"].numpy()[0].tolist()}) == 1


@pytest.mark.parametrize(
    ("family", "form"),
    [
        *((name, "{}") for name in ("classification", "multi_label", "regression", "embedding")),
        ("token_classification", "{}"),
        ("mlm", "{} [MASK] sat [MASK]"),
    ],
)
def test_equal_texts_of_a_request_have_equal_answers(models, family, form):
    outputs = models(family).serve(text=tf.constant([form.format(text) for text in TEXTS]))
    for name, value in outputs.items():
        if value.dtype == tf.float32 or family == "mlm":
            rows = value.numpy()[ARE_SAME]
            assert (rows == rows[0]).all(), name


def test_repeated_windows_of_a_context_have_equal_scores():
    """The windows of a text that repeats four tokens are equal, with a stride of four."""
    model = tiny.answerer(max_length=12, stride=4, max_question_length=2)
    given = {
        "question": tf.constant(["cat"] * 3),
        "context": tf.constant(["the cat sat . " * 12] * 3),
    }
    windows = model.windows()((given["question"], given["context"]))
    rows = first_equal(windows.features["input_word_ids"]).numpy()
    assert len({*rows.tolist()}) < len(rows) / 5
    for value in map_rows(model, windows.features).values():
        assert (value.numpy() == value.numpy()[rows]).all()
    for value in model.serve(given).values():
        assert (value.numpy() == value.numpy()[0]).all()


def test_equal_texts_of_several_batches_have_equal_answers(models):
    model = models("classification")
    texts = [SAME[0] if place in PLACES else text for place, text in enumerate(TEXTS)]
    for size in (2, 5, 32):
        answers = model.predict(texts, batch_size=size, verbose=0)
        assert len({answers[place]["probability"] for place in PLACES}) == 1
        one = answers[PLACES[0]]
        assert one is not answers[PLACES[1]]  # the user may change one of them


def test_equal_vectors_are_equally_alike(models):
    source = np.random.default_rng(0)
    for width, count in itertools.product((3, 8, 13, 384), (5, 31, 67)):
        vector, others = source.normal(size=(1, width)), source.normal(size=(count, width))
        passages = np.concatenate([others, vector, others[:3], vector, others]).astype(np.float32)
        queries = source.normal(size=(7, width)).astype(np.float32)
        numbers, scores = exact_search(queries, passages, k=len(passages))
        for row, values in zip(numbers.tolist(), scores.tolist(), strict=True):
            ranked = [*zip([-value for value in values], row, strict=True)]
            assert ranked == sorted(ranked)
            score_of = dict(zip(row, values, strict=True))
            assert score_of[count] == score_of[count + 4]
        found = models("embedding").similarity(queries, passages)
        assert (found[:, count] == found[:, count + 4]).all()


def test_rows_are_compared_whole():
    rows = tf.constant([[1.0, 2.0], [1.0, 3.0], [1.0, 2.0], [2.0, 1.0]])
    assert first_equal(rows).numpy().tolist() == [0, 1, 0, 3]
    assert as_first(tf.range(4), rows).numpy().tolist() == [0, 1, 0, 3]
    for shape in ((0, 3), (0, 0)):
        assert first_equal(tf.zeros(shape, tf.int32)).shape == [0]
    assert first_equal(tf.zeros([3, 0], tf.int32)).numpy().tolist() == [0, 0, 0]
