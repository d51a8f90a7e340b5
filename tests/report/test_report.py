"""The report says what the run folders hold, beside the paper's figures where those belong."""

import base64
import re
from html.parser import HTMLParser

import pytest

from bert_tf import cli, config
from bert_tf.checkpoints import conversion
from bert_tf.checkpoints.reading import step_folder
from bert_tf.errors import UserError
from bert_tf.models import Encoder, EncoderConfig, SequenceClassifier
from bert_tf.report import report
from bert_tf.report.page import Row, Section, to_html, to_markdown
from bert_tf.report.paper import benchmark_of
from bert_tf.training.run_folder import RunFolder
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


@pytest.fixture(scope="module")
def cola(tmp_path_factory):
    """A finished run on CoLA over three seeds, as a search leaves it."""
    folder = tmp_path_factory.mktemp("report")
    loaded = config.load(
        write_config(folder, "{path: CoLA, format: cola}", train="epochs: 3, seed: [0, 1, 2]")
    )
    run = RunFolder.start(folder / "my_cola", loaded)
    encoder = Encoder(EncoderConfig(vocab_size=len(tiny.VOCABULARY), **SIZES))
    conversion.save(SequenceClassifier(encoder, 2), step_folder(run.checkpoints, 7))
    run.write_metrics({"mcc": 0.5, "loss": 0.7})
    (run.path / "summary.tsv").write_text(
        "learning_rate\truns\tmcc\tmcc_std\tloss\tloss_std\n"
        "0.001\t3\t0.41\t0.02\t0.7\t0.1\n0.002\t3\t0.4567\t0.0123\t0.6\t0.1\n"
    )
    scalars = Scalars(run.path / "trials" / "seed=0" / "logs" / "dev")
    for step in (1, 2):
        scalars.write(step, {"loss": 1 / step, "mcc": step / 4})
    scalars.close()
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


def test_the_best_setting_stands_beside_the_paper(cola, tmp_path):
    report([cola], tmp_path / "page.html")
    cells = Cells()
    cells.feed((tmp_path / "page.html").read_text())
    head, *rows = cells.rows
    assert head == ["", "mcc", "layers x width", "started from", "training", "batch", "seeds"]
    assert ["paper, BERT-base (test)", "52.1"] in [row[:2] for row in rows]
    assert rows[-1] == ["my_cola", "45.7 ± 1.2", "2 x 8", "random", "3 epochs", "8", "3"]


def test_the_page_holds_its_pictures(cola, tmp_path):
    assert cli.main(["report", str(cola), "--out", str(tmp_path / "page.html")]) == 0
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
    assert cli.main(["report", str(cola), "--out", str(tmp_path / "page.pdf")]) == 2
    assert "must end in .md or .html" in capsys.readouterr().err
    with pytest.raises(UserError, match="is not a run folder"):
        report([tmp_path], tmp_path / "page.md")
    unfinished = RunFolder.start(
        tmp_path / "run", config.load(write_config(tmp_path, "{path: ., format: tsv}"))
    )
    with pytest.raises(UserError, match="has no metrics.json yet"):
        report([unfinished.path], tmp_path / "page.md")


@pytest.mark.parametrize(
    ("task", "data", "title"),
    [
        ("classification", "{path: glue/mnli, format: tfds}", "GLUE: MNLI"),
        ("classification", "{path: mine, format: tsv}", "Classification: mine"),
        ("question_answering", "{path: squad, format: squad}", "SQuAD v1.1"),
        ("question_answering", "{path: squad, format: squad, unanswerable: true}", "SQuAD v2.0"),
        (
            "question_answering",
            "{path: squad_by_article, format: squad}",
            "Question answering: squad_by_article",
        ),
        ("token_classification", "{path: x, format: conll, train: eng.train}", "CoNLL-2003"),
        ("token_classification", "{path: wnut17, format: conll}", "Token classification: wnut17"),
        ("multiple_choice", "{path: swag, format: swag}", "SWAG"),
    ],
)
def test_only_the_papers_data_is_compared_with_the_paper(tmp_path, task, data, title):
    assert benchmark_of(config.load(write_config(tmp_path, data, task))).title.endswith(title)


def test_names_cannot_break_the_page():
    section = Section("<b>", ("a|b", "c"), (Row(("<script>", "x|y")),))
    assert "<script>" not in to_html("t", [], [section])
    assert "| <script> | x\\|y |" in to_markdown("t", [], [section], "pictures")
