"""A search with Optuna: what it tries, what it writes, and how it goes on."""

import dataclasses
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from bert_tf import Encoder, EncoderConfig
from bert_tf.config.reading import load_config, load_config_for
from bert_tf.config.run import FinetuningRun
from bert_tf.errors import UserError
from bert_tf.runs import study
from bert_tf.runs.run_folder import RunFolder
from bert_tf.training.nonfinite import Diverged
from tests import tiny
from tests.runs.test_search import finish, table

pytest.importorskip("optuna", reason="requires the extra optuna")
ROOT = Path(__file__).resolve().parents[2]
RATE = "train.learning_rate={low: 1e-4, high: 0.1, log: true}"
SEED = "train.seed={low: 1, high: 9}"


@pytest.fixture(scope="module")
def encoder():
    sizes = {"hidden_size": 4, "num_hidden_layers": 1, "num_attention_heads": 1}
    return Encoder(EncoderConfig(vocab_size=9, intermediate_size=4, **sizes))


@dataclasses.dataclass
class Trials:
    """Stands for fine-tuning: the accuracy depends on the rate, and three epochs approach it."""

    encoder: Encoder
    ends: dict = dataclasses.field(default_factory=dict)
    ran: list = dataclasses.field(default_factory=list)

    def __call__(self, callbacks, run):
        number = int(run.path.name) - 1
        self.ran.append(number)
        accuracy = 1 - abs(np.log10(run.config.train.learning_rate) + 2.5) / 2
        for _, callback in callbacks:
            callback.set_params({"epochs": 3})
            for epoch in range(3):
                callback.on_epoch_end(epoch, {"val_accuracy": accuracy * (epoch + 1) / 3})
        if number in self.ends:
            raise self.ends.pop(number)
        return finish(run, self.encoder, accuracy)


def start(folder, *settings, trials=6, name="run"):
    folder.mkdir(exist_ok=True)
    path = tiny.write_finetuning(folder)
    settings = settings or (RATE, SEED)
    return RunFolder.start(folder / name, load_config(path, [f"search.trials={trials}", *settings]))


def search(run, trials):
    return study.search(run, trials, "accuracy", {"training data": "a"})


@pytest.mark.end_to_end
def test_the_best_of_all_trials_is_kept(tmp_path, encoder, capsys):
    run, trials = start(tmp_path), Trials(encoder)
    metrics = search(run, trials)

    assert trials.ran == [0, 1, 2, 3, 4, 5]
    header, *rows = table(run.path / "search.tsv")
    assert header == ["trial", "learning_rate", "seed", "end", "accuracy", "loss"]
    accuracies = [float(row[4]) for row in rows]
    best = int(np.argmax(accuracies))
    assert metrics == run.read_metrics()
    assert metrics["accuracy"] == pytest.approx(accuracies[best], rel=1e-5)
    assert run.trained_with.train.seed == int(rows[best][2])
    assert 1e-4 <= run.trained_with.train.learning_rate <= 0.1
    assert (run.predictions / "dev.tsv").read_text() == str(metrics["accuracy"])
    told = capsys.readouterr().err
    assert "trial 1 of 6: learning_rate=" in told
    assert "trials/h  0:0" in told and " left\n" in told
    assert f"best trial: {best + 1}: learning_rate=" in told
    assert RunFolder.open(run.path).config == run.config


@pytest.mark.end_to_end
def test_one_worker_tries_the_same_settings_again(tmp_path, encoder):
    def rows(name, *settings):
        run = start(tmp_path / name, RATE, SEED, "train.weight_decay=[0.0, 0.1]", *settings)
        search(run, Trials(encoder))
        return table(run.path / "search.tsv")

    first = rows("first")
    assert rows("second") == first
    assert len({tuple(row[1:4]) for row in first}) == 1 + 6
    assert rows("third", "search.seed=1") != first


