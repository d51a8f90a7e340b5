"""One training in phases: what it sees, when it evaluates, saves and ends, and how it goes on."""

import dataclasses
import json
import os
import re
import signal
from types import SimpleNamespace

import keras
import numpy as np
import pytest
import tensorflow as tf

from bert_tf import AdamW, Encoder, TextClassifier
from bert_tf.checkpoints import names, of_run, reading
from bert_tf.checkpoints.description import describe
from bert_tf.config.reading import load_config
from bert_tf.errors import UserError
from bert_tf.runs.run_folder import RunFolder
from bert_tf.training import loop
from bert_tf.training.callbacks import Callbacks
from bert_tf.training.checkpointing import Checkpoints
from bert_tf.training.distributed import Cluster
from bert_tf.training.evaluations import Evaluations
from bert_tf.training.loop import AfterUpdate, Phase, train
from bert_tf.training.preemption import Preempted
from tests import tiny
from tests.runs.killed import Killed

LONG, SHORT = 9, 5
CHECKPOINTS = ("train.checkpoint_steps=3", "train.checkpoints_kept=2")


@pytest.fixture(scope="module")
def classifier():
    sizes = tiny.encoder_config(4, vocab_size=20, num_attention_heads=1, initializer_range=0.02)
    model = TextClassifier(Encoder(sizes), None, ("bad", "good"))
    model.compile(AdamW(0.01), keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    model.optimizer.build(model.trainable_variables)
    variables = [*model.variables, *model.optimizer.variables]
    return model, [(variable, variable.numpy()) for variable in variables]


class Training:
    """A training in two phases, to be started again and again."""

    def __init__(self, folder, classifier, settings):
        config = load_config(tiny.write_finetuning(folder), settings)
        self.run = RunFolder.start(folder / "run", config)
        self.model, self._beginning = classifier
        # Records the starts of datasets, and after which step which phase evaluated.
        self.started, self.evaluated = [], []

    def start(self, accuracies=None, every=2, at_end=True, **options):
        """Trains from the newest checkpoint on; accuracies are those of each step's evaluation."""
        settings = self.run.config.train
        for variable, value in self._beginning:
            variable.assign(value)

        def phase(end, length):
            def batches_from(start, part, parts):
                assert (part, parts) == (0, 1)
                self.started.append((length, start))
                return tf.data.Dataset.counter(start).map(lambda step: batch(step, length))

            def evaluate():
                step = int(self.model.optimizer.iterations)
                self.evaluated.append((length, step))
                accuracy = (accuracies or {}).get(step, 0.0)
                return {"accuracy": accuracy() if callable(accuracy) else accuracy}

            return Phase(end, batches_from, evaluate, tokens=4 * length)

        evaluations = Evaluations(every, at_end, "accuracy", **options)
        train(
            self.run.path,
            settings,
            self.model,
            self.checkpoints(settings.checkpoints_kept, settings.checkpoint_steps),
            [phase(7, SHORT), phase(10, LONG)],
            evaluations,
            Cluster(tf.distribute.get_strategy()),
        )
        return evaluations

    def checkpoints(self, kept, every, **options):
        return Checkpoints(self.run.checkpoints, describe(self.model), kept, every, **options)

    def steps(self):
        return [int(path.name[5:]) for path in sorted(self.run.checkpoints.glob("step-*"))]

    def weights(self):
        return self.model.get_weights()


def batch(step, length):
    ids = tf.random.stateless_uniform([4, length], [step, 0], 0, 20, tf.int32)
    inputs = {
        "input_word_ids": ids,
        "input_mask": tf.ones_like(ids),
        "input_type_ids": tf.zeros_like(ids),
    }
    return inputs, ids[:, 1] % 2


@pytest.fixture
def make_training(tmp_path, classifier):
    """Makes a training in a folder of its own."""

    def make(name="one", *settings):
        (tmp_path / name).mkdir()
        return Training(tmp_path / name, classifier, [*CHECKPOINTS, *settings])

    return make


def kill_after(monkeypatch, step):
    after_update = AfterUpdate.on_train_batch_end

    def work_and_die(self, batch, logs=None):
        after_update(self, batch, logs)
        if self.step == step:
            raise Killed

    monkeypatch.setattr(AfterUpdate, "on_train_batch_end", work_and_die)


def test_phases_follow_each_other_with_one_count_of_steps(make_training):
    training = make_training()
    evaluations = training.start({4: 0.9}, keep_best=False)
    assert training.started == [(SHORT, 0), (LONG, 7)]
    assert training.evaluated == [(SHORT, 2), (SHORT, 4), (SHORT, 6), (LONG, 8), (LONG, 10)]
    assert [step for step, _ in evaluations.results] == [2, 4, 6, 8, 10]
    assert training.steps() == [9, 10]
    assert of_run.kept(training.run.path).name == "step-00000010"
    # A finished run starts no dataset.
    expected = training.weights()
    training.started.clear()
    training.start()
    assert training.started == []
    np.testing.assert_equal(training.weights(), expected)


@pytest.mark.parametrize("step", [3, 7, 8])
def test_a_run_goes_on_in_the_phase_it_was_in(make_training, monkeypatch, step):
    undisturbed = make_training("undisturbed")
    undisturbed.start()
    expected = undisturbed.weights()
    training = make_training("killed", "train.checkpoint_steps=1")
    with monkeypatch.context() as patch, pytest.raises(Killed):
        kill_after(patch, step)
        training.start()
    training.started.clear()
    results = training.start().results
    assert training.started == ([(SHORT, 3), (LONG, 7)] if step == 3 else [(LONG, step)])
    assert training.evaluated == undisturbed.evaluated
    assert [each for each, _ in results] == [2, 4, 6, 8, 10]
    np.testing.assert_equal(training.weights(), expected)


def test_the_best_weights_are_kept_on_the_disk_and_in_the_model(make_training):
    training = make_training()
    training.start({4: 0.9, 6: 0.8}, keep_best=True)
    assert training.steps() == [4, 9, 10]
    assert of_run.newest(training.run.path).name == "step-00000010"
    assert of_run.kept(training.run.path).name == "step-00000004"
    found = reading.find(training.run.path).tensors
    for name, weight in names.weight_names(training.model).items():
        np.testing.assert_array_equal(weight.numpy(), found.read(name), err_msg=name)


def test_before_the_first_evaluation_nothing_is_saved_as_the_best(make_training, monkeypatch):
    saved, save = [], Checkpoints.save

    def noted(self, model, step, evaluations):
        saved.append(step)
        save(self, model, step, evaluations)

    monkeypatch.setattr(Checkpoints, "save", noted)
    make_training().start({4: 0.9}, every=4, keep_best=True)

    #         of steps: 3, 6, 9; the best: 4; the last: 10
    assert saved == [3, 4, 6, 9, 10]


def test_a_run_ends_early_and_stays_ended(make_training):
    training = make_training()
    training.start({2: 0.9, 4: 0.8, 6: 0.85}, patience=2, keep_best=True)
    assert training.evaluated == [(SHORT, 2), (SHORT, 4), (SHORT, 6)]
    assert training.steps() == [2, 3, 6]
    training.started.clear()
    assert training.start({}, patience=2, keep_best=True).over
    assert training.started == []
    assert of_run.kept(training.run.path).name == "step-00000002"


def terminate():
    os.kill(os.getpid(), signal.SIGTERM)


def test_sigterm_during_an_evaluation_saves_and_the_evaluation_is_made_up_for(make_training):
    def asked_to_end():
        terminate()
        pytest.fail("the evaluation goes on")

    training = make_training()
    with pytest.raises(Preempted):
        training.start({4: asked_to_end})
    assert training.steps() == [3, 4]
    training.evaluated.clear()
    results = training.start({4: 0.5}).results
    assert training.evaluated[0] == (SHORT, 4)
    assert [step for step, _ in results] == [2, 4, 6, 8, 10]
    assert results[1][1] == {"accuracy": 0.5}


def test_sigterm_after_a_phase_saves_too(make_training, monkeypatch):
    training = make_training()
    fit = training.model.fit

    def fit_and_be_asked(*arguments, **options):
        fit(*arguments, **options)
        terminate()

    monkeypatch.setattr(training.model, "fit", fit_and_be_asked)
    with pytest.raises(Preempted):
        training.start(every=100)
    assert training.steps() == [6, 7]
    training.started.clear()
    with pytest.raises(Preempted):
        training.start(every=100)
    assert training.started == [(LONG, 7)]
    assert training.steps() == [9, 10]


def test_a_run_that_was_stopped_leaves_the_checkpoints_of_one_that_was_not(make_training):
    undisturbed = make_training("undisturbed", "train.checkpoints_kept=4")
    undisturbed.start()
    training = make_training("stopped", "train.checkpoints_kept=4")
    for step in (4, 8):
        with pytest.raises(Preempted):
            training.start({step: terminate})
        assert step in training.steps()
    training.start()
    assert training.steps() == undisturbed.steps() == [3, 6, 9, 10]
    for folder in undisturbed.run.checkpoints.iterdir():
        for name in ("model.safetensors", "optimizer.safetensors"):
            ours, theirs = (run.run.checkpoints for run in (training, undisturbed))
            ours, theirs = (path / folder.name / name for path in (ours, theirs))
            assert ours.read_bytes() == theirs.read_bytes()


def test_a_copy_that_somebody_keeps_beside_the_checkpoints_stays(make_training):
    training = make_training()
    mine = training.run.checkpoints / "step-00000001.mine"
    mine.mkdir(parents=True)
    training.start()
    assert mine.is_dir()
    assert len([*training.run.checkpoints.iterdir()]) > 1


def test_what_is_saved_out_of_turn_makes_room_for_what_is_in_turn(make_training):
    training = make_training()
    checkpoints = training.checkpoints(3, 1000)

    def left_after(*steps):
        for step in steps:
            checkpoints.save(training.model, step, Evaluations(100))
        return training.steps()

    assert left_after(400, 800) == [400, 800]
    assert left_after(1000) == [400, 800, 1000]
    assert left_after(2000) == [800, 1000, 2000]
    assert left_after(3000, 3210) == [2000, 3000, 3210]
    assert left_after(3220) == [2000, 3000, 3220]
    assert left_after(4000) == [2000, 3000, 4000]


def test_an_evaluation_of_the_end_that_is_made_up_for_counts_for_what_is_kept(make_training):
    training = make_training()
    with pytest.raises(Preempted):
        training.start({4: 0.5, 10: terminate}, keep_best=True)
    assert of_run.kept(training.run.path).name == "step-00000004"
    training.start({10: 0.9}, keep_best=True)
    assert of_run.kept(training.run.path).name == "step-00000010"
    assert not list(training.run.path.rglob("*.unfinished"))


def test_a_damaged_best_checkpoint_is_reported(make_training):
    training = make_training()
    training.start({4: 0.9}, keep_best=True)
    weights = training.run.checkpoints / "step-00000004" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1] + b"?")
    with pytest.raises(UserError, match="best checkpoint, .*step-00000004, is damaged"):
        training.start(keep_best=True)


