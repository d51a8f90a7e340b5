"""A search: what it runs, what it writes, and which trial it keeps."""

import dataclasses
import shutil

import numpy as np
import pytest

from bert_tf import Encoder, EncoderConfig, TextClassifier
from bert_tf.checkpoints import native, reading
from bert_tf.checkpoints.description import describe
from bert_tf.config.reading import load_config
from bert_tf.console import news
from bert_tf.errors import UserError
from bert_tf.runs.run_folder import RunFolder
from bert_tf.runs.scoring import trained
from bert_tf.runs.search import check_sources, search
from bert_tf.training.nonfinite import Diverged
from tests import tiny


@pytest.fixture(scope="module")
def encoder():
    sizes = {"hidden_size": 4, "num_hidden_layers": 1, "num_attention_heads": 1}
    return Encoder(EncoderConfig(vocab_size=9, intermediate_size=4, **sizes))


@dataclasses.dataclass
class Trials:
    """Stands for fine-tuning: looks up a trial's accuracy, and quickly makes its checkpoint."""

    encoder: Encoder
    accuracy: dict
    ran: list = dataclasses.field(default_factory=list)

    def __call__(self, run):
        key = (run.config.train.learning_rate, run.config.train.seed)
        accuracy = self.accuracy[key]
        if isinstance(accuracy, BaseException):
            raise accuracy
        self.ran.append(key)
        return finish(run, self.encoder, accuracy)


def finish(run, model, accuracy):
    """Writes what a trial of that accuracy leaves behind."""
    for step in (1, 2):
        checkpoint = run.checkpoints / f"step-{step:08d}"
        checkpoint.mkdir(parents=True)
        model.weights[0].assign(np.full(model.weights[0].shape, accuracy))
        native.write(checkpoint, model, describe(model))
    run.predictions.mkdir()
    (run.predictions / "dev.tsv").write_text(str(accuracy))
    metrics = {"accuracy": accuracy, "loss": 1.0}
    run.write_metrics(metrics)
    return metrics


def start(tmp_path, *settings):
    path = tiny.write_finetuning(tmp_path)
    return RunFolder.start(tmp_path / "run", load_config(path, settings))


def searched(tmp_path, encoder, *settings):
    """A search with the accuracies of `ACCURACY` that has ended."""
    run = start(tmp_path, *settings)
    search(run, Trials(encoder, ACCURACY), "accuracy")
    return run


def table(path):
    return [line.split("\t") for line in path.read_text().splitlines()]


SEARCH = ("train.learning_rate=[0.1,0.2]", "train.seed=[1,2,3]")
ACCURACY = {
    **{(0.1, 1): 0.9, (0.1, 2): 0.1, (0.1, 3): 0.2},
    **{(0.2, 1): 0.5, (0.2, 2): 0.7, (0.2, 3): 0.6},
}


def test_the_best_mean_over_the_seeds_wins_and_its_best_run_is_kept(tmp_path, encoder, capsys):
    run = start(tmp_path, *SEARCH)
    metrics = search(run, Trials(encoder, ACCURACY), "accuracy")

    assert metrics == run.read_metrics() == {"accuracy": 0.7, "loss": 1.0}
    assert (run.predictions / "dev.tsv").read_text() == "0.7"
    told = "best trial: learning_rate=0.2,seed=2; accuracy 0.6 ± 0.1 over 3 seeds"
    assert told in capsys.readouterr().err
    kept = reading.find(run.path)
    kept.fill(encoder)
    assert np.unique(encoder.weights[0].numpy()) == pytest.approx(0.7)


def test_a_search_is_used_as_its_best_trial_was_trained(tmp_path):
    run = start(tmp_path, "train.max_length=[8,16]", "train.precision=[float32,bfloat16]")
    assert run.trained_with == run.config
    model = TextClassifier(Encoder(tiny.encoder_config(16)), None, range(2))
    accuracy = {(8, "float32"): 0.1, (8, "bfloat16"): 0.2, (16, "float32"): 0.3}

    def finetune(run):
        key = (run.config.train.max_length, run.config.train.precision)
        return finish(run, model, accuracy.get(key, 0.4))

    search(run, finetune, "accuracy")
    assert run.trained_with == run.config.trials()[3]
    task, found = trained(RunFolder.open(run.path))
    assert task.config.train.max_length == 16
    assert found.dtype_policy.compute_dtype == "bfloat16"


