"""The page and its charts made of numbers, with markup in every text."""

from html.parser import HTMLParser

import numpy as np
import pytest

from bert_tf.interpret import charts, sections
from bert_tf.interpret.importance import Importances
from bert_tf.interpret.looks import AttentionMaps, Explanation, Look, PageSection
from bert_tf.tasks.multi_label_classification.pictures import _by_class
from bert_tf.tasks.uncertainty import reliability
from bert_tf.templates import TEMPLATES, macros

EVIL = "\"'></title></script></svg><img src=x onerror=alert(1)>{{ 7 * 7 }}"
PLACES = np.array([[0.0, -1.0], [2.0, 1.0], [1.0, 0.0]])
TWO = (EVIL, "b")


class Tags(HTMLParser):
    """The tags and attributes of a page, and its texts."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.values, self.texts = set(), [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.tags.add(tag)
        assert not any(name.startswith("on") for name, _ in attributes)
        self.values += [value for _, value in attributes]

    def handle_data(self, data):
        self.texts.append(data)


def scatter():
    return charts.scatter(
        PLACES, [EVIL] * 3, ["red"] * 3, TWO, [(EVIL, PLACES[0])], [(EVIL, "red")], diagonal=True
    )


PICTURES = {
    "bars": lambda: charts.bars(TWO, [0.9, 0.1], EVIL),
    "table": lambda: charts.table(TWO, [(EVIL, (1, 0.5, np.nan))]),
    "confusions": lambda: charts.confusion_table(TWO, np.array([[3, 1], [0, 0]])),
    "scatter": scatter,
    "context": lambda: macros("bert_tf/tasks/question_answering/answer.html").answer(
        [(EVIL, EVIL, 0.9, 0.1, True)], EVIL, [(EVIL, 1.0)], 0.5, None
    ),
    "words": lambda: macros("bert_tf/tasks/token_classification/words.html").words(
        [(EVIL, EVIL, EVIL, 0.9, "red"), (EVIL, EVIL, EVIL, 0.9, None)], EVIL
    ),
}


@pytest.mark.parametrize("name", PICTURES)
def test_names_are_text(name):
    picture = PICTURES[name]()
    found = Tags(picture)
    assert "img" not in found.tags
    assert any(EVIL in text for text in [*found.texts, *found.values])
    # Markup stays as it is on the page.
    assert TEMPLATES.from_string("{{ picture }}").render(picture=picture) == picture


def test_every_text_of_the_page_is_text():
    maps = AttentionMaps((EVIL,), np.arange(2), np.ones((1, 1, 2, 2), np.float32))
    seen = Explanation(EVIL, TWO, maps, (Importances(EVIL, np.array([0.5, -0.25]), 0.25),))
    page = TEMPLATES.get_template("bert_tf/interpret/page.html").render(
        title=EVIL,
        intro=EVIL,
        looks=[Look((EVIL,), charts.bars(TWO, [0.9, 0.1]), (seen,), ())],
        about_dev=EVIL,
        sections=[PageSection(EVIL, scatter(), EVIL)],
        script_hash="",
    )
    assert "img" not in Tags(page).tags
    assert page.count("</script>") == 2
    assert "the sum is +0.250; the outputs differ by +0.250." in page


def test_the_greatest_probability_is_bold():
    picture = charts.bars(("a", "b"), np.array([0.25, 0.75], np.float32))
    assert "<strong>b</strong>" in picture and "<strong>a</strong>" not in picture


def test_missing_numbers_are_a_dash():
    picture = charts.table(("label", "rows", "F1"), [("a", (3, np.nan)), ("b", (np.int64(4), 0.5))])
    cells = picture.replace("\n", "")
    assert "<td>3</td><td>–</td>" in cells and "<td>4</td><td>0.500</td>" in cells


def test_a_label_that_never_occurs_has_no_shares():
    given, found = np.array([[1, 0], [1, 0]]) > 0, np.array([[1, 0], [0, 0]]) > 0
    picture = _by_class(("a", "b"), given, found).picture.replace("\n", "")
    cells = "<td>2</td><td>1</td><td>1.000</td><td>0.500</td><td>0.667</td>"
    assert cells in picture
    assert "<td>0</td><td>0</td><td>–</td><td>–</td><td>–</td>" in picture


def test_a_frame_places_numbers_and_round_ticks():
    frame = charts.Frame(np.array([-1.0, 0.0]), np.array([1.0, 10.0]), 200, 100)
    assert frame.pixels([(-1, 0), (1, 10)]) == [[0, 100], [200, 0]]
    assert frame.ticks(0) == [(0, "−1"), (50, "−0.5"), (100, "0"), (150, "0.5"), (200, "1")]
    assert frame.ticks(1)[:2] == [(100, "0"), (80, "2")]
    assert frame.box(0, 0.5, 5) == (100, 50, 50, 50)


def test_calibration_draws_the_bins_that_are_filled():
    *bins, _ = reliability(np.array([0.95, 0.95, 0.35]), np.array([True, False, True]))
    picture = charts.reliability(*bins)
    assert picture.count("<rect") == 4
    assert "<title>2 predictions: mean probability 95.0%, accuracy 50.0%</title>" in picture
    assert "from 3 texts" in sections.calibration(np.ones(3), np.ones(3, bool), "texts").note
