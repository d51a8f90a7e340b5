"""`bert-tf inspect`: a page for every task, whole in itself, with the model's own numbers in it."""

import base64
import hashlib
import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest
import tensorflow as tf

import bert_tf
from bert_tf import runs
from bert_tf.checkpoints import conversion
from bert_tf.checkpoints.of_run import step_folder
from bert_tf.cli.parser import main
from bert_tf.config.reading import load_config
from bert_tf.encoder.encoder import Encoder
from bert_tf.interpret import inspect
from bert_tf.interpret.looks import attention_maps
from bert_tf.interpret.subject import Subject
from bert_tf.models.pretrainer import PreTrainer
from bert_tf.runs.run_folder import RunFolder
from bert_tf.text import Preprocessor
from tests import tiny
from tests.interpret.tiny_runs import make_run
from tests.tasks import tiny_objects

EVIL = "<script>alert(1)</script>"
CONTEXT = "the cat sat on the mat under the tree . the bird flew over the sea " * 2
ARGUMENTS = {
    "classification": ["--text", "the cat sat", f"good dog {EVIL}"],
    "regression": ["--text-a", "the cat sat", "--text-b", f"a dog {EVIL}"],
    "token_classification": ["--text", EVIL, "\u200b"],
    "question_answering": ["--question", EVIL, "--context", CONTEXT + EVIL],
    "unanswerable": ["--question", EVIL, "--context", f"{EVIL} the dog"],
    "multiple_choice": ["--context", f"dog {EVIL}", "--choices", "it ran", "it sat", "a log"],
    "reranking": ["--query", f"dog {EVIL}", "--passages", f"it ran {EVIL}", "it sat"],
}
SECTIONS = {
    "classification": ["Embeddings", "Confusions", "Calibration"],
    "regression": ["Embeddings", "Predicted against given"],
    "token_classification": ["Embeddings", "Confusions", "Calibration"],
    "question_answering": ["Embeddings", "Calibration"],
    "unanswerable": ["Embeddings", "Calibration"],
    "multiple_choice": ["Embeddings", "Confusions", "Calibration"],
    "reranking": ["Embeddings", "Predicted against given"],
}
# Tags without an end.
VOID = ("meta",)


class Parsed(HTMLParser):
    """A page taken apart; every element must be closed in its turn."""

    def __init__(self, text):
        super().__init__()
        self.open, self.elements, self.headings, self.data = [], [], [], []
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] == "h3":
            self.headings.append(data)
        if self.open[-1:] == ["script"]:
            self.data.append(data)


FAST = ("classification", "token_classification")
KINDS = [pytest.param(kind, marks=() if kind in FAST else pytest.mark.slow) for kind in ARGUMENTS]


@pytest.fixture(scope="module", params=KINDS)
def inspected(request, tmp_path_factory):
    """A task, its run folder, and the page on it."""
    run = make_run(tmp_path_factory.mktemp("inspect"), request.param, num_hidden_layers=1)
    assert main(["inspect", str(run), *ARGUMENTS[request.param], "--rows", "8"]) == 0
    return request.param, run, (run / "inspect.html").read_text()


@pytest.mark.end_to_end
def test_the_page_shows_the_dev_data(inspected):
    kind, _, page = inspected
    assert [each for each in Parsed(page).headings if each in SECTIONS[kind]] == SECTIONS[kind]
    assert "Left out" not in page


def test_markup_in_texts_is_shown_as_text(inspected):
    _, _, page = inspected
    assert "alert(1)" in page
    assert EVIL not in page
    assert sum(tag == "script" and not attributes for tag, attributes in Parsed(page).elements) == 1


def test_nothing_comes_from_elsewhere(inspected):
    _, _, page = inspected
    for tag, attributes in Parsed(page).elements:
        assert tag not in ("link", "img", "iframe", "object", "base", "form")
        assert not {"src", "href", "srcset", "onclick", "onload"} & attributes.keys()
    assert "url(" not in page and "@import" not in page


