"""Every family learns from tables with named columns: from Parquet, and given to `fit`."""

import json

import numpy as np
import pytest

import bert_tf
from bert_tf.config.reading import load_config
from bert_tf.data import arrow
from bert_tf.data.columns import Columns
from bert_tf.errors import UserError
from bert_tf.runs.fingerprint import fingerprint
from bert_tf.tasks import inputs, registry
from tests import tiny

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
datasets = pytest.importorskip("datasets")

TEXTS = ["the cat sat", "a dog ran", "bird flew", "fish swam"]
WORDS = [text.split() for text in TEXTS]
NAMES = ["good", "bad"] * 2
PAIRS = {"sentence1": TEXTS, "sentence2": TEXTS[::-1]}
ANSWERS = [{"text": [words[0]], "answer_start": [0]} for words in WORDS]
SPANS = [[{"start": 0, "end": len(words[0]), "label": "X"}] for words in WORDS]
TAGS = [["B-X", *["O"] * (len(words) - 1)] for words in WORDS]
GROUPS = [["the cat", "a dog"]] * 4

# Task, more settings of `data`, columns, the class, its arguments.
KINDS = {
    "text": ("classification", "", {"text": TEXTS, "label": NAMES}, "TextClassifier", {}),
    "pair": (
        *("classification", ", text_columns: [sentence1, sentence2]"),
        *({**PAIRS, "label": [1, 0] * 2}, "TextClassifier", {}),
    ),
    "number": ("regression", "", {"text": TEXTS, "label": [0.5, 1, 2, 3]}, "TextRegressor", {}),
    "numbers": (
        *("multi_target_regression", ", label_columns: [size, price]"),
        {"text": TEXTS, "size": [1, 2, 3, 4], "price": [0.5, 1.0, 2.0, 3.0]},
        *("TextRegressor", {"targets": ["size", "price"]}),
    ),
    "labels": (
        *("multi_label_classification", ""),
        {"text": TEXTS, "label": [["good"], [], ["good", "bad"], ["bad"]]},
        *("TextClassifier", {"multi_label": True}),
    ),
    "answers": (
        *("question_answering", ", max_question_length: 8, stride: 4"),
        {"question": TEXTS, "context": TEXTS, "answers": ANSWERS},
        *("QuestionAnswerer", {"max_question_length": 8, "stride": 4}),
    ),
    "tags": (
        *("token_classification", "", {"tokens": WORDS, "ner_tags": TAGS}),
        *("TokenClassifier", {}),
    ),
    "spans": (
        *("token_classification", "", {"text": TEXTS, "spans": SPANS}, "TokenClassifier", {}),
    ),
    "choices": (
        *("multiple_choice", ""),
        {"context": TEXTS, "endings": GROUPS, "label": [1, 0, 0, 1]},
        *("MultipleChoice", {}),
    ),
    "scores": ("embedding", "", {**PAIRS, "score": [0.1, 0.2, 0.3, 0.4]}, "TextEmbedder", {}),
    "negatives": (
        *("embedding", ""),
        {"anchor": TEXTS, "positive": TEXTS[::-1], "negatives": GROUPS},
        *("TextEmbedder", {}),
    ),
    "relevance": (
        *("reranking", "", {"query": TEXTS, "passage": TEXTS, "relevance": [1.0, 0.0] * 2}),
        *("Reranker", {}),
    ),
    "relevances": (
        *("reranking", "", {"query": TEXTS, "passages": GROUPS, "relevances": [[1, 0]] * 4}),
        *("Reranker", {}),
    ),
}
# The texts of other families stay on the disk.
IN_MEMORY = ("spans", "choices", "scores", "negatives", "relevance", "relevances")


def task_of(folder, name, rows, form="parquet"):
    """The task of a run on the rows, written in a format."""
    task, more, *_ = KINDS[name]
    tiny.write_vocabulary(folder)
    if form == "parquet":
        pq.write_table(pa.table(rows), folder / "train.parquet")
    else:
        lines = [json.dumps(row) for row in pa.table(rows).to_pylist()]
        (folder / "train.jsonl").write_text("\n".join(lines) + "\n")
    (folder / "a.yaml").write_text(
        f"task: {task}\ndata: {{path: ., format: {form}{more}}}\n"
        "tokenizer: {vocab: vocab.txt}\n" + tiny.MODEL + "train: {steps: 1, max_length: 24}\n"
    )
    config = load_config(folder / "a.yaml")
    return registry.family(task).task_class()(config)


def model_of(name):
    *_, kind, options = KINDS[name]
    encoder = bert_tf.Encoder(tiny.encoder_config())
    return getattr(bert_tf, kind)(encoder, tiny.tokenizer(), max_length=24, **options)


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", str(tmp_path / "hf"))


def values_of(rows):
    return [[*values] for values in rows.values], rows.targets and [*rows.targets]


