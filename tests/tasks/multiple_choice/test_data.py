"""Contexts with choices in the forms of SWAG, CODAH and JSON lines."""

import json

import pytest

from bert_tf.errors import UserError
from bert_tf.tasks.multiple_choice.data import read_choices

SWAG = "video-id,fold-ind,startphrase,sent1,sent2,gold-source,ending0,ending1,ending2,ending3"


def test_swag(tmp_path):
    path = tmp_path / "train.csv"
    path.write_text(
        f",{SWAG},label\n"
        '0,v,1,"He sits. She","He sits.",She,gold,stands.,"runs, fast.",sings.,"says ""no"".",1\n'
    )
    rows = read_choices(path, "swag")
    choices = ["She stands.", "She runs, fast.", "She sings.", 'She says "no".']
    assert rows.values == (["He sits."], [choices]) and rows.targets == [1]
    path.write_text(f",{SWAG}\n0,v,1,a b,a,b,gold,c,d,e,f\n")
    rows = read_choices(path, "swag")
    assert rows.values == (["a"], [["b c", "b d", "b e", "b f"]]) and rows.targets is None


def test_codah(tmp_path):
    path = tmp_path / "train.tsv"
    path.write_text('o\tHe "sat. She\tran.\tflew.\tsang.\tslept.\t3\n')
    rows = read_choices(path, "codah")
    assert rows.values == (['He "sat. She'], [["ran.", "flew.", "sang.", "slept."]])
    assert rows.targets == [3]


def test_json_lines_of_any_number_of_choices(tmp_path):
    path = tmp_path / "train.jsonl"
    rows = [
        {"context": "a", "choices": ["b", "c", "d"], "label": 2},
        {"context": "\ud800", "endings": ["b", "c", "\ud800"], "label": "0"},
    ]
    path.write_text("\n".join(map(json.dumps, rows)))
    rows = read_choices(path, "jsonl")
    assert rows.values == (["a", "\ufffd"], [["b", "c", "d"], ["b", "c", "\ufffd"]])
    assert rows.targets == [2, 0]


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
def test_a_placeholder_for_a_secret_label_is_no_label(tmp_path, name, text):
    path = tmp_path / "test"
    path.write_text(text)
    assert read_choices(path, name).targets is None


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        (
            "codah",
            "o\ta\tb\tc\td\te\t4\n",
            "line 1: label is 4; it must be the number of one of the 4 choices, counted from 0",
        ),
        ("codah", "o\ta\tb\tc\td\te\tx\n", "line 1: label is 'x'; it must be the number"),
        ("codah", "o\ta\tb\tc\td\te\t0\no\ta\tb\t0\n", "line 2: 4 fields; CODAH has 7"),
        ("codah", "o\ta\tb\t\td\te\t0\n", "line 1: choices: choice 1 is empty"),
        ("codah", "o\ta\tb\tc\t \te\t0\n", "line 1: choices: choice 2 is empty"),
        ("codah", "\n", "has no rows"),
        ("swag", f"{SWAG},label\nv,1,s,a,He,g,c,,e,f,1\n", "line 2: choice 1 is empty"),
        (
            "jsonl",
            '{"context": "a", "choices": ["b", "\\u00a0"]}',
            "line 1: choices: choice 1 is empty",
        ),
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
            "line 2: label is missing, but other rows have one; give all rows one, or none",
        ),
        ("jsonl", '{"context": "a"}', "line 1: no 'choices' or 'endings'; the keys are context"),
        ("jsonl", '{"choices": ["b", "c"]}', "line 1: no context; the keys are choices"),
        ("jsonl", '{"context": 1, "choices": ["b", "c"]}', "line 1: context is 1, not a string"),
        (
            "jsonl",
            '{"context": "a", "choices": "b"}',
            "line 1: choices is 'b', not a list of strings",
        ),
        ("jsonl", '{"context": "a", "choices": ["b"]}', "line 1: choices has 1; give two or more"),
        (
            "jsonl",
            '{"context": "a", "choices": ["b", "c"], "label": true}',
            "line 1: label is True; it must be the number",
        ),
        (
            "jsonl",
            '{"context": "a", "choices": ["b", "c"], "label": -2}',
            "label is -2; it must be",
        ),
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
    assert {*rows.targets} == {0, 1, 2, 3}
