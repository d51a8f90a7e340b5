"""The paper's table 6."""


def test_sizes_are_compared_as_in_table_6(house):
    runs = []
    for layers, width, accuracy in ((2, 16, 0.8), (2, 8, 0.7), (4, 8, 0.75)):
        sizes = {"layers": layers, "width": width}
        start = house.pretraining(f"{layers}x{width}", 100.0 / width, **sizes)
        runs.append(
            house.finetuning(f"sst2_{layers}x{width}", start, {"accuracy": accuracy}, **sizes)
        )
    tables = house.page(*runs)
    assert list(tables) == ["Model size (table 6)"]
    head, *rows = tables["Model size (table 6)"]
    assert head[:5] == ["", "layers", "width", "heads", "perplexity"]
    assert ["paper", "12", "768", "12", "3.99", "84.4", "86.7", "92.9"] in rows
    found = [row[1:5] + row[-1:] for row in rows if row[0] == "ours"]
    assert found == [
        ["2", "8", "2", "12.50", "70.0"],
        ["4", "8", "2", "12.50", "75.0"],
        ["2", "16", "2", "6.25", "80.0"],
    ]
    assert (house.folder / "page" / "0.png").read_bytes().startswith(b"\x89PNG")


def test_two_pre_trainings_of_one_size_have_a_row_each(house):
    wide = {"width": 16}
    starts = {name: house.pretraining(f"{name}/bert", 9.0) for name in ("old", "new")}
    starts["wide"] = house.pretraining("wide", 5.0, **wide)
    runs = [
        house.finetuning(f"on_{name}", start, {"accuracy": accuracy}, **sizes)
        for (name, start), accuracy, sizes in zip(
            starts.items(), (0.6, 0.7, 0.8), ({}, {}, wide), strict=True
        )
    ]
    assert house.ours(house.page(*runs)["Model size (table 6)"]) == [
        ["ours: old/bert", "2", "8", "2", "9.00", "60.0"],
        ["ours: new/bert", "2", "8", "2", "9.00", "70.0"],
        ["ours", "2", "16", "2", "5.00", "80.0"],
    ]


def test_table_6_leaves_out_what_only_one_size_has_run_on(house):
    wide = {"width": 16}
    narrow, broad = house.pretraining("narrow", 9.0), house.pretraining("broad", 5.0, **wide)
    other, third = (f"{{path: {name}, format: tsv}}" for name in ("other", "third"))
    tables = house.page(
        house.finetuning("a", narrow, {"accuracy": 0.6}, data=other),
        house.finetuning("b", broad, {"accuracy": 0.7}, data=other, **wide),
        house.finetuning("c", broad, {"accuracy": 0.9}, data=third, **wide),
    )
    assert list(tables) == ["Classification: third", "Model size (table 6)"]
    head, *_ = tables["Model size (table 6)"]
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
    for heading in ("Model size (table 6)", "Model size, no next sentence (table 6)"):
        assert house.ours(tables[heading]) == [
            ["ours", "2", "8", "2", "9.00", "40.0"],
            ["ours", "2", "16", "2", "9.00", "80.0"],
        ]
