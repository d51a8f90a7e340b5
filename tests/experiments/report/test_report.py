"""The report shows the results of run folders, below the paper's figures where those belong."""

import base64
import dataclasses
import re
import shutil

import pytest

from bert_tf.cli.parser import main
from bert_tf.errors import UserError
from bert_tf.experiments.report import report
from bert_tf.experiments.report.facts import RunFacts
from bert_tf.experiments.report.page import ReportRow, ReportSection, to_html, to_markdown
from bert_tf.experiments.report.paper import (
    BENCHMARKS,
    benchmark_of,
    distinct_benchmarks,
    distinct_names,
)
from bert_tf.experiments.report.tables import glue_sections
from bert_tf.models.pretrainer import PreTrainer
from bert_tf.runs.run_folder import RunFolder

COLA = "{path: CoLA, format: cola}"


@pytest.fixture(scope="module")
def cola(make_house, tmp_path_factory):
    """A finished run on CoLA, as a search over epochs and seeds leaves it: the last was best."""
    house = make_house(tmp_path_factory.mktemp("report"))
    loaded = house.config(COLA, train="epochs: [3, 4], seed: [0, 1]")
    run = house.run("my_cola", loaded, {"mcc": 0.5, "loss": 0.7})
    (run / "summary.tsv").write_text(
        "epochs\truns\tmcc\tmcc_std\tloss\tloss_std\n"
        "3\t2\t0.41\t0.02\t0.7\t0.1\n4\t2\t0.4567\t0.0123\t0.6\t0.1\n"
    )
    for number, trial in enumerate(loaded.trials()):
        one = RunFolder.start(run / "trials" / f"trial-{number}", trial)
        house.log(one, *({"loss": 1 / step, "mcc": number / 4} for step in (1, 2)))
    (run / "best.yaml").write_text(loaded.trials()[3].to_yaml())
    return run


def test_the_best_setting_stands_beside_the_paper(house, cola):
    tables = house.page(cola)
    head, *rows = tables["GLUE: CoLA"]
    assert head == ["", "mcc", "layers x width", "started from", "training", "batch", "seeds"]
    assert ["paper, BERT-base (test)", "52.1"] in [row[:2] for row in rows]
    assert rows[-1] == ["my_cola", "45.7 ± 1.2", "2 x 8", "random", "4 epochs", "8", "2"]


def test_the_curves_of_a_search_are_those_of_its_best_trial(cola):
    (cola / "trials" / ".ipynb_checkpoints").mkdir()  # other folders among the trials are ignored
    assert RunFacts.read(cola).curves["dev"]["mcc"] == ([1, 2], [0.75, 0.75])


SUMMARY = "epochs\truns\tmcc\tmcc_std\n3\t1\t0.9\t\n4\t2\t0.45\t0.01\n5\t0\t\t\n"


@pytest.mark.parametrize(("epochs", "shown", "seeds"), [(4, "45.0 ± 1.0", 2), (3, "90.0", 1)])
def test_means_are_those_of_the_setting_that_the_search_has_kept(house, epochs, shown, seeds):
    loaded = house.config(COLA, train="epochs: [3, 4, 5], seed: [0, 1]")
    run = house.run("run", loaded, {"mcc": 0.5})
    (run / "summary.tsv").write_text(SUMMARY)
    kept = next(trial for trial in loaded.trials() if trial.train.epochs == epochs)
    (run / "best.yaml").write_text(kept.to_yaml())
    facts = RunFacts.read(run)
    assert (facts.shown("mcc"), facts.seeds) == (shown, seeds)


@pytest.mark.parametrize(
    ("metrics", "message"),
    [
        ('{"mcc": 0.5, ', "metrics.json, line 1, column .*: not JSON"),
        ('{"mcc": "high"}', "metrics.json does not hold the metrics of a run; remove it"),
        ('"x"', "metrics.json does not hold the metrics of a run; remove it"),
    ],
)
def test_a_damaged_run_is_left_out(house, cola, capsys, metrics, message):
    damaged, bare = (house.run(n, house.config(COLA), {"mcc": 0.5}) for n in ("damaged", "bare"))
    (damaged / "metrics.json").write_text(metrics)
    shutil.rmtree(bare / "checkpoints")
    rows = house.table(damaged, bare, cola)
    assert [row[0] for row in rows if not row[0].startswith("paper")] == ["my_cola"]
    told = capsys.readouterr().err
    assert re.search(f"damaged is skipped: .*{message}", told)
    assert re.search("bare is skipped: .*bare no longer has a checkpoint", told)


