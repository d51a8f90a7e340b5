"""The curves that are drawn are those that were logged."""

import pytest

from bert_tf.errors import UserError
from bert_tf.report import curves
from bert_tf.report.curves import read_curves
from bert_tf.training.tensorboard import Scalars
from experiments.curves import draw


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


def test_runs_are_drawn_into_one_picture(tmp_path):

    for run in ("a", "b"):
        for kind in ("train", "dev"):
            log(tmp_path / run / "logs" / kind, (1, 0.5), (2, 0.25))
    draw([tmp_path / "a", tmp_path / "b"], ["loss", "accuracy"], tmp_path / "out" / "both.png")

    content = (tmp_path / "out" / "both.png").read_bytes()
    assert content.startswith(b"\x89PNG")
    assert len(content) > 10_000


def test_every_run_is_in_the_legend_whatever_it_is_called(tmp_path, monkeypatch):
    figures = []
    monkeypatch.setattr(curves, "to_png", lambda figure: figures.append(figure) or b"")
    runs = [tmp_path / "a" / "bert", tmp_path / "b" / "bert", tmp_path / "_try"]
    for run in runs:
        log(run / "logs" / "dev", (1, 0.5), (2, 0.25))
    draw(runs, ["loss"], tmp_path / "all.png")

    (panel,) = figures[0].axes
    assert len(panel.lines) == 3
    names = [text.get_text() for text in panel.get_legend().get_texts()]
    assert names == ["held out: a/bert", "held out: b/bert", "held out: _try"]


def test_a_folder_without_logs_is_told(tmp_path):

    with pytest.raises(UserError, match="has logged none of loss; is it a run folder"):
        draw([tmp_path], ["loss"], tmp_path / "a.png")
