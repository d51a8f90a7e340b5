"""The paper's tables 5, 6 and 7 and its figure 4, made of runs that differ in one thing."""

import pytest

from bert_tf.checkpoints.of_run import step_folder

BERT, NO_NSP, LEFT = (
    "masked LM and next sentence (BERT)",
    "no next sentence",
    "left-to-right, no next sentence",
)
TABLE_5, TABLE_6 = "Pre-training tasks (table 5)", "Model size (table 6)"
TABLE_7, FIGURE_4 = "Feature-based approach (table 7)", "Training steps (figure 4)"
ONE_WAY = {"attention": "left_to_right"}
WIDE = {"width": 16}


@pytest.fixture
def bert(house):
    return house.pretraining("bert", 9.0)


@pytest.fixture
def left(house):
    return house.pretraining("left", 30.0, next_sentence=False, **ONE_WAY)


def test_other_runs_keep_the_table_of_their_benchmark(house, bert):
    published = house.finetuning("published_sst2", house.published("published"), {"accuracy": 0.9})
    tables = house.page(published, house.finetuning("a", bert, {"accuracy": 0.7}), bert)
    assert "GLUE: SST-2" in tables and not any("table" in title for title in tables)
    names = [row[0] for row in tables["GLUE: SST-2"]]
    assert "published_sst2" in names and "a" in names


def test_pre_trainings_are_compared_as_in_table_5(house, bert, left):
    mrpc = {"f1": 0.4, "accuracy": 0.7}
    tables = house.page(
        house.finetuning("a", left, {"accuracy": 0.625}, **ONE_WAY),
        house.finetuning("b", bert, {"accuracy": 0.75}),
        house.finetuning("c", left, {"accuracy": 0.65}, bilstm=True, **ONE_WAY),
        house.finetuning("d", None, {"accuracy": 0.5}),
        house.finetuning("e", bert, mrpc, data="{path: MRPC, format: mrpc}"),
    )
    assert list(tables) == [TABLE_5]
    head, *rows = tables[TABLE_5]
    mrpc, sst2 = head.index("MRPC (accuracy)"), head.index("SST-2 (accuracy)")
    shown = {row[0]: (row[mrpc], row[sst2]) for row in rows}
    assert shown["paper: left-to-right, no next sentence"] == ("77.5", "92.1")
    assert [item for item in shown.items() if not item[0].startswith("paper")] == [
        (BERT, ("70.0", "75.0")),
        (LEFT, ("", "62.5")),
        (f"{LEFT} + BiLSTM", ("", "65.0")),
        ("no pre-training", ("", "50.0")),
    ]


def test_two_pre_trainings_of_one_kind_have_a_row_each(house, bert, left):
    tables = house.page(
        house.finetuning("a", bert, {"accuracy": 0.7}),
        house.finetuning("b", house.pretraining("more/longer", 8.0), {"accuracy": 0.8}),
        house.finetuning("c", left, {"accuracy": 0.6}, **ONE_WAY),
    )
    assert house.ours(tables[TABLE_5]) == [
        [f"{BERT}: bert", "70.0"],
        [f"{BERT}: longer", "80.0"],
        [LEFT, "60.0"],
    ]


def test_a_pre_training_is_one_however_its_last_checkpoint_is_named(house, bert):
    tables = house.page(
        house.finetuning("a", bert, {"accuracy": 0.7}),
        house.finetuning("b", step_folder(bert / "checkpoints", 20), {"accuracy": 0.8}),
        house.finetuning("c", None, {"accuracy": 0.6}),
    )
    assert [row[0] for row in house.ours(tables[TABLE_5])] == [BERT, "no pre-training"]


def test_no_run_is_left_out_for_another_that_shares_its_cell(house, bert):
    tables = house.page(
        house.finetuning("first", bert, {"accuracy": 0.7}),
        house.finetuning("second", bert, {"accuracy": 0.8}),
        house.finetuning("scratch", None, {"accuracy": 0.6}),
    )
    assert house.ours(tables[TABLE_5]) == [[BERT, "80.0"], ["no pre-training", "60.0"]]
    names = [row[0] for row in tables["GLUE: SST-2"]]
    assert "first" in names and not {"second", "scratch"} & set(names)


