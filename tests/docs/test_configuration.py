"""The page on configuration has every key of the schema, with what it means and its default."""

import re
from pathlib import Path

import configuration_page
import pages
import pytest

from bert_tf.config import data, train, yaml_files
from bert_tf.config.schema import schema
from bert_tf.tasks.embedding import EmbeddingTrain

DOCS = Path(__file__).parents[2] / "docs"
NAME = "reference/configuration"
PAGE = pages.markdown(NAME, (DOCS / f"{NAME}.md").read_text())
# Heading, its text, and the rows below it.
PARTS = re.split(r"^#{2,3} (.+)$", PAGE, flags=re.MULTILINE)
TABLES = dict(zip(PARTS[1::2], PARTS[2::2], strict=True))


def test_every_key_of_the_schema_has_a_description_and_a_row():
    found = schema()
    for name, section in found["$defs"].items():
        for key, about in section["properties"].items():
            assert about.get("description"), (name, key)
            if configuration_page.is_section(about):
                assert f"\n## `{key}`\n" in PAGE
            elif key not in ("task", "base", "format"):
                assert configuration_page.row(key, about) in PAGE, (name, key)
    for key in found["properties"]:
        assert f"\n| `{key}` | " in TABLES["The whole file"]


@pytest.mark.parametrize(
    ("heading", "kind"),
    [
        ("`train`", train.TrainConfig),
        ("`train` of pretraining", train.PretrainingTrain),
        ("`train` of embedding", EmbeddingTrain),
        ("`data` of pretraining", data.PretrainingData),
    ],
)
def test_keys_stand_with_their_defaults(heading, kind, tmp_path):
    own = {name: each for name, each in kind.model_fields.items() if name in kind.__annotations__}
    rows = re.findall(r"^\| `(\w+)` \| [^|]+ \| (\S+) \| \S.+ \|$", TABLES[heading], re.MULTILINE)
    assert dict(rows).keys() == own.keys() and len(rows) == len(own)
    for name, default in rows:
        if own[name].is_required():
            assert default == "*required*"
        else:
            file = tmp_path / "one.yaml"
            file.write_text(f"value: {default.strip('`')}\n")
            assert yaml_files.read(file).values["value"] == own[name].default


def test_values_are_in_words():
    types = dict(re.findall(r"^\| `(\w+)` \| ([^|]+) \|", PAGE, re.MULTILINE))
    assert types["learning_rate"] == "number above 0"
    assert types["warmup_fraction"] == "number from 0 to 1"
    assert types["gradient_clip"] == "number above 0, or `null`"
    assert types["optimizer"] == "`adamw` or `lamb`, or section, or string"
    assert types["matryoshka"] == "a list of integers, at least 1"
    assert types["class_weights"] == "`balanced`, or a mapping of names to numbers above 0"


def test_a_text_of_the_schema_is_safe_markdown():
    row = configuration_page.row("key", {"type": "string", "description": "a|b *c* <d> e_f"})
    assert row == r"| `key` | string | *required* | a\|b \*c\* \<d\> `e_f` |"