@pytest.mark.end_to_end
def test_a_search_that_was_cut_short_goes_on_with_the_same_trial(tmp_path, encoder):
    undisturbed = start(tmp_path / "undisturbed")
    search(undisturbed, Trials(encoder))
    run = start(tmp_path / "run")
    with pytest.raises(KeyboardInterrupt):
        search(run, Trials(encoder, {2: KeyboardInterrupt()}))
    # The checkpoint of the interrupted trial is still there.
    (run.trials / "0003" / "checkpoints" / "step-00000001").mkdir(parents=True)

    class GoesOn(Trials):
        def __call__(self, callbacks, run):
            if run.path.name == "0003":
                assert (run.checkpoints / "step-00000001").exists()
                (run.checkpoints / "step-00000001").rmdir()
                run.checkpoints.rmdir()
            return super().__call__(callbacks, run)

    goes_on = GoesOn(encoder)
    search(start(tmp_path / "run"), goes_on)
    assert goes_on.ran == [2, 3, 4, 5]
    assert table(run.path / "search.tsv") == table(undisturbed.path / "search.tsv")


def test_a_finished_search_may_have_more_trials_but_no_other_range(tmp_path, encoder):
    search(start(tmp_path), Trials(encoder))
    more = Trials(encoder)
    search(start(tmp_path, trials=8), more)
    assert more.ran == [6, 7]
    none = Trials(encoder)
    search(start(tmp_path, trials=8), none)
    assert none.ran == []
    with pytest.raises(UserError, match=r"holds a run with a different train.learning_rate \("):
        start(tmp_path, RATE.replace("0.1", "0.2"), SEED)


@pytest.mark.end_to_end
def test_trials_behind_the_median_are_pruned(tmp_path, encoder, capsys):
    run = start(tmp_path, trials=14)
    search(run, Trials(encoder))
    rows = table(run.path / "search.tsv")[1:]
    pruned = [row for row in rows if row[3] == "pruned"]
    assert pruned and all(int(row[0]) > 5 for row in pruned)
    assert all(row[4] and not row[5] for row in pruned)
    first = pruned[0]
    assert f"trial {first[0]} is pruned: accuracy " in capsys.readouterr().err
    assert not list((run.trials / f"{int(first[0]):04d}").glob("checkpoints/step-*"))

    whole = start(tmp_path / "whole", RATE, SEED, "search.prune=false", trials=14)
    search(whole, Trials(encoder))
    assert {row[3] for row in table(whole.path / "search.tsv")[1:]} == {"complete"}


def test_a_trial_that_diverges_is_no_candidate(tmp_path, encoder):
    run = start(tmp_path)
    search(run, Trials(encoder, {1: Diverged("the loss is nan", "start again")}))
    rows = table(run.path / "search.tsv")[1:]
    assert [row[3] for row in rows] == ["complete", "diverged", *["complete"] * 4]
    with pytest.raises(UserError, match="no trial of .* was completed here; see its search.tsv"):
        diverge = {n: Diverged("the loss is nan", "start again") for n in range(6)}
        search(start(tmp_path / "none"), Trials(encoder, diverge))


def test_values_that_do_not_go_together_are_skipped(tmp_path, encoder, capsys):
    run = start(
        tmp_path, RATE, "train.batch_size={low: 2, high: 8}", "train.accumulation_steps=[1, 2]"
    )
    search(run, Trials(encoder))
    ends = [row[4] for row in table(run.path / "search.tsv")[1:]]
    assert "invalid" in ends and "complete" in ends
    assert "is not a multiple of train.accumulation_steps 2" in capsys.readouterr().err


def test_choices_may_be_sections_and_null(tmp_path, encoder):
    settings = [
        "train.lora=[null, 2, {rank: 4}]",
        "train.optimizer=[adamw, {name: 'keras.optimizers:SGD', arguments: {momentum: 0.9}}]",
    ]
    run = start(tmp_path, RATE, *settings)
    search(run, Trials(encoder))
    rows = table(run.path / "search.tsv")
    assert {"adamw", "keras.optimizers:SGD{'momentum': 0.9}"} == {row[3] for row in rows[1:]}


