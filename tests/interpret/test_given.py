"""Options of the command line become rows, and bad ones are reported in one line."""

import pytest

from bert_tf.errors import UserError
from bert_tf.interpret import check_rows, rows_of

PAIR = (("text_a", "text_b"),)


def test_columns_become_rows():
    columns = {"context": ["a", "b"], "choices": [["x", "y"], ["z", "w"]], "text": None}
    assert rows_of(columns) == [
        {"context": "a", "choices": ["x", "y"]},
        {"context": "b", "choices": ["z", "w"]},
    ]
    assert rows_of({"text": None}) == []


def test_bytes_that_are_not_utf8_are_replaced():
    (row,) = rows_of({"text": [b"caf\xe9".decode("utf-8", "surrogateescape")]})
    assert row == {"text": "caf?"}


def test_columns_must_have_equal_lengths():
    with pytest.raises(UserError, match="2 of --text-a, 1 of --text-b"):
        rows_of({"text_a": ["a", "b"], "text_b": ["c"]})


@pytest.mark.parametrize(
    ("row", "accepted", "message"),
    [
        ({"text": "a"}, PAIR, "runs/x takes --text-a and --text-b, not --text; see"),
        ({"text_a": "a"}, (("text",), *PAIR), "--text or --text-a and --text-b, not --text-a;"),
        ({"text": " "}, (("text",),), "--text: text 1 is empty"),
        (
            {"context": "a", "choices": ["b"]},
            (("context", "choices"),),
            "--choices: text 1 has one choice; give two or more",
        ),
    ],
)
def test_rows_must_be_what_the_model_takes(row, accepted, message):
    with pytest.raises(UserError) as error:
        check_rows([row], accepted, "runs/x")
    assert message in str(error.value)
