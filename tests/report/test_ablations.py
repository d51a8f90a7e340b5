"""Runs that differ in one thing are set side by side as in the paper's tables 5 to 7."""

import pytest

from bert_tf import config
from bert_tf.checkpoints import conversion
from bert_tf.checkpoints.reading import step_folder
from bert_tf.models import Encoder, EncoderConfig, PreTrainer, SequenceClassifier
from bert_tf.report import report
from bert_tf.training.run_folder import RunFolder
from tests import tiny

HEADS = {"num_attention_heads": 2, "max_position_embeddings": 32}


class House:
    """Makes finished runs without training them."""

    def __init__(self, folder):
        self.folder = folder
        tiny.write_vocabulary(folder)

    def _config(self, text, settings=()):
        path = self.folder / "config.yaml"
        path.write_text(text + "tokenizer: {vocab: vocab.txt}\n")
        return config.load(path, settings)

    def encoder(self, layers=2, width=8, **changes):
        sizes = HEADS | {"num_hidden_layers": layers, "hidden_size": width} | changes
        return Encoder(
            EncoderConfig(vocab_size=len(tiny.VOCABULARY), intermediate_size=4 * width, **sizes)
        )

    def pretraining(self, name, perplexity, next_sentence=True, length="steps: 20", **encoder):
        loaded = self._config(
            "task: pretraining\n"
            "data: {path: corpus.txt, format: sentence_per_line, next_sentence: "
            f"{str(next_sentence).lower()}}}\n"
            f"model: {{preset: bert-tiny-uncased}}\ntrain: {{{length}, max_length: 16}}\n"
        )
        run = RunFolder.start(self.folder / name, loaded)
        model = PreTrainer(self.encoder(**encoder), next_sentence)
        for step in (10, 20):
            conversion.save(model, step_folder(run.checkpoints, step))
        run.write_metrics({"masked_lm_accuracy": 0.2, "perplexity": perplexity})
        return run.path

    def finetuning(self, name, start, metrics, data="{path: SST-2, format: sst2}", **encoder):
        loaded = self._config(
            f"task: classification\ndata: {data}\nmodel: {{preset: bert-tiny-uncased}}\n"
            "train: {epochs: 1, max_length: 16}\n",
            [] if start is None else ["model.preset=null", f"init.checkpoint={start}"],
        )
        run = RunFolder.start(self.folder / name, loaded)
        model = SequenceClassifier(self.encoder(**encoder))
        conversion.save(model, step_folder(run.checkpoints, 1))
        run.write_metrics(metrics)
        return run.path

    def page(self, *runs):
        """Heading -> the cells of its table, from the Markdown."""
        report(runs, self.folder / "page.md")
        tables = {}
        for part in (self.folder / "page.md").read_text().split("\n## ")[1:]:
            heading, *lines = part.splitlines()
            rows = [line for line in lines if line.startswith("|") and "---" not in line]
            tables[heading] = [[c.strip(" *") for c in row.split("|")[1:-1]] for row in rows]
        return tables


@pytest.fixture
def house(tmp_path):
    return House(tmp_path)


def test_pre_trainings_are_compared_as_in_table_5(house):
    bert = house.pretraining("bert", 9.0)
    one_way = {"attention": "left_to_right"}
    left = house.pretraining("left", 30.0, next_sentence=False, **one_way)
    runs = [
        house.finetuning("a", left, {"accuracy": 0.625}, **one_way),
        house.finetuning("b", bert, {"accuracy": 0.75}),
        house.finetuning("c", left, {"accuracy": 0.65}, bilstm=True, **one_way),
        house.finetuning("d", None, {"accuracy": 0.5}),
        house.finetuning(
            "e", bert, {"f1": 0.4, "accuracy": 0.7}, data="{path: MRPC, format: mrpc}"
        ),
    ]
    tables = house.page(*runs)
    assert list(tables) == ["Pre-training tasks (table 5)"]
    head, *rows = tables["Pre-training tasks (table 5)"]
    columns = {name: place for place, name in enumerate(head)}
    sst2, mrpc = columns["SST-2 (accuracy)"], columns["MRPC (accuracy)"]
    shown = {row[0]: (row[mrpc], row[sst2]) for row in rows}
    assert shown["paper: left-to-right, no next sentence"] == ("77.5", "92.1")
    ours = [(row[0], *shown[row[0]]) for row in rows if not row[0].startswith("paper")]
    assert ours == [
        ("masked LM and next sentence (BERT)", "70.0", "75.0"),
        ("left-to-right, no next sentence", "", "62.5"),
        ("left-to-right, no next sentence + BiLSTM", "", "65.0"),
        ("no pre-training", "", "50.0"),
    ]


