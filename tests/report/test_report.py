"""The parts of reports: curves are read as they were logged and drawn; the commit is found."""

import re
import subprocess

from bert_tf import report
from bert_tf.report import curves, plots
from bert_tf.report.plots import draw_lines
from bert_tf.training.tensorboard import Scalars


def log(folder, *points):
    scalars = Scalars(folder)
    for step, loss in points:
        scalars.write(step, {"loss": loss, "accuracy": 1 - loss})
    scalars.close()


def test_a_curve_is_read_back_and_a_step_logged_twice_counts_once(tmp_path):
    log(tmp_path, (10, 0.75), (20, 0.5), (30, 9.0))  # killed after step 30, saved at 20
    log(tmp_path, (30, 0.25), (40, 0.125))

    read = curves.read_curves(tmp_path)
    assert read["loss"] == ([10, 20, 30, 40], [0.75, 0.5, 0.25, 0.125])
    assert curves.read_curves(tmp_path / "missing") == {}


def test_every_run_is_drawn_and_in_the_legend_whatever_it_is_called(monkeypatch):
    figures, to_png = [], curves.to_png
    monkeypatch.setattr(curves, "to_png", lambda figure: figures.append(figure) or to_png(figure))
    names = ["a/bert", "b/bert", "_try"]
    points = {"loss": ([1, 2], [0.5, 0.25]), "accuracy": ([1, 2], [0.5, 0.75])}
    runs = [(name, {"train": points, "dev": points}) for name in names]

    picture = curves.draw_curves(runs, ["loss", "accuracy"])

    assert picture.startswith(b"\x89PNG") and len(picture) > 10_000
    assert [len(panel.lines) for panel in figures[0].axes] == [6, 6]
    legend = [text.get_text() for text in figures[0].legends[0].get_texts()]
    assert legend == [f"{kind}: {name}" for name in names for kind in ("training", "held out")]


def test_a_logarithmic_axis_is_labelled_with_the_points_in_plain_numbers(monkeypatch):
    figures = []
    monkeypatch.setattr(plots, "to_png", lambda figure: figures.append(figure) or b"")
    lines = [("a", [(0.3932, 1), (1.5, 5)]), ("b", [(1.5, 3), (85.0, 4)])]
    draw_lines(lines, "size", True)

    (panel,) = figures[0].axes
    assert panel.get_xscale() == "log"
    figures[0].canvas.draw()
    assert [label.get_text() for label in panel.get_xticklabels()] == ["0.393", "1.5", "85"]
    assert [label.get_text() for label in panel.get_xticklabels(minor=True)] == []


def test_the_commit_is_told_of_a_checkout_alone(tmp_path, monkeypatch):
    for command in (["init"], ["commit", "-m", "a", "--allow-empty"]):
        options = ["-c", "user.name=a", "-c", "user.email=a"]
        command = ["git", *options, *command]
        subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    # Installed in the repository of another project, and in its own one.
    file = "bert_tf/report/__init__.py"
    monkeypatch.setattr(report, "__file__", str(tmp_path / "site-packages" / file))
    assert report.commit() == ""
    monkeypatch.setattr(report, "__file__", str(tmp_path / file))
    assert re.fullmatch("[0-9a-f]+", report.commit())
