"""Runs that differ in one thing are set side by side as in the paper's tables 5 to 7."""

import pytest

from bert_tf import config
from bert_tf.checkpoints import conversion
from bert_tf.checkpoints.of_run import step_folder
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
        for part in self.text().split("\n## ")[1:]:
            heading, *lines = part.splitlines()
            rows = [line for line in lines if line.startswith("|") and "---" not in line]
            tables[heading] = [[c.strip(" *") for c in row.split("|")[1:-1]] for row in rows]
        return tables

    def text(self):
        """The page that `page` has written."""
        return (self.folder / "page.md").read_text()


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
    found = [(row[0], *shown[row[0]]) for row in rows if not row[0].startswith("paper")]
    assert found == [
        ("masked LM and next sentence (BERT)", "70.0", "75.0"),
        ("left-to-right, no next sentence", "", "62.5"),
        ("left-to-right, no next sentence + BiLSTM", "", "65.0"),
        ("no pre-training", "", "50.0"),
    ]


def ours(rows):
    """Of rows that are not the paper's: the first cell, and what stands in the others."""
    return [[row[0], *filter(None, row[1:])] for row in rows[1:] if not row[0].startswith("paper")]


def test_two_pre_trainings_of_one_kind_have_a_row_each(house):
    bert, longer = house.pretraining("bert", 9.0), house.pretraining("more/longer", 8.0)
    left = house.pretraining("left", 30.0, next_sentence=False, attention="left_to_right")
    tables = house.page(
        house.finetuning("a", bert, {"accuracy": 0.7}),
        house.finetuning("b", longer, {"accuracy": 0.8}),
        house.finetuning("c", left, {"accuracy": 0.6}, attention="left_to_right"),
    )
    assert ours(tables["Pre-training tasks (table 5)"]) == [
        ["masked LM and next sentence (BERT): bert", "70.0"],
        ["masked LM and next sentence (BERT): longer", "80.0"],
        ["left-to-right, no next sentence", "60.0"],
    ]


def test_a_pre_training_is_one_however_its_last_checkpoint_is_named(house):
    bert = house.pretraining("bert", 9.0)
    tables = house.page(
        house.finetuning("a", bert, {"accuracy": 0.7}),
        house.finetuning("b", step_folder(bert / "checkpoints", 20), {"accuracy": 0.8}),
        house.finetuning("c", None, {"accuracy": 0.6}),
    )
    assert [row[0] for row in ours(tables["Pre-training tasks (table 5)"])] == [
        "masked LM and next sentence (BERT)",
        "no pre-training",
    ]


def test_no_run_is_left_out_for_another_that_shares_its_cell(house):
    bert = house.pretraining("bert", 9.0)
    tables = house.page(
        house.finetuning("first", bert, {"accuracy": 0.7}),
        house.finetuning("second", bert, {"accuracy": 0.8}),
        house.finetuning("scratch", None, {"accuracy": 0.6}),
    )
    assert ours(tables["Pre-training tasks (table 5)"]) == [
        ["masked LM and next sentence (BERT)", "80.0"],
        ["no pre-training", "60.0"],
    ]
    names = [row[0] for row in tables["GLUE: SST-2"]]
    assert "first" in names and not {"second", "scratch"} & set(names)


def test_table_5_tells_that_two_directions_are_two_encoders(house):
    bert = house.pretraining("bert", 9.0)
    both = {"attention": "side_by_side"}
    conversion.save(house.encoder(**both), house.folder / "both")
    one = [
        house.finetuning("a", bert, {"accuracy": 0.7}),
        house.finetuning("b", None, {"accuracy": 0.6}),
    ]
    house.page(*one)
    assert "ours have 2 layers, 8 wide, 2 heads.\n" in house.text()
    house.page(*one, house.finetuning("c", house.folder / "both", {"accuracy": 0.8}, **both))
    assert (
        "ours have 2 layers, 8 wide, 2 heads, and two directions side by side are two encoders of "
        "that size.\n"
    ) in house.text()


def test_tables_tell_of_runs_on_a_part_of_the_training_data(house):
    bert = house.pretraining("bert", 9.0)
    part = "{path: SST-2, format: sst2, train_rows: 10000}"
    house.page(
        house.finetuning("a", bert, {"accuracy": 0.7}, data=part),
        house.finetuning("b", None, {"accuracy": 0.6}, data=part),
        house.finetuning("c", None, {"accuracy": 0.6}, data="{path: QNLI, format: qnli}"),
    )
    assert "GLUE: SST-2: trained on the first 10,000 rows only, not on all: a, b." in house.text()
    assert house.text().count("trained on the first") == 1


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
    found = [row[1:5] + row[-1:] for row in rows if row[0] == "ours"]
    assert found == [
        ["2", "8", "2", "12.50", "70.0"],
        ["4", "8", "2", "12.50", "75.0"],
        ["2", "16", "2", "6.25", "80.0"],
    ]
    assert (house.folder / "page" / "0.png").read_bytes().startswith(b"\x89PNG")


