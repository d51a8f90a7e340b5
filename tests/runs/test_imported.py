"""Callbacks, metrics, schedules and optimizers of other packages, named in a configuration."""

import json
import shutil
import sys

import numpy as np
import pytest

import bert_tf
from bert_tf import runs
from bert_tf.checkpoints import of_run, tensors
from bert_tf.cli.parser import main
from bert_tf.config.reading import load_config
from bert_tf.errors import UserError
from bert_tf.runs.run_folder import RunFolder
from tests import tiny
from tests.runs.killed import Killed, check_ended_equal, kill_after

OTHERS = "tests.runs.others"
# An epoch has 4 steps.
SHORT = "train.epochs=3"


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """A run of the same configuration without anything that is imported."""
    folder = tmp_path_factory.mktemp("undisturbed")
    config = load_config(tiny.write_finetuning(folder), [SHORT])
    return folder / "run", runs.finetune(config, folder / "run")


@pytest.fixture
def finetune(tmp_path):
    """Fine-tunes in a folder below `tmp_path`, with settings."""
    path = tiny.write_finetuning(tmp_path)

    def finetune(name, *settings):
        return runs.finetune(load_config(path, [SHORT, *settings]), tmp_path / name)

    return finetune


def callbacks(*named):
    """A setting; each is a name in `tests/runs/others.py`, or a pair with its arguments."""
    pairs = [(each, {}) if isinstance(each, str) else each for each in named]
    listed = [{"name": f"{OTHERS}:{name}", "arguments": given} for name, given in pairs]
    return f"train.callbacks={json.dumps(listed)}"