def test_sizes_are_compared_as_in_table_6(house):
    runs = []
    for layers, width, accuracy in ((2, 16, 0.8), (2, 8, 0.7), (4, 8, 0.75)):
        sizes = {"layers": layers, "width": width}
        start = house.pretraining(f"{layers}x{width}", 100.0 / width, **sizes)
        runs.append(
            house.finetuning(f"sst2_{layers}x{width}", start, {"accuracy": accuracy}, **sizes)
        )
    tables = house.page(*runs)
    assert list(tables) == ["Model size (table 6)"]
    head, *rows = tables["Model size (table 6)"]
    assert head[:5] == ["", "layers", "width", "heads", "perplexity"]
    assert ["paper", "12", "768", "12", "3.99", "84.4", "86.7", "92.9"] in rows
    ours = [row[1:5] + row[-1:] for row in rows if row[0] == "ours"]
    assert ours == [
        ["2", "8", "2", "12.50", "70.0"],
        ["4", "8", "2", "12.50", "75.0"],
        ["2", "16", "2", "6.25", "80.0"],
    ]
    assert (house.folder / "page" / "0.png").read_bytes().startswith(b"\x89PNG")


def test_steps_are_compared_as_in_figure_4(house):
    bert = house.pretraining("bert", 9.0)
    runs = [
        house.finetuning("late", bert, {"accuracy": 0.75}),
        house.finetuning("early", step_folder(bert / "checkpoints", 10), {"accuracy": 0.5}),
    ]
    tables = house.page(*runs)
    assert tables["Training steps (figure 4)"][1:] == [
        ["masked LM and next sentence (BERT)", "10", "50.0"],
        ["masked LM and next sentence (BERT)", "20", "75.0"],
    ]
    assert len(tables) == 1


def test_figure_4_counts_the_steps_of_runs_by_epochs_and_drops_no_pre_training(house):
    bert = house.pretraining("bert", 9.0, length="epochs: 3")
    early = step_folder(bert / "checkpoints", 10)
    runs = [
        house.finetuning("late", bert, {"accuracy": 0.75}),
        house.finetuning("early", early, {"accuracy": 0.5}),
        house.finetuning("late_on_top", bert, {"accuracy": 0.8}, bilstm=True),
        house.finetuning("early_on_top", early, {"accuracy": 0.6}, bilstm=True),
    ]
    rows = house.page(*runs)["Training steps (figure 4)"][1:]
    name = "masked LM and next sentence (BERT)"
    assert rows == [
        [name, "10", "50.0"],
        [name, "20", "75.0"],
        [f"{name} + BiLSTM", "10", "60.0"],
        [f"{name} + BiLSTM", "20", "80.0"],
    ]


def test_other_runs_keep_the_table_of_their_benchmark(house):
    encoder = house.encoder()
    conversion.save(encoder, house.folder / "published")
    published = house.finetuning("published_sst2", house.folder / "published", {"accuracy": 0.9})
    bert = house.pretraining("bert", 9.0)
    tables = house.page(published, house.finetuning("a", bert, {"accuracy": 0.7}), bert)
    assert "GLUE: SST-2" in tables and not any("table" in title for title in tables)
    names = [row[0] for row in tables["GLUE: SST-2"]]
    assert "published_sst2" in names and "a" in names


def test_features_are_compared_as_in_table_7(house, tmp_path):
    tags = house.folder / "tags"
    tags.mkdir()
    conversion.save(house.encoder(), house.folder / "published")
    runs = []
    for features, f1 in ((None, 0.5), ("last", 0.4), ("concat_last_four", 0.45)):
        name = features or "tuned"
        loaded = house._config(
            f"task: token_classification\ndata: {{path: tags, format: conll, train: a, dev: b}}\n"
            f"model: {{features: {features or 'null'}}}\n"
            "train: {epochs: 1, max_length: 16}\n",
            [f"init.checkpoint={house.folder / 'published'}"],
        )
        run = RunFolder.start(house.folder / name, loaded)
        # Which kind of model it holds is nothing that the report asks.
        conversion.save(SequenceClassifier(house.encoder()), step_folder(run.checkpoints, 1))
        run.write_metrics({"f1": f1})
        runs.append(run.path)
    tables = house.page(*runs)
    assert list(tables) == ["Token classification: tags", "Feature-based approach (table 7)"]
    _, *rows = tables["Feature-based approach (table 7)"]
    assert ["paper: second to last", "95.6"] in rows
    ours = [row for row in rows if not row[0].startswith("paper")]
    assert ours == [
        ["fine-tuned, all layers", "50.0"],
        ["last", "40.0"],
        ["concat last four", "45.0"],
    ]
