"""Every mistake in what is given to a task model is one sentence, with its position."""

import numpy as np
import pandas as pd
import pytest
import tensorflow as tf

import bert_tf
from tests.tasks import tiny_objects as tiny
from tests.tasks.refusals import refusal
from tests.tasks.tiny_objects import LABELS, TEXTS

PAIRS = list(zip(TEXTS, TEXTS, strict=True))


@pytest.fixture(scope="module")
def classifier():
    return tiny.classifier(labels=["bad", "good"], pair=False)


@pytest.fixture(scope="module")
def of_pairs():
    return tiny.classifier(labels=["bad", "good"], pair=True)


def test_texts_and_labels_of_different_number(classifier):
    for call in (classifier.fit, classifier.evaluate):
        assert refusal(call, TEXTS, LABELS[:-1]) == (
            "there are 24 rows, but 23 labels; give one for each row"
        )


def test_columns_of_different_number(of_pairs):
    expected = "the columns have different numbers of rows: 24 of text_a and 23 of text_b"
    assert refusal(of_pairs.fit, (TEXTS, TEXTS[:-1]), LABELS) == expected
    assert refusal(of_pairs.predict, (TEXTS, TEXTS[:-1])) == expected


def test_no_texts(classifier):
    for call in (classifier.fit, classifier.evaluate):
        assert refusal(call, [], []) == "there are no rows; give at least one"


def test_a_label_that_training_did_not_have(classifier):
    expected = "row 1: label 'ugly' is unknown; the labels are bad, good"
    labels = ["bad", "ugly"]
    assert refusal(classifier.evaluate, TEXTS[:2], labels) == expected
    assert refusal(classifier.fit, TEXTS[:2], labels) == expected
    validation = {"validation_data": (TEXTS[:2], labels)}
    assert refusal(classifier.fit, TEXTS, LABELS, **validation) == expected


def test_one_class_only():
    assert refusal(tiny.classifier().fit, TEXTS, ["good"] * 24) == (
        "the data: only one label, 'good'; a classifier requires two or more"
    )


@pytest.mark.parametrize(
    ("make", "what"),
    [(tiny.classifier, "labels"), (tiny.regressor, "labels"), (tiny.tagger, "tags")],
)
def test_labels_missing(make, what):
    expected = f"the {what} are missing; give them as the second argument"
    assert expected in refusal(make().fit, TEXTS)


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (["bad", None], "label 1 is missing"),
        (["bad", float("nan")], "label 1 is missing"),
        ([True, "bad"], "label 1 is a string, but label 0 is a boolean; give labels of one kind"),
        ([0.5, 1.0], "label 0 is 0.5; give names or whole numbers, or use a TextRegressor to"),
        (["bad", 1], "label 1 is a number, but label 0 is a string; give labels of one kind"),
        (["bad", ["good"]], "label 1 is ['good']; give names or whole numbers"),
        ([["bad"], ["good"]], "label 0 is ['bad']; give a name, a whole number, or a one-hot row"),
        ([[0, 1], [1, 1]], "label 1 is [1, 1]; give a name, a whole number, or a one-hot row of 2"),
        ([[0, 1, 0]] * 2, "label 0 is [0, 1, 0]; give a name, a whole number, or a one-hot row of"),
        (pd.Series([1, None], dtype="Int64"), "label 1 is missing"),
    ],
)
def test_what_is_no_label(classifier, labels, expected):
    assert refusal(classifier.fit, TEXTS[:2], labels).startswith(expected)


def test_targets_that_are_not_finite_numbers():
    for value in ("two", True, np.inf):
        said = refusal(tiny.regressor().fit, TEXTS[:2], [1.0, value])
        assert said == f"label 1 is {value!r}, not a finite number"


def test_a_number_where_a_string_is_expected(classifier, of_pairs):
    for call, more in ((classifier.predict, ()), (classifier.fit, (LABELS[:2],))):
        assert refusal(call, ["cat", 7], *more) == "text 1 is 7, not a string"
        assert refusal(call, ["cat", None], *more) == "text 1 is missing (None); give a string"
        missing = refusal(call, ["cat", float("nan")], *more)
        assert missing == "text 1 is missing (nan); give a string"
    assert refusal(classifier.predict, np.array([1.5, 2.5])) == "text 0 is 1.5, not a string"
    assert refusal(of_pairs.predict, (["cat"], [7])) == "text_b 0 is 7, not a string"
    assert refusal(tiny.answerer().predict, ["cat"], [7]) == "context 0 is 7, not a string"


def test_a_list_of_tuples(classifier, of_pairs):
    expected = (
        "text 0 is ('the cat sat', 'the cat sat'), not a string; give pairs as two columns, "
        "(first_texts, second_texts), not as a list of pairs"
    )
    assert refusal(tiny.classifier().fit, PAIRS, LABELS) == expected
    assert refusal(classifier.predict, PAIRS) == expected
    assert "give a tuple of 2 columns: (text_a, text_b)" in refusal(of_pairs.predict, PAIRS)


