"""The folder of a run: what is kept if its command is repeated, and what starts anew."""

import pytest

from bert_tf.checkpoints.of_run import step_folder
from bert_tf.config.reading import load_config
from bert_tf.errors import UserError
from bert_tf.runs.run_folder import RunFolder
from tests import tiny


@pytest.fixture
def begin(tmp_path):
    """Starts a fine-tuning with settings in the same folder."""
    path = tiny.write_finetuning(tmp_path)
    return lambda *settings: RunFolder.start(tmp_path / "run", load_config(path, settings))


def begin_trial(run):
    """Starts the first trial of a search."""
    return RunFolder.start(run.trials / "first", run.config.trials()[0])


def save(run):
    """Saves something that looks like a checkpoint."""
    step_folder(run.checkpoints, 1).mkdir(parents=True)


def add_a_piece(folder):
    """Changes the vocabulary that the configuration names."""
    (folder / "vocab.txt").write_text("\n".join([*tiny.VOCABULARY, "more"]) + "\n")


def pieces(run):
    return run.vocabulary.read_text().split()


def test_a_changed_vocabulary_is_taken_while_nothing_is_saved(begin, tmp_path):
    begin()
    add_a_piece(tmp_path)
    assert pieces(begin()) == [*tiny.VOCABULARY, "more"]


@pytest.mark.parametrize("of", [lambda run: run, begin_trial])
def test_what_was_saved_keeps_its_vocabulary(begin, tmp_path, of):
    save(of(begin("train.seed=[1,2]")))
    add_a_piece(tmp_path)
    assert pieces(begin("train.seed=[1,2]")) == tiny.VOCABULARY


@pytest.mark.parametrize("settings", [["train.seed=3"], ["train.seed=[1,2]"]])
def test_a_run_that_is_begun_anew_finds_nothing_of_the_one_before(begin, tmp_path, settings):
    run = begin("train.seed=[1,2]")
    begin_trial(run)
    for name in ("best.yaml", "search.tsv", "summary.tsv", "logs/train/1", "logs/trials/first/1"):
        (run.path / name).parent.mkdir(parents=True, exist_ok=True)
        (run.path / name).touch()
    (run.path / "mine.txt").touch()
    (run.logs / "mine.txt").touch()
    add_a_piece(tmp_path)
    begin(*settings)

    left = {str(path.relative_to(run.path)) for path in run.path.rglob("*") if path.is_file()}
    assert left == {"config.yaml", "vocab.txt", "mine.txt", "logs/mine.txt"}


def test_a_search_may_have_more_trials_than_when_it_was_stopped(begin):
    run = begin("train.seed=[1,2]")
    trial = begin_trial(run)
    save(trial)
    begin("train.seed=[1,2,3]")

    assert step_folder(trial.checkpoints, 1).exists()
    assert RunFolder.open(run.path).config.searched == {"seed": (1, 2, 3)}


@pytest.mark.parametrize(
    "settings", [["train.seed=3"], ["train.seed=[1,2]", "train.epochs=3"], ["train.epochs=[1,2]"]]
)
def test_a_search_stays_one_of_the_same_kind(begin, settings):
    run = begin("train.seed=[1,2]")
    save(begin_trial(run))
    before = (run.path / "config.yaml").read_text()
    with pytest.raises(UserError, match="holds a run with a different train."):
        begin(*settings)
    assert (run.path / "config.yaml").read_text() == before


@pytest.mark.parametrize("keep", [save, lambda run: run.write_metrics({"accuracy": 1.0})])
def test_what_was_saved_is_not_given_up_for_another_configuration(begin, keep):
    keep(begin("train.seed=1"))
    with pytest.raises(UserError, match="seed .1 there, 2 now.; choose another --out, or restore"):
        begin("train.seed=2")
