"""GLUE's official files, each with its own form and oddities, written here in small."""

import pytest

from bert_tf.data.columns import TextColumn
from bert_tf.data.targets import Label
from bert_tf.errors import UserError
from bert_tf.tasks.texts.glue import benchmark_at, find_files, read_glue

MNLI = (
    "index\tpromptID\tpairID\tgenre\tsentence1_binary_parse\tsentence2_binary_parse\t"
    "sentence1_parse\tsentence2_parse\tsentence1\tsentence2"
)
STSB = "index\tgenre\tfilename\tyear\told_index\tsource1\tsource2\tsentence1\tsentence2"
MRPC = "Quality\t#1 ID\t#2 ID\t#1 String\t#2 String"

# Task, header, two rows, and the expected text and label of the second row.
FILES = [
    ("cola", None, ["gj04\t1\t\tIt rained.", 'bc01\t0\t*\tIt a "rain'], (['It a "rain'], "0")),
    ("sst2", "sentence\tlabel", ["a joy \t1", 'so "dull \t0'], (['so "dull '], "0")),
    ("mrpc", "\ufeff" + MRPC, ["1\t7\t8\ta\tb", '0\t9\t3\t"c\td'], (['"c', "d"], "0")),
    (
        "qqp",
        "id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate",
        ["5\t1\t2\ta?\tb?\t1", "6\t3\t4\tc?\td?\t0"],
        (["c?", "d?"], "0"),
    ),
    (
        "stsb",
        f"{STSB}\tscore",
        ["0\tg\tf\ty\t1\tn\tn\ta\tb\t5.000", "1\tg\tf\ty\t2\tn\tn\tc\td\t3.800"],
        (["c", "d"], "3.800"),
    ),
    (
        "mnli",
        f"{MNLI}\tlabel1\tgold_label",
        ["0\t1\t1n\tg\t-\t-\t-\t-\ta\tb\tneutral\tneutral"]
        + ["1\t2\t2e\tg\t-\t-\t-\t-\tc\td\tneutral\tentailment"],
        (["c", "d"], "entailment"),
    ),
    (
        "qnli",
        "index\tquestion\tsentence\tlabel",
        ["0\ta?\tb\tentailment", "1\tc?\td\tnot_entailment"],
        (["c?", "d"], "not_entailment"),
    ),
    (
        "rte",
        "index\tsentence1\tsentence2\tlabel",
        ["0\ta\tb\tentailment", "1\tc\td\tnot_entailment"],
        (["c", "d"], "not_entailment"),
    ),
    ("wnli", "index\tsentence1\tsentence2\tlabel", ["0\ta\tb\t1", "1\tc\td\t0"], (["c", "d"], "0")),
]


def write(path, header, rows):
    path.write_text("\n".join([header, *rows] if header else rows), encoding="utf-8")
    return path


@pytest.mark.parametrize(("task", "header", "rows", "expected"), FILES, ids=[f[0] for f in FILES])
def test_labelled_files(tmp_path, task, header, rows, expected):
    read = read_glue(write(tmp_path / "train.tsv", header, rows), task)
    assert ([column[1] for column in read.values], read.targets[1]) == expected
    assert read.where(1) == f"{tmp_path / 'train.tsv'}, line {3 if header else 2}"
    assert len(read) == 2 and set(read.targets) <= set(read.classes or read.targets)


@pytest.mark.parametrize(
    ("task", "header", "row", "texts"),
    [
        ("cola", "index\tsentence", "0\tIt rained.", ["It rained."]),
        ("sst2", "index\tsentence", "0\ta joy", ["a joy"]),
        ("mrpc", "index\t#1 ID\t#2 ID\t#1 String\t#2 String", "0\t7\t8\ta\tb", ["a", "b"]),
        ("qqp", "id\tquestion1\tquestion2", "0\ta?\tb?", ["a?", "b?"]),
        ("stsb", STSB, "0\tg\tf\ty\t1\tn\tn\ta\tb", ["a", "b"]),
        ("mnli", MNLI, "0\t1\t1n\tg\t-\t-\t-\t-\ta\tb", ["a", "b"]),
        ("mnli", "index\tsentence1\tsentence2", "0\ta\tb", ["a", "b"]),  # diagnostic.tsv
    ],
)
def test_test_files_have_no_labels(tmp_path, task, header, row, texts):
    read = read_glue(write(tmp_path / "test.tsv", header, [row]), task)
    assert (read.targets, [column[0] for column in read.values]) == (None, texts)


def test_the_labels_are_in_the_order_of_the_reference(tmp_path):
    header, rows = FILES[5][1:3]
    read = read_glue(write(tmp_path / "dev.tsv", header, rows), "mnli")
    assert read.classes == ("contradiction", "entailment", "neutral")
    assert Label(read.classes).numbers(read).tolist() == [2, 1]


def test_rows_of_qqp_with_missing_fields_are_left_out_and_counted(tmp_path, capsys):
    header, rows = FILES[3][1:3]
    path = write(tmp_path / "train.tsv", header, [rows[0], "7\t8\t9\thalf a", "question?", rows[1]])
    assert len(read_glue(path, "qqp")) == 2
    assert f"warning: {path}: rows skipped because fields are missing: 2, the first in line 3" in (
        capsys.readouterr().err
    )
    # A test file has to be answered row by row.
    path = write(tmp_path / "test.tsv", "id\tquestion1\tquestion2", ["0\ta?\tb?", "1\tc?"])
    with pytest.raises(UserError, match="test.tsv, line 3: 2 fields, but there are 3 columns"):
        read_glue(path, "qqp")


