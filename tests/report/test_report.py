"""The parts of reports: curves are read as they were logged; the commit is found."""

import re
import subprocess

from bert_tf import report
from bert_tf.report import curves
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


def test_the_commit_is_found_for_a_checkout_only(tmp_path, monkeypatch):
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
