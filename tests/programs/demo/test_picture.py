"""The picture shows the figures, the curve of the pre-training, and the confusions."""

import pytest

from bert_tf.programs.demo import picture

ACCURACIES = {"always the same library": 0.25, "without pre-training": 0.5, "with it": 0.75}
CURVES = {
    "train": {"masked_lm_accuracy": ([100, 200], [0.1, 0.2]), "loss": ([100, 200], [9.0, 8.0])},
    "dev": {"masked_lm_accuracy": ([200], [0.25])},
}


@pytest.fixture
def figures(monkeypatch):
    """The figures that are drawn; they do not become files."""
    found = []
    monkeypatch.setattr(picture, "to_png", lambda figure: found.append(figure) or b"")
    return found


def test_it_is_a_png():
    drawn = picture.draw(ACCURACIES, CURVES, ["a", "b"], ["a", "a"])
    assert drawn.startswith(b"\x89PNG") and len(drawn) > 10_000


def test_every_number_is_in_it(figures):
    picture.draw(ACCURACIES, CURVES, ["a", "a", "b", "b"], ["a", "b", "b", "b"])
    accuracies, curve, confusions = figures[0].axes
    assert [bar.get_height() for bar in accuracies.patches] == [25, 50, 75]
    drawn = {line.get_label(): line.get_xydata().tolist() for line in curve.lines}
    assert drawn == {"training text": [[100, 10], [200, 20]], "held-out text": [[200, 25]]}
    # Rows are the right labels, columns the predicted ones.
    assert [text.get_text() for text in confusions.texts] == ["1", "1", "0", "2"]


def test_a_pretraining_that_logged_nothing_has_an_empty_panel(figures):
    picture.draw(ACCURACIES, {"train": {}, "dev": {}}, ["a", "b"], ["a", "a"])
    assert not figures[0].axes[1].lines
