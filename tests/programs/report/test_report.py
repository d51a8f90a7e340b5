"""The report says what the run folders hold, beside the paper's figures where those belong."""

import base64
import dataclasses
import re
import shutil
from html.parser import HTMLParser

import pytest

from bert_tf import TextClassifier
from bert_tf.checkpoints import conversion
from bert_tf.checkpoints.of_run import step_folder
from bert_tf.cli.parser import main
from bert_tf.config.reading import load_config
from bert_tf.encoder.ablations import encoder_for
from bert_tf.encoder.config import EncoderConfig
from bert_tf.errors import UserError
from bert_tf.models.pretrainer import PreTrainer
from bert_tf.programs.report import report
from bert_tf.programs.report.facts import RunFacts
from bert_tf.programs.report.page import Row, Section, to_html, to_markdown
from bert_tf.programs.report.paper import BENCHMARKS, benchmark_of, distinct_benchmarks
from bert_tf.programs.report.tables import glue_sections
from bert_tf.runs.run_folder import RunFolder
from bert_tf.training.tensorboard import Scalars
from tests import tiny

SIZES = {
    "hidden_size": 8,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 16,
    "max_position_embeddings": 32,
}


def write_config(folder, data, task="classification", train="epochs: 3"):
    tiny.write_vocabulary(folder)
    path = folder / "config_of_run.yaml"
    path.write_text(
        f"task: {task}\ndata: {data}\ntokenizer: {{vocab: vocab.txt}}\n{tiny.MODEL}"
        f"train: {{batch_size: 8, learning_rate: 0.001, max_length: 16, {train}}}\n"
    )
    return path


def finished(path, loaded, metrics, layers=2):
    """A run that has not been trained, with metrics."""
    run = RunFolder.start(path, loaded)
    sizes = SIZES | {"num_hidden_layers": layers}
    encoder = encoder_for(EncoderConfig(vocab_size=len(tiny.VOCABULARY), **sizes))
    conversion.save(TextClassifier(encoder, None, range(2)), step_folder(run.checkpoints, 7))
    run.write_metrics(metrics)
    return run


@pytest.fixture(scope="module")
def cola(tmp_path_factory):
    """A finished run on CoLA, as a search over epochs and seeds leaves it: the last was best."""
    folder = tmp_path_factory.mktemp("report")
    lists = "epochs: [3, 4], seed: [0, 1]"
    loaded = load_config(write_config(folder, "{path: CoLA, format: cola}", train=lists))
    run = finished(folder / "my_cola", loaded, {"mcc": 0.5, "loss": 0.7})
    (run.path / "summary.tsv").write_text(
        "epochs\truns\tmcc\tmcc_std\tloss\tloss_std\n"
        "3\t2\t0.41\t0.02\t0.7\t0.1\n4\t2\t0.4567\t0.0123\t0.6\t0.1\n"
    )
    for number, trial in enumerate(loaded.trials()):
        one = RunFolder.start(run.path / "trials" / f"trial-{number}", trial)
        scalars = Scalars(one.logs / "dev")
        for step in (1, 2):
            scalars.write(step, {"loss": 1 / step, "mcc": number / 4})
        scalars.close()
    (run.path / "best.yaml").write_text(loaded.trials()[3].to_yaml())
    return run.path


class Cells(HTMLParser):
    """The cells of an HTML page's tables."""

    def __init__(self):
        super().__init__()
        self.rows, self.inside = [], False

    def handle_starttag(self, tag, attrs):
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")
            self.inside = True

    def handle_endtag(self, tag):
        self.inside = self.inside and tag not in ("td", "th")

    def handle_data(self, data):
        if self.inside:
            self.rows[-1][-1] += data


def rows_of(runs, folder, stand_ins=None):
    """The rows of all tables of the page of runs."""
    report(runs, folder / "page.html", stand_ins)
    cells = Cells()
    cells.feed((folder / "page.html").read_text())
    return cells.rows