def test_table_5_tells_that_two_directions_are_two_encoders(house, bert):
    both = {"attention": "side_by_side"}
    one = [
        house.finetuning("a", bert, {"accuracy": 0.7}),
        house.finetuning("b", None, {"accuracy": 0.6}),
    ]
    house.page(*one)
    assert "ours have 2 layers, 8 wide, 2 heads.\n" in house.text()
    joined = house.published("both", **both)
    house.page(*one, house.finetuning("c", joined, {"accuracy": 0.8}, **both))
    assert (
        "ours have 2 layers, 8 wide, 2 heads, and two directions side by side are two encoders of "
        "that size.\n"
    ) in house.text()


def test_each_of_several_sizes_has_a_table_5_that_names_it(house):
    runs = [
        house.finetuning(
            f"on_{width}_{next_sentence}",
            house.pretraining(f"{width}_{next_sentence}", 9.0, next_sentence, width=width),
            {"accuracy": 0.7},
            width=width,
        )
        for width in (8, 16)
        for next_sentence in (True, False)
    ]
    assert [name for name in house.page(*runs) if "table 5" in name] == [
        "Pre-training tasks: 2 layers, 8 wide, 2 heads (table 5)",
        "Pre-training tasks: 2 layers, 16 wide, 2 heads (table 5)",
    ]


def test_tables_tell_of_runs_on_a_part_of_the_training_data(house, bert):
    part = "{path: SST-2, format: sst2, train_rows: 10000}"
    house.page(
        house.finetuning("a", bert, {"accuracy": 0.7}, data=part),
        house.finetuning("b", None, {"accuracy": 0.6}, data=part),
        house.finetuning("c", None, {"accuracy": 0.6}, data="{path: QNLI, format: qnli}"),
    )
    assert "GLUE: SST-2: these were trained on the first 10,000 rows only: a, b." in house.text()
    assert house.text().count("trained on the first") == 1


def test_what_reads_features_is_no_row_of_table_5(house, bert):
    left = house.pretraining("left", 30.0, next_sentence=False)
    tables = house.page(
        house.tagging("tuned", bert, 0.5),
        house.tagging("read", bert, 0.3, "last"),
        house.tagging("other", left, 0.4),
    )
    assert house.ours(tables[TABLE_5]) == [[BERT, "50.0"], [NO_NSP, "40.0"]]


def test_sizes_are_compared_as_in_table_6(house):
    runs = []
    for layers, width, accuracy in ((2, 16, 0.8), (2, 8, 0.7), (4, 8, 0.75)):
        sizes = {"layers": layers, "width": width}
        start = house.pretraining(f"{layers}x{width}", 100.0 / width, **sizes)
        name = f"sst2_{layers}x{width}"
        runs.append(house.finetuning(name, start, {"accuracy": accuracy}, **sizes))
    tables = house.page(*runs)
    assert list(tables) == [TABLE_6]
    head, *rows = tables[TABLE_6]
    assert head[:5] == ["", "layers", "width", "heads", "perplexity"]
    assert ["paper", "12", "768", "12", "3.99", "84.4", "86.7", "92.9"] in rows
    assert house.ours(tables[TABLE_6]) == [
        ["ours", "2", "8", "2", "12.50", "70.0"],
        ["ours", "4", "8", "2", "12.50", "75.0"],
        ["ours", "2", "16", "2", "6.25", "80.0"],
    ]
    assert (house.folder / "page" / "0.png").read_bytes().startswith(b"\x89PNG")


def test_two_pre_trainings_of_one_size_have_a_row_each(house):
    runs = [
        house.finetuning(f"on_{number}", house.pretraining(*start, **sizes), metrics, **sizes)
        for number, (start, metrics, sizes) in enumerate(
            [
                (("old/bert", 9.0), {"accuracy": 0.6}, {}),
                (("new/bert", 9.0), {"accuracy": 0.7}, {}),
                (("wide", 5.0), {"accuracy": 0.8}, WIDE),
            ]
        )
    ]
    assert house.ours(house.page(*runs)[TABLE_6]) == [
        ["ours: old/bert", "2", "8", "2", "9.00", "60.0"],
        ["ours: new/bert", "2", "8", "2", "9.00", "70.0"],
        ["ours", "2", "16", "2", "5.00", "80.0"],
    ]


