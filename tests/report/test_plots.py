"""Results over a size or a time."""

from bert_tf.report import plots
from bert_tf.report.plots import Line, draw_lines


def test_a_logarithmic_axis_is_labelled_with_the_points_in_plain_numbers(monkeypatch):
    figures = []
    monkeypatch.setattr(plots, "to_png", lambda figure: figures.append(figure) or b"")
    lines = [Line("a", [(0.3932, 1), (1.5, 5)]), Line("b", [(1.5, 3), (85.0, 4)])]
    draw_lines(lines, "size", True)

    (panel,) = figures[0].axes
    assert panel.get_xscale() == "log"
    figures[0].canvas.draw()
    assert [label.get_text() for label in panel.get_xticklabels()] == ["0.393", "1.5", "85"]
    assert [label.get_text() for label in panel.get_xticklabels(minor=True)] == []