def test_the_best_setting_stands_beside_the_paper(cola, tmp_path):
    head, *rows = rows_of([cola], tmp_path)
    assert head == ["", "mcc", "layers x width", "started from", "training", "batch", "seeds"]
    assert ["paper, BERT-base (test)", "52.1"] in [row[:2] for row in rows]
    assert rows[-1] == ["my_cola", "45.7 ± 1.2", "2 x 8", "random", "4 epochs", "8", "2"]


def test_the_curves_of_a_search_are_those_of_its_best_trial(cola):
    assert RunFacts.read(cola).curves["dev"]["mcc"] == ([1, 2], [0.75, 0.75])


SUMMARY = "epochs\truns\tmcc\tmcc_std\n3\t1\t0.9\t\n4\t2\t0.45\t0.01\n5\t0\t\t\n"


def test_means_are_those_of_the_setting_that_the_search_has_kept(tmp_path):
    lists = "epochs: [3, 4, 5], seed: [0, 1]"
    loaded = load_config(write_config(tmp_path, "{path: CoLA, format: cola}", train=lists))
    run = finished(tmp_path / "run", loaded, {"mcc": 0.5})
    (run.path / "summary.tsv").write_text(SUMMARY)
    kept = next(trial for trial in loaded.trials() if trial.train.epochs == 4)
    (run.path / "best.yaml").write_text(kept.to_yaml())
    assert RunFacts.read(run.path).shown("mcc") == "45.0 ± 1.0"


def test_other_things_among_the_trials_do_no_harm(cola):
    (cola / "trials" / ".ipynb_checkpoints").mkdir()
    assert RunFacts.read(cola).curves["dev"]["mcc"] == ([1, 2], [0.75, 0.75])


@pytest.mark.parametrize(
    ("metrics", "message"),
    [
        ('{"mcc": 0.5, ', "metrics.json, line 1, column .*: not JSON"),
        ('{"mcc": "high"}', "metrics.json does not hold the metrics of a run; remove it"),
        ('"x"', "metrics.json does not hold the metrics of a run; remove it"),
    ],
)
def test_a_damaged_run_is_left_out(cola, tmp_path, capsys, metrics, message):
    loaded = load_config(write_config(tmp_path, "{path: CoLA, format: cola}"))
    damaged = finished(tmp_path / "damaged", loaded, {"mcc": 0.5})
    (damaged.path / "metrics.json").write_text(metrics)
    bare = finished(tmp_path / "bare", loaded, {"mcc": 0.5})
    shutil.rmtree(bare.checkpoints)
    _, *rows = rows_of([damaged.path, bare.path, cola], tmp_path)
    assert [row[0] for row in rows if not row[0].startswith("paper")] == ["my_cola"]
    told = capsys.readouterr().err
    assert re.search(f"damaged is skipped: .*{message}", told)
    assert re.search("bare is skipped: .*bare no longer has a checkpoint", told)


def test_a_name_may_hold_signs_of_formulas_and_letters_of_any_script(tmp_path, recwarn):
    loaded = load_config(write_config(tmp_path, "{path: CoLA, format: cola}"))
    run = finished(tmp_path / "cost_$5_vs_$x_中", loaded, {"mcc": 0.5})
    scalars = Scalars(run.logs / "dev")
    scalars.write(1, {"mcc": 0.5})
    scalars.close()
    rows_of([run.path], tmp_path)
    assert not [each for each in recwarn if "Glyph" in str(each.message)]


def test_a_run_with_one_seed_has_no_means_whatever_lies_in_its_folder(tmp_path):
    loaded = load_config(write_config(tmp_path, "{path: CoLA, format: cola}"))
    run = finished(tmp_path / "run", loaded, {"mcc": 0.5})
    (run.path / "summary.tsv").write_text(SUMMARY)
    other = RunFolder.start(run.trials / "other", loaded)
    scalars = Scalars(other.logs / "dev")
    scalars.write(1, {"mcc": 0.5})
    scalars.close()
    facts = RunFacts.read(run.path)
    assert (facts.shown("mcc"), facts.seeds) == ("50.0", 1)
    assert facts.curves["dev"] == {}


