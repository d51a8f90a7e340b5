"""A run from YAML, and the same in Python with the same seed, end with the same bits."""

import csv

import keras
import numpy as np
import pytest

import bert_tf
from bert_tf import runs
from bert_tf.checkpoints import conversion
from bert_tf.checkpoints.names import weight_names
from bert_tf.config.reading import load_config
from bert_tf.encoder.encoder import Encoder
from bert_tf.models.pretrainer import PreTrainer
from bert_tf.tasks.question_answering.squad import read_squad
from bert_tf.tasks.token_classification.conll import read_conll
from tests import tiny, tiny_questions, tiny_tags

SEED, EPOCHS, BATCH, RATE = 7, 2, 8, 3e-3
TRAIN = (
    f"train: {{epochs: {EPOCHS}, batch_size: {BATCH}, max_length: 24, learning_rate: {RATE}, "
    f"seed: {SEED}, checkpoint_steps: 1000}}\n"
)


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    """A pre-trained model, with dropout."""
    keras.utils.set_random_seed(1)
    folder = tmp_path_factory.mktemp("pretrained") / "checkpoint"
    config = tiny.encoder_config(16, num_hidden_layers=1, initializer_range=0.1)
    model = PreTrainer(Encoder(config))
    conversion.save(model, folder, "huggingface", tiny.tokenizer())
    return folder


def run(folder, checkpoint, task, data):
    """Weights and metrics of a run from YAML."""
    path = folder / "run.yaml"
    init = f"init: {{checkpoint: {checkpoint}}}\n"
    path.write_text(f"task: {task}\ndata: {{path: ., {data}}}\n{init}{TRAIN}")
    metrics = runs.finetune(load_config(path), folder / "run")
    return bert_tf.load(folder / "run"), metrics


def trained(cls, checkpoint, *data, **settings):
    """The same in Python."""
    keras.utils.set_random_seed(SEED)
    model = cls.from_checkpoint(checkpoint, max_length=24, **settings)
    model.fit(*data, epochs=EPOCHS, batch_size=BATCH, learning_rate=RATE, verbose=0)
    return model


def check_same(ours, theirs):
    ours, theirs = weight_names(ours), weight_names(theirs)
    assert ours.keys() == theirs.keys()
    for name, weight in ours.items():
        assert np.array_equal(weight.numpy(), theirs[name].numpy()), name


def read(path):
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    return [row["text"] for row in rows], [row["label"] for row in rows]


@pytest.mark.end_to_end
def test_classification(checkpoint, tmp_path):
    tiny.write_labelled(tmp_path)
    of_run, metrics = run(tmp_path, checkpoint, "classification", "format: tsv")
    model = trained(bert_tf.TextClassifier, checkpoint, *read(tmp_path / "train.tsv"))

    check_same(model, of_run)
    assert model.settings == of_run.settings
    assert model.evaluate(*read(tmp_path / "dev.tsv")) == metrics
    assert runs.evaluate(tmp_path / "run") == metrics


@pytest.mark.slow
def test_questions(checkpoint, tmp_path):
    tiny_questions.write_finetuning(tmp_path, unanswerable=True)
    settings = {"stride": 8, "max_question_length": 4, "n_best": 5, "max_answer_length": 4}
    data = ", ".join(f"{name}: {value}" for name, value in settings.items())
    of_run, metrics = run(
        tmp_path, checkpoint, "question_answering", f"format: squad, unanswerable: true, {data}"
    )

    def rows(name):
        return [
            {
                "question": each.question,
                "context": each.context,
                "answers": [{"text": text, "start": start} for text, start in each.answers],
            }
            for each in read_squad(tmp_path / f"{name}-v2.0.json")
        ]

    model = trained(bert_tf.QuestionAnswerer, checkpoint, rows("train"), **settings)

    check_same(model, of_run)
    assert model.evaluate(rows("dev")) == metrics
    assert runs.evaluate(tmp_path / "run") == metrics
    # What the run found on its dev data decides the answers from then on.
    assert of_run.null_threshold == metrics["null_threshold"]


@pytest.mark.slow
def test_tags(checkpoint, tmp_path):
    tiny_tags.write_tagged(tmp_path)
    of_run, metrics = run(tmp_path, checkpoint, "token_classification", "format: conll")

    def columns(name):
        sentences = read_conll(tmp_path / f"{name}.conll")
        return [each.words for each in sentences], [each.tags for each in sentences]

    model = trained(bert_tf.TokenClassifier, checkpoint, *columns("train"))

    check_same(model, of_run)
    assert model.evaluate(*columns("dev")) == metrics
    assert runs.evaluate(tmp_path / "run") == metrics
