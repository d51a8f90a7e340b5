"""`bert-tf adapt` is a pre-training run that starts from a checkpoint, and measures it before."""

import json

import numpy as np
import pytest

import bert_tf
from bert_tf import runs
from bert_tf.checkpoints import of_run
from bert_tf.cli.parser import main
from bert_tf.config.reading import load_config
from tests import tiny
from tests.runs.lives import killed_after

OPTIONS = ["--steps", "6", "--batch-size", "4", "--learning-rate", "0.001", "--masking", "0.3"]
OPTIONS += ["--set", "train.max_length=24", "train.checkpoint_steps=2"]


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    return tiny.write_corpus(tmp_path_factory.mktemp("text"), documents=24)


@pytest.fixture(scope="module")
def adapted(pretrained, text, tmp_path_factory):
    """A finished run; `killed` next to it is the same after step 2."""
    folder = tmp_path_factory.mktemp("adapted")
    with killed_after(2, folder):
        command = ["adapt", str(pretrained), "--text", str(text), "--out", str(folder / "run")]
        assert main([*command, *OPTIONS]) == 0
    return folder / "run"


@pytest.mark.end_to_end
def test_it_trains_what_its_configuration_trains(adapted, tmp_path):
    config = load_config(adapted / "config.yaml")
    assert (config.data.masked_lm_prob, config.data.whole_word_masking) == (0.3, True)
    assert (config.data.next_sentence, config.data.format) == (False, "sentence_per_line")
    metrics = runs.pretrain(config, tmp_path / "run")
    expected = json.loads((adapted / "metrics.json").read_text())
    before = expected.pop("perplexity_before")
    assert metrics == pytest.approx(expected, rel=1e-5)
    assert before != pytest.approx(expected["perplexity"], rel=1e-3)
    check_equal(tmp_path / "run", adapted)


def check_equal(run, other):
    one, two = (of_run.kept(each) for each in (run, other))
    one, two = (bert_tf.MaskedLM.from_checkpoint(each).get_weights() for each in (one, two))
    for a, b in zip(one, two, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-6)


@pytest.mark.end_to_end
def test_a_killed_run_resumes_to_the_same(adapted, pretrained, text, capsys):
    run = adapted.with_name("killed")
    command = ["adapt", str(pretrained), "--text", str(text), "--out", str(run), *OPTIONS]
    assert main(command) == 0
    assert "resuming" in capsys.readouterr().err
    one, two = (json.loads((each / "metrics.json").read_text()) for each in (run, adapted))
    assert one == pytest.approx(two, rel=1e-5)
    check_equal(run, adapted)


@pytest.mark.end_to_end
def test_the_perplexity_before_is_that_of_the_checkpoint(pretrained, text, tmp_path, capsys):
    command = ["adapt", str(pretrained), "--text", str(text), "--out", str(tmp_path / "run")]
    assert main([*command, *OPTIONS, "--learning-rate", "1e-12", "--steps", "1"]) == 0
    printed = capsys.readouterr()
    metrics = json.loads(printed.out)
    assert metrics["perplexity"] == pytest.approx(metrics["perplexity_before"], rel=1e-5)
    assert "step 0: " in printed.err


@pytest.mark.end_to_end
def test_the_result_opens_as_any_checkpoint(adapted, tmp_path):
    assert bert_tf.MaskedLM.from_checkpoint(adapted).predict("the [MASK] sat .")
    classifier = bert_tf.TextClassifier.from_checkpoint(adapted, labels=["a", "b"])
    assert classifier.predict("the cat")["label"] in "ab"


@pytest.mark.slow
def test_the_result_is_fine_tuned(adapted, tmp_path):
    tiny.write_labelled(tmp_path)
    path = tmp_path / "run.yaml"
    path.write_text(
        f"task: classification\ndata: {{path: ., format: tsv}}\ninit: {{checkpoint: {adapted}}}\n"
        "train: {epochs: 1, batch_size: 8, max_length: 16}\n"
    )
    assert main(["finetune", str(path), "--out", str(tmp_path / "run")]) == 0


@pytest.mark.parametrize(
    "options, said",
    [
        (["--masking", "0.5"], "--masking 0.5 is not from 0.15 to 0.4"),
        (["--steps", "1", "--epochs", "1"], "needs either train.steps or train.epochs, but both"),
        (["--batch-size", "0"], "train.batch_size must be at least 1"),
        (["--text", "missing.txt"], "missing.txt"),
        (["--text", "one.txt"], "has no held-out documents; give four documents or more"),
    ],
)
def test_mistakes(pretrained, text, tmp_path, monkeypatch, capsys, options, said):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "one.txt").write_text("the cat sat .\n" * 200)
    short = ["--set", "train.max_length=24"]
    command = ["adapt", str(pretrained), "--text", str(text), "--out", "run", *short, *options]
    assert main(command) == 2
    assert said in capsys.readouterr().err.splitlines()[-1]