def calls(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.mark.end_to_end
def test_callbacks_are_called_as_fit_calls_them(finetune, undisturbed, tmp_path):
    run = tmp_path / "run"
    recorder = ("Recorder", {"path": "$run/calls.jsonl"})
    metrics = finetune("run", callbacks(recorder, ("recorder_of", {"run": "$run"})))

    found = calls(run / "calls.jsonl")
    assert found == calls(run / "made.jsonl")
    batches = [[f"batch_{when}", number] for number in range(4) for when in ("begin", "end")]
    epochs = [
        [["epoch_begin", n], *batches, ["test_begin", None], ["test_end", None], ["epoch_end", n]]
        for n in range(3)
    ]
    expected = [
        ["train_begin", 3],
        *(call for each in epochs for call in each),
        ["train_end", None],
    ]
    assert [call[:2] for call in found] == expected
    ends = [logs for method, _, logs in found if method == "epoch_end"]
    assert all({"loss", "accuracy", "val_accuracy", "val_loss"} <= logs.keys() for logs in ends)
    assert ends[-1]["val_loss"] == pytest.approx(metrics["loss"])
    test_ends = [logs for method, _, logs in found if method == "test_end"]
    assert {f"val_{name}": value for name, value in test_ends[0].items()}.items() <= ends[0].items()
    check_ended_equal(run, undisturbed[0])


def test_names_are_printed_with_their_place_before_they_are_imported(tmp_path, capsys):
    (tmp_path / "loud_package.py").write_text("print('imported')\nraise OSError('no luck')\n")
    path = tiny.write_finetuning(tmp_path)
    text = path.read_text().replace("train: {", "train: {\n  callbacks: [loud_package.Loud], ")
    path.write_text(text)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(tmp_path)
        assert main(["finetune", str(path), "--out", str(tmp_path / "run")]) == 2
    line = 1 + text[: text.index("callbacks")].count("\n")
    told = capsys.readouterr()
    first, second = told.err.splitlines()
    assert first == f"imports loud_package.Loud, named in {path}:{line}"
    assert second.endswith(
        f"{path}:{line}: loud_package.Loud cannot be imported (OSError: no luck); correct the "
        "name, or install its package"
    )
    assert told.out == "imported\n"
    assert not (tmp_path / "run").exists()


@pytest.mark.end_to_end
@pytest.mark.parametrize(
    ("setting", "told"),
    [
        ("train.callbacks=[nowhere:X]", "nowhere:X cannot be imported (ModuleNotFoundError"),
        (f"train.callbacks=['{OTHERS}:Nothing']", "cannot be imported (AttributeError"),
        (f"train.callbacks=['{OTHERS}:NUMBER']", "cannot be made (TypeError: 'int'"),
        (callbacks("Recorder"), "Recorder cannot be made (TypeError: "),
        (callbacks(("shape", {"names": "a"})), "returns str, but a Keras Callback is required"),
        (callbacks(("shape", {"names": "$runs"})), "'$runs' has a $ that is not one of $learning"),
        ("train.callbacks=['keras.callbacks:BackupAndRestore']", "cannot be made (TypeError"),
        (f"train.metrics=['{OTHERS}:Recorder']", "cannot be made (TypeError"),
        (
            "train.metrics=['keras.metrics:AUC']",
            "keras.metrics:AUC does not fit the task, with its",
        ),
        ("train.metrics=['keras.metrics:SparseCategoricalAccuracy']", None),
        (
            "train.metrics=[{name: 'keras.metrics:SparseCategoricalAccuracy', "
            "arguments: {name: accuracy}}]",
            "the task has a metric accuracy; give this another name); correct it or remove it",
        ),
        (
            f"train.schedule={{name: '{OTHERS}:shape', arguments: {{names: $learning_rate}}}}",
            "returns float, but a Keras LearningRateSchedule is required",
        ),
        (f"train.optimizer='{OTHERS}:Recorder'", "cannot be made (TypeError: "),
        (
            "train.optimizer={name: 'keras.optimizers:SGD', arguments: {clipnorm: 1.0}}",
            "has clipno",
        ),
        ("train.optimizer={name: 'keras.optimizers:SGD', arguments: {use_ema: true}}", "has use_e"),
    ],
)
def test_what_cannot_be_used_is_told_in_one_sentence(finetune, setting, told):
    if told is None:
        assert "sparse_categorical_accuracy" in finetune("run", setting, "train.epochs=1")
        return
    with pytest.raises(UserError) as raised:
        finetune("run", setting, "train.epochs=1")
    assert told in str(raised.value)
    assert str(raised.value).startswith(f"--set {setting[:20]}")


@pytest.mark.end_to_end
@pytest.mark.parametrize(
    ("method", "at", "step"),
    [("on_train_batch_end", 5, 6), pytest.param("on_epoch_end", 0, 4, marks=pytest.mark.slow)],
)
def test_a_callback_that_fails_loses_nothing(finetune, undisturbed, tmp_path, method, at, step):
    failing = callbacks(("Fails", {"method": method, "at": at}))
    told = (
        rf"Fails failed in {method} \(RuntimeError: the tracker is gone\); step {step} is saved; "
    )
    with pytest.raises(UserError, match=told + "correct it or remove it"):
        finetune("run", failing)
    assert of_run.newest(tmp_path / "run").name == f"step-{step:08d}"

    finetune("run")
    check_ended_equal(tmp_path / "run", undisturbed[0])


def test_a_callback_that_fails_at_the_start_saves_nothing(finetune, tmp_path):
    with pytest.raises(UserError, match=r"failed in on_train_begin \(R.*gone\); correct"):
        finetune("run", callbacks(("Fails", {"method": "on_train_begin"})))
    assert not RunFolder.open(tmp_path / "run").has_saved


@pytest.mark.slow
@pytest.mark.parametrize(
    ("when", "step", "epochs"),
    [("batches", 6, 2), pytest.param("epochs", 4, 1, marks=pytest.mark.slow)],
)
def test_a_callback_may_end_the_run_and_it_stays_ended(finetune, tmp_path, when, step, epochs):
    count = 6 if when == "batches" else 1
    settings = callbacks(("Stops", {when: count}), ("Recorder", {"path": "$run/calls.jsonl"}))
    metrics = finetune("run", settings)

    assert of_run.newest(tmp_path / "run").name == f"step-{step:08d}"
    found = calls(tmp_path / "run" / "calls.jsonl")
    assert found[-1][0] == "train_end"
    assert sum(method == "epoch_end" for method, *_ in found) == epochs
    assert found[-2][2]["val_loss"] == pytest.approx(metrics["loss"])
    assert finetune("run", settings) == metrics
    assert calls(tmp_path / "run" / "calls.jsonl") == found


@pytest.mark.slow
def test_what_a_callback_does_to_the_weights_at_the_end_is_saved(finetune, tmp_path):
    finetune("run", callbacks("Zeroes"))
    saved = tensors.load(of_run.newest(tmp_path / "run") / "model.safetensors")
    assert sum(not np.any(each) for each in saved.values()) == 1


@pytest.mark.slow
def test_callbacks_of_keras_work(finetune, tmp_path):
    named = [
        {"name": "keras.callbacks:CSVLogger", "arguments": {"filename": "$run/log.csv"}},
        {"name": "keras.callbacks:TensorBoard", "arguments": {"log_dir": "$run/board"}},
        {
            "name": "keras.callbacks:ModelCheckpoint",
            "arguments": {
                "filepath": "$run/best.keras",
                "monitor": "val_accuracy",
                "mode": "max",
                "save_best_only": True,
            },
        },
        {
            "name": "keras.callbacks:EarlyStopping",
            "arguments": {"monitor": "loss", "min_delta": 100.0, "start_from_epoch": 1},
        },
    ]
    finetune("run", f"train.callbacks={json.dumps(named)}")

    lines = (tmp_path / "run" / "log.csv").read_text().splitlines()
    assert len(lines) == 1 + 3
    assert "val_accuracy" in lines[0]
    assert list((tmp_path / "run" / "board").rglob("events*"))
    assert bert_tf.load(tmp_path / "run" / "best.keras").predict("the cat sat")["label"]


@pytest.mark.slow
def test_metrics_are_evaluated_with_those_of_the_task(finetune, tmp_path):
    metric = {
        "name": "keras.metrics:SparseTopKCategoricalAccuracy",
        "arguments": {"k": 2, "name": "top2"},
    }
    settings = [
        f"train.metrics={json.dumps([metric, 'keras.metrics:SparseCategoricalAccuracy'])}",
        callbacks(("Recorder", {"path": "$run/calls.jsonl"})),
    ]
    found = finetune("run", *settings)
    assert found["top2"] == 1.0
    assert found["sparse_categorical_accuracy"] == pytest.approx(found["accuracy"])
    ends = [
        logs for method, _, logs in calls(tmp_path / "run" / "calls.jsonl") if "ch_end" in method
    ]
    assert ends[-1]["val_top2"] == 1.0
    # Evaluation imports nothing, and keeps the metrics that it cannot compute.
    assert runs.evaluate(tmp_path / "run") == pytest.approx(found)


@pytest.mark.slow
@pytest.mark.parametrize("optimizer", ["Lion", "Adam", "SGD", "Muon"])
def test_an_optimizer_of_another_package_resumes_to_the_same_bits(
    finetune, tmp_path, monkeypatch, optimizer
):
    given = {"weight_decay": 0.1} | ({"momentum": 0.9} if optimizer == "SGD" else {})
    named = {"name": f"keras.optimizers:{optimizer}", "arguments": given}
    settings = [f"train.optimizer={json.dumps(named)}", "train.checkpoint_steps=5"]
    finetune("undisturbed", *settings)
    with monkeypatch.context() as patch, pytest.raises(Killed):
        kill_after(patch, 5)
        finetune("run", *settings)
    finetune("run", *settings)
    check_ended_equal(tmp_path / "run", tmp_path / "undisturbed")


@pytest.mark.slow
def test_a_schedule_decides_the_rate(finetune, tmp_path):
    constant = {"name": f"{OTHERS}:Constant", "arguments": {"rate": "$learning_rate"}}
    cosine = {
        "name": "keras.optimizers.schedules:CosineDecay",
        "arguments": {"initial_learning_rate": 0.1, "decay_steps": "$total_steps"},
    }
    for name, schedule in {"constant": constant, "cosine": cosine}.items():
        rate = "train.learning_rate=" + ("0.003" if name == "constant" else "5e-5")
        finetune(name, rate, f"train.schedule={json.dumps(schedule)}", "train.log_steps=1")
    from bert_tf.experiments.report.facts import read_curves

    rates = {
        name: [rate for _, rate in read_curves(tmp_path / name / "logs/train")["learning_rate"]]
        for name in ("constant", "cosine")
    }
    assert set(rates["constant"]) == {pytest.approx(0.003)}
    steps = np.arange(1, 13)
    assert rates["cosine"] == pytest.approx(0.05 * (1 + np.cos(np.pi * steps / 12)), abs=1e-6)


@pytest.mark.slow
def test_pretraining_calls_them_too(load_pretraining, tmp_path):
    recorder = callbacks(("Recorder", {"path": "$run/calls.jsonl"}))
    optimizer = "train.optimizer=keras.optimizers:Lion"
    metrics = runs.pretrain(load_pretraining(recorder, optimizer), tmp_path / "run")
    found = calls(tmp_path / "run" / "calls.jsonl")
    ends = [(number, logs) for method, number, logs in found if method == "epoch_end"]
    assert [number for number, _ in ends] == [0, 1]
    assert ends[-1][1]["val_perplexity"] == pytest.approx(metrics["perplexity"])
    assert found[-1][0] == "train_end"


HOSTILE = """
import pathlib
pathlib.Path(__file__).with_name("attacked").touch()
"""


@pytest.mark.end_to_end
def test_opening_a_run_imports_nothing_that_it_names(finetuned, tmp_path, monkeypatch, capsys):
    folder = tmp_path / "modules"
    folder.mkdir()
    (folder / "hostile_package.py").write_text(HOSTILE)
    monkeypatch.syspath_prepend(folder)
    run = tmp_path / "run"
    shutil.copytree(finetuned[0], run)
    text = (run / "config.yaml").read_text()
    names = ["callbacks", "metrics"]
    hostile = "".join(f"  {key}: [{{name: hostile_package:A}}]\n" for key in names)
    hostile += "  schedule: {name: hostile_package.B}\n"
    text = text.replace("  optimizer: adamw\n", "  optimizer: {name: hostile_package:C}\n")
    text = text.replace("  bias_correction: false\n", "").replace("  learning_rate: 0.005\n", "")
    (run / "config.yaml").write_text(text.replace("train:\n", f"train:\n{hostile}"))
    assert load_config(run / "config.yaml").train.named.keys() == {*names, "schedule", "optimizer"}

    bert_tf.load(run).predict(["the cat sat"])
    bert_tf.TextClassifier.from_checkpoint(run)
    runs.evaluate(run)
    data = tmp_path / "data"
    data.mkdir()
    tiny.write_labelled(data)
    texts = tmp_path / "texts.txt"
    texts.write_text("the cat sat\n")
    for command in (
        ["evaluate", run],
        ["predict", run, "the cat sat"],
        ["export", run, "--out", tmp_path / "export"],
        ["inspect", run, "--out", tmp_path / "page.html", "--text", "the cat sat"],
        ["report", run, "--out", tmp_path / "report.md"],
        ["convert", run, tmp_path / "converted", "--to", "huggingface"],
    ):
        code = main([str(each) for each in command])
        assert code in (0, None), (command, capsys.readouterr().err)
    assert not (folder / "attacked").exists()
    assert "hostile_package" not in sys.modules
    # The student of `shrink` does not take them over either.
    from bert_tf.runs import shrinking

    student = shrinking._student(RunFolder.open(run), 1, [])
    assert not any(student.train.named.values())
    assert "the student is trained without train.schedule" in capsys.readouterr().err