def test_the_tables_hold_every_trial_and_the_means(tmp_path, encoder):
    run = searched(tmp_path, encoder, *SEARCH)
    # One checkpoint of each trial is kept.
    stayed = sorted((run.path / "trials").glob("*/checkpoints/*"))
    assert [path.name for path in stayed] == ["step-00000002"] * 6
    rows = table(run.path / "search.tsv")
    assert rows[0] == ["learning_rate", "seed", "accuracy", "loss"]
    assert rows[1:] == [[str(r), str(s), str(a), "1"] for (r, s), a in ACCURACY.items()]
    summary = table(run.path / "summary.tsv")
    assert summary[0] == ["learning_rate", "runs", "accuracy", "accuracy_std", "loss", "loss_std"]
    assert summary[1:] == [
        ["0.1", "3", "0.4", "0.43589", "1", "0"],
        ["0.2", "3", "0.6", "0.1", "1", "0"],
    ]


def test_seeds_alone_make_one_line_of_means(tmp_path, encoder):
    run = searched(tmp_path, encoder, "train.learning_rate=0.2", "train.seed=[1,2]")
    assert table(run.path / "summary.tsv") == [
        ["runs", "accuracy", "accuracy_std", "loss", "loss_std"],
        ["2", "0.6", "0.141421", "1", "0"],
    ]


def test_what_is_finished_is_not_run_again(tmp_path, encoder):
    run = start(tmp_path, *SEARCH)
    stops = Trials(encoder, ACCURACY | {(0.2, 1): KeyboardInterrupt()})
    with pytest.raises(KeyboardInterrupt):
        search(run, stops, "accuracy")
    assert len(table(run.path / "search.tsv")) == 1 + 3

    goes_on = Trials(encoder, ACCURACY)
    assert search(run, goes_on, "accuracy")["accuracy"] == 0.7
    assert goes_on.ran == [(0.2, 1), (0.2, 2), (0.2, 3)]
    assert len(table(run.path / "search.tsv")) == 1 + 6


def test_trials_are_not_compared_with_those_on_other_data(tmp_path, encoder):
    run = start(tmp_path, "train.learning_rate=[0.1,0.2]", "train.seed=1")
    before, now = ({"vocabulary": "a", "training data": each} for each in "bc")
    check_sources(run, before)
    check_sources(run, now)  # nothing was trained on the first
    search(run, Trials(encoder, ACCURACY), "accuracy")

    check_sources(run, now)
    with pytest.raises(UserError, match="the training data changed since the first trials of"):
        check_sources(run, before)
    # An older version did not record this source.
    check_sources(run, now | {"init.checkpoint": "d"})
    for damaged in ("{", "[]"):
        (run.path / "sources.json").write_text(damaged)
        with pytest.raises(UserError, match=r"record of the sources of a search is not .*copy it"):
            check_sources(run, now)


def test_a_search_that_is_repeated_keeps_what_was_found_with_its_best_trial(tmp_path, encoder):
    run = searched(tmp_path, encoder, "train.learning_rate=[0.1,0.2]", "train.seed=1")
    run.write_metrics({"accuracy": 0.5}, of="other_dev")
    (run.predictions / "dev.tsv").write_text("of other software")
    search(run, Trials(encoder, ACCURACY), "accuracy")

    assert (run.predictions / "other_dev_metrics.json").exists()
    assert (run.predictions / "dev.tsv").read_text() == "0.9"
    assert not (run.path / "summary.tsv").exists()  # there is one seed

    # Files of a trial that is no longer the best are removed.
    worst = RunFolder.open(run.path / "trials" / "learning_rate=0.1")
    worst.write_metrics({"accuracy": 0.0, "loss": 1.0})
    search(run, Trials(encoder, ACCURACY), "accuracy")
    assert not (run.predictions / "other_dev_metrics.json").exists()
    assert (run.predictions / "dev.tsv").read_text() == "0.5"