def flip_a_bit(content):
    middle = len(content) // 2
    return content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        ("model.safetensors", lambda content: content[:-1]),
        ("model.safetensors", flip_a_bit),
        ("optimizer.safetensors", lambda content: content[:100]),
        ("optimizer.safetensors", flip_a_bit),
        ("optimizer.safetensors", None),
        ("state.json", lambda content: content[:-30]),
        ("state.json", lambda content: content.replace(b'"step": 9', b'"step": 8')),
    ],
)
def test_whatever_is_damaged_the_checkpoint_before_is_used(make_training, capsys, name, damage):
    training = make_training()
    checkpoints = training.checkpoints(2, 1)
    evaluations = Evaluations(100)
    for step in (5, 9):
        checkpoints.save(training.model, step, evaluations)
    file = training.run.checkpoints / "step-00000009" / name
    content = file.read_bytes()
    if damage is None:
        file.unlink()
    else:
        file.write_bytes(damage(content))
        assert file.read_bytes() != content
    assert checkpoints.restore(training.model, evaluations) == 5
    told = r"warning: checkpoint .*step-00000009 is damaged \(.*\); using the previous one\n"
    assert re.fullmatch(told, capsys.readouterr().err)
    # The damaged checkpoint does not remain the newest.
    checkpoints.save(training.model, 6, evaluations)
    assert training.steps() == [5, 6]


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        (
            {"labels": ("no", "yes")},
            "has the labels bad, good, but the training data has no, yes; restore",
        ),
        ({"labels": ("bad",)}, "has the labels bad, good, but the training data has bad; restore"),
        ({"lower_case": True}, "is a checkpoint of another model"),
        ({"settings": {"pair": True, "max_length": 9}}, "is a checkpoint of another model"),
    ],
)
def test_a_model_whose_outputs_mean_something_else_does_not_go_on(make_training, changes, told):
    training = make_training()
    checkpoints, evaluations = training.checkpoints(2, 1), Evaluations(100)
    checkpoints.save(training.model, 5, evaluations)
    changed = dataclasses.replace(checkpoints.description, **changes)
    before = training.weights()
    with pytest.raises(UserError, match=f"step-00000005 {told}"):
        dataclasses.replace(checkpoints, description=changed).restore(training.model, evaluations)
    np.testing.assert_equal(training.weights(), before)