def test_pairs_where_single_texts_were_trained_and_the_reverse(classifier, of_pairs):
    for call, more in ((classifier.predict, ()), (classifier.fit, (LABELS,))):
        assert refusal(call, (TEXTS, TEXTS), *more) == (
            "the model takes single texts, but a tuple of 2 columns was given; give a list of texts"
        )
    for call, more in ((of_pairs.predict, ()), (of_pairs.fit, (LABELS,))):
        assert refusal(call, TEXTS, *more) == (
            "the model takes text_a and text_b, but one column was given; give a tuple of 2 "
            "columns: (text_a, text_b)"
        )
    rows = tf.data.Dataset.from_tensor_slices(((TEXTS, TEXTS), LABELS)).batch(8)
    assert "the model takes text, but the dataset has 2 columns" in refusal(classifier.fit, rows)


def test_one_string_is_no_training_data(classifier):
    assert refusal(classifier.fit, "cat", ["good"]) == "text is one string; give a list of strings"


def test_an_answer_that_is_not_in_its_context():
    answers = [{"text": "mat", "start": 18}, *tiny.ANSWERS[1:]]
    found = refusal(tiny.answerer().fit, tiny.QUESTIONS, tiny.CONTEXTS, answers)
    assert found == "answer 0, 'mat', is not at character 18 of its context; correct start"


@pytest.mark.parametrize(
    "answer", [{"text": 5}, {"start": 3}, 7, [1], {"text": "mat", "start": "4"}]
)
def test_what_is_no_answer(answer):
    found = refusal(tiny.answerer().fit, ["cat"], ["the mat"], [answer])
    assert found.startswith("answer 0 is ")
    assert 'give its text, or a dict with "text" and "start"' in found


def test_answers_whose_place_is_not_known(capsys):
    model, answers = tiny.answerer(), ["the", "log", "mats", "MAT", *["cat", "log"] * 6]
    model.fit(tiny.QUESTIONS, tiny.CONTEXTS, answers, verbose=0)
    why = "because no answer is in the context at its offset, or exactly once if it has no offset"
    first = "row 0 ('the'), row 2 ('mats'), row 3 ('MAT')"
    said = " ".join(capsys.readouterr().err.split())
    assert f"the data: questions skipped {why}: 3 of 16, the first {first}" in said
    said = refusal(model.fit, ["cat"], ["the the"], ["the"])
    assert said.startswith(
        "the data: none of 1 answers is in the context at its offset, or exactly"
    )
    rows = tf.data.Dataset.from_tensor_slices(((["cat"], ["the cat"]), ["cat"])).batch(1)
    assert "the answers of a dataset are a dict of text and start" in refusal(model.fit, rows)
    refused = refusal(tiny.answerer(unanswerable=False).fit, ["a"] * 2, ["cat"] * 2, ["cat", ""])
    assert refused.startswith("answer 1 is missing, but the model always answers")


def test_answers_missing():
    assert "the answers are missing" in refusal(tiny.answerer().fit, ["cat"], ["the mat"])
    found = refusal(tiny.answerer(unanswerable=False).fit, ["cat"], ["the mat"], [None])
    assert found.startswith("answer 0 is missing, but the model always answers")
    rows = [{"question": "cat", "context": "the mat"}, {"question": "cat"}]
    assert refusal(tiny.answerer().predict, rows) == "row 1 has no context; the keys are question"


def test_words_and_tags_of_different_number():
    tags = [tiny.TAGS[0], tiny.TAGS[1][:-1]]
    assert refusal(tiny.tagger().fit, tiny.WORDS[:2], tags) == (
        "row 1 has 4 words, but 3 tags; give a tag for each word"
    )


def test_invalid_words_and_tags():
    assert refusal(tiny.tagger().fit, ["the cat"], [["O"]]) == (
        "row 0: a span of 'the cat' has the keys start, end and label, not 'O'; where words have "
        "tags, give the words of a row in a list, not in a text"
    )
    assert refusal(tiny.tagger().fit, [["the", 3]], [["O", "O"]]) == (
        "words 0, entry 1 is 3, not a string"
    )
    assert refusal(tiny.tagger().fit, [["the"], []], [["O"], []]) == (
        "words 1 has 0; give one or more"
    )
    assert refusal(tiny.tagger().fit, [["the"]], ["O"]) == "tags 0 is 'O'; give a list of tags"
    assert "all tags are O" in refusal(tiny.tagger().fit, [["the"]], [["O"]])
    found = refusal(tiny.tagger(labels=["O", "B-x", "I-x"]).fit, [["the"]], [["B-y"]])
    assert found.startswith("row 0, word 0: entities of type 'y' are not in the training")


def test_invalid_choices_and_labels():
    model = tiny.chooser()
    assert refusal(model.fit, (["cat"], [["sat", "ran"]]), [2]) == (
        "label 0 is 2; it must be the number of one of the 2 choices, counted from 0"
    )
    assert refusal(model.predict, ["cat"], [["sat"]]) == ("choices 0 has 1; give two or more")
    assert refusal(model.predict, ["cat"], [["sat", " "]]) == "choices 0: choice 1 is empty"
    assert refusal(model.predict, ["cat"], ["sat"]) == "choices 0 is 'sat', not a list of strings"