def test_a_name_may_hold_signs_of_formulas_and_letters_of_any_script(house, recwarn):
    house.page(house.run("cost_$5_vs_$x_中", house.config(COLA), {"mcc": 0.5}, [{"mcc": 0.5}]))
    assert not [each for each in recwarn if "Glyph" in str(each.message)]


def test_a_run_with_one_seed_has_no_means_whatever_lies_in_its_folder(house):
    loaded = house.config(COLA)
    run = house.run("run", loaded, {"mcc": 0.5})
    (run / "summary.tsv").write_text(SUMMARY)
    house.log(RunFolder.start(run / "trials" / "other", loaded), {"mcc": 0.5})
    facts = RunFacts.read(run)
    assert (facts.shown("mcc"), facts.seeds) == ("50.0", 1)
    assert facts.curves["dev"] == {}


def test_runs_of_one_folder_name_are_told_apart(house):
    loaded = house.config(COLA)
    rows = house.table(
        *(
            house.run(f"{place}/cola", loaded, {"mcc": mcc}, [{"loss": 0.5}])
            for place, mcc in (("a", 0.4), ("b", 0.5))
        )
    )
    assert [row[:2] for row in rows[-2:]] == [["a/cola", "40.0"], ["b/cola", "50.0"]]


@pytest.mark.parametrize(
    ("folders", "names"),
    [
        (["runs/bert", "runs/left"], ["bert", "left"]),
        (
            ["a/sst2/bert", "b/sst2/bert", "b/wnut17/bert", "b/tuned"],
            ["a/sst2/bert", "b/sst2/bert", "wnut17/bert", "tuned"],
        ),
        (["/bert", "/runs/bert"], ["/bert", "runs/bert"]),
        (["runs/bert", "runs/../runs/bert/"], ["bert", "bert"]),
    ],
)
def test_folders_have_the_shortest_names_that_distinguish_them(folders, names):
    assert distinct_names(folders) == names


def test_data_of_one_name_in_different_folders_are_told_apart(house):
    runs = [
        house.run(f"run{i}", house.config(f"{{path: {data}, format: tsv}}"), {"accuracy": 0.5})
        for i, data in enumerate(("a/data", "b/data", "b/data"))
    ]
    assert list(house.page(*runs)) == ["Classification: a/data", "Classification: b/data"]
    assert list(house.page(*runs[1:])) == ["Classification: data"]


def test_of_several_paths_those_of_one_name_are_told_apart(house):
    runs = []
    for folder in "ab":
        data = f"{{path: [{folder}/x.txt, y.txt], format: sentence_per_line}}"
        loaded = house.config(data, "pretraining")
        runs.append((benchmark_of(loaded), loaded))
    titles = [each.title for each in distinct_benchmarks(runs)]
    assert titles == ["Pretraining: a/x.txt, y.txt", "Pretraining: b/x.txt, y.txt"]


@pytest.mark.parametrize(
    ("train", "length"),
    [
        ("epochs: 1", "1 epoch of 10,000 rows"),
        ("epochs: 3", "3 epochs of 10,000 rows"),
        ("steps: 500", "500 steps on 10,000 rows"),
    ],
)
def test_runs_on_a_part_of_the_training_data_say_so(house, train, length):
    loaded = house.config("{path: SST-2, format: sst2, train_rows: 10000}", train=train)
    *_, row = house.table(house.run("part", loaded, {"accuracy": 0.9}))
    assert row[4] == length
    assert "GLUE: SST-2: these were trained on the first 10,000 rows only: part." in house.text()


def test_pre_trainings_in_one_direction_are_told_from_masked_language_models(house):
    loaded = house.config("{path: corpus.txt, format: wikitext}", "pretraining")
    metrics = {"masked_lm_accuracy": 0.2, "perplexity": 9.0}
    runs = [
        house.run(attention, loaded, metrics, head=PreTrainer, attention=attention)
        for attention in ("bidirectional", "left_to_right")
    ]
    note = "Models that read in one direction: "
    house.page(*runs)
    assert f"{note}left_to_right." in house.text()
    house.page(runs[0])
    assert note not in house.text()