def test_runs_of_one_folder_name_are_told_apart(tmp_path):
    runs = []
    for place, mcc in (("a", 0.4), ("b", 0.5)):
        loaded = load_config(write_config(tmp_path, "{path: CoLA, format: cola}"))
        runs.append(finished(tmp_path / place / "cola", loaded, {"mcc": mcc}))
        scalars = Scalars(runs[-1].logs / "dev")
        scalars.write(1, {"loss": 0.5})
        scalars.close()
    rows = rows_of([run.path for run in runs], tmp_path)
    assert [row[:2] for row in rows[-2:]] == [["a/cola", "40.0"], ["b/cola", "50.0"]]


def test_data_of_one_name_in_different_folders_are_told_apart(tmp_path):
    runs = []
    for number, data in enumerate(("a/data", "b/data", "b/data")):
        loaded = load_config(write_config(tmp_path, f"{{path: {data}, format: tsv}}"))
        runs.append(finished(tmp_path / f"run{number}", loaded, {"accuracy": 0.5}).path)
    report(runs, tmp_path / "page.html")
    headings = re.findall("<h2>(.*?)</h2>", (tmp_path / "page.html").read_text())
    assert headings == ["Classification: a/data", "Classification: b/data"]
    report(runs[1:], tmp_path / "page.html")
    assert "<h2>Classification: data</h2>" in (tmp_path / "page.html").read_text()


def test_of_several_paths_those_of_one_name_are_told_apart(tmp_path):
    runs = []
    for folder in "ab":
        data = f"{{path: [{folder}/x.txt, y.txt], format: sentence_per_line}}"
        loaded = load_config(write_config(tmp_path, data, "pretraining"))
        runs.append((benchmark_of(loaded), loaded))
    titles = [each.title for each in distinct_benchmarks(runs)]
    assert titles == ["Pretraining: a/x.txt, y.txt", "Pretraining: b/x.txt, y.txt"]


def test_runs_on_a_part_of_the_training_data_say_so(tmp_path):
    data = "{path: SST-2, format: sst2, train_rows: 10000}"
    lengths = []
    for train in ("epochs: 1", "epochs: 3", "steps: 500"):
        loaded = load_config(write_config(tmp_path, data, train=train))
        run = finished(tmp_path / train.replace(": ", "_"), loaded, {"accuracy": 0.9})
        *_, row = rows_of([run.path], tmp_path)
        lengths.append(row[4])
        note = f"GLUE: SST-2: these were trained on the first 10,000 rows only: {run.path.name}."
        assert note in (tmp_path / "page.html").read_text()
    assert lengths == [
        "1 epoch of 10,000 rows",
        "3 epochs of 10,000 rows",
        "500 steps on 10,000 rows",
    ]


def test_pre_trainings_in_one_direction_are_told_from_masked_language_models(tmp_path):
    runs = []
    for attention in ("bidirectional", "left_to_right"):
        text = write_config(tmp_path, "{path: corpus.txt, format: wikitext}", "pretraining")
        run = RunFolder.start(tmp_path / attention, load_config(text))
        sizes = SIZES | {"attention": attention}
        encoder = encoder_for(EncoderConfig(vocab_size=len(tiny.VOCABULARY), **sizes))
        conversion.save(PreTrainer(encoder), step_folder(run.checkpoints, 7))
        run.write_metrics({"masked_lm_accuracy": 0.2, "perplexity": 9.0})
        runs.append(run.path)
    rows_of(runs, tmp_path)
    told = "Models that read in one direction: left_to_right."
    assert told in (tmp_path / "page.html").read_text()
    rows_of(runs[:1], tmp_path)
    assert "not to be compared" not in (tmp_path / "page.html").read_text()


