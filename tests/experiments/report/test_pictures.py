"""Pictures show each run and each point under its name."""

from bert_tf.experiments.report import pictures


def test_every_run_is_drawn_and_in_the_legend_whatever_it_is_called(monkeypatch):
    figures, to_png = [], pictures.to_png
    monkeypatch.setattr(pictures, "to_png", lambda figure: figures.append(figure) or to_png(figure))
    names = ["a/bert", "b/bert", "_try"]
    points = {"loss": ([1, 2], [0.5, 0.25]), "accuracy": ([1, 2], [0.5, 0.75])}
    runs = [(name, {"train": points, "dev": points}) for name in names]

    picture = pictures.draw_curves(runs, ["loss", "accuracy"])

    assert picture.startswith(b"\x89PNG") and len(picture) > 10_000
    assert [len(panel.lines) for panel in figures[0].axes] == [6, 6]
    legend = [text.get_text() for text in figures[0].legends[0].get_texts()]
    assert legend == [f"{kind}: {name}" for name in names for kind in ("training", "held out")]


def test_a_logarithmic_axis_is_labelled_with_the_points_in_plain_numbers(monkeypatch):
    figures = []
    monkeypatch.setattr(pictures, "to_png", lambda figure: figures.append(figure) or b"")
    lines = [("a", [(0.3932, 1), (1.5, 5)]), ("b", [(1.5, 3), (85.0, 4)])]
    pictures.draw_lines(lines, "size", True)

    (panel,) = figures[0].axes
    assert panel.get_xscale() == "log"
    figures[0].canvas.draw()
    assert [label.get_text() for label in panel.get_xticklabels()] == ["0.393", "1.5", "85"]
    assert [label.get_text() for label in panel.get_xticklabels(minor=True)] == []
