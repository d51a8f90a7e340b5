"""Tables are read as they are written, and mistakes in them are reported with file and line."""

import gzip

import pytest

from bert_tf.data.tables import format_of, read_table
from bert_tf.errors import UserError


def rows(path, text: str, columns=("text", "label"), **options) -> list[tuple[int, dict]]:
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    return list(read_table(path, path.suffix[1:], columns, **options))


def test_quotes_in_tsv_are_text_and_in_csv_are_quotes(tmp_path):
    tsv = rows(tmp_path / "a.tsv", 'text\tlabel\n"said he\tx\n5" disk\ty\n')
    assert tsv == [(2, {"text": '"said he', "label": "x"}), (3, {"text": '5" disk', "label": "y"})]
    csv = rows(tmp_path / "a.csv", 'text,label\n"two\nlines, ""so""",x\n')
    assert csv == [(3, {"text": 'two\nlines, "so"', "label": "x"})]


def test_fields_that_look_quoted_in_tsv_give_a_warning(tmp_path, capsys):
    as_pandas_writes = 'text\tlabel\nsaid he\tx\n"he said ""hi"""\tx\n"""no"""\ty\n'
    read = rows(tmp_path / "a.tsv", as_pandas_writes)
    assert read[1] == (3, {"text": '"he said ""hi"""', "label": "x"})
    told = capsys.readouterr().err
    assert "a.tsv: fields of 2 rows, the first in line 3, look quoted as in CSV" in told
    rows(tmp_path / "b.tsv", 'text\tlabel\n"so" he said "yes"\tx\n"so"\tx\n""\ty\n')
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("mark", ["\u2028", "\x85", "\x0b", "\x1c", "\r"])
def test_only_a_line_feed_ends_a_line_of_tsv_and_jsonl(tmp_path, mark):
    (tsv,) = rows(tmp_path / "a.tsv", f"text\tlabel\none{mark}two\tx\n")
    assert tsv == (2, {"text": f"one{mark}two", "label": "x"})
    if mark not in "\r\x0b\x1c":  # JSON wants these written as escapes
        (jsonl,) = rows(tmp_path / "a.jsonl", f'{{"text": "one{mark}two", "label": "x"}}\n')
        assert jsonl[1]["text"] == f"one{mark}two"


def test_windows_line_ends_a_mark_at_the_start_and_empty_lines_are_no_text(tmp_path):
    found = rows(tmp_path / "a.tsv", "\ufefftext\tlabel\r\none\tx\r\n\r\ntwo\ty\r\n")
    assert found == [(2, {"text": "one", "label": "x"}), (4, {"text": "two", "label": "y"})]
    found = rows(tmp_path / "a.csv", '\r\ntext,label\r\none,x\r\n\r\n"two\n",y\r\n\r\n')
    assert found == [(3, {"text": "one", "label": "x"}), (6, {"text": "two\n", "label": "y"})]


@pytest.mark.parametrize("name", ["a.tsv", "a.csv"])
def test_where_there_is_one_column_an_empty_line_between_others_is_an_empty_text(tmp_path, name):
    found = rows(tmp_path / name, "\ntext\none\n\n\r\ntwo\n\n\r\n", ("text",))
    texts = {line: row["text"] for line, row in found}
    assert texts == {3: "one", 4: "", 5: "", 6: "two"}


@pytest.mark.parametrize(
    ("values", "labels"),
    [
        (["1", "2"], ["1", "2"]),
        (["1.50", "1e2"], ["1.5", "100"]),
        (["1", "1.0", "0", "-0.0", '"1.0"'], ["1", "1", "0", "0", "1.0"]),
        (["1", "true"], ["1", "true"]),
    ],
)
def test_json_values_become_texts_and_whole_numbers_one_text(tmp_path, values, labels):
    text = "\n\n".join(f'{{"text": "a", "label": {value}, "more": []}}' for value in values)
    assert [row["label"] for _, row in rows(tmp_path / "a.jsonl", text)] == labels


def test_targets_stay_what_they_are_in_json(tmp_path):
    text = '{"text": "a", "label": 1.0}\n{"label": true, "text": "\\ud83d"}\n'
    found = rows(tmp_path / "a.jsonl", text, targets=["label"])
    assert [(row["text"], row["label"]) for _, row in found] == [("a", 1.0), ("\ufffd", True)]


@pytest.mark.parametrize("value", ["NaN", "Infinity", "-Infinity"])
def test_what_pandas_writes_for_nothing_is_no_json(tmp_path, value):
    with pytest.raises(
        UserError, match=f"line 1: the JSON cannot be read .{value} is not valid JSON"
    ):
        rows(tmp_path / "a.jsonl", f'{{"text": "a", "label": {value}}}\n')