def test_table_6_leaves_out_what_only_one_size_has_run_on(house):
    narrow, broad = house.pretraining("narrow", 9.0), house.pretraining("broad", 5.0, **WIDE)
    other, third = (f"{{path: {name}, format: tsv}}" for name in ("other", "third"))
    tables = house.page(
        house.finetuning("a", narrow, {"accuracy": 0.6}, data=other),
        house.finetuning("b", broad, {"accuracy": 0.7}, data=other, **WIDE),
        house.finetuning("c", broad, {"accuracy": 0.9}, data=third, **WIDE),
    )
    assert list(tables) == ["Classification: third", TABLE_6]
    head, *_ = tables[TABLE_6]
    assert head[-1] == "Classification: other (accuracy)"
    assert not any("third" in column for column in head)
    tables = house.page(house.folder / "a", house.folder / "c")
    assert list(tables) == ["Classification: other", "Classification: third"]


def test_sizes_without_next_sentence_have_a_table_of_their_own(house):
    runs = []
    for next_sentence in (True, False):
        for width in (8, 16):
            name = f"{width}_{next_sentence}"
            start = house.pretraining(f"from_{name}", 9.0, next_sentence, width=width)
            runs.append(house.finetuning(name, start, {"accuracy": width / 20}, width=width))
    tables = house.page(*runs)
    for heading in (TABLE_6, "Model size, no next sentence (table 6)"):
        assert house.ours(tables[heading]) == [
            ["ours", "2", "8", "2", "9.00", "40.0"],
            ["ours", "2", "16", "2", "9.00", "80.0"],
        ]


def test_figure_4_counts_the_steps_of_runs_by_epochs_and_drops_no_pre_training(house):
    bert = house.pretraining("bert", 9.0, train="epochs: 3")
    early = step_folder(bert / "checkpoints", 10)
    compared = [
        house.finetuning("late", bert, {"accuracy": 0.75}),
        house.finetuning("early", early, {"accuracy": 0.5}),
    ]
    assert list(house.page(*compared)) == [FIGURE_4]
    tables = house.page(
        *compared,
        house.finetuning("late_on_top", bert, {"accuracy": 0.8}, bilstm=True),
        house.finetuning("early_on_top", early, {"accuracy": 0.6}, bilstm=True),
    )
    assert tables[FIGURE_4][1:] == [
        [BERT, "10", "50.0"],
        [BERT, "20", "75.0"],
        [f"{BERT} + BiLSTM", "10", "60.0"],
        [f"{BERT} + BiLSTM", "20", "80.0"],
    ]


def test_figure_4_mixes_no_two_pre_trainings(house):
    runs, rows = [], []
    for name, accuracy in (("bert", 0.5), ("other", 0.6)):
        start = house.pretraining(name, 9.0)
        for step in (10, 20):
            checkpoint = step_folder(start / "checkpoints", step)
            accuracy += 0.01
            runs.append(house.finetuning(f"{name}_{step}", checkpoint, {"accuracy": accuracy}))
            rows.append([f"{BERT}: {name}", f"{step}", f"{100 * accuracy:.1f}"])
    assert house.page(*runs)[FIGURE_4][1:] == rows


def test_features_are_compared_as_in_table_7(house):
    published = house.published("published")
    runs = [
        house.tagging("tuned", published, 0.5, None, "train.seed=[1,2,3]"),
        house.tagging("last", published, 0.4, "last"),
        house.tagging("concat_last_four", published, 0.45, "concat_last_four"),
    ]
    (runs[0] / "summary.tsv").write_text("runs\tf1\tf1_std\n3\t0.5\t0.02\n")
    tables = house.page(*runs)
    assert list(tables) == ["Token classification: tags", TABLE_7]
    head, *rows = tables[TABLE_7]
    assert head == ["what is read", "Token classification: tags (f1)", "seeds"]
    assert ["paper: second to last", "95.6", "5"] in rows
    assert house.ours(tables[TABLE_7]) == [
        ["fine-tuned, all layers", "50.0 ± 2.0", "3"],
        ["last", "40.0", "1"],
        ["concat last four", "45.0", "1"],
    ]
    assert "our runs started from published." in house.text()


def test_table_7_leaves_no_run_out_and_mixes_no_checkpoints(house):
    one, two = house.published("one"), house.published("two")
    tables = house.page(
        house.tagging("first", one, 0.4, "last"),
        house.tagging("second", one, 0.45, "last"),
        house.tagging("other", two, 0.5, "last"),
    )
    assert [row[0] for row in tables["Token classification: tags"][1:]] == ["first"]
    sections = house.text().split(f"## {TABLE_7}")[1:]
    for section, start, f1 in zip(sections, ("one", "two"), ("45.0", "50.0"), strict=True):
        assert f"| last | {f1} | 1 |" in section
        assert f"our runs started from {start}." in section
