"""The paper's table 7."""

from bert_tf.checkpoints import conversion


def test_features_are_compared_as_in_table_7(house, tag):
    published = house.folder / "published"
    conversion.save(house.encoder(), published)
    runs = [
        tag("tuned", published, 0.5, None, "train.seed=[1,2,3]"),
        tag("last", published, 0.4, "last"),
        tag("concat_last_four", published, 0.45, "concat_last_four"),
    ]
    (runs[0] / "summary.tsv").write_text("runs\tf1\tf1_std\n3\t0.5\t0.02\n")
    tables = house.page(*runs)
    assert list(tables) == ["Token classification: tags", "Feature-based approach (table 7)"]
    head, *rows = tables["Feature-based approach (table 7)"]
    assert head == ["what is read", "Token classification: tags (f1)", "seeds"]
    assert ["paper: second to last", "95.6", "5"] in rows
    assert [row for row in rows if not row[0].startswith("paper")] == [
        ["fine-tuned, all layers", "50.0 ± 2.0", "3"],
        ["last", "40.0", "1"],
        ["concat last four", "45.0", "1"],
    ]
    assert "our runs started from published." in house.text()


def test_table_7_leaves_no_run_out_and_mixes_no_checkpoints(house, tag):
    starts = [house.folder / name for name in ("one", "two")]
    for start in starts:
        conversion.save(house.encoder(), start)
    one, two = starts
    tables = house.page(
        tag("first", one, 0.4, "last"),
        tag("second", one, 0.45, "last"),
        tag("other", two, 0.5, "last"),
    )
    assert [row[0] for row in tables["Token classification: tags"][1:]] == ["first"]
    sections = house.text().split("## Feature-based approach (table 7)")[1:]
    for section, start, f1 in zip(sections, ("one", "two"), ("45.0", "50.0"), strict=True):
        assert f"| last | {f1} | 1 |" in section
        assert f"our runs started from {start}." in section
