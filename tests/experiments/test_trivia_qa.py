"""TriviaQA's questions and documents become questions in SQuAD's form."""

import json

import pytest

from bert_tf.errors import UserError
from bert_tf.experiments import trivia_qa
from bert_tf.tasks.question_answering.squad import answer_bytes, read_squad


def write_questions(folder, *names: str, **changes):
    """Two questions; the first has the documents `names`."""
    answer = {"Value": "Sunset Boulevard", "Aliases": ["Sunset Blvd"], "NormalizedAliases": []}
    pages = [{"Filename": name, "DocSource": "TagMe", "Title": "x"} for name in names]
    row = {"QuestionId": "tc_3", "Question": "Which?", "Answer": answer, "EntityPages": pages}
    other = row | {"QuestionId": "tc_4", "EntityPages": []}
    path = folder / "train.json"
    path.write_text(json.dumps({"Data": [row | changes, other], "Version": 1.0}))
    return path


def documents(folder, **texts: str):
    (folder / "evidence").mkdir()
    for name, text in texts.items():
        (folder / "evidence" / f"{name}.txt").write_text(text, encoding="utf-8")
    return folder / "evidence"


def test_each_document_with_an_answer_gives_a_question(tmp_path):
    evidence = documents(
        tmp_path,
        both="Zoë ran.\n\nOn sunset\nboulevard, or Sunset Blvd.",
        late="one two three Sunset Boulevard",
        part="The Sunset Boulevards.",
        empty="",
    )
    names = ("both.txt", "late.txt", "part.txt", "empty.txt", "absent.txt")
    out = tmp_path / "out.json"
    arguments = ["--questions", str(write_questions(tmp_path, *names)), "--evidence", str(evidence)]
    assert trivia_qa.main([*arguments, "--out", str(out), "--words", "5"]) == 0
    rows = read_squad(out)
    assert rows.ids[0] == "tc_3--both.txt"
    contexts = ["Zoë ran.\n\nOn sunset\nboulevard,", "one two three Sunset Boulevard"]
    assert rows.values == (["Which?"] * 2, contexts)
    assert rows.targets[0][0].text == "sunset\nboulevard"
    start, end = answer_bytes(rows.targets[0], contexts[0])
    assert contexts[0].encode()[start:end] == b"sunset\nboulevard"


def test_the_answer_is_cut_off_with_the_words(tmp_path):
    evidence = documents(tmp_path, late="one two three Sunset Boulevard")
    with pytest.raises(
        UserError, match="1 of 2 documents are missing, and the others hold no answer"
    ):
        path = write_questions(tmp_path, "late.txt", "absent.txt")
        trivia_qa.convert(path, evidence, tmp_path / "out.json", words=4)


def test_of_answers_at_one_place_the_longest_is_taken(tmp_path):
    evidence = documents(tmp_path, a="In SUNSET BOULEVARD FILM.")
    answer = {"Value": "sunset", "Aliases": ["Sunset Boulevard", " "], "NormalizedAliases": ["x"]}
    path = write_questions(tmp_path, "a.txt", Answer=answer)
    assert trivia_qa.convert(path, evidence, tmp_path / "out.json") == 1
    assert read_squad(tmp_path / "out.json").targets[0][0].text == "SUNSET BOULEVARD"


def test_a_document_that_a_question_names_twice_gives_one_question(tmp_path):
    evidence = documents(tmp_path, a="Sunset Boulevard", b="Sunset Blvd.")
    path, out = write_questions(tmp_path, "a.txt", "b.txt", "a.txt"), tmp_path / "out.json"
    # Two questions of one name give one question too.
    content = json.loads(path.read_text())
    content["Data"].append(content["Data"][0])
    path.write_text(json.dumps(content))
    assert trivia_qa.convert(path, evidence, out) == 2
    assert read_squad(out).ids == ["tc_3--a.txt", "tc_3--b.txt"]


def test_names_that_lead_elsewhere_or_nowhere_are_not_there(tmp_path):
    evidence = documents(tmp_path, a="Sunset Boulevard")
    outside = tmp_path / "outside.txt"
    outside.write_text("Sunset Boulevard")
    names = ("../outside.txt", str(outside), "x" * 300, "a\0b", "\ud800", ".", "a.txt")
    out = tmp_path / "out.json"
    path = write_questions(tmp_path, *names, QuestionId="\ud800")
    assert trivia_qa.convert(path, evidence, out) == 1
    assert read_squad(out).ids[0] == "\ufffd--a.txt"


def test_a_number_of_words_below_one_is_refused(tmp_path):
    with pytest.raises(UserError, match="--words must be at least 1, not -5"):
        trivia_qa.convert(write_questions(tmp_path), tmp_path, tmp_path / "out.json", words=-5)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"Question": 1}, r"Data\[0\].Question must be a text"),
        ({"Answer": {}}, r"Data\[0\].Answer has no key 'Value'"),
        (
            {"Answer": {"Value": "a", "Aliases": ["b", None], "NormalizedAliases": []}},
            r"Data\[0\].Answer.Aliases\[1\] must be a text",
        ),
        ({"EntityPages": [{}]}, r"Data\[0\].EntityPages\[0\] has no key 'Filename'"),
    ],
)
def test_another_form_is_told_with_the_place(tmp_path, capsys, changes, message):
    path = write_questions(tmp_path, **changes)
    with pytest.raises(UserError, match=message):
        trivia_qa.convert(path, tmp_path, tmp_path / "out.json")
    arguments = ["--questions", path, "--evidence", tmp_path, "--out", tmp_path / "out.json"]
    assert trivia_qa.main([str(each) for each in arguments]) == 2
    assert capsys.readouterr().err.startswith(f"trivia_qa: error: {path}: Data[0]")