def test_data_in_the_place_of_the_papers_are_told_from_them(tmp_path):
    loaded = load_config(
        write_config(tmp_path, "{path: articles, format: squad}", "question_answering")
    )
    run = finished(tmp_path / "mine", loaded, {"f1": 61.04, "exact_match": 50.0})
    (run.path / "ensemble.metrics.json").write_text('{"f1": 64.02, "exact_match": 52.0}')
    head, *rows = rows_of([run.path], tmp_path)
    assert [row[:3] for row in rows] == [
        ["mine", "61.0", "50.0"],
        ["mine, ensemble", "64.0", "52.0"],
    ]
    stand_ins = {run.path: "squad v1.1"}
    _, *rows = rows_of([run.path], tmp_path, stand_ins)
    assert rows[0][:3] == ["paper, BERT-base on SQuAD v1.1 (dev)", "88.5", "80.8"]
    assert [row[0] for row in rows[-2:]] == ["mine", "mine, ensemble"]
    text = (tmp_path / "page.html").read_text()
    assert "<h2>Question answering: articles, in place of SQuAD v1.1 (table 2)</h2>" in text
    assert "its table 2, measured on SQuAD v1.1, not on our data." in text


def test_the_tasks_of_glue_stand_side_by_side_with_their_average(tmp_path):
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
        data = f"{{path: {name}, format: {name}{rows}}}"
        loaded = load_config(write_config(tmp_path, data, task))
        runs.append(finished(tmp_path / name, loaded, metrics).path)
    head, gpt, base, large, ours = rows_of(runs, tmp_path)[:5]
    assert [head[1], head[-2], head[-1]] == ["MNLI-m", "RTE", "average"]
    assert [row[-1] for row in (gpt, base, large)] == ["75.2", "79.6", "81.9"]
    assert base[:4] == ["paper, BERT-base (test)", "84.6", "83.4", "71.2"]
    values = ["80.0", "70.0", "90.0", "60.0", "60.0", "50.0", "85.0", "90.0", "60.0"]
    assert ours == ["random (dev)", *values, "71.7"]
    glue = (tmp_path / "page.html").read_text().partition("<h2>GLUE: ")[0]
    assert "GLUE: SST-2: these were trained on the first 10,000 rows only: sst2." in glue
    *_, ours = rows_of(runs[:2], tmp_path)[:5]
    assert ours == ["random (dev)", "80.0", "70.0", *[""] * 4, "85.0", "", "", ""]
    assert "GLUE (table 1)" in (tmp_path / "page.html").read_text()
    rows_of(runs[:1], tmp_path)
    assert "GLUE (table 1)" not in (tmp_path / "page.html").read_text()


def test_different_models_have_lines_of_their_own(tmp_path):
    def facts(name, checkpoint, layers=2):
        data = f"{{path: {name}, format: {name}}}"
        loaded = load_config(write_config(tmp_path, data))
        metrics = {"mcc": 0.5, "accuracy": 0.6}
        place = tmp_path / f"{name}_{'random' if checkpoint is None else 'started'}"
        run = finished(place, loaded, metrics, layers=layers)
        found = RunFacts.read(run.path)
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
    assert [tuple(each.values.values()) for each in results if each[:2] == (model, "test")] == [
        values
    ]


def test_the_page_holds_its_pictures(cola, tmp_path):
    assert main(["report", str(cola), "--out", str(tmp_path / "page.html")]) == 0
    data = re.search(r'src="data:image/png;base64,([^"]+)"', (tmp_path / "page.html").read_text())
    assert base64.b64decode(data[1]).startswith(b"\x89PNG")
    assert [file.name for file in tmp_path.iterdir()] == ["page.html"]