def test_half_a_surrogate_pair_becomes_a_replacement_character(tmp_path):
    ((_, row),) = rows(tmp_path / "a.jsonl", '{"text": "\\ud83d!", "label": "\\ud83d\\ude00"}')
    assert row == {"text": "\ufffd!", "label": "\U0001f600"}


def test_a_gzipped_table_is_read_as_the_plain_one(tmp_path):
    (tmp_path / "a.tsv.gz").write_bytes(gzip.compress(b"text\tlabel\nb\tx\n"))
    found = read_table(tmp_path / "a.tsv.gz", "tsv", ("text", "label"))
    assert [*found] == [(2, {"text": "b", "label": "x"})]
    assert format_of(tmp_path / "a.tsv.gz", "jsonl", own=[]) == "tsv"


def test_a_key_is_found_twice_among_very_many(tmp_path):
    keys = ", ".join(f'"{number}": 0' for number in [*range(200_000), 7])
    with pytest.raises(UserError, match="an object has the key '7' twice"):
        rows(tmp_path / "a.jsonl", f"{{{keys}}}")


def test_a_field_may_be_as_long_as_a_book(tmp_path):
    ((_, row),) = rows(tmp_path / "a.csv", "text,label\n" + "x" * 1_000_000 + ",y\n")
    assert len(row["text"]) == 1_000_000


def test_an_optional_column_is_read_if_it_is_there(tmp_path):
    options = {"columns": ("text",), "optional": ("label",)}
    assert rows(tmp_path / "a.tsv", "text\nb\n", **options) == [(2, {"text": "b"})]
    found = rows(tmp_path / "b.tsv", "label\ttext\nx\tb\n", **options)
    assert found == [(2, {"text": "b", "label": "x"})]


def test_each_json_line_has_an_optional_column_or_not_and_null_is_not(tmp_path):
    text = '{"text": "a"}\n{"text": "b", "label": null}\n{"text": "c", "label": 0}\n'
    found = rows(tmp_path / "a.jsonl", text, ("text",), optional=("label",))
    assert [row.get("label") for _, row in found] == [None, None, "0"]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        (
            "a.tsv",
            "text\t label\nb\tx\n",
            "line 2: no column 'label'; the columns are 'text', ' label'",
        ),
        ("a.tsv", "text\tlabel\nb\tx\nc\n", "line 3: 1 fields, but the header has 2; TSV has no q"),
        ("a.tsv", "text\tlabel\nb\tx\ty\n", "line 2: 3 fields, .* line breaks as csv or jsonl"),
        ("a.csv", "text,label\nb, c,x\n", "line 2: 3 fields, .* commas .* in quotation marks"),
        ("a.tsv", "text\ttext\tlabel\nb\tb\tx\n", "line 1: two columns are named 'text'"),
        ("a.csv", 'text,label\n"b,x\n', "line 2: unexpected end of data"),
        ("a.jsonl", '{"text": "b", "label": 0}\n{"text" "c"}\n', "line 2, column 9: not JSON"),
        ("a.jsonl", "[1]\n", "line 1: expected one JSON object"),
        ("a.jsonl", '{"text": "b", "label": null}', "line 1, label: .*a number, got null"),
        ("a.jsonl", '{"text": ["b"], "label": 1}', "line 1, text: .*a number, got a list"),
        ("a.jsonl", '{"text": "b"}', "line 1: no column 'label'; the columns are 'text'"),
        ("a.jsonl", '{"text": "b", "text": "c"}', "line 1: .*an object has the key 'text' twice"),
        ("a.jsonl", "[" * 100_000, "line 1: the JSON cannot be read"),
        ("a.tsv", "", "data is empty: .*a.tsv"),
    ],
)
def test_mistakes_are_told_with_their_line(tmp_path, name, text, message):
    with pytest.raises(UserError, match=message) as error:
        rows(tmp_path / name, text)
    assert name in str(error.value)
    assert "\n" not in str(error.value)


def test_a_runs_own_files_are_read_as_configured_and_others_by_their_endings(tmp_path):
    own = [tmp_path / "train.csv", tmp_path / "dev.tsv"]
    assert format_of(tmp_path / "train.csv", "tsv", own) == "tsv"
    assert format_of(tmp_path / "unseen.csv", "tsv", own) == "csv"
    assert format_of(tmp_path / "unseen.txt", "tsv", own) == "tsv"
