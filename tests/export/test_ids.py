"""Exports that take ids: the answers of those that take strings, by core operations alone."""

import json
import shutil
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf

import bert_tf
from bert_tf.cli.parser import main
from bert_tf.encoder.encoder import INPUTS
from bert_tf.errors import UserError
from bert_tf.tasks.task_model import TaskModel
from tests.export.conftest import tasks
from tests.export.test_four_ways import assert_alike, assert_same_tensors
from tests.export.test_ops import BANNED, graphs, nodes

TEXTS = ["the cat sat on the mat.", "dogs ran", "a fish", "a cat, the tree"]
OTHERS = ["the dog sat", "the mat is red . the cats sat on it", "dogs", "a fish"]
GROUPS = [
    [*OTHERS[:3]],
    [OTHERS[2], OTHERS[0], ""],
    ["the dog", "the dog", "cats"],
    [*OTHERS[1:3], ""],
]
# Family -> its inputs, if they are not just one or two texts.
ASKED = {
    "multiple_choice": (TEXTS, GROUPS),
    "reranking": (TEXTS, GROUPS),
    "zero_shot": (TEXTS, GROUPS),
    "question_answering": (["the cat", "dogs", "a", "mat"], OTHERS),
    "mlm": (["the [MASK] sat [MASK]", "no gap", "[MASK]", "a [MASK] , [MASK] [MASK] tree"],),
}
FAMILIES = tasks("classification", "reranking", "question_answering", "token_classification", "mlm")


def is_of_groups(model: TaskModel) -> bool:
    """Whether a row is a text and a list of others, each of which is packed with the first."""
    return [each.rank for each in model.columns] == [1, 2]


def ids_of(model: TaskModel, columns: tuple) -> dict[str, tf.Tensor]:
    """Strings as the ids that the model itself makes of them."""
    whole = model._with(_tokenizer=model.tokenizer.with_settings(special_tokens="whole"))
    if not is_of_groups(model):
        return whole.packed([*map(tf.constant, columns)])
    first, others = columns
    say = getattr(model, "hypothesis", str)
    texts = [say(text) if text else "" for group in others for text in group]
    pairs = [[text for text in first for _ in others[0]], texts]
    rows = whole.packed([*map(tf.constant, pairs)])
    shape = [len(others), len(others[0]), -1]
    features = {name: tf.reshape(each, shape) for name, each in rows.items()}
    is_there = tf.constant(others)[..., tf.newaxis] != ""
    return features | {"input_mask": tf.where(is_there, features["input_mask"], 0)}


def without_text(model: TaskModel, columns: tuple, expected: dict) -> dict[str, np.ndarray]:
    """The outputs of strings as those of ids: labels as numbers, bytes as tokens."""
    if "label" in expected and is_of_groups(model):
        labels = [text.decode() for text in expected.pop("label")]
        pairs = zip(labels, columns[1], strict=True)
        expected["choice"] = np.array([group.index(label) for label, group in pairs], np.int32)
    return expected


@pytest.mark.end_to_end
@pytest.mark.parametrize("family", FAMILIES)
def test_ids_and_strings_have_the_same_answers(models, exported, loaded, family):
    model = models(family)
    columns = ASKED.get(family, (TEXTS, OTHERS)[: len(model.columns)])
    names = ["text"] if family == "token_classification" else model.input_names
    strings = {name: tf.constant(each) for name, each in zip(names, columns, strict=True)}
    features, served = ids_of(model, columns), loaded(family, inputs="ids").signatures
    found = {name: each.numpy() for name, each in served["serving_default"](**features).items()}
    expected = {name: each.numpy() for name, each in model.serve(strings).items()}
    if family == "question_answering":
        check_answers(model, columns, found, expected)
    elif family == "token_classification":
        check_words(model, columns[0], found, expected)
        entities = {name: each.numpy() for name, each in served["entities"](**features).items()}
        check_entities(model, columns[0], entities)
    else:
        assert_same_tensors(found, without_text(model, columns, expected))

    frozen = bert_tf.load(exported(family, inputs="ids"))
    assert_same_tensors(frozen.serve(features), found)
    x = columns if len(columns) > 1 else columns[0]
    if is_of_groups(model):
        x = (columns[0], [[text for text in group if text] for group in columns[1]])
        x = x if family != "zero_shot" else (x[0], [[*dict.fromkeys(each)] for each in x[1]])
    if family == "mlm":
        x = [text for text in x if "[MASK]" in text]
    assert_alike(frozen.predict(x, verbose=0), model.predict(x, verbose=0))


def check_answers(model, columns, found, expected):
    windows = model.windows()(columns)
    assert len(windows.rows) == len(columns[1])
    starts, ends = windows.starts.numpy(), windows.ends.numpy()

    def text(row, start, end):
        return columns[1][row].encode()[starts[row, start] : ends[row, end - 1]] if end > 0 else b""

    for row in range(len(starts)):
        assert text(row, found["start"][row], found["end"][row]) == expected["answer"][row]
        nbest = zip(found["nbest_starts"][row], found["nbest_ends"][row], strict=True)
        assert [text(row, *span) for span in nbest] == expected["nbest_answers"][row].tolist()
    for name in ("score", "null_score", "nbest_scores"):
        np.testing.assert_allclose(found[name], expected[name], atol=1e-5)
    logits = model.predict({name: windows.features[name] for name in INPUTS}, verbose=0)
    width = logits["start"].shape[1]
    for name in ("start", "end"):
        padded = np.pad(found[f"{name}_logits"], [[0, 0], [0, 50]], constant_values=-1e9)
        np.testing.assert_allclose(
            np.maximum(padded[:, :width], -1e4), np.maximum(logits[name], -1e4), atol=1e-5
        )