@pytest.mark.parametrize(
    ("saved", "found", "changed"),
    [
        ({"data": "a"}, {"data": "a"}, None),
        ({}, {"data": "a", "dev_data": "b"}, None),  # a state of an older version
        ({"data": "a"}, {"data": "a", "dev_data": "b"}, None),
        ({"data": "a", "dev_data": "b"}, {"data": "a", "dev_data": "b"}, None),
        ({"data": "a"}, {}, None),
        ({"data": "a"}, {"data": "b"}, "training"),
        ({"data": "a", "dev_data": "b"}, {"data": "a", "dev_data": "c"}, "dev"),
    ],
)
def test_a_training_goes_on_with_the_data_it_began_with(make_training, saved, found, changed):
    training = make_training()
    before = training.weights()
    training.checkpoints(2, 1, data=saved).save(training.model, 5, Evaluations(100))
    for variable in training.model.variables:
        variable.assign(variable + 1)
    checkpoints = training.checkpoints(2, 1, data=found)
    if changed is None:
        assert checkpoints.restore(training.model, Evaluations(100)) == 5
        return
    moved = training.weights()
    told = f"the {changed} data differ from those at step 5; restore them, or choose another --out"
    with pytest.raises(UserError, match=told):
        checkpoints.restore(training.model, Evaluations(100))
    assert not np.array_equal(moved[0], before[0])
    np.testing.assert_equal(training.weights(), moved)


