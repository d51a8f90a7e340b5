"""The page of the server, used in Chromium as people use it: with clicks and keys."""

import contextlib
import functools
import json
import re
import socket
import subprocess
import sys
import threading
from urllib.request import Request, urlopen

import keras
import numpy as np
import pytest
import tensorflow as tf

import bert_tf
from bert_tf.encoder.encoder import Encoder
from tests import tiny
from tests.browser import browser, look_like, missing

uvicorn = pytest.importorskip("uvicorn", reason="bert-tf serve requires the extra `serve`")

from bert_tf.serve.app import Server, page  # noqa: E402
from bert_tf.serve.models import sources  # noqa: E402

in_browser = pytest.mark.skipif(missing() is not None, reason=str(missing()))

HTML = "<img src=x onerror=alert(1)>"
QUOTES = "it's \"the\" cat's $HOME `ls` \\n !! %s"
# An emoji of two and one of many UTF-16 units, a combining accent, another direction, HTML.
HARD = f"\U0001f600 the cat \U0001f469‍\U0001f680 sat e\u0301 שלום {HTML} {QUOTES} on the mat"
LONG = "w" * 300

MODELS = {
    "label": lambda *a: bert_tf.TextClassifier(*a, ["bad", HTML, LONG]),
    "labels": lambda *a: bert_tf.TextClassifier(*a, ["animal", "place"], multi_label=True),
    "number": lambda *a: bert_tf.TextRegressor(*a),
    "numbers": lambda *a: bert_tf.TextRegressor(*a, targets=["price", "size"]),
    "question": lambda *a: bert_tf.QuestionAnswerer(*a, max_question_length=8),
    "tags": lambda *a: bert_tf.TokenClassifier(*a, ["O", "B-PER", "I-PER", "B-LOC", "I-LOC"]),
    "choice": lambda *a: bert_tf.MultipleChoice(*a),
    "gaps": lambda *a: bert_tf.MaskedLM(*a),
    "follows": lambda *a: bert_tf.NextSentence(*a),
    "vectors": lambda *a: bert_tf.TextEmbedder(*a),
    "ranking": lambda *a: bert_tf.Reranker(*a),
    "zero_shot": lambda *a: bert_tf.ZeroShotClassifier(
        *a, ["contradiction", "entailment", "neutral"]
    ),
}
TEXTS = [f"{HARD} {LONG}", "the dog ran .", "a bird flew over the sea .", "שלום cat"]
# What people write into the fields of each model; a list is one a line.
ROWS = {
    **dict.fromkeys(("label", "labels", "number", "numbers", "tags"), {"text": TEXTS[0]}),
    "follows": {"text_a": TEXTS[0], "text_b": TEXTS[1]},
    "vectors": {"text": TEXTS},
    "question": {"question": "the cat ?", "context": TEXTS[0]},
    "choice": {"context": TEXTS[1], "choices": TEXTS},
    "gaps": {"text": f"the [MASK] sat on {HTML} [MASK] {LONG}"},
    "ranking": {"query": TEXTS[1], "passages": TEXTS},
    "zero_shot": {"text": TEXTS[0], "candidates": ["good", HTML, LONG]},
}


class Ids(tf.Module):
    """A model of no task, which takes numbers."""

    @tf.function(input_signature=[tf.TensorSpec([None, None], tf.int32, "input_word_ids")])
    def __call__(self, input_word_ids):
        return {"sum": tf.reduce_sum(input_word_ids, axis=1)}


@contextlib.contextmanager
def listening(server):
    """The address of a server, which answers in a thread."""
    listener = socket.create_server(("127.0.0.1", 0))
    web = uvicorn.Server(
        uvicorn.Config(server.app(()), log_level="warning", access_log=False, lifespan="off")
    )
    thread = threading.Thread(target=web.run, args=([listener],))
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/"
    finally:
        web.should_exit = True
        thread.join()
        server.close()


@pytest.fixture(scope="module")
def export(tmp_path_factory):
    """A function from the name of a model to its export, which is made at the first call."""
    folder = tmp_path_factory.mktemp("exports")

    @functools.cache
    def export(name):
        keras.utils.set_random_seed(5)
        if name == "ids":
            ids = Ids()
            tf.saved_model.save(ids, str(folder / name / "1"), signatures=ids.__call__)
        else:
            model = MODELS[name](Encoder(tiny.encoder_config()), tiny.tokenizer())
            model.export(folder / name, version=1)
        return str(folder / name)

    return export


