"""YAML files: what plain values mean, what is refused, what is inherited."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bert_tf.config import yaml_files
from bert_tf.errors import UserError

# Surrogates are no characters of a UTF-8 file, and NUL is refused.
texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | texts
values = st.recursive(scalars, lambda v: st.lists(v) | st.dictionaries(texts, v), max_leaves=8)


@pytest.fixture
def read(tmp_path):
    """Reads `text` as the file `config.yaml`, with any other files beside it."""

    def read(text, **others):
        for name, content in {"config": text, **others}.items():
            (tmp_path / f"{name}.yaml").write_text(content)
        return yaml_files.read(tmp_path / "config.yaml")

    return read


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("5e-5", 5e-5),
        ("1E4", 1e4),
        (".5", 0.5),
        ("-2.", -2.0),
        ("+.inf", float("inf")),
        ("12", 12),
        ("-3", -3),
        ("010", 10),
        ("0x1F", 31),
        ("0o17", 15),
        ("true", True),
        ("False", False),
        ("", None),
        ("null", None),
        ("~", None),
        ("no", "no"),
        ("yes", "yes"),
        ("on", "on"),
        ("Off", "Off"),
        ("y", "y"),
        ("1_000", "1_000"),
        ("12:30", "12:30"),
        ("2026-01-31", "2026-01-31"),
        ("e5", "e5"),
        ("1e", "1e"),
        ("'5e-5'", "5e-5"),
        ("[1, a, 2.5]", [1, "a", 2.5]),
    ],
)
def test_plain_values_mean_what_yaml_1_2_says(read, text, value):
    found = read(f"key: {text}").values["key"]

    assert found == value
    assert isinstance(found, type(value))
    assert isinstance(found, bool) == isinstance(value, bool)


@settings(deadline=None, max_examples=50)
@given(st.dictionaries(texts.filter(lambda key: key != "base"), values))
def test_what_is_written_reads_back_the_same(tmp_path_factory, tree):
    file = tmp_path_factory.mktemp("yaml") / "config.yaml"
    file.write_text(yaml_files.write(tree), encoding="utf-8", newline="\n")

    assert yaml_files.read(file).values == tree


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: 1\nb: 2\na: 3", ":3: not valid YAML: key 'a' appears twice, first in line 1"),
        ("s:\n  a: 1\n  a: 2", "config.yaml:3: not valid YAML: key 'a' appears twice"),
        ("l:\n- {a: 1, a: 2}", "config.yaml:2: not valid YAML: key 'a' appears twice"),
        ("a: &x 1\nb: *x", "config.yaml:2: not valid YAML: alias *x is not supported"),
        ("a: !!python/name:os.system x", "config.yaml:1: not valid YAML: tag"),
        ("a: !!bool maybe", "config.yaml:1: not valid YAML: tag"),
        ("a: 1\nb: [1, 2\n", "config.yaml:3: not valid YAML:"),
        ("a: b: c", "config.yaml:1: not valid YAML: mapping values are not allowed here"),
        ("a: 1\n\tb: 2", "config.yaml:2: not valid YAML: found character '\\t'"),
        ("a: 1\n---\nb: 1", "config.yaml:2: not valid YAML: but found another document"),
        ("1: a", "config.yaml:1: not valid YAML: a key must be a word"),
        ("? [a]\n: b", "config.yaml:1: not valid YAML: a key must be a word"),
        ("a: b\n\x07", "config.yaml:2: not valid YAML: special characters are not allowed"),
        ("a: " + "[" * 5000, "config.yaml: not valid YAML: nested too deeply"),
        ("a: " + "1" * 5000, "config.yaml: not valid YAML: Exceeds the limit"),
        ('a: 1\nb: "a\\0b"', "config.yaml:2: not valid YAML: a text cannot hold the character NUL"),
        ("- a\n- b", "config.yaml: expected keys with values"),
        ("", "configuration file is empty"),
    ],
)
def test_what_is_not_plain_yaml_is_refused_in_one_line_with_its_line(read, text, message):
    with pytest.raises(UserError) as raised:
        read(text)

    assert message in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_file_of_comments_holds_no_keys(read):
    assert read("# nothing yet\n").values == {}


def test_every_key_knows_the_line_it_stands_on(read):
    tree = read("a: 1\nsection:\n  b: 2\n\n  c: {d: 3}\n")

    assert str(tree.place(("section", "b"))).endswith("config.yaml:3")
    assert str(tree.place(("section", "c", "d"))).endswith("config.yaml:5")
    assert str(tree.place(("section", "missing"))).endswith("config.yaml:2")
    assert str(tree.place(("missing",))).endswith("config.yaml")


def test_a_file_inherits_and_changes_single_keys_of_sections(read):
    tree = read(
        "base: middle.yaml\ntrain: {seed: 2}",
        middle="base: first.yaml\ntrain: {steps: 5}\ntask: b",
        first="task: a\ntrain:\n  seed: 1\n  steps: 1\n  rates: [1, 2]",
    )

    assert tree.values == {"task": "b", "train": {"seed": 2, "steps": 5, "rates": [1, 2]}}
    assert str(tree.place(("train", "seed"))).endswith("config.yaml:2")
    assert str(tree.place(("train", "rates"))).endswith("first.yaml:5")


def test_a_base_is_looked_for_beside_the_file_that_names_it(tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "config.yaml").write_text("base: folder/middle.yaml")
    (tmp_path / "folder" / "middle.yaml").write_text("base: first.yaml")
    (tmp_path / "folder" / "first.yaml").write_text("a: 1")

    assert yaml_files.read(tmp_path / "config.yaml").values == {"a": 1}


@pytest.mark.parametrize(
    ("text", "other", "message"),
    [
        ("base: other.yaml", "base: config.yaml", "inherits from itself"),
        ("base: config.yaml", "a: 1", "inherits from itself"),
        (
            "base: nowhere.yaml",
            "a: 1",
            "config.yaml:1: configuration file not found: nowhere.yaml is",
        ),
        ("a: 1\nbase: [other.yaml]", "a: 1", "config.yaml:2: base must be the path"),
    ],
)
def test_an_invalid_base_is_refused(read, text, other, message):
    with pytest.raises(UserError, match=message):
        read(text, other=other)


def test_files_take_precedence_over_names_of_experiments(read, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    tree = read("base: glue/cola\ntrain: {epochs: 1}")
    assert (tree.values["data"]["format"], tree.values["train"]["epochs"]) == ("cola", 1)
    assert tree.place(("data", "format")).startswith(f"{yaml_files.EXPERIMENTS}/glue/cola.yaml:")

    (tmp_path / "glue" / "cola").mkdir(parents=True)  # data may have the name of an experiment
    assert yaml_files.find("glue/cola") == yaml_files.EXPERIMENTS / "glue/cola.yaml"
    (tmp_path / "glue" / "sst2").write_text("a: 1")
    assert yaml_files.find("glue/sst2") == Path("glue/sst2")
    with pytest.raises(UserError, match="configuration file is a folder, not a file: glue"):
        yaml_files.read(yaml_files.find("glue"))


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("glue/colla", "did you mean glue/cola or "),
        ("glue/cola.yaml", r"did you mean glue/cola\?$"),
        ("experiments/glue/cola.yaml", r"did you mean glue/cola\?$"),
        ("conll2003", r"did you mean ner/conll2003\?$"),
        ("reviews.yaml", "give a path, or a name such as glue/cola$"),
        ("x" * 300, "give a path, or a name such as glue/cola$"),
    ],
)
def test_an_unknown_name_is_answered_by_both_readings_and_similar_names(
    name, hint, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(
        UserError, match=f"{name} is neither a file nor an experiment's name; {hint}"
    ):
        yaml_files.find(name)


def test_a_setting_is_yaml_for_one_key():
    assert yaml_files.read_setting("train.rates=[5e-5, no]").values == {
        "train": {"rates": [5e-5, "no"]}
    }
    assert yaml_files.read_setting("a=b=c").values == {"a": "b=c"}
    assert yaml_files.read_setting("a=").values == {"a": None}


@pytest.mark.parametrize("setting", ["seed", "=1", "train.=1", ".seed=1", "a=[1", "a=b: c: d"])
def test_an_invalid_setting_is_refused_with_its_text(setting):
    with pytest.raises(UserError) as raised:
        yaml_files.read_setting(setting)

    assert str(raised.value).startswith(f"--set {setting}: ")
