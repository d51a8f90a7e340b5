"""A family of another package goes every way that bert_tf's own go.

The package is `tests/outside/star_ratings`: a head, a file format and a signature that bert_tf does
not know. It is found by its entry point, as if it were installed.
"""

import json
import os
import random
import re
import subprocess
import sys
from pathlib import Path

import pytest

OUTSIDE = Path(__file__).parents[1] / "outside"
ROOT = OUTSIDE.parents[1]
PIECES = "[PAD] [UNK] [CLS] [SEP] [MASK] the soup was cold warm good bad very . tea".split()
# What a review says of the soup -> its stars.
WORDS = {"very bad": 1, "bad": 2, "cold": 3, "good": 4, "very good": 5}
CONFIG = """\
task: star_rating
data: {path: ., format: stars}
tokenizer: {vocab: vocab.txt}
model:
  {hidden_size: 32, num_hidden_layers: 1, num_attention_heads: 2, max_position_embeddings: 16,
   initializer_range: 0.2, hidden_dropout_prob: 0.0, attention_probs_dropout_prob: 0.0}
train: {epochs: 80, batch_size: 10, max_length: 16, learning_rate: 5.0e-3, seed: 1}
"""
# What a user writes, with nothing imported but bert_tf.
ASK = """
import json, sys
import bert_tf
keras_file, *paths = sys.argv[1:]
bert_tf.load(paths[0]).save(keras_file)
for path in (*paths, keras_file):
    model = bert_tf.load(path)
    print(json.dumps(model.predict(["the soup was very bad .", "the tea was very good ."])))
"""

COMMANDS = """
import contextlib, io, json, sys
from bert_tf.cli.parser import main
for command in json.loads(sys.argv[1]):
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        code = main(command)
    print(json.dumps(printed.getvalue()))
    if code:
        sys.exit(code)
"""


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    """Where the package is installed."""
    site = tmp_path_factory.mktemp("site")
    metadata = site / "star_ratings-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: star_ratings\nVersion: 1.0\n")
    entry = "[bert_tf.families]\nstar_rating = star_ratings:FAMILY\n"
    (metadata / "entry_points.txt").write_text(entry)
    paths = os.pathsep.join(map(str, (site, OUTSIDE, ROOT)))
    return os.environ | {"PYTHONPATH": paths, "TF_CPP_MIN_LOG_LEVEL": "3"}


@pytest.fixture(scope="module")
def finished(tmp_path_factory, environment):
    """A run folder that `bert-tf finetune` made; what `schema` and `evaluate` print then."""
    folder = tmp_path_factory.mktemp("stars")
    source = random.Random(0)
    for split, count in (("train", 60), ("dev", 20), ("test", 5)):
        reviews = source.choices(list(WORDS), k=count)
        dishes = source.choices(["soup", "tea"], k=count)
        lines = (
            f"{'*' * WORDS[word]} the {dish} was {word} .\n"
            for word, dish in zip(reviews, dishes, strict=True)
        )
        (folder / f"{split}.stars").write_text("".join(lines))
    (folder / "vocab.txt").write_text("\n".join(PIECES) + "\n")
    (folder / "stars.yaml").write_text(CONFIG)
    finetune = ("finetune", folder / "stars.yaml", "--out", folder / "run")
    evaluate = ("evaluate", folder / "run")
    _, *printed = commands(environment, finetune, ("schema",), evaluate)
    return folder / "run", *map(json.loads, printed)


@pytest.fixture(scope="module")
def run(finished):
    """The run folder."""
    return finished[0]


def commands(environment, *each) -> list[str]:
    """What commands print, one after the other in one process."""
    done = subprocess.run(
        [sys.executable, "-c", COMMANDS, json.dumps(each, default=str)],
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.end_to_end
def test_its_keys_are_in_the_schema(finished):
    _, schema, _ = finished
    keys = schema["$defs"]["StarRatingData"]["properties"]
    assert keys["most_stars"]["description"] == "The most stars that a review can have."


@pytest.mark.end_to_end
def test_it_is_fine_tuned_from_yaml_and_evaluated(finished):
    run, _, evaluated = finished
    metrics = json.loads((run / "metrics.json").read_text())
    assert metrics["accuracy"] > 0.9 and metrics["mean_absolute_error"] < 0.1
    assert evaluated == metrics
    assert (run / "predictions" / "test.stars").read_text().startswith("*")


@pytest.mark.slow
def test_it_is_exported_converted_and_asked(run, environment, tmp_path):
    saved, converted = tmp_path / "saved", tmp_path / "converted"
    *_, printed = commands(
        environment,
        ("export", run, "--out", saved),
        ("convert", run, converted, "--to", "huggingface"),
        ("predict", saved, "the soup was very bad ."),
    )
    config = json.loads((converted / "config.json").read_text())
    assert config["architectures"] == ["BertForStarRating"]
    assert "model" not in config["bert_tf"]
    card = json.loads((tmp_path / "saved/assets.extra/model_card.json").read_text())
    assert (card["task"], card["model"]["class"]) == ("star_rating", "StarRater")
    assert json.loads(printed)["stars"] == 1

    asked = subprocess.run(
        [sys.executable, "-c", ASK, tmp_path / "stars.keras", run, saved, converted],
        env=environment,
        capture_output=True,
        text=True,
    )
    assert asked.stdout == "[1, 5]\n" * 4, asked.stderr


@pytest.mark.slow
def test_it_is_inspected_and_reported(run, environment, tmp_path):
    (tmp_path / "reviews.jsonl").write_text('{"review": "the soup was <b>very bad ."}\n')
    page = tmp_path / "page.html"
    commands(environment, ("inspect", run, "--input", tmp_path / "reviews.jsonl", "--out", page))
    text = page.read_text()
    assert "Star rating; 1 layers" in text and "5 stars or more" in text and "Confusions" in text
    assert re.search('title="the soup was &lt;b&gt;very bad .">★+</p>', text) and "<b>" not in text

    commands(environment, ("report", run, "--out", tmp_path / "report.md"))
    report = (tmp_path / "report.md").read_text()
    assert "Star rating" in report and "mean_absolute_error" in report


@pytest.mark.slow
def test_a_mistake_in_its_files_is_one_sentence(run, environment, tmp_path):
    (tmp_path / "bad.stars").write_text("****** the soup\n")
    done = subprocess.run(
        [sys.executable, "-m", "bert_tf", "evaluate", run, "--data", tmp_path / "bad.stars"],
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2
    assert "bad.stars, line 1: write up to 5 stars and a review" in done.stderr