@pytest.mark.parametrize("ask", ["predict", "serve", "export", "save_checkpoint"])
def test_a_model_without_labels_does_not_answer(ask, tmp_path):
    given = {"predict": ["cat"], "serve": tf.constant(["cat"])}.get(ask, tmp_path / "out")
    assert "has no labels yet; train it" in refusal(getattr(tiny.classifier(), ask), given)
    assert not (tmp_path / "out").exists()


def test_weights(classifier):
    assert refusal(classifier.fit, TEXTS, LABELS, sample_weight=[1.0]) == (
        "there are 24 rows, but 1 sample weights; give one for each row"
    )
    assert "finite number" in refusal(classifier.fit, TEXTS, LABELS, sample_weight=[np.nan] * 24)
    assert refusal(classifier.fit, TEXTS, LABELS, class_weight={"ugly": 1}) == (
        "class_weight has 'ugly', which is not a label; the labels are bad, good"
    )
    found = refusal(tiny.answerer().fit, ["c"], ["mat"], [None], class_weight={0: 1.0})
    assert found == "class_weight is for classes, but a QuestionAnswerer has none; remove it"
    assert "weight all rows equally" in refusal(
        classifier.evaluate, TEXTS, LABELS, sample_weight=[1.0] * 24
    )


def test_datasets_that_do_not_fit(classifier):
    rows = tf.data.Dataset.from_tensor_slices((TEXTS, LABELS))
    assert "batch it first: dataset.batch(32)" in refusal(classifier.fit, rows)
    assert "batch it first: dataset.batch(32)" in refusal(classifier.evaluate, rows)
    assert "give labels= when you create the model" in refusal(tiny.classifier().fit, rows.batch(8))
    assert "the dataset has no labels" in refusal(
        classifier.fit, tf.data.Dataset.from_tensor_slices(TEXTS).batch(8)
    )
    endless = rows.batch(8).repeat()
    assert "x is an endless dataset; give the number of steps" in refusal(
        classifier.evaluate, endless
    )
    assert "a dataset contains its targets" in refusal(classifier.fit, rows.batch(8), LABELS)


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (["bad", "ugly"], "the label 'ugly' is unknown; the labels are bad, good"),
        ([0.5, 1.0], "the label '0.5' is unknown; the labels are bad, good"),
        ([[0, 1], [0, 0]], "a label is not a one-hot row of bad, good"),
        ([[0, 1, 0]] * 2, "a label is not a one-hot row of bad, good"),
    ],
)
def test_a_label_in_a_dataset_that_is_unknown(labels, expected):
    rows = tf.data.Dataset.from_tensor_slices((TEXTS[:2], labels)).batch(2)
    model = tiny.classifier(labels=["bad", "good"])
    model.compile("sgd", run_eagerly=True)
    assert refusal(model.fit, rows, verbose=0) == f"in the dataset, {expected}"


def test_a_generator_of_strings_is_no_training_data(classifier):
    expected = "read only once; give lists, or a dataset: tf.data.Dataset.from_generator"
    for call in (classifier.fit, classifier.evaluate):
        assert expected in refusal(call, iter(TEXTS), LABELS)
    assert expected in refusal(classifier.fit, TEXTS, LABELS, validation_data=iter(TEXTS))
    assert "different numbers of inputs" in refusal(
        classifier.predict, iter([("cat", "dog"), ("cat",)])
    )


def test_validation_data_that_do_not_fit(classifier):
    fit = classifier.fit
    assert refusal(fit, TEXTS, LABELS, validation_data=TEXTS) == (
        "validation_data must be a pair, (inputs, labels)"
    )
    assert "validation_split 0.99 of 24 rows leaves one of the two parts empty" in refusal(
        fit, TEXTS, LABELS, validation_split=0.99
    )


def test_settings_that_do_not_fit(tmp_path):
    assert refusal(tiny.classifier, max_length=99) == (
        "max_length 99 is longer than the model's 32 positions; lower it to 32"
    )
    for make in (tiny.classifier, tiny.regressor, tiny.chooser, tiny.answerer, tiny.tagger):
        for length in (0, -1):
            assert refusal(make, max_length=length).startswith("max_length must be at least 3")
    assert "the label 'good' occurs 2 times" in refusal(tiny.classifier, labels=["good", "good"])
    tiny.classifier(labels=["bad", "good"]).save_checkpoint(tmp_path / "checkpoint")
    for open_with in (bert_tf.TextClassifier.from_checkpoint, bert_tf.load):
        assert refusal(open_with, tmp_path / "checkpoint", lenght=3) == (
            "a TextClassifier has no setting 'lenght'; the settings are pair, max_length, dropout, "
            "multi_label, pooling, normalize, long_text, window_pooling, stride, max_windows, "
            "temperature, abstain"
        )
