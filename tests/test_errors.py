"""An error message is one line, whatever it quotes."""

from bert_tf import UserError


def test_a_program_may_catch_it_as_a_value_error():
    assert isinstance(UserError("no rows"), ValueError)


def test_what_cannot_be_printed_is_escaped():
    found = str(UserError("no column 'a\x1b[2J\udc80 \x00é'; there are 中, 😀"))
    assert found == r"no column 'a\x1b[2J\udc80 \x00é'; there are 中, 😀"


def test_several_lines_become_one():
    assert str(UserError("a\nb\r\nc\u2028d")) == "a b c d"


def test_both_ends_of_a_long_message_are_kept():
    found = str(UserError("file.tsv: " + "column, " * 10_000 + "; set data.text_columns"))
    assert found.startswith("file.tsv: column") and found.endswith("; set data.text_columns")
    assert len(found) < 2100
