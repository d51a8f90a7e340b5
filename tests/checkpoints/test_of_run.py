"""The checkpoints of a run: damaged ones are skipped, in training and elsewhere."""

import pytest

from bert_tf.checkpoints import native, of_run, reading
from bert_tf.checkpoints.description import describe
from bert_tf.checkpoints.of_run import KEPT, damage, write_state
from tests.checkpoints import tiny_models as tiny


@pytest.fixture(scope="module")
def encoder():
    return tiny.make("encoder")


@pytest.fixture
def make_run(tmp_path, encoder):
    """Makes a run with checkpoints, given as step -> the step that it names as best."""

    def make(steps):
        for step, kept in steps.items():
            checkpoint = of_run.step_folder(tmp_path / native.CHECKPOINTS, step)
            checkpoint.mkdir(parents=True)
            native.write(checkpoint, encoder, describe(encoder))
            (checkpoint / "optimizer.safetensors").write_bytes(b"moments")
            write_state(checkpoint, {"step": step, KEPT: kept})
        return tmp_path

    return make


def flip(run, step, name):
    """Changes the last byte of a file."""
    file = of_run.step_folder(run / native.CHECKPOINTS, step) / name
    content = file.read_bytes()
    file.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))


def test_the_best_is_read_if_the_newest_names_it_and_otherwise_the_newest(make_run):
    run = make_run({1: 1, 2: 1, 3: 1})

    assert of_run.kept(run).name == reading.find(run).folder.name == "step-00000001"
    assert of_run.newest(run).name == "step-00000003"


@pytest.mark.parametrize("name", ["model.safetensors", "bert_tf.json", "state.json"])
def test_a_damaged_one_is_passed_over_with_a_warning(make_run, capsys, name):
    run = make_run({1: 1, 2: 2})
    flip(run, 2, name)

    assert reading.find(run).folder.name == "step-00000001"
    told = capsys.readouterr().err
    assert told.startswith(f"warning: checkpoint {run}/checkpoints/step-00000002 is damaged (")
    assert told.endswith("); using the previous one\n")


def test_what_only_training_reads_may_be_damaged(make_run, capsys):
    run = make_run({1: 1, 2: 2})
    flip(run, 2, "optimizer.safetensors")

    assert reading.find(run).folder.name == "step-00000002"
    assert capsys.readouterr().err == ""
    assert damage(of_run.newest(run)) == "optimizer.safetensors has changed"


def test_a_damaged_best_checkpoint_is_not_replaced_by_another(make_run):
    run = make_run({1: 1, 2: 1})
    flip(run, 1, "model.safetensors")

    told = "best checkpoint, .*1, is damaged .model.safetensors has changed.; start a new run, or"
    tiny.refused(told, reading.find, run)
    assert reading.find(of_run.newest(run)).folder.name == "step-00000002"


def test_a_run_whose_checkpoints_are_all_damaged_is_reported(make_run, capsys):
    run = make_run({1: 1, 2: 2})
    for step in (1, 2):
        flip(run, step, "model.safetensors")

    tiny.refused("all checkpoints in .*checkpoints are damaged; start a new", reading.find, run)
    assert capsys.readouterr().err.count("using the previous one") == 2


def test_a_damaged_checkpoint_named_by_its_own_path_is_refused(make_run):
    run = make_run({1: 1, 2: 2})
    flip(run, 1, "model.safetensors")

    told = "damaged: .*step-00000001 .model.safetensors has changed.;"
    tiny.refused(told, reading.find, of_run.step_folder(run / native.CHECKPOINTS, 1))


def test_without_a_state_there_is_nothing_to_compare_with(make_run, capsys):
    run = make_run({1: 1, 2: 2})
    (of_run.newest(run) / "state.json").unlink()
    flip(run, 2, "bert_tf.json")

    assert of_run.kept(run).name == "step-00000002"
    assert capsys.readouterr().err == ""