def test_pairs_of_mnli_without_a_label_are_left_out_and_counted(tmp_path, capsys):
    header, rows = FILES[5][1:3]
    path = write(tmp_path / "train.tsv", header, [rows[0].replace("\tneutral\tneu", "\tx\tneu")])
    assert read_glue(path, "mnli").targets == ["neutral"]
    path = write(tmp_path / "train.tsv", header, [rows[0], rows[1].replace("entailment", "-")])
    assert read_glue(path, "mnli").targets == ["neutral"]
    why = "no label was agreed on"
    assert f"warning: {path}: rows skipped because {why}: 1, the first in line 3" in (
        capsys.readouterr().err
    )


def test_the_labelled_diagnostic_set_is_for_models_of_mnli(tmp_path):
    header = "Lexical Semantics\tPredicate-Argument Structure\tLogic\tKnowledge\tDomain\t"
    header += "Premise\tHypothesis\tLabel"
    path = write(tmp_path / "diagnostic-full.tsv", header, ["\t\tNegation\t\tNews\ta\tb\tneutral"])
    read = read_glue(path, "mnli")
    assert (read.values, read.targets) == ((["a"], ["b"]), ["neutral"])
    assert benchmark_at(path, "mnli") == "ax"
    with pytest.raises(UserError, match="is not for training; fine-tune with data.format mnli"):
        find_files(tmp_path, "ax", "train")


def test_mrpc_from_either_distribution(tmp_path):
    pairs = ["1\t1\t2\ta\tb", "0\t3\t4\tc\td", "1\t5\t6\te\tf"]
    write(tmp_path / "msr_paraphrase_train.txt", "\ufeff" + MRPC, pairs)
    with pytest.raises(UserError, match="put dev_ids.tsv, the list of the dev pairs, next to it"):
        read_glue(tmp_path / "train.tsv", "mrpc")
    write(tmp_path / "dev_ids.tsv", None, ["3\t4"])
    (train,) = find_files(tmp_path, "mrpc", "train").values()
    (dev,) = find_files(tmp_path, "mrpc", "dev").values()
    assert read_glue(train, "mrpc").values == (["a", "e"], ["b", "f"])
    assert read_glue(dev, "mrpc").values == (["c"], ["d"])
    assert read_glue(dev, "mrpc").targets == ["0"]
    assert find_files(tmp_path, "mrpc", "test") == {}
    test = write(tmp_path / "msr_paraphrase_test.txt", "\ufeff" + MRPC, pairs[:1])
    assert find_files(tmp_path, "mrpc", "test") == {"": test}
    # GLUE's own files are used where they are there.
    write(dev, "\ufeff" + MRPC, ["1\t8\t9\tx\ty"])
    assert read_glue(dev, "mrpc").values == (["x"], ["y"])


def test_mnli_has_two_dev_files_and_up_to_three_test_files(tmp_path):
    folder = tmp_path / "MNLI"
    (tmp_path / "diagnostic").mkdir()
    folder.mkdir()
    assert find_files(folder, "mnli", "dev") == {
        "": folder / "dev_matched.tsv",
        "_mismatched": folder / "dev_mismatched.tsv",
    }
    assert find_files(folder, "mnli", "test") == {}
    write(folder / "test_mismatched.tsv", MNLI, [])
    write(tmp_path / "diagnostic" / "diagnostic.tsv", "index\tsentence1\tsentence2", [])
    assert find_files(folder, "mnli", "test") == {
        "_mismatched": folder / "test_mismatched.tsv",
        "_diagnostic": tmp_path / "diagnostic" / "diagnostic.tsv",
    }


@pytest.mark.parametrize("folder", ["MNLI", "diagnostic"])
def test_the_diagnostic_set_is_found_as_it_is_shipped_too(tmp_path, folder):
    for each in ("MNLI", "diagnostic"):
        (tmp_path / each).mkdir()
    shipped = write(tmp_path / folder / "AX.tsv", "index\tsentence1\tsentence2", [])
    assert find_files(tmp_path / "MNLI", "mnli", "test") == {"_diagnostic": shipped}
    renamed = write(tmp_path / folder / "diagnostic.tsv", "index\tsentence1\tsentence2", [])
    assert find_files(tmp_path / "MNLI", "mnli", "test") == {"_diagnostic": renamed}


@pytest.mark.parametrize(
    ("task", "text", "message"),
    [
        (
            "rte",
            "index\tsentence1\tlabel\n0\ta\t1\n",
            "no column 'sentence2'; the columns are index",
        ),
        ("rte", "index\tsentence1\tsentence2\tlabel\n0\ta\n", "line 2: 2 fields, .* 4 columns"),
        ("rte", "index\tsentence1\tsentence2\tlabel\n", "dev.tsv has no rows"),
        ("cola", "gj04\t1\tIt rained.\n", "line 1: 3 fields, but there are 4 columns"),
    ],
)
def test_mistakes_are_told_with_their_line(tmp_path, task, text, message):
    path = tmp_path / "dev.tsv"
    path.write_text(text)
    with pytest.raises(UserError, match=message):
        read_glue(path, task).checked([TextColumn("a"), TextColumn("b")])