def test_markdown_has_its_pictures_beside_it(cola, tmp_path):
    report([cola], tmp_path / "page.md")
    assert (tmp_path / "page" / "0.png").read_bytes().startswith(b"\x89PNG")
    text = (tmp_path / "page.md").read_text()
    assert "![GLUE: CoLA](page/0.png)" in text
    assert "| my_cola | 45.7 ± 1.2 | 2 x 8 |" in text


def test_a_page_named_like_the_folder_of_the_runs_deletes_nothing(cola, tmp_path):
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "precious").write_text("a run")
    report([cola], tmp_path / "runs.md")
    assert (tmp_path / "runs" / "precious").read_text() == "a run"
    assert (tmp_path / "runs" / "0.png").is_file()


def test_what_cannot_be_reported_is_told_in_one_line(cola, tmp_path, capsys):
    assert main(["report", str(cola), "--out", str(tmp_path / "page.pdf")]) == 2
    assert "must end in .md or .html" in capsys.readouterr().err
    with pytest.raises(UserError, match="run folder not found: .*missing"):
        report([cola, tmp_path / "missing"], tmp_path / "page.md")
    with pytest.raises(UserError, match="run folder not found: x+$"):
        report(["x" * 300], tmp_path / "page.md")
    with pytest.raises(UserError, match="none of the folders holds a finished run"):
        report([tmp_path], tmp_path / "page.md")


def test_what_is_no_finished_run_is_left_out_with_a_warning(cola, tmp_path, capsys):
    (tmp_path / "demo").mkdir()
    unfinished = RunFolder.start(
        tmp_path / "run", load_config(write_config(tmp_path, "{path: ., format: tsv}"))
    )
    report([tmp_path / "demo", unfinished.path, cola], tmp_path / "page.md")
    told = capsys.readouterr().err
    assert "demo is skipped" in told and "it has no config.yaml" in told
    assert "run is skipped" in told and "it has no metrics.json" in told
    assert "1 runs, 1 tables" in told


@pytest.mark.parametrize(
    ("task", "data", "title"),
    [
        ("classification", "{path: glue/mnli, format: tfds}", "GLUE: MNLI"),
        ("classification", "{path: mine, format: tsv}", "Classification: mine"),
        ("question_answering", "{path: squad, format: squad}", "SQuAD v1.1"),
        ("question_answering", "{path: squad, format: squad, unanswerable: true}", "SQuAD v2.0"),
        ("question_answering", "{path: squad/v1.1, format: tfds}", "SQuAD v1.1"),
        (
            "question_answering",
            "{path: squad/v2.0, format: tfds, unanswerable: true}",
            "SQuAD v2.0",
        ),
        (
            "question_answering",
            "{path: squad_by_article, format: squad}",
            "Question answering: squad_by_article",
        ),
        (
            "question_answering",
            "{path: squad_it, format: squad}",
            "Question answering: squad_it",
        ),
        ("question_answering", "{path: SQuAD-v1.1, format: squad}", "SQuAD v1.1"),
        ("token_classification", "{path: x, format: conll, train: eng.train}", "CoNLL-2003"),
        ("token_classification", "{path: wnut17, format: conll}", "Token classification: wnut17"),
        ("multiple_choice", "{path: swag, format: swag}", "SWAG"),
    ],
)
def test_only_the_papers_data_is_compared_with_the_paper(tmp_path, task, data, title):
    assert benchmark_of(load_config(write_config(tmp_path, data, task))).title.endswith(title)


def test_names_cannot_break_the_page():
    section = Section("<b>", ("a|b", "c"), (Row(("<script>", "x|y")),))
    assert "<script>" not in to_html("t", [], [section])
    assert "| <script> | x\\|y |" in to_markdown("t", [], [section], "pictures")
    section = dataclasses.replace(section, title="a", picture=b"png")
    assert "![a](my%20results%29/0.png)" in to_markdown("t", [], [section], "my results)")
