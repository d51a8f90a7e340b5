"""The small tables: their corpus, their configurations, and the order in which they are made."""

import subprocess
from pathlib import Path

import pytest

from bert_tf import config as configuration
from bert_tf.data.corpus import Corpus
from bert_tf.report.paper import BENCHMARKS
from experiments.small import __main__ as small
from experiments.small import corpus
from experiments.small.plan import Sources, jobs

FOLDER = Path(corpus.__file__).parent


def test_the_corpus_holds_the_documents_of_both_sources(tmp_path):
    (tmp_path / "novels").mkdir()
    (tmp_path / "novels" / "a.txt").write_text("CHAPTER I\n\nIt was late. All slept.\n")
    wiki = " = York = \n\n The <unk> club won . \n\n = Hull = \n\n <unk> \n"
    (tmp_path / "wiki.txt").write_text(wiki)
    out = tmp_path / "out" / "corpus.txt"
    corpus.write(str(tmp_path / "novels"), [str(tmp_path / "wiki.txt")], out)

    documents = list(Corpus(out, "sentence_per_line"))
    assert documents == [
        ["CHAPTER I", "It was late.", "All slept."],
        ["York", "The  club won ."],
        ["Hull"],
    ]


def test_a_novel_is_cut_into_chapters(tmp_path):
    (tmp_path / "novels").mkdir()
    (tmp_path / "novels" / "a.txt").write_text("It was late.\n\n" * 450)
    corpus.write(str(tmp_path / "novels"), [], tmp_path / "out")
    assert list(map(len, Corpus(tmp_path / "out", "sentence_per_line"))) == [200, 200, 50]


@pytest.mark.parametrize("path", sorted((FOLDER / "pretraining").glob("?x*.yaml")))
def test_sizes_are_those_of_the_names(path):
    model = configuration.load(path).model
    sizes = (model.num_hidden_layers, model.hidden_size, model.num_attention_heads)
    assert path.stem == "x".join(map(str, sizes))


def test_pre_trainings_differ_in_nothing_but_their_task():
    folder = FOLDER / "pretraining"
    names = ("bert", "no_nsp", "left_to_right", "right_to_left")
    configs = [configuration.load(folder / f"{name}.yaml") for name in names]
    assert len({config.train for config in configs}) == 1
    assert [config.data.next_sentence for config in configs] == [True, False, False, False]
    assert [config.model.attention for config in configs] == [None, None, *names[2:]]


@pytest.fixture
def sources(tmp_path):
    folders = [tmp_path / name for name in ("data", "out", "glue", "checkpoint")]
    for folder in folders:
        folder.mkdir()
    return Sources(*folders)


def test_every_job_finds_what_those_before_it_make(sources):
    made, tables = set(), set()
    for job in jobs(sources):
        tables |= set(job.tables)
        for argument in job.arguments:
            path = argument.partition("=")[2] or argument
            if path.startswith(str(sources.out)) and Path(path) not in (
                job.makes,
                job.makes.parent,
            ):
                assert any(Path(path) == one or one in Path(path).parents for one in made), path
        if job.is_run:
            command, file, _, run, _, *settings = job.arguments
            config = configuration.load(file, settings)
            assert (config.task == "pretraining") == (command == "pretrain")
            assert Path(run) == job.makes.parent
            made.add(job.makes.parent)
        made |= {job.makes, job.makes.parent}
    assert tables == set(small.TABLES)
    assert len({job.makes for job in jobs(sources)}) == len(jobs(sources))


def test_the_report_shows_other_data_in_the_place_of_the_papers(sources):
    stand_ins = {
        job.name: BENCHMARKS[job.stands_for].source for job in jobs(sources) if job.stands_for
    }
    assert stand_ins == {
        "published_squad": "table 2",
        "published_wnut17": "table 3",
        "published_codah": "table 4",
    }


def test_figure_4_starts_from_steps_that_are_kept(sources):
    train = configuration.load(FOLDER / "pretraining" / "bert.yaml").train
    kept = range(0, train.steps + 1, train.checkpoint_steps)[-train.checkpoints_kept :]
    starts = [
        argument for job in jobs(sources) for argument in job.arguments if "step-" in argument
    ]
    assert len(starts) == 6
    assert {int(start.rpartition("-")[2]) for start in starts} <= set(kept)


def test_what_has_no_data_is_left_out(sources):
    some = jobs(sources._replace(glue=None, checkpoint=None))
    names = [job.name for job in some]
    assert "wnut17_bert" in names
    assert not any("sst2" in name or name.startswith("published") for name in names)


def test_what_is_done_is_not_done_again(sources, monkeypatch):
    """Commands are not run here; each only leaves what it makes."""
    chosen = [job for job in jobs(sources) if "3" in job.tables]
    commands, reports = [], []

    def fake(arguments, check):
        commands.append(arguments)
        (job,) = (job for job in chosen if list(job.arguments) == arguments[3:])
        job.makes.parent.mkdir(parents=True)
        job.makes.write_text("{}")
        return subprocess.CompletedProcess(arguments, 0)

    monkeypatch.setattr(small.subprocess, "run", fake)
    monkeypatch.setattr(small, "report", lambda *given: reports.append(given))
    command = [f"--{name}={getattr(sources, name)}" for name in Sources._fields]
    for _ in range(2):
        small._work(small._parser().parse_args([*command, "--tables", "3"]))
    assert len(commands) == len(chosen) == 1
    run = sources.out / "published_wnut17"
    pages = [sources.out / f"report.{ending}" for ending in ("html", "md")]
    assert reports == [([run], page, {run: "conll2003"}) for page in pages] * 2