@pytest.fixture(scope="module")
def served(export):
    """A function from the names of models to the address of their server."""
    with contextlib.ExitStack() as stack:

        @functools.cache
        def served(*names):
            server = Server(sources([export(name) for name in names]))
            server.models.load()
            return stack.enter_context(listening(server))

        yield served


@pytest.fixture(scope="module")
def chromium(tmp_path_factory):
    with browser(tmp_path_factory.mktemp("chromium")) as driver:
        driver.set_script_timeout(30)
        yield driver


class User:
    """Somebody in front of the page."""

    def __init__(self, driver, served):
        self.driver, self.served = driver, served

    def find(self, selector):
        return self.driver.find_element("css selector", selector)

    def all(self, selector):
        return self.driver.find_elements("css selector", selector)

    def wait(self, condition, seconds=20):
        from selenium.webdriver.support.wait import WebDriverWait

        return WebDriverWait(self.driver, seconds).until(lambda _: condition())

    def open(self, name, *others):
        self.url = self.served(name, *others)
        self.driver.get(self.url)
        self.wait(lambda: self.driver.title.startswith(name))

    def write(self, row):
        for name, text in row.items():
            field = self.find(f"#input-{name}")
            field.clear()
            # The driver types no emoji: text is pasted as by an input method.
            field.click()
            self.driver.execute_cdp_cmd("Input.insertText", {"text": as_written(text)})
            assert field.get_attribute("value") == as_written(text)

    def ask(self):
        self.find("button.main").click()
        return self.answer()

    def answer(self):
        self.wait(lambda: self.all("#answer > *") and not self.all("#answer[aria-busy]"))
        return self.text("#answer")

    def text(self, selector):
        return self.find(selector).get_attribute("textContent")

    def texts(self, selector):
        return [each.get_attribute("textContent") for each in self.all(selector)]

    def table(self, selector="#answer .bars"):
        """The names and values of bars, also of those that are folded away."""
        names, values = (self.texts(f"{selector} {cell}") for cell in ("[scope=row]", "td"))
        return [*zip(names, values, strict=True)]


@pytest.fixture
def user(chromium, served):
    look_like(chromium, 1200)
    for kind in ("browser", "performance"):
        chromium.get_log(kind)
    yield User(chromium, served)
    # The console may have refused requests, but no violations of the page's policy or errors.
    console = [each for each in chromium.get_log("browser") if each["source"] != "network"]
    assert not console
    messages = [json.loads(each["message"])["message"] for each in chromium.get_log("performance")]
    asked = [
        each["params"]["request"]["url"]
        for each in messages
        if each["method"] == "Network.requestWillBeSent"
    ]
    # The browser opens a chrome: page first.
    own = ("http://127.0.0.1:", "data:", "chrome:")
    assert asked and [each for each in asked if not each.startswith(own)] == []
    assert not chromium.find_elements("css selector", "img")


def as_written(value):
    return value if isinstance(value, str) else "\n".join(value)


def predicted(user, name, rows):
    body = json.dumps({"model": name, "inputs": rows}).encode()
    with urlopen(Request(f"{user.url}predict", body)) as response:
        return json.load(response)["answers"]


def figures(value):
    return "< 0.001" if 0 <= value < 0.0005 else f"{value:.3f}".replace("-", "−")


def ranked(pairs):
    return [(name, figures(v)) for name, v in sorted(pairs, key=lambda p: -p[1])]


def expected_table(name, row, answer):
    """The names and the values that the page shows for an answer."""
    if name in ("label", "labels", "zero_shot"):
        return ranked(answer["probabilities"].items())
    if name == "numbers":
        return [(target, figures(value)) for target, value in answer.items()]
    if name == "follows":
        return [("follows", figures(answer)), ("does not follow", figures(1 - answer))]
    if name == "choice":
        return [*zip(row["choices"], map(figures, answer["probabilities"]), strict=True)]
    if name == "question":
        return [(each["answer"], figures(each["score"])) for each in answer["nbest"]]
    if name == "gaps":
        return [(each["token"], figures(each["probability"])) for gap in answer for each in gap]
    if name == "ranking":
        return [
            (f"{rank}. {row['passages'][i]}", figures(answer["scores"][i]))
            for rank, i in enumerate(answer["order"], start=1)
        ]
    return []