def test_data_in_the_place_of_the_papers_are_distinguished_from_them(house):
    loaded = house.config("{path: articles, format: squad}", "question_answering")
    run = house.run("mine", loaded, {"f1": 61.04, "exact_match": 50.0})
    (run / "ensemble.metrics.json").write_text('{"f1": 64.02, "exact_match": 52.0}')
    ours = [["mine", "61.0", "50.0"], ["mine, ensemble", "64.0", "52.0"]]
    assert [row[:3] for row in house.table(run)] == ours
    tables = house.page(run, stand_ins={run: "squad v1.1"})
    _, paper, *rows = tables["Question answering: articles, in place of SQuAD v1.1 (table 2)"]
    assert paper[:3] == ["paper, BERT-base on SQuAD v1.1 (dev)", "88.5", "80.8"]
    assert [row[:3] for row in rows[-2:]] == ours
    assert "its table 2, measured on SQuAD v1.1, not on our data." in house.text()


def test_the_tasks_of_glue_stand_side_by_side_with_their_average(house):
    of_ours = {
        "mnli": {"accuracy": 0.8, "accuracy_mismatched": 0.7},
        "stsb": {"spearman": 0.85, "pearson": 0.9},
        **{name: {"f1": 0.9, "accuracy": 0.6} for name in ("qqp", "mrpc")},
        **{name: {"accuracy": 0.6} for name in ("qnli", "sst2", "rte", "wnli")},
        "cola": {"mcc": 0.5},
    }
    runs = []
    for name, metrics in of_ours.items():
        task = "regression" if name == "stsb" else "classification"
        rows = ", train_rows: 10000" if name == "sst2" else ""
        loaded = house.config(f"{{path: {name}, format: {name}{rows}}}", task)
        runs.append(house.run(name, loaded, metrics))
    head, gpt, base, large, ours = house.page(*runs)["GLUE (table 1)"]
    assert [head[1], head[-2], head[-1]] == ["MNLI-m", "RTE", "average"]
    assert [row[-1] for row in (gpt, base, large)] == ["75.2", "79.6", "81.9"]
    assert base[:4] == ["paper, BERT-base (test)", "84.6", "83.4", "71.2"]
    values = ["80.0", "70.0", "90.0", "60.0", "60.0", "50.0", "85.0", "90.0", "60.0"]
    assert ours == ["random (dev)", *values, "71.7"]
    glue = house.text().partition("## GLUE: ")[0]
    assert "correlation for CoLA, accuracy for the others.\n" in glue
    assert "GLUE: SST-2: these were trained on the first 10,000 rows only: sst2." in glue
    *_, ours = house.page(*runs[:2])["GLUE (table 1)"]
    assert ours == ["random (dev)", "80.0", "70.0", *[""] * 4, "85.0", "", "", ""]
    assert "GLUE (table 1)" not in house.page(runs[0])


def test_different_models_have_lines_of_their_own(house):
    def facts(name, checkpoint, layers=2):
        place = f"{name}_{'random' if checkpoint is None else 'started'}"
        loaded = house.config(f"{{path: {name}, format: {name}}}")
        run = house.run(place, loaded, {"mcc": 0.5, "accuracy": 0.6}, layers=layers)
        found = RunFacts.read(run)
        init = found.config.init.model_copy(update={"checkpoint": checkpoint})
        return dataclasses.replace(found, config=found.config.model_copy(update={"init": init}))

    two = [facts("cola", None), facts("rte", None, layers=1)]
    starts = [facts("cola", "a/step-1"), facts("rte", "b/step-1")]
    (section,) = glue_sections([*two, *starts])
    lines = {row.cells[0]: row.cells[6:] for row in section.rows if not row.quoted}
    cola, rte = ("50.0", "", "", "", ""), ("", "", "", "60.0", "")
    assert lines == {
        "random, 2 x 8 (dev)": cola,
        "random, 1 x 8 (dev)": rte,
        "a/step-1 (dev)": cola,
        "b/step-1 (dev)": rte,
    }


@pytest.mark.parametrize(
    ("name", "model", "values"),
    [
        ("conll2003", "BERT-base", (92.4,)),
        ("conll2003", "BERT-large", (92.8,)),
        ("swag", "BERT-large", (86.3,)),
        ("squad v1.1", "BERT-large, ensemble, TriviaQA", (93.2, 87.4)),
        ("squad v2.0", "BERT-large", (83.1,)),
    ],
)
def test_the_papers_test_figures_are_shown_as_such(name, model, values):
    results = BENCHMARKS[name].results
    assert [tuple(each[2].values()) for each in results if each[:2] == (model, "test")] == [values]