def test_a_state_holds_the_evaluations_and_does_not_stop_the_training_if_unreadable(make_training):
    training = make_training()
    training.start({2: 0.25})
    state = json.loads((of_run.newest(training.run.path) / "state.json").read_text())
    assert state["step"] == state["kept"] == 10
    assert state["evaluations"][0] == [2, {"accuracy": 0.25}]
    for name, content in (("step-00000009", "[]"), ("step-00000010", "{")):
        (training.run.checkpoints / name / "state.json").write_text(content)
    with pytest.raises(UserError, match="all .*damaged"):
        training.start()
    (training.run.checkpoints / "step-00000010" / "state.json").unlink()
    assert of_run.kept(training.run.path).name == "step-00000010"


def test_console_and_tensorboard_count_tokens(make_training, capsys, monkeypatch):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    amounts = []
    progress = loop.Progress
    monkeypatch.setattr("bert_tf.console._LINE_SECONDS", 0.0)
    monkeypatch.setattr(loop, "Progress", lambda *a: amounts.append(a[4]) or progress(*a))
    training = make_training("logged", "train.log_steps=5")
    training.start()
    (tokens,) = amounts
    assert [tokens(step) for step in (0, 1, 7, 8, 10)] == [0, 20, 140, 176, 248]
    assert "training: 10/10" in capsys.readouterr().err
    for kind, steps in (("train", [5, 10]), ("dev", [2, 4, 6, 8, 10])):
        events = EventAccumulator(str(training.run.logs / kind))
        events.Reload()
        name = {"train": "learning_rate", "dev": "accuracy"}[kind]
        assert [event.step for event in events.Tensors(name)] == steps


def test_a_checkpoint_is_due_after_so_many_steps_or_minutes(monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(loop.time, "monotonic", lambda: clock[0])
    saved = []
    nothing = SimpleNamespace(write=lambda *_: None)
    after = AfterUpdate(
        settings=SimpleNamespace(checkpoint_steps=4, checkpoint_minutes=2.0, log_steps=100),
        step=0,
        total=12,
        nonfinite=SimpleNamespace(check=lambda *_: None),
        progress=SimpleNamespace(update=lambda *_, **__: None),
        checkpoints=SimpleNamespace(save=lambda model, step, evaluations: saved.append(step)),
        evaluations=Evaluations(100, at_end=False),
        preemption=SimpleNamespace(asked=False, look=lambda: None, end_if_asked=lambda step: None),
        callbacks=Callbacks([], 12, Evaluations(100, at_end=False)),
        curves=nothing,
        dev_curves=nothing,
    )
    optimizer = SimpleNamespace(learning_rate=0.0)
    after.set_model(SimpleNamespace(optimizer=optimizer, reset_metrics=lambda: None))
    after.begin(SimpleNamespace(batches_from=None), None)
    for now in (10, 119, 120, 130, 140, 239, 241, 250, 370, 380, 390, 400):
        clock[0] = now
        after.on_train_batch_end(0)

    #             of minutes: 3, 9; of steps: 4, 8; the last: 12
    assert saved == [3, 4, 8, 9, 12]


def test_what_a_killed_run_left_half_done_is_cleared_at_the_next_start(make_training):
    run = make_training().run
    run.checkpoints.mkdir()
    left = [folder / ".name.01234567.unfinished" for folder in (run.path, run.checkpoints)]
    for folder in left:
        (folder / "name").mkdir(parents=True)
    RunFolder.start(run.path, run.config)
    assert not any(folder.exists() for folder in left)


def test_another_process_in_the_same_run_is_refused_and_changes_nothing(make_training):
    run = make_training().run
    run.tokens.mkdir()
    before = (run.path / "config.yaml").read_text()
    train = run.config.train.model_copy(update={"seed": run.config.train.seed + 1})
    other = run.config.model_copy(update={"train": train})
    cluster = Cluster(tf.distribute.get_strategy())
    for in_use in (RunFolder.in_use(run.path), RunFolder.shared(run.path, other, cluster)):
        with (
            RunFolder.in_use(run.path),
            pytest.raises(UserError, match="another process is writing to"),
            in_use,
        ):
            pass
    assert run.tokens.exists()
    assert (run.path / "config.yaml").read_text() == before
    with RunFolder.in_use(run.path):
        pass
