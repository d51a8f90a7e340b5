"""The small tables: their corpus, their configurations, and the order in which they are made."""

import json
import sys
from pathlib import Path

import pytest

from bert_tf.config.reading import load_config
from bert_tf.data.corpora.corpus import Corpus
from bert_tf.errors import UserError
from bert_tf.experiments.report.paper import BENCHMARKS
from bert_tf.experiments.small import __main__ as small
from bert_tf.experiments.small import corpus
from bert_tf.experiments.small.job import Sources
from bert_tf.experiments.small.plan import TABLES, choose, jobs

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


@pytest.mark.parametrize("path", sorted((FOLDER / "pretraining").glob("*x*x*.yaml")))
def test_sizes_are_those_of_the_names(path):
    config = load_config(path)
    model = config.model
    sizes = (model.num_hidden_layers, model.hidden_size, model.num_attention_heads)
    objective = "" if config.data.next_sentence else "no_nsp_"
    assert path.stem == objective + "x".join(map(str, sizes))


def test_pre_trainings_differ_in_nothing_but_their_task():
    folder = FOLDER / "pretraining"
    names = ("bert", "no_nsp", "left_to_right", "right_to_left")
    configs = [load_config(folder / f"{name}.yaml") for name in names]
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
        for path in job.needs:
            # A step of pre-training, or one of two files of SQuAD.
            assert any(path == one or one.parent in path.parents for one in made), path
        own = {job.makes, job.makes.parent}
        for argument in job.arguments:
            path = Path(argument.partition("=")[2] or argument)
            if path.is_relative_to(sources.out) and not own & {path, *path.parents}:
                read = (path == one or path in one.parents for one in job.needs)
                assert any(read) or "trials" in path.parts, path
        made.add(job.makes)
    assert tables == set(TABLES)
    assert len({job.makes for job in jobs(sources)}) == len(jobs(sources))


def test_every_run_names_the_files_that_it_reads(sources):
    runs = [job for job in jobs(sources) if job.is_run]
    for job in runs:
        command, _, _, run, *_ = job.arguments
        config = job.config()
        assert (config.task == "pretraining") == (command == "pretrain")
        assert Path(run) == job.makes.parent
        read = {*job.given, *job.needs}
        assert Path(config.data.path) in {*read, *(path.parent for path in read)}
        if command == "finetune":
            data = config.data
            named = [name for name in (data.train, data.dev, data.test) if name is not None]
            assert {Path(data.path) / name for name in named} <= read
    assert len(runs) == 51


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
    train = load_config(FOLDER / "pretraining" / "bert.yaml").train
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


def test_tables_that_are_left_out_are_printed(sources, capsys):
    some = choose(sources._replace(glue=None), TABLES)
    assert not any("sst2" in job.name or "cola" in job.name for job in some)
    told = "--glue is not given; left out: table 1, a part of table 5, a part of table 6\n"
    assert capsys.readouterr().err == told

    choose(sources._replace(checkpoint=None), ["2", "5", "7"])
    assert capsys.readouterr().err == "--checkpoint is not given; left out: table 2, table 7\n"

    choose(sources._replace(glue=None, checkpoint=None), ["figure 4"])
    choose(sources, TABLES)
    assert capsys.readouterr().err == ""


def test_nothing_to_do_is_a_mistake(sources):
    with pytest.raises(UserError, match="nothing is left of table 1; give --glue$"):
        choose(sources._replace(glue=None), ["1"])
    # Without its runs, the preparation of table 2 is not done either.
    with pytest.raises(UserError, match="table 2, table 1; give --glue and --checkpoint$"):
        choose(sources._replace(glue=None, checkpoint=None), ["2", "1"])


class Jobs:
    """Stands for the processes: each only writes its files, unless it has to fail.

    A job that another call has taken fails as well, but its files are written.
    """

    def __init__(self, sources):
        self._out = sources.out
        self._jobs = {job.arguments: job for job in jobs(sources)}
        self.done, self.options, self.fails, self.taken = [], set(), set(), set()

    def run(self, command):
        python, m, module, *arguments = command
        assert (python, m) == (sys.executable, "-m")
        if arguments[0] == "--quiet":
            self.options.add(arguments.pop(0))
        job = self._jobs[tuple(arguments)]
        assert job.module == module
        if job.name in self.fails:
            job.makes.parent.mkdir(parents=True, exist_ok=True)
            return "failed with exit code 2"
        if job.name not in self.taken:
            self.done.append(job.name)
        for path in {job.makes, *self._beside(job)}:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("{}")
        if job.is_run:
            (job.makes.parent / "config.yaml").write_text(job.config().to_yaml())
        return "failed with exit code 2" if job.name in self.taken else None

    def _beside(self, job):
        """Further files of this job that others need: steps of pre-training, another file."""
        folder, made = job.makes.parent, {each.makes for each in self._jobs.values()}
        if folder == self._out:
            return set()
        needed = {path for each in self._jobs.values() for path in each.needs} - made
        return {path for path in needed if folder in path.parents}


