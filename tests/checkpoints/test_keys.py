"""The table of keys: each row does what it says, the page shows it, and downloads follow it."""

import json
from pathlib import Path

import pytest
import yaml

from bert_tf.checkpoints import conversion, download, keys, reading
from bert_tf.errors import UserError
from tests.checkpoints import tiny_models as tiny

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "checkpoint_keys.md"
ROWS = [(table, row) for table, rows in keys.TABLE.items() for row in rows]
HEADER = "| keys | what becomes of them | why |\n|---|---|---|\n"


def cells(row: keys.Keys) -> str:
    fate = row.fate
    if row.usual:
        fate += f" unless {' or '.join(f'`{json.dumps(each)}`' for each in row.usual)}"
    names = " ".join(f"`{name}`" for name in row.names.split())
    return f"| {names} | {fate} | {row.why.strip('; ')} |\n"


def section(table: str) -> str:
    return f"## {table}\n\n{HEADER}{''.join(map(cells, keys.TABLE[table]))}"


@pytest.mark.parametrize("table", keys.TABLE)
def test_the_page_shows_every_row(table):
    assert section(table) in PAGE.read_text(encoding="utf-8")


@pytest.mark.parametrize(("table", "row"), ROWS)
def test_a_row_does_what_it_says(table, row):
    for name in row.names.split():
        for usual in row.usual:
            assert keys.check(table, {name: usual}, table) == {}
        if row.fate == keys.REFUSED:
            with pytest.raises(UserError) as refused:
                keys.check(table, {name: "odd"}, table)
            assert str(refused.value) == f"{table}: {name} is 'odd'; {row.why}"
            continue
        notes = keys.check(table, {name: "odd"}, table)
        assert list(notes) == ([name] if row.fate == keys.PRINTED else [])
        assert all(f"{name} is 'odd'; {row.why}" in note for note in notes.values())


@pytest.mark.parametrize("table", keys.TABLE)
def test_no_key_is_twice_in_a_table(table):
    names = [name for row in keys.TABLE[table] for name in row.names.split()]
    assert len(names) == len({*names})
    values = dict.fromkeys(("spare", "other"), 3) | {"a": None, "b": False, "c": "", "d": []}
    if keys.ANY not in names:
        notes = keys.check(f"folder/{table}", values, table)
        assert [*notes] == ["spare", "other"]
        assert notes["spare"].endswith(": spare = 3 is not known and has no effect")


def test_a_key_that_a_terminal_would_read_is_escaped():
    note = keys.check("config.json", {"\x1b[2J": 1}, "config.json")["\x1b[2J"]
    assert "\x1b" not in note and r"\x1b[2J = 1 is not known" in note


def test_the_encoder_of_params_yaml_is_read(tmp_path):
    encoder = tiny.make("encoder")
    conversion.save(encoder, tmp_path / "theirs", "model_garden")
    (tmp_path / "theirs" / "bert_config.json").unlink()
    params = tmp_path / "theirs" / "params.yaml"

    def write(kind, **fields):
        known = {"num_layers": encoder.config.num_hidden_layers, "hidden_activation": "gelu"}
        model = {"encoder": {"type": kind, kind: known | fields}}
        params.write_text(yaml.safe_dump({"task": {"model": model}, "trainer": {"steps": 3}}))

    write("bert", dropout_rate=0.25, attention_dropout_rate=0.5, spare=3)
    found = reading.find(tmp_path / "theirs")
    assert found.encoder.hidden_dropout_prob == 0.25
    assert found.encoder.attention_probs_dropout_prob == 0.5
    assert [*found.notes] == ["params.yaml: bert: spare = 3 is not known and has no effect"]

    for kind, fields, told in (
        ("albert", {}, "encoder: type is 'albert'; bert_tf reads only BERT models"),
        ("bert", {"norm_first": True}, "bert: norm_first is True; bert_tf normalizes after"),
        ("bert", {"num_layers": 7}, "num_hidden_layers is 7, but the checkpoint next to it has"),
    ):
        write(kind, **fields)
        tiny.refused(told, reading.find, tmp_path / "theirs")
    params.write_text("a: [")
    tiny.refused("params.yaml is not YAML", reading.find, tmp_path / "theirs")
    params.write_text("another: file")
    assert reading.find(tmp_path / "theirs").notes == ()


def test_downloads_fetch_every_file_of_the_table():
    assert {*keys.files()} <= {*download._PLAIN_FILES}
    assert "special_tokens_map.json" in keys.files()


if __name__ == "__main__":
    before, _, _ = PAGE.read_text(encoding="utf-8").partition("\n## ")
    PAGE.write_text("\n".join([f"{before}\n".rstrip("\n") + "\n", *map(section, keys.TABLE)]))
