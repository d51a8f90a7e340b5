"""Labels become classes or numbers; those that cannot are named with their place."""

import numpy as np
import pytest

from bert_tf.data.columns import Columns, TextColumn
from bert_tf.data.targets import Label, Number
from bert_tf.errors import UserError


def texts(*labels, target=None, **fields) -> Columns:
    column = [f"text {i}" for i in range(len(labels))]
    places = range(2, len(labels) + 2)
    rows = Columns(("text",), (column,), list(labels), "a.tsv", places, **fields)
    return rows.checked([TextColumn("text")], target or Label())


def test_labels_are_found_and_sorted():
    assert Label().found_in(texts("no", "yes", "no", "maybe")) == ("maybe", "no", "yes")
    assert Label().found_in(texts("10", "9", "1")) == ("1", "9", "10")
    assert Label(("9", "10")).numbers(texts("10", "9", "10")).tolist() == [1, 0, 1]


def test_labels_of_the_same_number_are_always_in_the_same_order():
    ones = [f"{'0' * zeros}1" for zeros in range(9)]
    assert Label().found_in(texts("2", *ones)) == (*sorted(ones), "2")


def test_classes_of_the_format_stand_in_its_order_even_where_they_do_not_occur():
    rows = texts("b", "a", classes=("c", "b", "a"))
    assert Label().found_in(rows) == ("c", "b", "a")
    assert Label(("c", "b", "a")).numbers(rows).tolist() == [1, 2]


def test_numbers_are_numbers():
    written = map(Number().from_text, ("1", "-2.5", "3e-2"))
    found = Number().numbers(texts(*written, target=Number()))
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, [1, -2.5, 0.03])


@pytest.mark.parametrize("label", ["inf", "-inf", "1e39", "x", "", "1,5"])
def test_what_is_no_finite_number_is_named(label):
    with pytest.raises(UserError, match="a.tsv, line 3: label is .*, not a finite number"):
        texts(1, Number().from_text(label), target=Number())


def test_an_unknown_label_is_named_with_the_known_ones():
    with pytest.raises(UserError, match="a.tsv, line 4: label 'c' is unknown; the labels are a, b"):
        Label(("a", "b")).numbers(texts("a", "b", "c"))


@pytest.mark.parametrize("label", ["", " ", "\u00a0"])
def test_an_empty_label_is_named_with_its_row(label):
    message = "a.tsv, line 4: the label is empty; write one, or remove the row"
    with pytest.raises(UserError, match=message):
        Label().found_in(texts("a", "b", label))
    with pytest.raises(UserError, match=message):
        Label(("a", "b")).numbers(texts("a", "b", label))


@pytest.mark.parametrize(
    "label", ["good ", "\tgood", "very\tgood", "very\ngood", "very\u2028good", "good\n"]
)
def test_a_label_that_a_file_of_labels_or_predictions_cannot_hold_is_named(label):
    with pytest.raises(UserError, match="a.tsv, line 3: the label '.*good.*' has spaces around"):
        Label().found_in(texts("good", label))
    assert Label().found_in(texts("good", "very good")) == ("good", "very good")


def test_one_label_no_label_and_no_rows_are_mistakes():
    with pytest.raises(UserError, match="a.tsv: only one label, 'a'; a classifier requires two"):
        Label().found_in(texts("a", "a"))
    with pytest.raises(UserError, match="a.tsv has no rows"):
        texts()
    with pytest.raises(UserError, match="a.tsv has no labels"):
        Label().numbers(Columns(("text",), (["x"],), None, "a.tsv", [2]))


def test_the_first_rows_are_all_of_the_first_rows():
    first = texts("a", "b", "c").first(2)
    assert (first.values, first.targets, list(first.places)) == (
        (["text 0", "text 1"],),
        ["a", "b"],
        [2, 3],
    )
    assert len(texts("a", "b").first(None)) == 2