def test_the_page_holds_its_pictures(cola, tmp_path):
    assert main(["report", str(cola), "--out", str(tmp_path / "page.html")]) == 0
    page = (tmp_path / "page.html").read_text()
    data = re.search(r'src="data:image/png;base64,([^"]+)"', page)
    assert base64.b64decode(data[1]).startswith(b"\x89PNG")
    assert "<tr><td>my_cola</td><td>45.7 ± 1.2</td><td>2 x 8</td>" in page
    assert '<tr class="paper"><td>paper, BERT-base (test)</td><td>52.1</td>' in page
    assert [file.name for file in tmp_path.iterdir()] == ["page.html"]


def test_markdown_has_its_pictures_beside_it_and_deletes_nothing_there(cola, tmp_path):
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "precious").write_text("a run")
    report([cola], tmp_path / "runs.md")
    assert (tmp_path / "runs" / "precious").read_text() == "a run"
    assert (tmp_path / "runs" / "0.png").read_bytes().startswith(b"\x89PNG")
    text = (tmp_path / "runs.md").read_text()
    assert "![GLUE: CoLA](runs/0.png)" in text
    assert "| my_cola | 45.7 ± 1.2 | 2 x 8 |" in text


def test_the_former_name_of_the_function_still_works(cola, tmp_path):
    from bert_tf.report import report as former

    with pytest.warns(DeprecationWarning, match="is now bert_tf.experiments.report.report"):
        former([cola], out=tmp_path / "page.md")
    assert "my_cola" in (tmp_path / "page.md").read_text()


def test_runs_that_cannot_be_reported_are_named_in_one_line(cola, tmp_path, capsys):
    assert main(["report", str(cola), "--out", str(tmp_path / "page.pdf")]) == 2
    assert "must end in .md or .html" in capsys.readouterr().err
    for runs, message in (
        ([cola, tmp_path / "missing"], "run folder not found: .*missing"),
        (["x" * 300], "run folder not found: x+$"),
        ([tmp_path], "none of the folders holds a finished run"),
    ):
        with pytest.raises(UserError, match=message):
            report(runs, tmp_path / "page.md")


def test_what_is_no_finished_run_is_left_out_with_a_warning(house, cola, capsys):
    (house.folder / "demo").mkdir()
    unfinished = RunFolder.start(house.folder / "run", house.config("{path: ., format: tsv}"))
    house.page(house.folder / "demo", unfinished.path, cola)
    told = capsys.readouterr().err
    assert "demo is skipped" in told and "it has no config.yaml" in told
    assert "run is skipped" in told and "it has no metrics.json" in told
    assert "1 runs, 1 tables" in told


ANSWERING = "Question answering"


@pytest.mark.parametrize(
    ("task", "data", "title"),
    [
        ("classification", "path: glue/mnli, format: tfds", "GLUE: MNLI"),
        ("classification", "path: mine, format: tsv", "Classification: mine"),
        ("question_answering", "path: squad, format: squad", "SQuAD v1.1"),
        ("question_answering", "path: squad, format: squad, unanswerable: true", "SQuAD v2.0"),
        ("question_answering", "path: squad/v1.1, format: tfds", "SQuAD v1.1"),
        ("question_answering", "path: squad/v2.0, format: tfds, unanswerable: true", "SQuAD v2.0"),
        (
            "question_answering",
            "path: squad_by_article, format: squad",
            f"{ANSWERING}: squad_by_article",
        ),
        ("question_answering", "path: squad_it, format: squad", f"{ANSWERING}: squad_it"),
        ("question_answering", "path: SQuAD-v1.1, format: squad", "SQuAD v1.1"),
        ("token_classification", "path: x, format: conll, train: eng.train", "CoNLL-2003"),
        ("token_classification", "path: wnut17, format: conll", "Token classification: wnut17"),
        ("multiple_choice", "path: swag, format: swag", "SWAG"),
    ],
)
def test_only_the_papers_data_is_compared_with_the_paper(house, task, data, title):
    assert benchmark_of(house.config(f"{{{data}}}", task)).title.endswith(title)


def test_names_cannot_break_the_page():
    section = ReportSection("<b>", ("a|b", "c"), (ReportRow(("<script>", "x|y")),))
    assert "<script>" not in to_html("t", [], [section])
    assert "| <script> | x\\|y |" in to_markdown("t", [], [section], "pictures")
    section = dataclasses.replace(section, title="a", picture=b"png")
    assert "![a](my%20results%29/0.png)" in to_markdown("t", [], [section], "my results)")
