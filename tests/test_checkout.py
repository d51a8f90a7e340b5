"""Which state of the code is running: that of its own repository alone."""

import re
import subprocess

from bert_tf import checkout


def test_the_commit_is_told_of_a_checkout_alone(tmp_path, monkeypatch):
    folder = tmp_path / "site-packages" / "bert_tf"
    folder.mkdir(parents=True)
    for command in (["init"], ["-c", "user.name=a", "-c", "user.email=a", "commit", "-m", "a"]):
        options = ["--allow-empty"] if "commit" in command else []
        subprocess.run(["git", *command, *options], cwd=tmp_path, check=True, capture_output=True)
    # Installed in another project's repository, and in one of its own.
    monkeypatch.setattr(checkout, "__file__", str(folder / "checkout.py"))
    assert checkout.commit() == ""
    monkeypatch.setattr(checkout, "__file__", str(tmp_path / "bert_tf" / "checkout.py"))
    (tmp_path / "bert_tf").mkdir()
    assert re.fullmatch("[0-9a-f]+", checkout.commit())
