"""Makes finished runs that differ in one thing, and reads the tables that a report has of them."""

import shutil

import pytest

from bert_tf import TextClassifier
from bert_tf.checkpoints import conversion
from bert_tf.checkpoints.of_run import step_folder
from bert_tf.config.reading import load_config
from bert_tf.encoder.ablations import encoder_for
from bert_tf.encoder.config import EncoderConfig
from bert_tf.models.pretrainer import PreTrainer
from bert_tf.programs.report import report
from bert_tf.runs.run_folder import RunFolder
from tests import tiny

HEADS = {"num_attention_heads": 2, "max_position_embeddings": 32}


class House:
    """Makes finished runs without training them."""

    def __init__(self, folder, saved):
        self.folder, self.saved = folder, saved
        tiny.write_vocabulary(folder)

    def config(self, text, settings=()):
        path = self.folder / "config.yaml"
        path.write_text(text + "tokenizer: {vocab: vocab.txt}\n")
        return load_config(path, settings)

    def encoder(self, layers=2, width=8, **changes):
        sizes = HEADS | {"num_hidden_layers": layers, "hidden_size": width} | changes
        return encoder_for(
            EncoderConfig(vocab_size=len(tiny.VOCABULARY), intermediate_size=4 * width, **sizes)
        )

    def save(self, head, path, **encoder):
        """Saves a model of these sizes; all such models have the same weights."""
        saved = self.saved / f"{head.__name__}{sorted(encoder.items())}"
        if not saved.exists():
            model = self.encoder(**encoder)
            model = head(model) if head is PreTrainer else head(model, None, range(2))
            conversion.save(model, saved)
        shutil.copytree(saved, path)

    def pretraining(self, name, perplexity, next_sentence=True, length="steps: 20", **encoder):
        loaded = self.config(
            "task: pretraining\n"
            "data: {path: corpus.txt, format: sentence_per_line, next_sentence: "
            f"{str(next_sentence).lower()}}}\n"
            f"model: {{preset: bert-tiny-uncased}}\ntrain: {{{length}, max_length: 16}}\n"
        )
        run = RunFolder.start(self.folder / name, loaded)
        for step in (10, 20):
            self.save(PreTrainer, step_folder(run.checkpoints, step), **encoder)
        run.write_metrics({"masked_lm_accuracy": 0.2, "perplexity": perplexity})
        return run.path

    def finetuning(self, name, start, metrics, data="{path: SST-2, format: sst2}", **encoder):
        loaded = self.config(
            f"task: classification\ndata: {data}\nmodel: {{preset: bert-tiny-uncased}}\n"
            "train: {epochs: 1, max_length: 16}\n",
            [] if start is None else ["model.preset=null", f"init.checkpoint={start}"],
        )
        run = RunFolder.start(self.folder / name, loaded)
        self.save(TextClassifier, step_folder(run.checkpoints, 1), **encoder)
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

    @staticmethod
    def ours(table):
        """Of the rows that are not the paper's: the first cell, and what stands in the others."""
        rows = (row for row in table[1:] if not row[0].startswith("paper"))
        return [[row[0], *filter(None, row[1:])] for row in rows]

    def text(self):
        """The page that `page` has written."""
        return (self.folder / "page.md").read_text()


@pytest.fixture(scope="session")
def saved(tmp_path_factory):
    """A folder of saved models."""
    return tmp_path_factory.mktemp("saved")


@pytest.fixture
def house(tmp_path, saved):
    return House(tmp_path, saved)


@pytest.fixture
def tag(house):
    """Makes a finished tagging run, with the activations that it reads."""
    (house.folder / "tags").mkdir()

    def tag(name, start, f1, features=None, *settings):
        loaded = house.config(
            "task: token_classification\n"
            "data: {path: tags, format: conll, train: a, dev: b}\n"
            f"model: {{features: {features or 'null'}}}\n"
            "train: {epochs: 1, max_length: 16}\n",
            [f"init.checkpoint={start}", *settings],
        )
        run = RunFolder.start(house.folder / name, loaded)
        # Which kind of model it holds is nothing that the report asks.
        house.save(TextClassifier, step_folder(run.checkpoints, 1))
        run.write_metrics({"f1": f1})
        return run.path

    return tag