@pytest.mark.parametrize("storage", ["sqlite:///{}/trials.db", "{}/trials.log"])
def test_workers_share_the_trials_of_a_storage(tmp_path, encoder, storage, capsys):
    shared = f"search.storage={storage.format(tmp_path)}"

    def worker(name):
        return start(tmp_path, RATE, SEED, shared, "search.prune=false", name=name)

    first, second = worker("first"), worker("second")
    with pytest.raises(KeyboardInterrupt):
        search(first, Trials(encoder, {2: KeyboardInterrupt()}))
    others = Trials(encoder)
    search(second, others)
    assert others.ran == [3, 4, 5]
    told = capsys.readouterr().err
    assert (
        f"trial 3 has not ended; if no worker runs it, restart the worker of {first.path}" in told
    )
    again = Trials(encoder)
    best = search(worker("first"), again)
    assert again.ran == [2]
    assert search(worker("second"), Trials(encoder)) == best
    assert table(first.path / "search.tsv") == table(second.path / "search.tsv")
    assert {row[3] for row in table(second.path / "search.tsv")[1:]} == {"complete"}
    assert second.trained_with == first.trained_with
    # With other data, it is another search.
    study.search(worker("third"), Trials(encoder), "accuracy", {"training data": "b"})
    assert len(list((tmp_path / "third" / "trials").iterdir())) == 6


@pytest.mark.parametrize(
    ("storage", "told"),
    [
        ("sqlite:///nowhere/trials.db", "cannot be opened (OperationalError: "),
        ("nowhere/trials.log", "cannot be opened (FileNotFoundError: "),
        ("mydb://host/trials", "cannot be opened (NoSuchModuleError: "),
        (
            "oracle+no://me:secret@host/trials",
            "oracle+no://me:***@host/trials cannot be",
        ),
    ],
)
def test_a_storage_that_cannot_be_opened_is_told_with_its_place(tmp_path, encoder, storage, told):
    path = tiny.write_finetuning(tmp_path)
    path.write_text(path.read_text() + f"search:\n  storage: {storage}\n")
    line = path.read_text().count("\n")
    run = RunFolder.start(tmp_path / "run", load_config(path, [RATE]))
    with pytest.raises(UserError) as raised:
        search(run, Trials(encoder))
    assert str(raised.value).startswith(f"{path}:{line}: search.storage {storage[:6]}")
    assert told in str(raised.value)
    assert "secret" not in str(raised.value)


def test_without_the_extra_a_search_says_what_to_install(tmp_path, encoder, monkeypatch):
    run = start(tmp_path)
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(UserError, match="search requires the extra optuna .*install"):
        search(run, Trials(encoder))
    path = tmp_path / "finetuning.yaml"
    path.write_text(path.read_text() + "search: {trials: 2}\n")
    line = path.read_text().count("\n")
    with pytest.raises(UserError, match=rf"finetuning.yaml:{line}: search requires the extra"):
        load_config_for("finetune", FinetuningRun, path, [RATE])


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_two_processes_share_the_trials_and_a_killed_one_goes_on(tmp_path):
    path = tiny.write_finetuning(tmp_path)
    storage = f"search.storage=sqlite:///{tmp_path}/trials.db"
    short = ["train.epochs=1", "search.trials=3", storage, RATE]

    def begin(name):
        settings = [part for each in short for part in ("--set", each)]
        command = [sys.executable, "-m", "bert_tf", "finetune", str(path), *settings]
        return subprocess.Popen(
            [*command, "--out", str(tmp_path / name)], cwd=ROOT, stderr=subprocess.PIPE, text=True
        )

    def wait_for(worker, text):
        return next(line for line in worker.stderr if text in line)

    first, second = begin("first"), begin("second")
    wait_for(first, "step 4:")
    first.kill()
    first.wait()
    _, told = second.communicate()
    assert second.returncode == 0, told
    assert "has not ended; if no worker runs it, restart the worker of" in told
    first = begin("first")
    _, told = first.communicate()
    assert first.returncode == 0, told
    numbers = {
        name: {each.name for each in (tmp_path / name / "trials").iterdir()}
        for name in ("first", "second")
    }
    assert numbers["first"] | numbers["second"] == {"0001", "0002", "0003"}
    assert not numbers["first"] & numbers["second"]
    rows = table(tmp_path / "first" / "search.tsv")[1:]
    assert [row[2] for row in rows] == ["complete"] * 3


def test_a_search_may_be_moved(tmp_path, encoder):
    run = start(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        search(run, Trials(encoder, {2: KeyboardInterrupt()}))
    run.path.rename(tmp_path / "moved")
    goes_on = Trials(encoder)
    metrics = search(start(tmp_path, name="moved"), goes_on)
    assert goes_on.ran == [2, 3, 4, 5]
    assert RunFolder.open(tmp_path / "moved").read_metrics() == metrics