def test_two_pre_trainings_of_one_size_have_a_row_each(house):
    wide = {"width": 16}
    starts = {name: house.pretraining(f"{name}/bert", 9.0) for name in ("old", "new")}
    starts["wide"] = house.pretraining("wide", 5.0, **wide)
    runs = [
        house.finetuning(f"on_{name}", start, {"accuracy": accuracy}, **sizes)
        for (name, start), accuracy, sizes in zip(
            starts.items(), (0.6, 0.7, 0.8), ({}, {}, wide), strict=True
        )
    ]
    assert ours(house.page(*runs)["Model size (table 6)"]) == [
        ["ours: old/bert", "2", "8", "2", "9.00", "60.0"],
        ["ours: new/bert", "2", "8", "2", "9.00", "70.0"],
        ["ours", "2", "16", "2", "5.00", "80.0"],
    ]


def test_table_6_leaves_out_what_only_one_size_has_run_on(house):
    wide = {"width": 16}
    narrow, broad = house.pretraining("narrow", 9.0), house.pretraining("broad", 5.0, **wide)
    other, third = (f"{{path: {name}, format: tsv}}" for name in ("other", "third"))
    tables = house.page(
        house.finetuning("a", narrow, {"accuracy": 0.6}, data=other),
        house.finetuning("b", broad, {"accuracy": 0.7}, data=other, **wide),
        house.finetuning("c", broad, {"accuracy": 0.9}, data=third, **wide),
    )
    assert list(tables) == ["Classification: third", "Model size (table 6)"]
    head, *_ = tables["Model size (table 6)"]
    assert head[-1] == "Classification: other (accuracy)"
    assert not any("third" in column for column in head)
    tables = house.page(house.folder / "a", house.folder / "c")
    assert list(tables) == ["Classification: other", "Classification: third"]


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


def test_figure_4_mixes_no_two_pre_trainings(house):
    runs = []
    for name, accuracy in (("bert", 0.5), ("other", 0.6)):
        start = house.pretraining(name, 9.0)
        for step in (10, 20):
            checkpoint = step_folder(start / "checkpoints", step)
            accuracy += 0.01
            runs.append(house.finetuning(f"{name}_{step}", checkpoint, {"accuracy": accuracy}))
    name = "masked LM and next sentence (BERT)"
    assert house.page(*runs)["Training steps (figure 4)"][1:] == [
        [f"{name}: bert", "10", "51.0"],
        [f"{name}: bert", "20", "52.0"],
        [f"{name}: other", "10", "61.0"],
        [f"{name}: other", "20", "62.0"],
    ]


@pytest.fixture
def tag(house):
    """Makes a finished tagging run, with the activations that it reads."""
    (house.folder / "tags").mkdir()

    def tag(name, start, f1, features=None, *settings):
        loaded = house._config(
            "task: token_classification\n"
            "data: {path: tags, format: conll, train: a, dev: b}\n"
            f"model: {{features: {features or 'null'}}}\n"
            "train: {epochs: 1, max_length: 16}\n",
            [f"init.checkpoint={start}", *settings],
        )
        run = RunFolder.start(house.folder / name, loaded)
        # Which kind of model it holds is nothing that the report asks.
        conversion.save(SequenceClassifier(house.encoder()), step_folder(run.checkpoints, 1))
        run.write_metrics({"f1": f1})
        return run.path

    return tag


def test_features_are_compared_as_in_table_7(house, tag):
    published = house.folder / "published"
    conversion.save(house.encoder(), published)
    runs = [
        tag("tuned", published, 0.5, None, "train.seed=[1,2,3]"),
        tag("last", published, 0.4, "last"),
        tag("concat_last_four", published, 0.45, "concat_last_four"),
    ]
    (runs[0] / "summary.tsv").write_text("runs\tf1\tf1_std\n3\t0.5\t0.02\n")
    tables = house.page(*runs)
    assert list(tables) == ["Token classification: tags", "Feature-based approach (table 7)"]
    head, *rows = tables["Feature-based approach (table 7)"]
    assert head == ["what is read", "Token classification: tags (f1)", "seeds"]
    assert ["paper: second to last", "95.6", "5"] in rows
    assert [row for row in rows if not row[0].startswith("paper")] == [
        ["fine-tuned, all layers", "50.0 ± 2.0", "3"],
        ["last", "40.0", "1"],
        ["concat last four", "45.0", "1"],
    ]
    assert "ours started from published." in house.text()


def test_table_7_leaves_no_run_out_and_mixes_no_checkpoints(house, tag):
    starts = [house.folder / name for name in ("one", "two")]
    for start in starts:
        conversion.save(house.encoder(), start)
    one, two = starts
    tables = house.page(
        tag("first", one, 0.4, "last"),
        tag("second", one, 0.45, "last"),
        tag("other", two, 0.5, "last"),
    )
    assert [row[0] for row in tables["Token classification: tags"][1:]] == ["first"]
    sections = house.text().split("## Feature-based approach (table 7)")[1:]
    for section, start, f1 in zip(sections, ("one", "two"), ("45.0", "50.0"), strict=True):
        assert f"| last | {f1} | 1 |" in section
        assert f"ours started from {start}." in section


def test_what_reads_features_is_no_row_of_table_5(house, tag):
    bert = house.pretraining("bert", 9.0)
    left = house.pretraining("left", 30.0, next_sentence=False)
    tables = house.page(
        tag("tuned", bert, 0.5), tag("read", bert, 0.3, "last"), tag("other", left, 0.4)
    )
    assert ours(tables["Pre-training tasks (table 5)"]) == [
        ["masked LM and next sentence (BERT)", "50.0"],
        ["no next sentence", "40.0"],
    ]
