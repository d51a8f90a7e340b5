"""Labels become classes or numbers; those that cannot are named with their place."""

import numpy as np
import pytest

from bert_tf.errors import UserError
from bert_tf.tasks.texts.labelled_texts import LabelledTexts


def texts(*labels: str, **fields) -> LabelledTexts:
    column = [f"text {i}" for i in range(len(labels))]
    return LabelledTexts("a.tsv", (column,), list(labels), range(2, len(labels) + 2), **fields)


def test_labels_are_found_and_sorted():
    assert texts("no", "yes", "no", "maybe").all_classes() == ("maybe", "no", "yes")
    assert texts("10", "9", "1").all_classes() == ("1", "9", "10")
    np.testing.assert_array_equal(texts("10", "9", "10").class_ids(), [1, 0, 1])


def test_labels_of_the_same_number_are_always_in_the_same_order():
    ones = [f"{'0' * zeros}1" for zeros in range(9)]
    assert texts("2", *ones).all_classes() == (*sorted(ones), "2")


def test_classes_of_the_format_stand_in_its_order_even_where_they_do_not_occur():
    rows = texts("b", "a", classes=("c", "b", "a"))
    assert rows.all_classes() == ("c", "b", "a")
    np.testing.assert_array_equal(rows.class_ids(), [1, 2])


def test_numbers_are_numbers():
    found = texts("1", "-2.5", "3e-2").numbers()
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, [1, -2.5, 0.03])


@pytest.mark.parametrize("label", ["nan", "inf", "-inf", "1e39", "x", "", "1,5"])
def test_what_is_no_finite_number_is_named(label):
    with pytest.raises(UserError, match=f"a.tsv, line 3: label {label!r} is not a finite number"):
        texts("1", label).numbers()


def test_an_unknown_label_is_named_with_the_known_ones():
    with pytest.raises(UserError, match="a.tsv, line 4: label 'c' is unknown; the labels are a, b"):
        texts("a", "b", "c").class_ids(("a", "b"))


@pytest.mark.parametrize("label", ["", " ", "\u00a0"])
def test_an_empty_label_is_named_with_its_row(label):
    message = "a.tsv, line 4: the label is empty; write one, or remove the row"
    with pytest.raises(UserError, match=message):
        texts("a", "b", label).all_classes()
    with pytest.raises(UserError, match=message):
        texts("a", "b", label).class_ids(("a", "b"))


@pytest.mark.parametrize(
    "label", ["good ", "\tgood", "very\tgood", "very\ngood", "very\u2028good", "good\n"]
)
def test_a_label_that_a_file_of_labels_or_predictions_cannot_hold_is_named(label):
    with pytest.raises(UserError, match="a.tsv, line 3: the label '.*good.*' has spaces around"):
        texts("good", label).all_classes()
    assert texts("good", "very good").all_classes() == ("good", "very good")


def test_one_label_no_label_and_no_rows_are_mistakes():
    with pytest.raises(UserError, match="a.tsv: only one label, 'a'; a classifier requires two"):
        texts("a", "a").all_classes()
    with pytest.raises(UserError, match="a.tsv has no rows"):
        texts()
    with pytest.raises(UserError, match="a.tsv has no labels"):
        LabelledTexts("a.tsv", (["x"],), None, [2]).numbers()


def test_the_first_rows_are_all_of_the_first_rows():
    first = texts("a", "b", "c").first(2)
    assert (first.columns, first.labels, list(first.places)) == (
        (["text 0", "text 1"],),
        ["a", "b"],
        [2, 3],
    )
    assert len(texts("a", "b").first(None)) == 2
