"""Errors in the inputs of the small tables are reported before the first job."""

import dataclasses

import pytest

from bert_tf.checkpoints import conversion
from bert_tf.encoder.encoder import Encoder
from bert_tf.errors import UserError
from bert_tf.experiments.small.checks import check
from bert_tf.experiments.small.job import Sources
from bert_tf.experiments.small.plan import jobs
from bert_tf.runs.run_folder import RunFolder
from tests import tiny


@pytest.fixture
def sources(tmp_path):
    """All input files, empty, and a checkpoint."""
    sources = Sources(*(tmp_path / name for name in ("data", "out", "glue", "checkpoint")))
    for path in {path for job in jobs(sources) for path in job.given} - {sources.checkpoint}:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    save_checkpoint(sources, 4)
    return sources


def save_checkpoint(sources, layers, tokenizer=True):
    encoder = Encoder(tiny.encoder_config(num_hidden_layers=layers))
    given = tiny.tokenizer() if tokenizer else None
    conversion.save(encoder, sources.checkpoint, tokenizer=given)


def chosen(sources, *tables):
    return [job for job in jobs(sources) if set(tables) & set(job.tables)]


def test_complete_inputs_are_accepted(sources):
    check(jobs(sources), sources.checkpoint)


def test_everything_missing_is_reported_at_once(sources):
    missing = [
        sources.data / "wikitext2" / "train.txt",
        sources.data / "codah" / "dev.tsv",
        sources.glue / "SST-2" / "train.tsv",
    ]
    for path in missing:
        path.unlink()
    with pytest.raises(UserError, match="^not found: ") as told:
        check(jobs(sources), sources.checkpoint)
    assert all(str(path) in str(told.value) for path in missing)

    check(chosen(sources, "3", "7"), sources.checkpoint)


def test_a_finished_job_needs_no_data_any_more(sources):
    (sources.data / "codah" / "dev.tsv").unlink()
    (job,) = chosen(sources, "4")
    job.makes.parent.mkdir(parents=True)
    job.makes.write_text("{}")
    check([job], sources.checkpoint)


@pytest.mark.parametrize(
    ("file", "table", "told"),
    [
        ("bert_tf.json", "3", "no checkpoint in .*checkpoint"),
        ("vocab.txt", "1", "holds no vocabulary"),
    ],
)
def test_an_incomplete_checkpoint_is_reported(sources, file, table, told):
    (sources.checkpoint / file).unlink()
    with pytest.raises(UserError, match=told):
        check(chosen(sources, table), sources.checkpoint)


def test_the_features_of_table_7_need_four_layers(sources, tmp_path):
    small = sources._replace(checkpoint=tmp_path / "small")
    save_checkpoint(small, 2)
    check(chosen(small, "3"), small.checkpoint)
    with pytest.raises(UserError, match="has 2 layers; table 7 reads the last 4"):
        check(chosen(small, "7"), small.checkpoint)


@pytest.fixture
def job(sources):
    (job,) = chosen(sources, "4")
    return job


def begun(job):
    """The folder of a run that has been started, without its checkpoints."""
    folder = job.makes.parent
    folder.mkdir(parents=True)
    config = job.config()
    tokenizer = config.tokenizer.model_copy(update={"lower_case": True})
    config = config.model_copy(update={"tokenizer": tokenizer})
    (folder / "config.yaml").write_text(config.to_yaml())
    return folder


def changed(job, *settings):
    return dataclasses.replace(job, arguments=(*job.arguments, *settings))


@pytest.mark.parametrize("saved", ["checkpoints", "trials/seed=0/checkpoints"])
def test_a_run_of_another_configuration_is_told(sources, job, saved):
    (begun(job) / saved).mkdir(parents=True)
    check([job], sources.checkpoint)

    other = changed(job, "train.epochs=7", "train.batch_size=4")
    told = r"codah \(train.epochs, train.batch_size\); set it as before"
    with pytest.raises(UserError, match=told):
        check([other], sources.checkpoint)


def test_other_seeds_are_reported_for_a_finished_run(sources, job):
    (begun(job) / "checkpoints").mkdir()
    other = changed(job, "train.seed=[4,5]")
    check([other], sources.checkpoint)

    job.makes.write_text("{}")
    with pytest.raises(UserError, match=r"codah \(train.seed\); set it as before"):
        check([other], sources.checkpoint)


def test_a_run_that_never_saved_anything_may_begin_anew(job):
    begun(job)
    check([changed(job, "train.epochs=7")], None)


def test_casing_that_the_configuration_leaves_open_is_no_difference(sources, job):
    (begun(job) / "checkpoints").mkdir()
    assert RunFolder.open(job.makes.parent).config.tokenizer.lower_case
    check([job], sources.checkpoint)
    with pytest.raises(UserError, match="tokenizer.lower_case"):
        check([changed(job, "tokenizer.lower_case=false")], sources.checkpoint)