@pytest.mark.parametrize("name", KINDS)
def test_a_table_given_to_fit_has_the_rows_of_the_file(tmp_path, name):
    columns = KINDS[name][2]
    from_file = task_of(tmp_path, name, columns).training_rows()
    model, table = model_of(name), pa.table(columns)
    given = model.given(*inputs.of_table(model, table))
    (values, targets), (own, own_targets) = values_of(from_file), values_of(given)
    assert values == own
    if targets is None:
        assert own_targets is None
    elif isinstance(targets[0], dict | tuple | str):
        assert targets == own_targets
    else:
        np.testing.assert_allclose(targets, own_targets)
    is_in_memory = not any(isinstance(each, arrow.ArrowRows) for each in from_file.values)
    assert is_in_memory == (name in IN_MEMORY)


@pytest.mark.parametrize("name", ["text", "pair", "number", "numbers", "labels", "choices"])
def test_parquet_and_json_lines_are_the_same_rows(tmp_path, name):
    columns = KINDS[name][2]
    found = []
    for form in ("parquet", "jsonl"):
        (tmp_path / form).mkdir()
        found.append(values_of(task_of(tmp_path / form, name, columns, form).training_rows()))
    assert found[0] == found[1]


@pytest.mark.parametrize("name", KINDS)
def test_rows_that_are_kept_in_a_folder_are_the_same_to_the_bit(tmp_path, name):
    model = model_of(name)
    rows = model.given(*inputs.of_table(model, pa.table(KINDS[name][2])))
    model.learn_from(rows)
    expected = fingerprint(model.examples(rows))
    for _ in range(2):
        model.tokens = tmp_path / "tokens"
        assert fingerprint(model.examples(rows)) == expected
    assert (tmp_path / "tokens" / "input_word_ids").stat().st_size


def test_a_column_is_named_by_its_place_in_the_configuration(tmp_path):
    rows = {"texts": TEXTS, "label": NAMES, "n": [1, 2, 3, 4]}
    with pytest.raises(UserError, match=r"train.parquet: no column 'text'; .*'texts' is the near"):
        task_of(tmp_path, "text", rows).training_rows()
    (tmp_path / "train.parquet").unlink()
    task = task_of(tmp_path, "text", rows)
    task.data = task.data.model_copy(update={"text_columns": ("n",)})
    with pytest.raises(UserError, match=r"the column 'n' has the type int64, not string; the col"):
        task.training_rows()


def test_a_missing_value_is_named_by_its_row(tmp_path):
    rows = {"text": [*TEXTS[:2], None, "a"], "label": NAMES}
    with pytest.raises(UserError, match=r"train.parquet, row 2: text is missing"):
        task_of(tmp_path, "text", rows).training_rows()


def test_the_names_of_classes_are_those_of_the_data_set(tmp_path):
    features = datasets.Features(
        {"text": datasets.Value("string"), "label": datasets.ClassLabel(names=["b", "a", "c"])}
    )
    rows = {"text": TEXTS, "label": [0, 1, -1, 1]}
    data_set = datasets.Dataset.from_dict(rows, features=features)
    task = task_of(tmp_path, "text", rows)
    data_set.to_parquet(tmp_path / "train.parquet")
    assert [*task.training_rows().targets] == ["b", "a", "a"]
    assert task.labels == ("b", "a", "c")
    model = model_of("text")
    model.learn_from(model.given(*inputs.of_table(model, data_set, "label")))
    assert model.labels == ("b", "a", "c")


@pytest.mark.end_to_end
def test_tables_are_learned_from_evaluated_and_asked():
    # The columns of all packages are compared in tests/data/test_arrow.py.
    table = datasets.Dataset.from_dict({"text": TEXTS, "stars": NAMES})
    model = model_of("text")
    history = model.fit(
        table, "stars", batch_size=2, verbose=0, seed=0, validation_data=(table, "stars")
    )
    metrics = model.evaluate(table, "stars", verbose=0)
    assert history.history["val_accuracy"][-1] == metrics["accuracy"]
    assert metrics == model.evaluate(TEXTS, NAMES, verbose=0)
    assert model.predict(table, verbose=0) == model.predict(TEXTS, verbose=0)
    with pytest.raises(UserError, match="labels are missing"):
        model.evaluate(table)
    with pytest.raises(UserError, match="x: no column 'star'; .*'stars' is the nearest"):
        model.fit(table, "star")


def test_rows_can_be_divided():
    model = model_of("text")
    rows = model.given(*inputs.of_table(model, pa.table(KINDS["text"][2])))
    first, last = rows.split(0.25)
    assert isinstance(first, Columns)
    assert (values_of(first)[0], values_of(last)[0]) == ([TEXTS[:3]], [TEXTS[3:]])


@pytest.mark.end_to_end
def test_an_export_answers_a_table_as_its_model_does(tmp_path):
    model = model_of("pair")
    model.fit((TEXTS, TEXTS[::-1]), NAMES, verbose=0)
    model.export(tmp_path / "export")
    answers = bert_tf.load(tmp_path / "export").predict(pa.table(PAIRS), verbose=0)
    expected = model.predict(pa.table(PAIRS), verbose=0)
    assert [each["label"] for each in answers] == [each["label"] for each in expected]