HEADLINES = {
    "label": lambda answer: f"{answer['label']} {figures(answer['probability'])}",
    "labels": lambda answer: "".join(answer["labels"]) or "no label",
    "number": figures,
    "question": lambda answer: f"{answer['answer']} {figures(answer['score'])}",
    "follows": lambda p: "the second text " + ("follows" if p >= 0.5 else "does not follow"),
    "tags": lambda found: f"{len(found)} entit" + ("y" if len(found) == 1 else "ies"),
}


FAST = ("label", "question", "tags", "gaps", "ranking")
FAMILIES = [
    pytest.param(name, marks=() if name in FAST else pytest.mark.slow)
    for name in MODELS
    if name != "vectors"
]


@in_browser
@pytest.mark.parametrize("name", FAMILIES)
def test_the_page_shows_what_the_server_answers(user, name):
    row = ROWS[name]
    user.open(name)
    user.write(row)
    user.ask()
    (answer,) = predicted(user, name, [row])

    assert user.table() == expected_table(name, row, answer)
    if name in HEADLINES:
        assert user.text("#answer .headline") == HEADLINES[name](answer)
    if name == "gaps":
        best = [gap[0]["token"] for gap in answer]
        assert user.texts("#answer mark") == best
        assert user.text("#answer .context") == row["text"].replace("[MASK]", "{}").format(*best)
    # Nothing is wider than a telephone.
    look_like(user.driver, 390)
    for details in user.all("details:not([open]) > summary"):
        if details.is_displayed():
            details.click()
    size = user.driver.execute_script("return [document.documentElement.scrollWidth, innerWidth]")
    assert size == [390, 390]


@in_browser
@pytest.mark.parametrize("name, field", [("question", "context"), ("tags", "text")])
def test_marks_hold_exactly_what_was_found(user, name, field):
    user.open(name)
    user.write(ROWS[name])
    user.ask()
    (answer,) = predicted(user, name, [ROWS[name]])
    found = [answer["answer"]] if name == "question" else [each["text"] for each in answer]
    user.driver.execute_script(
        "document.querySelectorAll('#answer small').forEach(e => e.remove())"
    )

    # The offsets in UTF-16 are others.
    end = answer["end"] if name == "question" else answer[-1]["end"]
    assert found and any(ord(letter) > 0xFFFF for letter in ROWS[name][field][:end])
    assert user.texts("#answer mark") == found
    assert user.text("#answer .context") == ROWS[name][field]
    assert all(mark.get_attribute("title") for mark in user.all("#answer mark"))


def cosine(a, b):
    return a @ b / np.linalg.norm(a) / np.linalg.norm(b)


@in_browser
def test_texts_are_ordered_by_the_similarity_of_their_vectors(user):
    user.open("vectors")
    user.write(ROWS["vectors"])
    user.ask()
    vectors = np.array(predicted(user, "vectors", [{"text": text} for text in TEXTS]))

    found = {text: float(value.replace("−", "-")) for text, value in user.table()}
    assert [*found.values()] == sorted(found.values(), reverse=True)
    assert found == {
        text: pytest.approx(cosine(vectors[0], vector), abs=6e-4)
        for text, vector in zip(TEXTS[1:], vectors[1:], strict=True)
    }
    cells = [float(each.replace("−", "-")) for each in user.texts("#answer .matrix td")]
    every = [[cosine(a, b) for b in vectors] for a in vectors]
    np.testing.assert_allclose(np.reshape(cells, [4, 4]), every, atol=6e-4)
    a, b = np.random.default_rng(0).integers(-128, 128, [2, 8], np.int8)
    equal = np.mean(np.unpackbits(a.view("u1") ^ b.view("u1")) == 0)
    in_page = user.driver.execute_script(f"return equalBits({a.tolist()}, {b.tolist()})")
    assert in_page == equal


def copied(user, program):
    """What the clipboard has after a click, as a text field gets it."""
    from selenium.webdriver.common.keys import Keys

    details = user.find(f"#{program}")
    if details.get_attribute("open") is None:
        user.find(f"#{program} summary").click()
    user.find(f"#{program} button").click()
    user.wait(lambda: user.text(f"#{program} button") == "Copied")
    user.driver.execute_script("document.body.append(document.createElement('textarea'))")
    field = user.find("body > textarea")
    field.send_keys(Keys.CONTROL, "v")
    text = field.get_attribute("value")
    user.driver.execute_script("document.querySelector('body > textarea').remove()")
    return text