def bytes_of(model, texts):
    """The first byte of each token and the byte after its last, for texts of one window each."""
    pieces = model.tokenizer.tokenize_with_offsets(tf.constant(texts))
    return [each.to_list() for each in (pieces.starts, pieces.ends)]


def check_words(model, texts, found, expected):
    starts, ends = bytes_of(model, texts)
    for row in range(len(texts)):
        spans = [
            (starts[row][first - 1], ends[row][end - 2])
            for first, end in zip(found["starts"][row], found["ends"][row], strict=True)
            if first > 0
        ]
        count = len(spans)
        wanted = zip(expected["starts"][row], expected["ends"][row], strict=True)
        assert spans == [(start, end) for start, end in wanted if start >= 0]
        np.testing.assert_array_equal(found["labels"][row][:count], expected["labels"][row][:count])
        np.testing.assert_allclose(
            found["scores"][row][:count], expected["scores"][row][:count], atol=1e-5
        )


def check_entities(model, texts, found):
    starts, ends = bytes_of(model, texts)
    for row, entities in enumerate(model.predict(texts, verbose=0)):
        for place, entity in enumerate(entities):
            first, end = found["starts"][row][place], found["ends"][row][place]
            assert texts[row][starts[row][first - 1] : ends[row][end - 2]] == entity["text"]
            assert found["types"][row][place].decode() == entity["type"]
            assert found["scores"][row][place] == pytest.approx(entity["score"], abs=1e-5)
        assert {*found["starts"][row][len(entities) :]} <= {-1}


@pytest.mark.end_to_end
def test_a_process_without_tensorflow_text_loads_them_elsewhere(exported, tmp_path):
    families = ("classification", "reranking", "question_answering", "token_classification", "mlm")
    for family in families:
        folder = exported(family, inputs="ids")
        for graph in graphs(folder):
            functions = {function.signature.name for function in graph.library.function}
            ops = {node.op for node in nodes(graph)} - functions
            assert not {op for op in ops if not hasattr(tf.raw_ops, op)}
            assert not [op for op in ops if any(word in op for word in BANNED)]
        shutil.copytree(folder, tmp_path / family)
    program = tmp_path / "ask.py"
    program.write_text(
        "import json, pathlib, sys\n"
        "import tensorflow as tf\n"
        "from tensorflow.python.framework import op_def_registry\n"
        "for folder in pathlib.Path(__file__).parent.glob('*/'):\n"
        "    card = json.loads((folder / 'assets.extra/model_card.json').read_text())\n"
        "    loaded = tf.saved_model.load(str(folder))\n"
        "    for name, each in card['signatures'].items():\n"
        "        given = {k: tf.constant(v) for k, v in each['example']['inputs'].items()}\n"
        "        found = {k: v.numpy() for k, v in loaded.signatures[name](**given).items()}\n"
        "        for key, value in each['example']['outputs'].items():\n"
        "            assert [*found[key].shape] == value['shape'], key\n"
        "    print(folder.name)\n"
        "assert 'tensorflow_text' not in sys.modules\n"
        "assert op_def_registry.get('FastWordpieceTokenizeWithOffsets') is None\n"
    )
    done = subprocess.run([sys.executable, program], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr[-2000:]
    assert {*done.stdout.split()} == {*families}


@pytest.mark.end_to_end
def test_the_command_line_and_what_is_in_the_folder(models, tmp_path, capsys):
    source, out = tmp_path / "model.keras", tmp_path / "ids"
    models("classification").save(source)
    assert main(["export", str(source), "--out", str(out), "--inputs", "ids"]) == 0
    record = json.loads((out / "assets" / "task.json").read_text())
    assert record["inputs"] == "ids"
    assert (out / "assets" / "labels.txt").read_text().split() == ["no", "yes", "maybe"]
    assert len((out / "assets" / "vocab.txt").read_text().splitlines()) > 5
    capsys.readouterr()
    assert main(["predict", str(out), TEXTS[0]]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["label"] == models("classification").predict(TEXTS[0])["label"]
    served = bert_tf.load(out)
    metrics = served.evaluate(TEXTS, ["no", "yes", "no", "maybe"], verbose=0)
    assert metrics["accuracy"] in (0, 0.25, 0.5, 0.75, 1)
    with pytest.raises(UserError, match="no input 'input_mask'; the model takes input_mask and"):
        served.serve(input_word_ids=[[1]])
    assert main(["export", "x", "--out", "y", "--kind", "hub", "--inputs", "ids"]) == 2
    assert "remove --inputs" in capsys.readouterr().err


def test_options_that_ids_cannot_express_and_other_records_are_refused(models, exported, tmp_path):
    embedder = models("embedding")
    prompts = {"prompts": {"query": "the "}, "include_prompt": False}
    own = bert_tf.TextEmbedder(embedder.encoder, embedder.tokenizer, **prompts)
    with pytest.raises(UserError, match="excludes its prompts from pooling cannot be exported wi"):
        own.export(tmp_path / "x", inputs="ids")
    folder = shutil.copytree(exported("classification", inputs="ids"), tmp_path / "model")
    path = folder / "assets" / "task.json"
    record = json.loads(path.read_text())
    changed = {**record["model"], "model": "NextSentence", "labels": [], "settings": {}, "head": {}}
    path.write_text(json.dumps(record | {"model": changed}))
    with pytest.raises(UserError, match="does not answer as its description says; export it"):
        bert_tf.load(folder)
