"""Entities by spans of characters: read, learned inside of words, scored, answered and exported."""

import json
import sys

import keras
import numpy as np
import pytest
import tensorflow as tf

from bert_tf import Encoder, TokenClassifier, Tokenizer, load, runs
from bert_tf.config.reading import load_config
from bert_tf.data.columns import Columns
from bert_tf.errors import UserError
from bert_tf.tasks.token_classification.span_files import read_spans
from bert_tf.tasks.token_classification.spans import Span, in_words
from tests import tiny

WORDS = "[PAD] [UNK] [CLS] [SEP] [MASK] . / - jvc 3 21 2008 ##8 the cat sat é".split()
TEXTS = ["jvc/3/21/2008", "é the cat sat.", "the jvc"]
# The first is from spaCy's issue 5272; the second begins after a character of two bytes.
SPANS = [
    [{"start": 4, "end": 13, "label": "date"}],
    [{"start": 2, "end": 9, "label": "pet"}],
    [],
]


def tagger(**settings) -> TokenClassifier:
    keras.utils.set_random_seed(0)
    config = tiny.encoder_config(
        16, vocab_size=len(WORDS), initializer_range=0.1, **tiny.NO_DROPOUT
    )
    return TokenClassifier(Encoder(config), Tokenizer(WORDS), max_length=16, **settings)


@pytest.fixture(scope="module")
def trained() -> TokenClassifier:
    model = tagger(aggregation="mean")
    options = {"epochs": 40, "batch_size": 6, "learning_rate": 0.02, "verbose": 0}
    model.fit(TEXTS * 4, SPANS * 4, validation_data=(TEXTS, SPANS), **options)
    return model


def spans_of(answers):
    names = {"start": "start", "end": "end", "label": "type"}
    return [[{key: each[name] for key, name in names.items()} for each in row] for row in answers]


@pytest.mark.end_to_end
def test_a_span_inside_of_a_word_is_learned_and_exported(trained, tmp_path):
    assert trained.split_punctuation is True
    answers = trained.predict(TEXTS)
    assert spans_of(answers) == SPANS
    metrics = trained.evaluate(np.array(TEXTS), SPANS)
    assert metrics["f1"] == metrics["f1_date"] == metrics["accuracy"] == 1.0
    trained.save(tmp_path / "model.keras")
    trained.export(tmp_path / "model")
    trained.export(tmp_path / "model.tflite", format="litert")
    trained.save_checkpoint(tmp_path / "folder")
    for name in ("model.keras", "model", "model.tflite", "folder"):
        other = load(tmp_path / name)
        assert other.settings == trained.settings, name
        found = other.predict({"text": TEXTS}, verbose=0)
        assert spans_of(found) == SPANS
        for one, expected in zip(sum(found, []), sum(answers, []), strict=True):
            assert one["text"] == expected["text"]
            assert one["score"] == pytest.approx(expected["score"], abs=1e-5)
        least = (answers[0][0]["score"] + answers[1][0]["score"]) / 2
        kept = [e for e in sum(other.predict(TEXTS, min_score=least, verbose=0), [])]
        assert len(kept) == 1 and kept[0]["score"] > least
        if "." in name and name != "model.tflite" or name == "folder":
            assert other.predict(TEXTS, aggregation="first")[0][0]["type"] == "date"
        else:
            with pytest.raises(UserError, match="with aggregation='mean'; export the model again"):
                other.predict(TEXTS, aggregation="max")
        assert other.predict(TEXTS[0], aggregation="mean")[0]["end"] == 13


@pytest.mark.end_to_end
def test_words_that_a_span_still_cuts_are_not_trained_on(capsys):
    model = tagger(split_punctuation=False)
    rows = ["the jvc/3", "jvc/21 sat", "3/jvc cat", "jvc-the the"]
    cut = [
        [{"start": rows[i].index("jvc"), "end": rows[i].index("jvc") + 3, "label": "tv"}]
        for i in range(4)
    ]
    cut[3].append({"start": 8, "end": 11, "label": "tv"})
    model.fit(rows, cut, batch_size=2, verbose=0)
    said = capsys.readouterr().err
    assert "not trained on: words inside of which spans begin or end (4): row 0: 'jvc/3'" in said
    assert "row 2: '3/jvc' (tv 'jvc'), …\n" in said and "row 3" not in said
    checked = model.given(rows, cut)
    labels = model.target.numbers(model.in_words(checked))
    assert labels.tolist() == [0, -1, -1, 0, -1, 0, -1, 1]
    logits = np.eye(3, dtype=np.float32)[[0, 1, 1, 0, 1, 0, 0, 1]]
    found = model.official_metrics(logits, checked)
    # Three predicted entities are no span; one of five spans is found.
    assert (found["precision"], found["recall"]) == (0.25, 0.2) and found["accuracy"] == 1.0
    # Half of a piece cannot be found in any words.
    model = tagger()
    model.fit(["the cats"] * 2, [[{"start": 4, "end": 6, "label": "pet"}]] * 2, verbose=0)
    assert model.split_punctuation and "spans begin or end (2)" in capsys.readouterr().err


