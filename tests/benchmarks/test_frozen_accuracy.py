"""Exports answer the dev data of their runs, as strings, and are scored as the runs were."""

import concurrent.futures
import random
from concurrent.futures import ThreadPoolExecutor

import keras
import numpy as np
import pytest

from benchmarks import frozen_accuracy
from benchmarks.frozen_accuracy import ASKED
from bert_tf import MultipleChoice
from bert_tf.checkpoints import conversion
from bert_tf.checkpoints.of_run import step_folder
from bert_tf.config.reading import load_config
from bert_tf.data.targets import Label, Number
from bert_tf.encoder.encoder import Encoder
from bert_tf.errors import UserError
from bert_tf.runs import setup
from bert_tf.runs.run_folder import RunFolder
from bert_tf.tasks import registry
from tests import tiny, tiny_questions, tiny_tags
from tests.interpret import tiny_runs
from tests.tasks.tiny_tasks import model_of
from tests.tasks.tiny_texts import pairs, write_config, write_lines


def write_stsb(folder):
    for split in ("train", "dev"):
        lines = (f"{i}\t{a}\t{b}\t{i % 5}.0" for i, (a, b, _) in enumerate(pairs(20)))
        write_lines(folder / f"{split}.tsv", ["index\tsentence1\tsentence2\tscore", *lines])
    return write_config(folder, "regression", "path: ., format: stsb", epochs=1)


def write_swag(folder):
    source = random.Random(0)
    header = ",video-id,fold-ind,startphrase,sent1,sent2,gold-source"
    lines = [f"{header},ending0,ending1,ending2,ending3,label"]
    for i in range(20):
        endings = ",".join(tiny.sentence(source, 3) for _ in range(4))
        lines.append(f"{i},v,1,s,{tiny.sentence(source, 3)},the cat,gold,{endings},{i % 4}")
    for file in ("train", "val"):
        write_lines(folder / f"{file}.csv", lines)
    return write_config(folder, "multiple_choice", "path: ., format: swag", epochs=1)


WRITERS = {
    "texts": tiny.write_finetuning,
    "STS-B": write_stsb,
    "SWAG": write_swag,
    "tags": tiny_tags.write_tagging,
    "SQuAD 1.1": tiny_questions.write_finetuning,
    "SQuAD 2.0": tiny_runs.unanswerable,
}


def gold_tags(dev):
    """Tags as an export returns them, bytes [texts, longest]; padding is a tag too, for np.roll."""
    tags = dev.targets
    longest = max(map(len, tags))
    rows = [[*each, *["O"] * (longest - len(each))] for each in tags]
    return np.array([[tag.encode() for tag in row] for row in rows], object)


def gold_answers(dev):
    return np.array([(answers[0].text if answers else "").encode() for answers in dev.targets])


TEXTS = ("bad", "good")


@pytest.mark.parametrize(
    ("name", "labels", "asked", "gold", "best"),
    [
        ("texts", TEXTS, {"text"}, lambda dev: np.eye(2)[Label(TEXTS).numbers(dev)], 1.0),
        ("STS-B", (), {"text_a", "text_b"}, lambda dev: Number().numbers(dev), 1.0),
        ("SWAG", (), {"context", "choices"}, lambda dev: np.eye(4)[dev.targets], 1.0),
        ("tags", tiny_tags.LABELS, {"words"}, gold_tags, 1.0),
        ("SQuAD 1.1", (), {"question", "context"}, gold_answers, 100.0),
        ("SQuAD 2.0", (), {"question", "context"}, gold_answers, 100.0),
    ],
)
def test_right_answers_have_the_best_score_and_wrong_ones_have_not(
    tmp_path, name, labels, asked, gold, best
):
    loaded = load_config(WRITERS[name](tmp_path))
    task = registry.family(loaded.task).task_class()(loaded, labels)
    model = model_of(task)
    (file,) = task.files("dev").values()
    dev = task.read(file)
    inputs = ASKED[loaded.task].inputs(task, file, dev)
    outputs = gold(dev)
    lengths = {key: len(values) for key, values in inputs.items()}
    assert lengths == dict.fromkeys(asked, len(outputs))

    def score(outputs):
        batches = [outputs[:4], outputs[4:]]
        return ASKED[loaded.task].score(task, model, dev, batches)[task.best_metric]

    assert score(outputs) == pytest.approx(best)
    assert score(np.roll(outputs, 1, axis=0)) < best


def finished(folder, path):
    """A run with random weights, which was evaluated as runs are."""
    keras.utils.set_random_seed(0)
    loaded = load_config(path)
    run = RunFolder.start(folder / "run", loaded)
    tokenizer = setup.make_tokenizer(run)
    task = registry.family(loaded.task).task_class()(loaded)
    task.training_rows()
    model = task.model(setup.make_encoder(run, tokenizer), tokenizer)
    conversion.save(model, step_folder(run.checkpoints, 1))
    (file,) = task.files("dev").values()
    dev = task.read(file)
    run.write_metrics(task.score(model, model.infer(dev), dev))
    return run.path


@pytest.mark.slow
@pytest.mark.parametrize("name", WRITERS)
def test_an_export_scores_as_its_run(tmp_path, monkeypatch, name):
    in_a_thread = lambda *args, **options: ThreadPoolExecutor(1)  # noqa: E731
    monkeypatch.setattr(concurrent.futures, "ProcessPoolExecutor", in_a_thread)
    monkeypatch.setattr(frozen_accuracy, "EXPORTS", {"float32": {}})
    run = finished(tmp_path, WRITERS[name](tmp_path))
    called, _, rows, evaluated, exported = frozen_accuracy._compare(run)
    assert called == "run" and int(rows) > 5 and float(evaluated) != 0.0
    assert exported == evaluated


def test_what_was_not_fine_tuned_or_not_finished_is_refused(tmp_path):
    pretraining = load_config(tiny.write_pretraining(tmp_path))
    run = RunFolder.start(tmp_path / "pretraining", pretraining)
    with pytest.raises(UserError, match="is a pretraining run; name a fine-tuned one"):
        frozen_accuracy._compare(run.path)
    run = RunFolder.start(tmp_path / "run", load_config(write_swag(tmp_path)))
    model = MultipleChoice(Encoder(tiny.encoder_config()), None)
    conversion.save(model, step_folder(run.checkpoints, 1))
    with pytest.raises(UserError, match="has no metrics.json yet"):
        frozen_accuracy._compare(run.path)