def test_a_trial_that_was_killed_once_it_was_finished_is_cleared_later(tmp_path, encoder):
    class Killed(Trials):
        def __call__(self, run):
            super().__call__(run)
            raise KeyboardInterrupt

    run = start(tmp_path, "train.learning_rate=0.1", "train.seed=[1,2]")
    with pytest.raises(KeyboardInterrupt):
        search(run, Killed(encoder, ACCURACY), "accuracy")
    goes_on = Trials(encoder, ACCURACY)
    search(run, goes_on, "accuracy")

    assert goes_on.ran == [(0.1, 2)]
    stayed = sorted((run.path / "trials").glob("*/checkpoints/*"))
    assert [path.name for path in stayed] == ["step-00000002"] * 2


def diverged():
    return Diverged("the loss is nan", "start again with another --out")


def test_a_trial_that_diverges_is_warned_of_and_has_a_line_without_metrics(
    tmp_path, encoder, capsys
):
    run = start(tmp_path, *SEARCH)
    with news(False):
        search(run, Trials(encoder, ACCURACY | {(0.1, 1): diverged()}), "accuracy")

    told = capsys.readouterr().err
    assert "warning: trial learning_rate=0.1,seed=1 is skipped: the loss is nan\n" in told
    assert "another --out" not in told
    assert table(run.path / "search.tsv")[:3] == [
        ["learning_rate", "seed", "accuracy", "loss"],
        ["0.1", "1", "", ""],
        ["0.1", "2", "0.1", "1"],
    ]
    assert table(run.path / "summary.tsv")[1][:3] == ["0.1", "2", "0.15"]
    assert not (run.logs / "trials" / "learning_rate=0.1,seed=1").exists()


@pytest.mark.parametrize(
    ("diverge", "best"),
    [
        ([(0.2, 2)], 0.9),
        ([(0.2, 1), (0.2, 2), (0.2, 3)], 0.9),
        # If every setting has lost a seed, the means of the remaining seeds decide.
        ([(0.1, 1), (0.2, 2)], 0.6),
    ],
)
def test_a_setting_with_a_diverged_seed_ranks_below_the_others(tmp_path, encoder, diverge, best):
    run = start(tmp_path, *SEARCH)
    trials = Trials(encoder, ACCURACY | {key: diverged() for key in diverge})

    assert search(run, trials, "accuracy")["accuracy"] == best


def test_a_trial_that_diverged_is_not_run_again_unless_updates_may_be_left_out(tmp_path, encoder):
    def trials_run(accuracy, *more):
        trials = Trials(encoder, accuracy)
        run = start(tmp_path, "train.learning_rate=[0.1,0.2]", "train.seed=1", *more)
        best = search(run, trials, "accuracy")["accuracy"]
        return trials.ran, best

    assert trials_run({(0.1, 1): diverged(), (0.2, 1): 0.5}) == ([(0.2, 1)], 0.5)
    assert trials_run({}) == ([], 0.5)
    assert trials_run({(0.1, 1): 0.9}, "train.skip_nonfinite=true") == ([(0.1, 1)], 0.9)


def test_a_finished_search_may_have_more_trials(tmp_path, encoder):
    first = start(tmp_path, "train.learning_rate=[0.1,0.2]", "train.seed=1")
    assert search(first, Trials(encoder, ACCURACY), "accuracy")["accuracy"] == 0.9
    more = Trials(encoder, {(0.3, 1): 1.0})
    run = start(tmp_path, "train.learning_rate=[0.1,0.2,0.3]", "train.seed=1")

    assert search(run, more, "accuracy")["accuracy"] == 1.0
    assert more.ran == [(0.3, 1)]
    assert RunFolder.open(run.path).config.searched == {"learning_rate": (0.1, 0.2, 0.3)}
    assert run.trained_with.train.learning_rate == 0.3


def test_checkpoints_of_trials_that_are_not_the_best_may_be_removed(tmp_path, encoder):
    run = searched(tmp_path, encoder, *SEARCH)
    for folder in run.trials.glob("*/checkpoints"):
        shutil.rmtree(folder)
    assert search(run, Trials(encoder, {}), "accuracy")["accuracy"] == 0.7

    shutil.rmtree(run.checkpoints)
    with pytest.raises(
        UserError, match=r"rate=0.2,seed=2 is the best trial, but its checkpoint is missing"
    ):
        search(run, Trials(encoder, {}), "accuracy")
    shutil.rmtree(run.trials / "learning_rate=0.2,seed=2")
    search(run, Trials(encoder, ACCURACY), "accuracy")
    assert reading.find(run.path).folder.parent == run.checkpoints