def test_spans_become_words_and_tags():
    rows = Columns(("text",), (["\U0001f600 é the-cat . ", "", "3"],), [[Span(0, 7, "a")], [], []])
    words = in_words(rows, Tokenizer(WORDS), split_punctuation=True)
    assert words.values == ([["\U0001f600", "é", "the", "-", "cat", "."], [], ["3"]],)
    assert words.targets == [("B-a", "I-a", "I-a", "O", "O", "O"), (), ("O",)] and not words.cut
    words = in_words(rows, Tokenizer(WORDS), split_punctuation=False)
    assert words.values[0][0] == ["\U0001f600", "é", "the-cat", "."]
    assert (list(words.cut), words.missed, words.entities[0]) == ([2], ["a"], ("O",) * 4)


def span(start, end, label="a"):
    return {"start": start, "end": end, "label": label}


@pytest.mark.parametrize(
    ("spans", "message"),
    [
        ([span(0, 99)], "the span 0 to 99 of 'the cat' is not in the text, which has 7 char"),
        ([span(3, 3)], "the span 3 to 3 of 'the cat' is not in the text"),
        ([span(-1, 3)], "the span -1 to 3 of 'the cat' is not in the text"),
        ([span(0.5, 3)], "the span 0.5 to 3 of 'the cat' has no whole numbers"),
        ([span(0, 3, " ")], "the span 0 to 3 of 'the cat' has no label"),
        ([span(0, 3, None)], "the label of 'the' is missing"),
        ([span(0, 3) | {"kind": 1}], "a span of 'the cat' has the keys .*, not start, .*, kind"),
        ([(0, 3, "a")], "a span of 'the cat' has the keys start, end and label, not .0, 3, 'a'"),
        (span(0, 3), "the spans of 'the cat' are {'start': 0, .*, not a list"),
        (["O", "B-a"], "a span of 'the cat' has the keys start, end and label, not 'O'"),
        ([span(2, 5), span(0, 3)], "the spans 0 to 3 and 2 to 5 of 'the cat' overlap; keep one"),
        ([span(3, 4)], "the span ' ' of 'the cat' has no word; remove it"),
    ],
)
def test_mistakes_are_named_with_row_and_text(spans, message):
    with pytest.raises(UserError, match=f"row 1: {message}"):
        tagger().fit(["jvc", "the cat"], [[span(0, 3)], spans])


@pytest.mark.end_to_end
def test_what_does_not_fit_a_model_is_refused(trained):
    with pytest.raises(
        UserError, match="row 0, word 1: entities of type 'dog' are not in the training"
    ):
        trained.evaluate(["the cat"], [[{"start": 4, "end": 7, "label": "dog"}]])
    with pytest.raises(UserError, match="min_score requires texts and the signature entities"):
        trained.predict(words=[["the"]], min_score=0.5)
    for options in ({"min_score": 2}, {"aggregation": "average"}):
        with pytest.raises(UserError, match=f"{next(iter(options))} must be"):
            trained.predict("the", **options)
    with pytest.raises(UserError, match="all tags are O; tag some"):
        tagger().fit(["the cat"], [[]])
    with pytest.raises(UserError, match="the data has no words to score"):
        trained.evaluate([""], [[]])
    with pytest.raises(UserError, match="a dataset cannot have texts with spans"):
        trained.fit(tf.data.Dataset.from_tensors((["the cat"], [["O", "O"]])))


EXPECTED = [(Span(0, 3, "tv"), Span(8, 11, "pet")), ()]
FORMS = {
    "doccano": """\
{"id": 7, "text": "jvc the cat", "label": [[0, 3, "tv"], [8, 11, "pet"]], "Comments": []}
{"id": 8, "text": "sat", "label": [], "Comments": []}
""",
    "doccano with relations": """\
{"id": 1, "text": "jvc the cat", "entities": [{"id": 3, "label": "tv", "start_offset": 0, \
"end_offset": 3}, {"id": 4, "label": "pet", "start_offset": 8, "end_offset": 11}], "relations": []}
{"id": 2, "text": "sat", "entities": [], "relations": [], "Comments": []}
""",
    "Label Studio": """\
[{"id": 1, "annotations": [{"id": 5, "completed_by": 1, "was_cancelled": false, "result": [
  {"id": "a", "from_name": "label", "to_name": "text", "type": "labels", "origin": "manual",
   "value": {"start": 8, "end": 11, "text": "cat", "labels": ["pet"]}},
  {"id": "b", "from_name": "label", "to_name": "text", "type": "labels",
   "value": {"start": 0, "end": 3, "text": "jvc", "labels": ["tv"]}}]}],
  "predictions": [], "data": {"text": "jvc the cat"}},
 {"id": 2, "annotations": [{"was_cancelled": true, "result": []}], "data": {"text": "skipped"}},
 {"id": 3, "annotations": [{"result": []}], "data": {"text": "sat"}}]
""",
    "Label Studio, JSON-MIN": """\
[{"text": "jvc the cat", "id": 1, "annotator": 1, "label": [
  {"start": 0, "end": 3, "text": "jvc", "labels": ["tv"]},
  {"start": 8, "end": 11, "text": "cat", "labels": ["pet"]}]},
 {"text": "sat", "id": 2, "annotator": 1, "label": []}]
""",
    "Prodigy": """\
{"text": "jvc the cat", "meta": {"a": 1}, "_input_hash": 12, "tokens": [{"text": "jvc", "start": 0,\
 "end": 3, "id": 0}], "spans": [{"start": 0, "end": 3, "token_start": 0, "token_end": 0, "label": \
"tv"}, {"start": 8, "end": 11, "label": "pet"}], "answer": "accept"}

{"text": "rejected", "spans": [{"start": 0, "end": 3, "label": "tv"}], "answer": "reject"}
{"text": "sat", "spans": [], "answer": "accept"}
""",
}


