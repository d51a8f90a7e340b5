"""Runs from YAML that learn from a teacher."""

import json

import keras
import numpy as np
import pytest

import bert_tf
from bert_tf import runs
from bert_tf.checkpoints import tensors
from bert_tf.checkpoints.names import weight_names
from bert_tf.config.reading import load_config
from bert_tf.errors import UserError
from bert_tf.runs import setup
from bert_tf.runs.finetuning import _Data
from bert_tf.runs.run_folder import RunFolder
from bert_tf.runs.scoring import evaluate
from bert_tf.training.checkpointing import OPTIMIZER_FILE
from bert_tf.training.loop import AfterUpdate
from tests.interpret.tiny_runs import make_run

SIZES = "hidden_size: 16, num_hidden_layers: 2, num_attention_heads: 2"
VOCABULARY = "tokenizer: {vocab: vocab.txt}\n"


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with the run of a teacher of two layers in `teacher`, and its data."""
    folder = tmp_path_factory.mktemp("distillation")
    sizes = {"hidden_size": 16, "num_hidden_layers": 2, "initializer_range": 0.1}
    sizes["hidden_dropout_prob"] = 0.0
    make_run(folder, "classification", **sizes).rename(folder / "teacher")
    (folder / "more.tsv").write_text(
        "text\n" + "the cat swam\nfish under the tree\nbird\ndog dog\n" * 4
    )
    return folder


def configured(
    folder, name="student", model="num_hidden_layers: 1", distillation="", train="", more=""
):
    path = folder / f"{name}.yaml"
    path.write_text(
        "task: classification\ndata: {path: ., format: tsv}\n"
        f"model: {{{model}}}\n"
        f"distillation: {{teacher: teacher{distillation}}}\n"
        f"train: {{epochs: 2, batch_size: 8, max_length: 24, learning_rate: 0.003{train}}}\n{more}"
    )
    return path


def trained(folder, **options):
    path = configured(folder, **options)
    metrics = runs.finetune(load_config(path), path.with_suffix(""))
    return path.with_suffix(""), metrics


@pytest.fixture(scope="module")
def student(place):
    """The folder of a run with a teacher, and its metrics."""
    return trained(place, distillation=", hidden: 1.0, temperature: 3.0")


def test_a_run_distils_its_teacher_and_is_used_as_any_other(place, student):
    folder, metrics = student
    assert {"accuracy", "f1", "loss"} <= set(metrics)
    assert json.loads((folder / "metrics.json").read_text()) == metrics
    assert (folder / "predictions" / "dev.tsv").is_file()
    assert (folder / "predictions" / "test.tsv").is_file()
    assert bert_tf.load(folder).encoder.config.num_hidden_layers == 1
    assert evaluate(folder) == pytest.approx(metrics)
    written = load_config(folder / "config.yaml")
    assert written.distillation.teacher == str(place / "teacher")
    assert written.distillation.temperature == 3.0
    assert load_config(configured(place, "default")).distillation.temperature == 2.0


def test_the_task_may_be_that_of_the_teacher(place, tmp_path):
    path = configured(place, "named")
    path.write_text(path.read_text().replace("task: classification", "task: distillation"))
    config = load_config(path)
    assert config.task == "classification"
    assert config == load_config(configured(place, "named"))


def test_a_task_of_no_teacher_is_refused(place, tmp_path):
    path = tmp_path / "student.yaml"
    path.write_text("task: distillation\ndata: {path: .}\n")
    with pytest.raises(UserError, match=r"yaml:1: task distillation .* set distillation\.teacher"):
        load_config(path)
    bare = tmp_path / "bare"
    bert_tf.load(place / "teacher").encoder.save(f"{bare}.keras")
    path.write_text("task: distillation\ndistillation:\n  teacher: bare.keras\n")
    with pytest.raises(UserError, match=r"yaml:3: .*bare\.keras was not fine-tuned for a task"):
        load_config(path)


def test_the_same_in_python_ends_with_the_same_weights(place, student):
    folder, _ = student
    teacher = bert_tf.load(place / "teacher")
    keras.utils.set_random_seed(0)
    student = teacher.student(1)
    rows = [line.split("\t") for line in (place / "train.tsv").read_text().splitlines()[1:]]
    texts, labels = zip(*rows, strict=True)
    student.fit(
        list(texts),
        list(labels),
        teacher=teacher,
        distillation={"hidden": 1.0, "temperature": 3.0},
        epochs=2,
        batch_size=8,
        learning_rate=3e-3,
        verbose=0,
        seed=0,
    )
    ours, theirs = weight_names(bert_tf.load(folder)), weight_names(student)
    for name, weight in theirs.items():
        np.testing.assert_allclose(ours[name], weight, atol=1e-6, err_msg=name)


@pytest.mark.slow
def test_an_interrupted_run_goes_on_to_the_same_end(place, monkeypatch):
    options = {
        # Of half the width, so that there are projections.
        "model": SIZES.replace("16", "8"),
        "distillation": ", hidden: 1.0",
        "train": ", checkpoint_steps: 5",
        "more": VOCABULARY,
    }
    whole, _ = trained(place, name="whole", **options)
    config = load_config(configured(place, name="cut", **options))
    after = AfterUpdate.on_train_batch_end

    def dies(self, batch, logs=None):
        after(self, batch, logs)
        if self.step == 7:
            raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(AfterUpdate, "on_train_batch_end", dies)
        with pytest.raises(KeyboardInterrupt):
            runs.finetune(config, place / "cut")
    step = place / "cut" / "checkpoints" / "step-00000005"
    saved = tensors.load(step / OPTIMIZER_FILE)
    assert "teaching/hidden_projection" in saved
    assert "optimizer/momentum/teaching/hidden_projection" in saved
    runs.finetune(config, place / "cut")
    ours, theirs = (weight_names(bert_tf.load(each)) for each in (place / "cut", whole))
    assert all(np.array_equal(ours[name].numpy(), theirs[name].numpy()) for name in theirs)
    # With another teacher, the run does not resume.
    teacher = bert_tf.load(place / "teacher")
    teacher.classifier.bias.assign([9.0, -9.0])
    for number, path in enumerate(sorted((place / "cut" / "checkpoints").glob("step-*"))):
        if number:
            [each.unlink() for each in path.iterdir()]
            path.rmdir()
    (place / "cut" / "metrics.json").unlink()
    teacher.save_checkpoint(place / "other")
    monkeypatch.setattr(
        "bert_tf.runs.finetuning.load_model", lambda *_, **__: bert_tf.load(place / "other")
    )
    with pytest.raises(UserError, match="the weights of the teacher differ from those at step"):
        runs.finetune(config, place / "cut")


@pytest.mark.slow
def test_rows_without_labels_are_learned_from_the_teacher(place):
    folder, metrics = trained(
        place, name="more_rows", distillation=", unlabelled: more.tsv, attention: 0.1"
    )
    assert metrics["accuracy"] >= 0
    # 32 rows and 16 of the other file make 6 batches of 8.
    steps = sorted(each.name for each in (folder / "checkpoints").iterdir() if each.is_dir())
    assert steps[-1] == f"step-{2 * 6:08d}"


def test_the_loss_of_labels_does_not_see_rows_without_labels(place):
    config = load_config(configured(place, name="seen", distillation=", unlabelled: [more.tsv]"))
    run = RunFolder.start(place / "seen", config)
    data = _Data(run)
    task = data.task_of(config)
    model = task.model(setup.make_encoder(run, data.tokenizer), data.tokenizer)
    examples, _ = data.examples(model)
    assert examples.weights.tolist() == [1.0] * 32 + [0.0] * 16


def test_layers_and_tags_are_chosen_in_yaml(place):
    config = load_config(configured(place, name="chosen", distillation=", layers: [0]"))
    run = RunFolder.start(place / "chosen", config)
    weights, _ = run.initial.weights()
    teacher = weight_names(bert_tf.load(place / "teacher"))
    name = "encoder/layer_0/output/kernel"
    np.testing.assert_array_equal(weights[name], teacher[name])


@pytest.mark.slow
def test_a_search_has_one_teacher(place):
    folder, metrics = trained(place, name="search", train=", seed: [0, 1]")
    assert "accuracy" in metrics
    assert json.loads((folder / "sources.json").read_text())["teacher"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"distillation": ", tempature: 3.0"}, "the nearest valid key is distillation.temperature"),
        ({"distillation": ", soft: 0"}, "nothing is learned from the teacher"),
        (
            {"distillation": ", layers: first", "model": SIZES, "more": VOCABULARY},
            "distillation.layers is for a student that starts from its teacher",
        ),
        ({"model": "num_hidden_layers: 3"}, "a student with 3 layers cannot be made from a te"),
    ],
)
def test_mistakes_are_one_sentence(place, tmp_path_factory, options, message):
    path = configured(place, name="wrong", **options)
    with pytest.raises(UserError, match=message):
        runs.finetune(load_config(path), tmp_path_factory.mktemp("wrong") / "run")


def test_teachers_of_other_tasks_or_labels_are_refused(place, tmp_path):
    path = configured(place, name="other_task")
    path.write_text(path.read_text().replace("task: classification", "task: regression"))
    (tmp_path / "train.tsv").write_text("text\tlabel\n" + "cat\t1\ndog\t2\n" * 8)
    (tmp_path / "dev.tsv").write_text("text\tlabel\ncat\t1\n")
    path.write_text(path.read_text().replace("path: .,", f"path: {tmp_path},"))
    with pytest.raises(UserError, match="the teacher of a TextRegressor must also be a TextRegres"):
        runs.finetune(load_config(path), tmp_path / "run")
    path.write_text(path.read_text().replace("task: regression", "task: classification"))
    with pytest.raises(UserError, match="labels 1, 2, but the teacher has bad, good"):
        runs.finetune(load_config(path), tmp_path / "run2")
    path.write_text(path.read_text().replace("teacher: teacher", "teacher: nowhere"))
    with pytest.raises(UserError, match="nowhere"):
        load_config(path)
        runs.finetune(load_config(path), tmp_path / "run3")