@pytest.fixture
def started(sources, monkeypatch):
    """Starts the command with tables and options; all files that it requires exist."""
    for path in {path for job in jobs(sources) for path in job.given}:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    fake, pages = Jobs(sources), []
    monkeypatch.setattr(small.process, "run", fake.run)
    monkeypatch.setattr(small.checks, "_check_checkpoint", lambda path, layers: None)
    monkeypatch.setattr(small, "report", lambda *given: pages.append(given))

    def start(*options, without=()):
        names = [name for name in Sources._fields if name not in without]
        command = [f"--{name}={getattr(sources, name)}" for name in names]
        return small.main([*command, *options])

    start.jobs, start.pages = fake, pages
    return start


def test_a_finished_job_is_not_done_again(sources, started):
    for _ in range(2):
        assert started("--tables", "3") == 0
    assert started.jobs.done == ["published_wnut17"]
    run = sources.out / "published_wnut17"
    pages = [sources.out / f"report.{ending}" for ending in ("html", "md")]
    assert started.pages == [([run], page, {run: "conll2003"}) for page in pages] * 2


def test_the_page_holds_the_runs_of_earlier_calls_too(sources, started):
    assert started("--tables", "3") == 0
    started.pages.clear()
    assert started("--tables", "figure 4", without=["checkpoint"]) == 0
    runs, _, stand_ins = started.pages[0]
    names = {run.name for run in runs}
    assert names >= {"published_wnut17", "bert", "wnut17_bert_1000"}
    assert stand_ins == {sources.out / "published_wnut17": "conll2003"}


def test_jobs_that_do_not_need_a_failed_one_are_done(sources, started, capsys):
    started.jobs.fails = {"left_to_right"}
    assert started("--tables", "5", "figure 4") == 2
    told = capsys.readouterr().err.splitlines()
    failed = "left_to_right failed with exit code 2; going on with the jobs that do not require it"
    assert f"warning: {failed}" in told
    needed = f"{sources.out / 'pretraining' / 'left_to_right' / 'metrics.json'}"
    assert (
        f"warning: wnut17_left_to_right is skipped: it requires {needed}, which is missing" in told
    )
    assert told[-1].startswith("small: error: not done: left_to_right, side_by_side, ")
    done = started.jobs.done
    assert {"bert", "no_nsp", "right_to_left", "wnut17_bert", "wnut17_bert_2000"} <= set(done)
    left_out = ("left_to_right", "bilstm", "side_by_side")
    assert not any(word in name for name in done for word in left_out)
    runs, *_ = started.pages[0]
    assert {run.name for run in runs} < set(done)

    started.jobs.fails.clear()
    assert started("--tables", "5", "figure 4") == 0
    assert len(started.jobs.done) == len(set(started.jobs.done)) == 32


def test_a_job_that_another_call_does_meanwhile_counts_as_done(started, capsys):
    started.jobs.taken = {"left_to_right"}
    assert started("--tables", "5") == 0
    assert "left_to_right failed with exit code 2" in capsys.readouterr().err
    assert {"wnut17_left_to_right", "side_by_side"} <= set(started.jobs.done)


def test_a_quiet_call_has_quiet_jobs(started, capsys):
    assert started("--tables", "3", "-q") == 0
    assert started.jobs.options == {"--quiet"}
    assert capsys.readouterr().err == ""


def test_results_of_other_sources_are_not_mixed(sources, started, capsys, tmp_path):
    assert started("--tables", "3", without=["glue"]) == 0
    # A source that was not given before may be given now.
    assert started("--tables", "3") == 0
    assert set(json.loads((sources.out / "sources.json").read_text())) == {
        "data",
        "glue",
        "checkpoint",
    }
    (tmp_path / "other").mkdir()
    assert started("--tables", "3", f"--checkpoint={tmp_path / 'other'}") == 2
    (told,) = capsys.readouterr().err.splitlines()[-1:]
    assert f"{sources.out} was made with --checkpoint {sources.checkpoint}, not" in told
    assert started("--tables", "3", f"--glue={tmp_path / 'other'}") == 2
