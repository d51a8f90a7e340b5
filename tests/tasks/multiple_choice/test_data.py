"""Contexts with choices in the forms of SWAG, CODAH and JSON lines."""

import json

import pytest

from bert_tf.errors import UserError
from bert_tf.tasks.multiple_choice.data import Choices, read_choices

SWAG = "video-id,fold-ind,startphrase,sent1,sent2,gold-source,ending0,ending1,ending2,ending3"


def test_swag(tmp_path):
    path = tmp_path / "train.csv"
    path.write_text(
        f",{SWAG},label\n"
        '0,v,1,"He sits. She","He sits.",She,gold,stands.,"runs, fast.",sings.,"says ""no"".",1\n'
    )
    assert read_choices(path, "swag") == [
        Choices("He sits.", ("She stands.", "She runs, fast.", "She sings.", 'She says "no".'), 1)
    ]
    path.write_text(f",{SWAG}\n0,v,1,a b,a,b,gold,c,d,e,f\n")
    assert read_choices(path, "swag") == [Choices("a", ("b c", "b d", "b e", "b f"), None)]


def test_codah(tmp_path):
    path = tmp_path / "train.tsv"
    path.write_text('o\tHe "sat. She\tran.\tflew.\tsang.\tslept.\t3\n')
    assert read_choices(path, "codah") == [
        Choices('He "sat. She', ("ran.", "flew.", "sang.", "slept."), 3)
    ]


def test_json_lines_of_any_number_of_choices(tmp_path):
    path = tmp_path / "train.jsonl"
    rows = [
        {"context": "a", "choices": ["b", "c", "d"], "label": 2},
        {"context": "\ud800", "endings": ["b", "c", "\ud800"], "label": "0"},
    ]
    path.write_text("\n".join(map(json.dumps, rows)))
    assert read_choices(path, "jsonl") == [
        Choices("a", ("b", "c", "d"), 2),
        Choices("\ufffd", ("b", "c", "\ufffd"), 0),
    ]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("codah", "o\ta\tb\tc\td\te\t\n"),
        ("swag", "sent1,sent2,ending0,ending1,ending2,ending3,label\na,it,b,c,d,e,\n"),
        ("swag", "sent1,sent2,ending0,ending1,ending2,ending3,label\na,it,b,c,d,e,-1\n"),
        ("jsonl", '{"context": "a", "choices": ["b", "c"], "label": -1}'),
        ("jsonl", '{"context": "a", "choices": ["b", "c"], "label": null}'),
    ],
)
def test_what_stands_for_a_secret_label_is_none(tmp_path, name, text):
    path = tmp_path / "test"
    path.write_text(text)
    (row,) = read_choices(path, name)
    assert row.label is None


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        (
            "codah",
            "o\ta\tb\tc\td\te\t4\n",
            "line 1: label 4 is out of range; it must be from 0 to 3",
        ),
        ("codah", "o\ta\tb\tc\td\te\tx\n", "line 1: label 'x' is not a whole number"),
        ("codah", "o\ta\tb\tc\td\te\t0\no\ta\tb\t0\n", "line 2: 4 fields; CODAH has 7"),
        ("codah", "o\ta\tb\t\td\te\t0\n", "line 1: choice 1 is empty"),
        ("codah", "o\ta\tb\tc\t \te\t0\n", "line 1: choice 2 is empty"),
        ("codah", "\n", "has no rows"),
        ("swag", f"{SWAG},label\nv,1,s,a,He,g,c,,e,f,1\n", "line 2: choice 1 is empty"),
        ("jsonl", '{"context": "a", "choices": ["b", "\\u00a0"]}', "line 1: choice 1 is empty"),
        ("swag", f"{SWAG},label\nv,1,s,a,b,g,c,d,e,f\n", "line 2: 10 fields, but .* has 11"),
        (
            "swag",
            "sent1,sent2\na,b\n",
            "line 2: no column 'ending0'; the columns are 'sent1', 'sent2'",
        ),
        (
            "jsonl",
            '{"context": "a", "choices": ["b", "c"], "label": 0}\n'
            '{"context": "a", "choices": ["b", "c", "d"], "label": 0}\n',
            "line 2: 3 choices, but earlier rows have 2",
        ),
        (
            "jsonl",
            '{"context": "a", "choices": ["b", "c"], "label": 0}\n'
            '{"context": "a", "choices": ["b", "c"]}\n',
            "line 2: no label, unlike earlier rows",
        ),
        ("jsonl", '{"context": "a"}', "line 1: no 'choices' or 'endings'; the keys are context"),
        ("jsonl", '{"choices": ["b", "c"]}', "line 1: no context; the keys are choices"),
        ("jsonl", '{"context": 1, "choices": ["b", "c"]}', "line 1: context must be a text"),
        ("jsonl", '{"context": "a", "choices": "b"}', "line 1: choices must be a list of texts"),
        ("jsonl", '{"context": "a", "choices": ["b"]}', "line 1: 1 choices; there must be two"),
        (
            "jsonl",
            '{"context": "a", "choices": ["b", "c"], "label": true}',
            "line 1: label True is not a whole number",
        ),
        ("jsonl", '{"context": "a", "choices": ["b", "c"], "label": -2}', "label -2 is out of"),
        ("jsonl", '{"context"\n', "line 1, column 11: not JSON"),
    ],
)
def test_mistakes_are_told_with_their_line(tmp_path, name, text, message):
    path = tmp_path / "train"
    path.write_text(text)
    with pytest.raises(UserError, match=message):
        read_choices(path, name)


def test_the_real_codah(shared_data):
    rows = read_choices(shared_data / "codah" / "train.tsv", "codah")
    assert len(rows) == 1665
    assert {row.label for row in rows} == {0, 1, 2, 3}