@in_browser
@pytest.mark.parametrize("name", ["label", "ranking", "vectors", "ids"])
def test_what_is_copied_runs(user, name):
    user.open(name)
    if name == "ids":
        assert user.text("#about") == (
            "ids takes int32, not texts; query it over REST, as shown below."
        )
        assert not user.find("button.main").is_displayed()
        expected = [2]
    else:
        row = ROWS[name]
        user.write(row)
        rows = [{"text": text} for text in row["text"]] if name == "vectors" else [row]
        expected = predicted(user, name, rows)
    command, program = copied(user, "curl"), copied(user, "python")
    curl = subprocess.run(["bash", "-c", f"{command}\n"], capture_output=True, text=True)
    python = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)

    key = "predictions" if name == "ids" else "answers"
    assert json.loads(curl.stdout)[key] == expected, curl.stderr
    assert eval(python.stdout) == expected, python.stderr


@in_browser
def test_an_example_is_asked_with_a_click(user):
    user.open("question")
    (example,) = user.all("#examples button")
    example.click()
    user.answer()

    assert user.find("#input-context").get_attribute("value").startswith("The river rises")
    assert user.text("#answer .context").startswith("The river rises")


@in_browser
def test_errors_are_shown_and_go_away(user):
    user.open("gaps")
    user.write({"text": "no gap"})
    assert re.fullmatch(r".*has no \[MASK\].*", user.ask())
    assert user.all("#answer[aria-live=polite] > .error")
    user.open("ranking")
    assert user.ask() == "write at least one line as passages"
    user.write(ROWS["ranking"])
    user.ask()
    user.wait(lambda: not user.all(".error"))


@in_browser
def test_tokens_and_what_was_cut_are_shown(user):
    user.open("label")
    user.write({"text": "cat " * 40 + "dogs"})
    assert user.ask().endswith("12 of 44 tokens were cut: the model reads 32.")
    assert user.texts("#tokens .tokens span") == ["cat"] * 40 + ["dog", "##s"]
    assert user.text("#tokens summary") == "44 tokens"
    user.open("gaps")
    user.write({"text": "the [MASK] sat"})
    user.ask()
    assert user.texts("#tokens .tokens span") == ["the", "[MASK]", "sat"]


@in_browser
def test_everything_is_done_with_keys(user):
    from selenium.webdriver.common.keys import Keys

    user.open("label", "tags", "gaps")

    def press(*keys):
        user.driver.switch_to.active_element.send_keys(*keys)
        return user.driver.switch_to.active_element

    user.find("body").click()
    reached = [press(Keys.TAB) for _ in range(5)]
    names = [each.accessible_name for each in reached]
    assert names[:4] == ["Model", "Text", "Ask", "What a lovely film."]
    outlines = {each.value_of_css_property("outline-style") for each in reached[4:]}
    assert outlines == {"solid"}
    press(Keys.SHIFT, Keys.TAB * 4)
    press("gaps", Keys.TAB)
    user.wait(lambda: user.driver.title.startswith("gaps"))
    press("the [MASK]", Keys.CONTROL, Keys.ENTER)
    user.answer()
    (answer,) = predicted(user, "gaps", [{"text": "the [MASK]"}])
    assert user.table() == expected_table("gaps", {}, answer)
    # Every control has a name.
    controls = user.all("select, textarea, button, summary")
    assert all(each.accessible_name for each in controls if each.is_displayed())


@in_browser
def test_what_was_written_stays_for_the_next_model(user):
    user.open("label", "tags", "gaps")
    user.write({"text": HARD})
    user.driver.execute_script("location.hash = 'tags'")
    user.wait(lambda: user.driver.title.startswith("tags"))

    assert user.find("#input-text").get_attribute("value") == HARD


@in_browser
def test_a_model_appears_when_it_is_loaded(user, export):
    server = Server(sources([f"late={export('label')}"]))
    late = User(user.driver, None)
    with listening(server) as url:
        user.driver.get(url)
        late.wait(lambda: late.text("#about") == "Loading the models …")
        assert late.texts("#model option") == ["late (not ready)"]
        server.models.load()
        late.wait(lambda: late.all("#input-text"))
        assert late.texts("#model option") == ["late"]
    assert late.ask() == "the server does not answer"


def test_the_page_is_whole_in_itself():
    content, policy = page()

    assert policy.startswith("script-src 'sha256-")
    assert "default-src 'none'" in policy and "unsafe" not in policy
    assert re.findall(r"\w+://(?!www\.w3\.org/2000/svg)", content) == []
    assert not re.search(r"innerHTML|insertAdjacentHTML|document\.write|eval\(| style=", content)
