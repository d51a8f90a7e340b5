"""The curves that are drawn are those that were logged."""

from bert_tf.report import curves
from bert_tf.report.curves import read_curves
from bert_tf.training.tensorboard import Scalars


def log(folder, *points):
    scalars = Scalars(folder)
    for step, loss in points:
        scalars.write(step, {"loss": loss, "accuracy": 1 - loss})
    scalars.close()


def test_a_curve_is_read_back_and_a_step_logged_twice_counts_once(tmp_path):
    log(tmp_path, (10, 0.75), (20, 0.5), (30, 9.0))  # killed after step 30, saved at 20
    log(tmp_path, (30, 0.25), (40, 0.125))

    assert read_curves(tmp_path)["loss"] == ([10, 20, 30, 40], [0.75, 0.5, 0.25, 0.125])
    assert read_curves(tmp_path / "missing") == {}


def test_runs_are_drawn_into_one_picture():
    points = {"loss": ([1, 2], [0.5, 0.25]), "accuracy": ([1, 2], [0.5, 0.75])}
    runs = [(name, {"train": points, "dev": points}) for name in ("a", "b")]

    picture = curves.draw_curves(runs, ["loss", "accuracy"])

    assert picture.startswith(b"\x89PNG")
    assert len(picture) > 10_000


def test_every_run_is_in_the_legend_whatever_it_is_called(monkeypatch):
    figures = []
    monkeypatch.setattr(curves, "to_png", lambda figure: figures.append(figure) or b"")
    names = ["a/bert", "b/bert", "_try"]

    curves.draw_curves(
        [(name, {"train": {}, "dev": {"loss": ([1, 2], [0.5, 0.25])}}) for name in names], ["loss"]
    )

    (panel,) = figures[0].axes
    assert len(panel.lines) == 3
    legend = [text.get_text() for text in figures[0].legends[0].get_texts()]
    assert legend == [f"held out: {name}" for name in names]