def test_a_metric_that_some_trials_lack_is_left_empty(tmp_path, encoder):
    class SomeMore(Trials):
        def __call__(self, run):
            metrics = super().__call__(run)
            return metrics | ({"f1_person": 0.5} if run.config.train.seed == 2 else {})

    run = start(tmp_path, "train.learning_rate=0.2", "train.seed=[1,2]")
    search(run, SomeMore(encoder, ACCURACY), "accuracy")

    header, first, second = table(run.path / "search.tsv")
    assert header[-1] == "f1_person"
    assert (first[-1], second[-1]) == ("", "0.5")
    assert table(run.path / "summary.tsv")[1][-2:] == ["0.5", ""]


def test_a_search_in_which_every_trial_diverges_is_reported(tmp_path, encoder):
    run = start(tmp_path, *SEARCH)
    diverges = Trials(encoder, {key: diverged() for key in ACCURACY})

    with pytest.raises(UserError, match="every trial of .*run diverged; lower"):
        search(run, diverges, "accuracy")


def hparams_tab(logdir):
    """What TensorBoard shows in its tab HPARAMS: the experiment, and the rows by their settings."""
    from tensorboard.backend.event_processing import data_provider, plugin_event_multiplexer
    from tensorboard.context import RequestContext
    from tensorboard.plugins import base_plugin
    from tensorboard.plugins.hparams import (
        api_pb2,
        backend_context,
        get_experiment,
        list_session_groups,
    )

    files = plugin_event_multiplexer.EventMultiplexer().AddRunsFromDirectory(str(logdir))
    files.Reload()
    provider = data_provider.MultiplexerDataProvider(files, str(logdir))
    backend = backend_context.Context(base_plugin.TBContext(data_provider=provider))
    asked = (RequestContext(), backend, "")
    experiment = get_experiment.Handler(*asked, api_pb2.GetExperimentRequest()).run()
    every = api_pb2.ListSessionGroupsRequest(
        start_index=0,
        slice_size=100,
        aggregation_type=api_pb2.AGGREGATION_AVG,
        allowed_statuses=[api_pb2.STATUS_UNKNOWN, api_pb2.STATUS_RUNNING, api_pb2.STATUS_SUCCESS],
    )
    groups = list_session_groups.Handler(*asked, every).run().session_groups
    rows = {
        tuple(sorted((k, getattr(v, v.WhichOneof("kind"))) for k, v in group.hparams.items())): {
            metric.name.tag: metric.value for metric in group.metric_values
        }
        for group in groups
    }
    return experiment, rows


def test_tensorboard_shows_every_trial_with_its_metrics(tmp_path, encoder):
    run = searched(tmp_path, encoder, *SEARCH)
    search(run, Trials(encoder, ACCURACY), "accuracy")

    experiment, rows = hparams_tab(run.path)
    assert {each.name for each in experiment.hparam_infos} == {"learning_rate", "seed"}
    assert {each.name.tag for each in experiment.metric_infos} == {"accuracy", "loss"}
    (rate,) = (each for each in experiment.hparam_infos if each.name == "learning_rate")
    assert (rate.domain_interval.min_value, rate.domain_interval.max_value) == (0.1, 0.2)
    assert rows == {
        (("learning_rate", rate), ("seed", seed)): pytest.approx({"accuracy": each, "loss": 1.0})
        for (rate, seed), each in ACCURACY.items()
    }


def test_tensorboard_shows_searches_of_several_settings_beside_each_other(tmp_path, encoder):
    for name, settings in {
        "rates": ["train.learning_rate=[0.1,0.2]", "train.seed=1"],
        "clips": ["train.learning_rate=0.1", "train.seed=1", "train.gradient_clip=[0.5,null]"],
    }.items():
        (tmp_path / name).mkdir()
        search(start(tmp_path / name, *settings), Trials(encoder, ACCURACY), "accuracy")

    experiment, rows = hparams_tab(tmp_path)
    assert {each.name for each in experiment.hparam_infos} == {"learning_rate", "gradient_clip"}
    (clip,) = (each for each in experiment.hparam_infos if each.name == "gradient_clip")
    assert set(clip.domain_discrete) == {"0.5", "None"}
    rates, clips = (("learning_rate", 0.1), ("learning_rate", 0.2)), (0.5, "None")
    assert rows.keys() == {(each,) for each in (*rates, *(("gradient_clip", c) for c in clips))}