def test_only_the_pages_own_script_may_run(inspected):
    _, _, page = inspected
    parsed = Parsed(page)
    (policy,) = (a["content"] for _, a in parsed.elements if "http-equiv" in a)
    script = parsed.data[-1]
    found = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert policy.startswith("default-src 'none';")
    assert f"script-src 'sha256-{found}'" in policy


def test_importances_add_up_on_the_page(inspected):
    _, _, page = inspected
    number = r"([+−]\d+\.\d+)"
    sums = re.findall(rf"the sum is {number}; the outputs differ by {number}\.", page)
    assert sums
    for pair in sums:
        total, change = (float(each.replace("−", "-")) for each in pair)
        assert abs(total - change) <= 0.02 * max(1, abs(change))


@pytest.fixture(scope="module")
def reviews(tmp_path_factory):
    """The run folder of a classifier."""
    return make_run(tmp_path_factory.mktemp("reviews"), "classification")


def test_the_attention_on_the_page_is_the_models(reviews):
    subject = Subject.load(reviews)
    inputs = Preprocessor(subject.tokenizer, padding="batch")(tf.constant(["the cat sat ."]))
    seen = subject.seen("", inputs)
    shown = seen.maps
    expected = attention_maps(subject.encoder, inputs, np.arange(6)).probabilities
    numbers = np.frombuffer(base64.b64decode(shown["data"]), "<u2").reshape(expected.shape)
    assert shown["tokens"] == ["[CLS]", "the", "cat", "sat", ".", "[SEP]"]
    np.testing.assert_allclose(numbers / 65535, expected, atol=1e-5)
    np.testing.assert_allclose(expected.sum(axis=-1), 1, rtol=1e-6)


@pytest.mark.slow
def test_confusions_are_those_of_the_evaluation(reviews):
    metrics = runs.evaluate(reviews)
    page = inspect(reviews, []).read_text()
    assert f"{metrics['accuracy']:.1%} of 9 texts are right" in page


def test_without_its_dev_data_the_page_says_why(reviews):
    dev = reviews.parent / "dev.tsv"
    moved = dev.rename(reviews.parent / "moved.tsv")
    page = inspect(reviews, [{"text": "the cat"}]).read_text()
    moved.rename(dev)
    assert re.search(
        r"This part is missing, because the dev data cannot be read: .*not found: .*dev\.tsv", page
    )
    assert 'class="attention"' in page


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind",
    [
        *("classification", "regression", "multiple_choice"),
        *("question_answering", "unanswerable", "token_classification"),
    ],
)
def test_a_keras_file_and_a_checkpoint_are_looked_at_as_the_run_is(kind, tmp_path):
    run, texts = make_run(tmp_path, kind), ARGUMENTS[kind]
    model = bert_tf.load(run)
    model.save(tmp_path / "model.keras")
    model.save_checkpoint(tmp_path / "model")
    step = step_folder(run / "checkpoints", 1)
    assert main(["inspect", str(run), *texts, "--rows", "1"]) == 0
    shown = (run / "inspect.html").read_text()
    for path in (tmp_path / "model.keras", tmp_path / "model", step):
        out = tmp_path / "page.html"
        assert main(["inspect", str(path), "--out", str(out), *texts]) == 0
        page = out.read_text()
        parsed = Parsed(page)
        assert parsed.data == Parsed(shown).data
        assert looks(page) == looks(shown)
        # There are no dev data.
        assert not {*parsed.headings} & {*SECTIONS[kind]}
        assert "On the dev data" not in page and "On the dev data" in shown


def looks(page):
    """The part of a page that shows the texts."""
    found = re.search(r"<section>\s<h2>.*?(?=<h2>On the dev data|<noscript>)", page, re.DOTALL)
    return found.group()


