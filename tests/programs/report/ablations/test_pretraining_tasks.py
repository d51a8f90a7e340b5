"""The paper's table 5."""

from bert_tf.checkpoints import conversion
from bert_tf.checkpoints.of_run import step_folder


def test_pre_trainings_are_compared_as_in_table_5(house):
    bert = house.pretraining("bert", 9.0)
    one_way = {"attention": "left_to_right"}
    left = house.pretraining("left", 30.0, next_sentence=False, **one_way)
    runs = [
        house.finetuning("a", left, {"accuracy": 0.625}, **one_way),
        house.finetuning("b", bert, {"accuracy": 0.75}),
        house.finetuning("c", left, {"accuracy": 0.65}, bilstm=True, **one_way),
        house.finetuning("d", None, {"accuracy": 0.5}),
        house.finetuning(
            "e", bert, {"f1": 0.4, "accuracy": 0.7}, data="{path: MRPC, format: mrpc}"
        ),
    ]
    tables = house.page(*runs)
    assert list(tables) == ["Pre-training tasks (table 5)"]
    head, *rows = tables["Pre-training tasks (table 5)"]
    columns = {name: place for place, name in enumerate(head)}
    sst2, mrpc = columns["SST-2 (accuracy)"], columns["MRPC (accuracy)"]
    shown = {row[0]: (row[mrpc], row[sst2]) for row in rows}
    assert shown["paper: left-to-right, no next sentence"] == ("77.5", "92.1")
    found = [(row[0], *shown[row[0]]) for row in rows if not row[0].startswith("paper")]
    assert found == [
        ("masked LM and next sentence (BERT)", "70.0", "75.0"),
        ("left-to-right, no next sentence", "", "62.5"),
        ("left-to-right, no next sentence + BiLSTM", "", "65.0"),
        ("no pre-training", "", "50.0"),
    ]


def test_two_pre_trainings_of_one_kind_have_a_row_each(house):
    bert, longer = house.pretraining("bert", 9.0), house.pretraining("more/longer", 8.0)
    left = house.pretraining("left", 30.0, next_sentence=False, attention="left_to_right")
    tables = house.page(
        house.finetuning("a", bert, {"accuracy": 0.7}),
        house.finetuning("b", longer, {"accuracy": 0.8}),
        house.finetuning("c", left, {"accuracy": 0.6}, attention="left_to_right"),
    )
    assert house.ours(tables["Pre-training tasks (table 5)"]) == [
        ["masked LM and next sentence (BERT): bert", "70.0"],
        ["masked LM and next sentence (BERT): longer", "80.0"],
        ["left-to-right, no next sentence", "60.0"],
    ]


def test_a_pre_training_is_one_however_its_last_checkpoint_is_named(house):
    bert = house.pretraining("bert", 9.0)
    tables = house.page(
        house.finetuning("a", bert, {"accuracy": 0.7}),
        house.finetuning("b", step_folder(bert / "checkpoints", 20), {"accuracy": 0.8}),
        house.finetuning("c", None, {"accuracy": 0.6}),
    )
    assert [row[0] for row in house.ours(tables["Pre-training tasks (table 5)"])] == [
        "masked LM and next sentence (BERT)",
        "no pre-training",
    ]


def test_no_run_is_left_out_for_another_that_shares_its_cell(house):
    bert = house.pretraining("bert", 9.0)
    tables = house.page(
        house.finetuning("first", bert, {"accuracy": 0.7}),
        house.finetuning("second", bert, {"accuracy": 0.8}),
        house.finetuning("scratch", None, {"accuracy": 0.6}),
    )
    assert house.ours(tables["Pre-training tasks (table 5)"]) == [
        ["masked LM and next sentence (BERT)", "80.0"],
        ["no pre-training", "60.0"],
    ]
    names = [row[0] for row in tables["GLUE: SST-2"]]
    assert "first" in names and not {"second", "scratch"} & set(names)


def test_table_5_tells_that_two_directions_are_two_encoders(house):
    bert = house.pretraining("bert", 9.0)
    both = {"attention": "side_by_side"}
    conversion.save(house.encoder(**both), house.folder / "both")
    one = [
        house.finetuning("a", bert, {"accuracy": 0.7}),
        house.finetuning("b", None, {"accuracy": 0.6}),
    ]
    house.page(*one)
    assert "ours have 2 layers, 8 wide, 2 heads.\n" in house.text()
    house.page(*one, house.finetuning("c", house.folder / "both", {"accuracy": 0.8}, **both))
    assert (
        "ours have 2 layers, 8 wide, 2 heads, and two directions side by side are two encoders of "
        "that size.\n"
    ) in house.text()


def test_each_of_several_sizes_has_a_table_5_that_names_it(house):
    runs = []
    for width in (8, 16):
        starts = {
            name: house.pretraining(f"{name}{width}", 9.0, next_sentence, width=width)
            for name, next_sentence in (("bert", True), ("no_nsp", False))
        }
        runs += [
            house.finetuning(f"on_{name}{width}", start, {"accuracy": 0.7}, width=width)
            for name, start in starts.items()
        ]
    assert [name for name in house.page(*runs) if "table 5" in name] == [
        "Pre-training tasks: 2 layers, 8 wide, 2 heads (table 5)",
        "Pre-training tasks: 2 layers, 16 wide, 2 heads (table 5)",
    ]


def test_tables_tell_of_runs_on_a_part_of_the_training_data(house):
    bert = house.pretraining("bert", 9.0)
    part = "{path: SST-2, format: sst2, train_rows: 10000}"
    house.page(
        house.finetuning("a", bert, {"accuracy": 0.7}, data=part),
        house.finetuning("b", None, {"accuracy": 0.6}, data=part),
        house.finetuning("c", None, {"accuracy": 0.6}, data="{path: QNLI, format: qnli}"),
    )
    assert "GLUE: SST-2: these were trained on the first 10,000 rows only: a, b." in house.text()
    assert house.text().count("trained on the first") == 1


def test_what_reads_features_is_no_row_of_table_5(house, tag):
    bert = house.pretraining("bert", 9.0)
    left = house.pretraining("left", 30.0, next_sentence=False)
    tables = house.page(
        tag("tuned", bert, 0.5), tag("read", bert, 0.3, "last"), tag("other", left, 0.4)
    )
    assert house.ours(tables["Pre-training tasks (table 5)"]) == [
        ["masked LM and next sentence (BERT)", "50.0"],
        ["no next sentence", "40.0"],
    ]
