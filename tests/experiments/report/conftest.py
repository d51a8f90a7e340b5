"""Makes finished runs without training them, and reads the tables that a report has of them."""

import shutil

import pytest

from bert_tf import TextClassifier
from bert_tf.checkpoints import conversion
from bert_tf.checkpoints.of_run import step_folder
from bert_tf.config.reading import load_config
from bert_tf.encoder.ablations import encoder_for
from bert_tf.encoder.config import EncoderConfig
from bert_tf.experiments.report import report
from bert_tf.models.pretrainer import PreTrainer
from bert_tf.runs.run_folder import RunFolder
from bert_tf.training.tensorboard import Scalars
from tests import tiny

SST2 = "{path: SST-2, format: sst2}"


class House:
    """Makes finished runs in a folder."""

    def __init__(self, folder, saved):
        self.folder, self.saved = folder, saved
        tiny.write_vocabulary(folder)

    def config(self, data, task="classification", train="epochs: 1", model="", settings=()):
        path = self.folder / "config.yaml"
        path.write_text(
            f"task: {task}\ndata: {data}\ntokenizer: {{vocab: vocab.txt}}\n"
            f"model: {model or '{preset: bert-tiny-uncased}'}\n"
            f"train: {{batch_size: 8, max_length: 16, {train}}}\n"
        )
        return load_config(path, settings)

    def encoder(self, layers=2, width=8, **changes):
        heads = {"num_attention_heads": 2, "max_position_embeddings": 32}
        sizes = heads | {"num_hidden_layers": layers, "hidden_size": width} | changes
        return encoder_for(
            EncoderConfig(vocab_size=len(tiny.VOCABULARY), intermediate_size=4 * width, **sizes)
        )

    def run(self, name, loaded, metrics, dev=None, head=TextClassifier, steps=(1,), **encoder):
        """A run; `dev` is the curves of its evaluations. Models of equal sizes have equal weights.

        The report does not ask which kind of model a run has.
        """
        run = RunFolder.start(self.folder / name, loaded)
        saved = self.saved / f"{head.__name__}{sorted(encoder.items())}"
        if not saved.exists():
            model = self.encoder(**encoder)
            model = head(model) if head is PreTrainer else head(model, None, range(2))
            conversion.save(model, saved)
        for step in steps:
            shutil.copytree(saved, step_folder(run.checkpoints, step))
        if dev:
            self.log(run, *dev)
        run.write_metrics(metrics)
        return run.path

    def pretraining(self, name, perplexity, next_sentence=True, train="steps: 20", **encoder):
        data = (
            "{path: corpus.txt, format: sentence_per_line, next_sentence: "
            f"{str(next_sentence).lower()}}}"
        )
        loaded = self.config(data, "pretraining", train)
        metrics = {"masked_lm_accuracy": 0.2, "perplexity": perplexity}
        return self.run(name, loaded, metrics, head=PreTrainer, steps=(10, 20), **encoder)

    def finetuning(self, name, start, metrics, data=SST2, **encoder):
        settings = [] if start is None else ["model.preset=null", f"init.checkpoint={start}"]
        return self.run(name, self.config(data, settings=settings), metrics, **encoder)

    def tagging(self, name, start, f1, features=None, *settings):
        (self.folder / "tags").mkdir(exist_ok=True)
        data = "{path: tags, format: conll, train: a, dev: b}"
        model = f"{{features: {features or 'null'}}}"
        settings = [f"init.checkpoint={start}", *settings]
        loaded = self.config(data, "token_classification", model=model, settings=settings)
        return self.run(name, loaded, {"f1": f1})

    def published(self, name, **encoder):
        conversion.save(self.encoder(**encoder), self.folder / name)
        return self.folder / name

    def page(self, *runs, stand_ins=None):
        """Heading -> the cells of its table, from the Markdown."""
        report(runs, self.folder / "page.md", stand_ins)
        tables = {}
        for part in self.text().split("\n## ")[1:]:
            heading, *lines = part.splitlines()
            rows = [line for line in lines if line.startswith("|") and "---" not in line]
            tables[heading] = [[c.strip(" *") for c in row.split("|")[1:-1]] for row in rows]
        return tables

    def table(self, *runs, stand_ins=None):
        """The rows of the only table below its headings."""
        (table,) = self.page(*runs, stand_ins=stand_ins).values()
        return table[1:]

    @staticmethod
    def log(run, *points):
        """Logs the metrics of evaluations for TensorBoard, one point for each step."""
        scalars = Scalars(run.logs / "dev")
        for step, metrics in enumerate(points, 1):
            scalars.write(step, metrics)
        scalars.close()

    @staticmethod
    def ours(table):
        """The first cell of each row that is not the paper's, and the other cells with text."""
        rows = (row for row in table[1:] if not row[0].startswith("paper"))
        return [[row[0], *filter(None, row[1:])] for row in rows]

    def text(self):
        """The page that `page` has written."""
        return (self.folder / "page.md").read_text()


@pytest.fixture(scope="session")
def make_house(tmp_path_factory):
    """Makes a `House` for a folder; all of them share their saved models."""
    saved = tmp_path_factory.mktemp("saved")
    return lambda folder: House(folder, saved)


@pytest.fixture
def house(make_house, tmp_path):
    return make_house(tmp_path)