def test_the_encoder_of_a_checkpoint_without_a_head_is_shown(reviews, tmp_path):
    checkpoint, out = tmp_path / "encoder", tmp_path / "page.html"
    model = bert_tf.load(reviews)
    conversion.save(model.encoder, checkpoint, tokenizer=model.tokenizer)
    texts = ["the cat", "the dog", "a bird flew over the sea"]
    assert main(["inspect", str(checkpoint), "--out", str(out), "--text", *texts]) == 0
    parsed = Parsed(out.read_text())
    assert sum(attributes.get("class") == "attention" for _, attributes in parsed.elements) == 3
    assert "Embeddings" in parsed.headings


def test_a_keras_file_does_not_use_the_checkpoint_in_its_folder(reviews, tmp_path, capsys):
    model = bert_tf.load(reviews)
    conversion.save(model.encoder, tmp_path / "encoder", tokenizer=model.tokenizer)
    path = tmp_path / "encoder" / "other.keras"
    Encoder(tiny.encoder_config(16)).save(path)
    assert main(["inspect", str(path), "--text", "a", "--out", str(tmp_path / "a.html")]) == 2
    assert f"{path} has no vocabulary" in capsys.readouterr().err


def test_the_encoder_of_a_pretraining_is_shown_in_its_folder(tmp_path):
    run = RunFolder.start(tmp_path / "run", load_config(tiny.write_pretraining(tmp_path)))
    conversion.save(PreTrainer(Encoder(tiny.encoder_config())), step_folder(run.checkpoints, 1))
    inspect(run.path, [{"text_a": "the cat", "text_b": "a dog"}])
    parsed = Parsed((run.path / "inspect.html").read_text())
    assert json.loads(parsed.data[0])["tokens"] == "[CLS] the cat [SEP] a dog [SEP]".split()


@pytest.mark.slow
def test_encoders_of_the_ablations_are_shown_too(tmp_path):
    run = make_run(tmp_path, "classification", attention="side_by_side", bilstm=True)
    page = inspect(run, [{"text": "the cat sat"}], dev_rows=4).read_text()
    assert '"layers": ["1 left to right", "2 left to right", "1 right to left"' in page


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--text-a", "a"], "takes --text, not --text-a; see bert-tf inspect --help"),
        (["--text", "a", "--out", "page.pdf"], "--out page.pdf must end in .html"),
        (["--rows", "0"], "--rows must be at least 1, not 0"),
    ],
)
def test_mistakes_are_told_in_one_line(arguments, message, reviews, capsys):
    assert main(["inspect", str(reviews), *arguments]) == 2
    told = capsys.readouterr().err
    assert message in told and told.count("\n") == 1


def test_a_checkpoint_needs_a_place_for_the_page(reviews, tmp_path, capsys):
    checkpoint = reviews / "checkpoints" / "step-00000001"
    assert main(["inspect", str(checkpoint), "--text", "a"]) == 2
    assert "name the page with --out, as in --out page.html" in capsys.readouterr().err
    assert main(["inspect", str(checkpoint), "--out", str(tmp_path / "page.html")]) == 2
    assert "has no dev data to show; give texts with --text" in capsys.readouterr().err
    model, pairs = bert_tf.load(reviews), tmp_path / "pairs.keras"
    bert_tf.TextClassifier(model.encoder, model.tokenizer, ["a", "b"], pair=True).save(pairs)
    assert main(["inspect", str(pairs), "--out", str(tmp_path / "page.html")]) == 2
    assert "no dev data to show; give texts with --text-a and --text-b" in capsys.readouterr().err


@pytest.mark.end_to_end
def test_tags_that_are_no_entities_are_shown_too(tmp_path):
    labels, tagger = ["NOUN", "VERB", "DET"], tmp_path / "tagger.keras"  # none of them is O
    tiny_objects.tagger(labels=labels).save(tagger)
    page = tmp_path / "page.html"
    assert main(["inspect", str(tagger), "--text", "the cat sat .", "--out", str(page)]) == 0
    assert any(f"log-odds of {label}" in page.read_text() for label in labels)