@pytest.mark.parametrize("form", FORMS)
def test_files_of_every_tool_are_read(form, tmp_path, capsys):
    path = tmp_path / "data.jsonl"
    path.write_text(FORMS[form])
    rows = read_spans(path)
    assert (rows.values, rows.targets) == ((["jvc the cat", "sat"],), EXPECTED)
    is_told = "that annotators rejected or skipped are left out (1)" in capsys.readouterr().err
    assert is_told == ("rejected" in FORMS[form] or "skipped" in FORMS[form])


def test_files_of_spacy_are_read(tmp_path, monkeypatch):
    with monkeypatch.context() as patch, pytest.raises(UserError, match="pip install spacy"):
        patch.setitem(sys.modules, "spacy", None)
        read_spans(tmp_path / "train.spacy")
    spacy = pytest.importorskip("spacy")
    docs = [*map(spacy.blank("en"), ("jvc the cat", "sat"))]
    docs[0].ents = [docs[0].char_span(*span) for span in EXPECTED[0]]
    spacy.tokens.DocBin(docs=docs).to_disk(tmp_path / "train.spacy")
    assert read_spans(tmp_path / "train.spacy").targets == EXPECTED


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"spans": [[0, 9, "a"]]}, ": the span 0 to 9 of 'cat' is not in the text"),
        ({"spans": [], "text": None}, ": text is missing"),
        ({}, ": tags is missing, but other rows have one"),
        ({"annotations": []}, ": tags is missing, but other rows have one"),
        ({"spans": [span(0, 3) | {"x": 1}]}, ": a span of 'cat' .*, not start, end, label, x"),
        ({"spans": [3]}, ": a span of 'cat' has the keys start, end and label, not 3"),
        ({"spans": [], "label": []}, " has spans under spans and label; keep one"),
        ({"spans": [span(0, 2) | {"text": "at"}]}, ": the characters 0 to 2 .* are not 'at'"),
        ({"label": [span(0, 3, ["a", "b"])]}, ": the label of 'cat' is .'a', 'b'."),
        ({"annotations": [{"result": []}] * 2}, " has 2 annotations; keep one"),
    ],
)
def test_mistakes_in_files_are_named_with_the_line(fields, message, tmp_path):
    path = tmp_path / "data.jsonl"
    path.write_text('{"text": "the", "spans": []}\n' + json.dumps({"text": "cat"} | fields))
    with pytest.raises(UserError, match=f"data.jsonl, line 2{message}"):
        read_spans(path)


@pytest.mark.end_to_end
def test_a_run_learns_from_spans(tmp_path):
    (tmp_path / "vocab.txt").write_text("\n".join(WORDS) + "\n")
    lines = [json.dumps({"text": t, "spans": s}) + "\n" for t, s in zip(TEXTS, SPANS, strict=True)]
    (tmp_path / "train.jsonl").write_text("".join(lines * 4))
    (tmp_path / "dev.jsonl").write_text("".join(lines))
    (tmp_path / "test.jsonl").write_text('{"text": "the cat"}\n')
    path = tmp_path / "spans.yaml"
    path.write_text(
        "task: token_classification\ndata: {path: ., format: spans}\n"
        "tokenizer: {vocab: vocab.txt}\n" + tiny.MODEL + "  \n"
        "train: {epochs: 60, batch_size: 4, max_length: 16, learning_rate: 0.01}\n"
    )
    config = load_config(path, ["model.aggregation=max"])
    metrics = runs.finetune(config, tmp_path / "run")
    assert metrics["f1"] == metrics["f1_date"] == 1.0
    assert runs.evaluate(tmp_path / "run") == pytest.approx(metrics, abs=1e-6)
    written = read_spans(tmp_path / "run/predictions/dev.jsonl")
    expected = read_spans(tmp_path / "dev.jsonl")
    assert (written.values, written.targets) == (expected.values, expected.targets)
    assert (tmp_path / "run/predictions/test.jsonl").is_file()
    model = load(tmp_path / "run")
    assert (model.split_punctuation, model.aggregation) == (True, "max")
    with pytest.raises(UserError, match="data.tag_column is not for data.format spans"):
        load_config(path, ["data.tag_column=2"])
