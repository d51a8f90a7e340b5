"""Classification of GLUE's and one's own texts: what is scored and written, and what is refused."""

from pathlib import Path

import keras
import numpy as np
import pytest

from bert_tf import runs
from bert_tf.config.reading import load_config
from bert_tf.errors import UserError
from bert_tf.tasks.classification.run import Classification
from tests.tasks.tiny_tasks import examples_of, model_of
from tests.tasks.tiny_texts import pairs, write_config, write_lines, write_mnli


def task_of(path, settings=(), labels=None) -> Classification:
    return Classification(load_config(path, settings), labels)


@pytest.fixture(scope="module")
def mnli(tmp_path_factory):
    """The folder of a run on MNLI in small, and its metrics."""
    folder = tmp_path_factory.mktemp("mnli")
    write_mnli(folder / "MNLI")
    path = write_config(folder, "classification", "path: MNLI, format: mnli")
    config = load_config(path, ["model.num_hidden_layers=1"])
    return folder, runs.finetune(config, folder / "run")


@pytest.mark.slow
def test_mnli_is_scored_on_both_dev_files_by_its_metric(mnli):
    _, metrics = mnli
    assert list(metrics) == ["accuracy", "loss", "accuracy_mismatched", "loss_mismatched"]
    assert metrics["accuracy"] > 0.8


@pytest.mark.slow
def test_the_labelled_diagnostic_set_is_scored_by_its_own_metric(mnli):
    folder, _ = mnli
    metrics = runs.evaluate(folder / "run", folder / "MNLI" / "diagnostic-full.tsv")
    assert list(metrics) == ["mcc", "accuracy", "loss"]


@pytest.mark.end_to_end
def test_predictions_for_test_files_have_the_names_and_words_of_the_server(mnli):
    folder, _ = mnli
    written = folder / "run" / "predictions"
    rows = {"MNLI-m": 3, "MNLI-mm": 2, "AX": 4}
    for name, count in rows.items():
        header, *lines = (written / f"{name}.tsv").read_text().splitlines()
        assert header == "index\tprediction"
        assert [line.split("\t")[0] for line in lines] == [str(i) for i in range(count)]
        words = {line.split("\t")[1] for line in lines}
        assert words <= {"contradiction", "entailment", "neutral"}
    others = {path.stem for path in written.glob("*.tsv")} - rows.keys()
    assert others <= {"dev", "dev_mismatched", "diagnostic-full"}


def test_dev_predictions_are_the_labels(mnli):
    folder, metrics = mnli
    lines = (folder / "MNLI" / "dev_matched.tsv").read_text().splitlines()[1:]
    gold = [line.split("\t")[-1] for line in lines]
    written = (folder / "run" / "predictions" / "dev.tsv").read_text().splitlines()[1:]
    right = [line.split("\t")[1] == label for line, label in zip(written, gold, strict=True)]
    assert np.mean(right) == metrics["accuracy"]


@pytest.mark.parametrize(
    ("task", "best", "metrics"),
    [
        ("cola", "mcc", {"mcc", "loss"}),
        ("mrpc", "f1", {"f1", "accuracy", "loss"}),
        ("qqp", "f1", {"f1", "accuracy", "loss"}),
        ("sst2", "accuracy", {"accuracy", "loss"}),
        ("wnli", "accuracy", {"accuracy", "loss"}),
    ],
)
def test_each_task_of_glue_has_its_metrics(tmp_path, task, best, metrics):
    files = {
        "cola": (None, "s\t1\t\tcat", "s\t0\t*\tdog"),
        "mrpc": ("Quality\t#1 ID\t#2 ID\t#1 String\t#2 String", "1\t1\t2\ta\ta", "0\t3\t4\ta\tcat"),
        "qqp": ("id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate",)
        + ("1\t1\t2\ta\ta\t1", "2\t3\t4\ta\tcat\t0"),
        "sst2": ("sentence\tlabel", "good\t1", "bad\t0"),
        "wnli": ("index\tsentence1\tsentence2\tlabel", "0\ta\tb\t1", "1\tc\td\t0"),
    }
    path = write_lines(tmp_path / "dev.tsv", filter(None, files[task]))
    of_task = task_of(
        write_config(tmp_path, "classification", f"path: ., format: {task}"), labels=("0", "1")
    )
    assert of_task.best_metric == best
    assert Classification.best_metric_of(of_task.config) == best
    data = of_task.read(path)
    right = np.array([[0.0, 9.0], [9.0, 0.0]], np.float32)
    model = model_of(of_task)
    found = of_task.score(model, right, data)
    assert found.keys() == metrics
    assert found[best] == 1.0
    assert of_task.score(model, right[::-1], data)[best] <= 0.0


def test_mrpcs_sources_are_microsofts_files_where_glues_are_not_there(tmp_path):
    path = write_config(tmp_path, "classification", "path: ., format: mrpc")
    task = task_of(path, labels=("0", "1"))
    originals = [tmp_path / "msr_paraphrase_train.txt", tmp_path / "dev_ids.tsv"]
    for each in originals:
        each.touch()
    assert task.sources("train") == task.sources("dev") == originals

    (tmp_path / "train.tsv").touch()
    assert task.sources("train") == [tmp_path / "train.tsv"]


def test_a_pair_of_columns_of_ones_own(tmp_path):
    lines = ["same,one,two", *(f"{same},{a},{b}" for a, b, same in pairs(6))]
    write_lines(tmp_path / "train.csv", lines)
    write_lines(tmp_path / "dev.csv", lines)
    columns = "text_columns: [one, two], label_column: same"
    path = write_config(tmp_path, "classification", f"path: ., format: csv, {columns}")
    task = task_of(path)
    examples = examples_of(task)
    assert task.labels == ("False", "True")
    assert examples.targets.tolist() == [0, 1, 0, 1, 0, 1]
    assert examples.take(np.array([0]))[0]["input_type_ids"].max() == 1
    # Labels are those of the whole file, however few rows are used.
    task = task_of(path, ["data.train_rows=1"])
    assert len(examples_of(task).lengths) == 1
    assert task.labels == ("False", "True")


def test_a_test_file_without_labels_is_predicted_and_not_scored(tmp_path):
    write_lines(tmp_path / "train.tsv", ["text\tlabel", "cat\tyes", "dog\tno"])
    write_lines(tmp_path / "test.tsv", ["text", "cat", "dog"])
    task = task_of(write_config(tmp_path, "classification", "path: ., format: tsv"))
    assert task.test_files() == {"": tmp_path / "test.tsv"}
    task.training_rows()
    data = task.read(tmp_path / "test.tsv")
    predictions = np.array([[0.0, 1.0], [1.0, 0.0]], np.float32)
    model = model_of(task)
    assert task.score(model, predictions, data) == {}
    task.write_predictions(model, predictions, data, tmp_path / "predictions", "test")
    written = (tmp_path / "predictions" / "test.tsv").read_text()
    assert written == "index\tprediction\n0\tyes\n1\tno\n"


def test_labels_that_are_all_minus_one_are_secret_unless_it_is_a_class(tmp_path):
    write_lines(tmp_path / "train.tsv", ["text\tlabel", "cat\t1", "dog\t0"])
    write_lines(tmp_path / "test.tsv", ["text\tlabel", "cat\t-1", "dog\t-1"])
    task = task_of(write_config(tmp_path, "classification", "path: ., format: tsv"))
    task.training_rows()
    assert task.read(tmp_path / "test.tsv").targets is None
    write_lines(tmp_path / "some.tsv", ["text\tlabel", "cat\t-1", "dog\t1"])
    with pytest.raises(UserError, match="some.tsv, line 2: label '-1' is unknown"):
        task.read(tmp_path / "some.tsv")
    write_lines(tmp_path / "train.tsv", ["text\tlabel", "cat\t1", "dog\t-1"])
    task.training_rows()
    assert task.target.numbers(task.read(tmp_path / "test.tsv")).tolist() == [0, 0]


def test_predictions_for_other_test_files_do_not_replace_those_to_submit(tmp_path):
    for folder in ("CoLA", "other"):
        write_lines(tmp_path / folder / "test.tsv", ["index\tsentence", f"0\t{folder}"])
    path = write_config(tmp_path, "classification", "path: CoLA, format: cola")
    task = task_of(path, labels=("0", "1"))
    zero, one = np.eye(2, dtype=np.float32)[:, None]

    def write(predictions, folder, name):
        data = task.read(tmp_path / folder / "test.tsv")
        task.write_predictions(model_of(task), predictions, data, tmp_path / "written", name)
        return {each.stem: each.read_text()[-2] for each in (tmp_path / "written").iterdir()}

    assert write(one, "CoLA", "test") == {"CoLA": "1"}
    assert write(zero, "other", "other_test") == {"CoLA": "1", "other_test": "0"}
    # Without a test file of its own, a run submits the predictions for another file.
    (tmp_path / "CoLA" / "test.tsv").unlink()
    assert write(zero, "other", "other_test")["CoLA"] == "0"


def test_the_diagnostic_set_as_it_is_shipped_is_submitted(tmp_path):
    path = write_lines(tmp_path / "AX.tsv", ["index\tsentence1\tsentence2", "0\ta\tb"])
    config = write_config(tmp_path, "classification", "path: MNLI, format: mnli")
    task = task_of(config, labels=("contradiction", "entailment", "neutral"))
    predictions = np.eye(3, dtype=np.float32)[[1]]
    task.write_predictions(
        model_of(task), predictions, task.read(path), tmp_path / "written", "other_AX"
    )
    (written,) = (tmp_path / "written").iterdir()
    assert (written.name, written.read_text().split()[2:]) == ("AX.tsv", ["0", "entailment"])


def test_a_test_file_of_glue_that_is_the_dev_file_has_predictions_as_both(tmp_path):
    header = "Quality\t#1 ID\t#2 ID\t#1 String\t#2 String"
    test = write_lines(tmp_path / "msr_paraphrase_test.txt", [header, "1\t1\t2\ta\ta"])
    names = "train: msr_paraphrase_train.txt, dev: msr_paraphrase_test.txt"
    path = write_config(tmp_path, "classification", f"path: ., format: mrpc, {names}")
    task = task_of(path, labels=("0", "1"))
    assert [*task.files("dev").values()] == [*task.test_files().values()] == [test]
    for name in ("dev", "test"):
        predictions = np.eye(2, dtype=np.float32)[[1]]
        task.write_predictions(
            model_of(task), predictions, task.read(test), tmp_path / "written", name
        )
    assert {each.name for each in (tmp_path / "written").iterdir()} == {"dev.tsv", "MRPC.tsv"}


def test_glue_from_tfds_is_submitted_in_the_servers_words(tmp_path):
    tfds = pytest.importorskip("tensorflow_datasets")
    path = write_config(tmp_path, "classification", "path: glue/cola, format: tfds")
    with tfds.testing.mock_data(num_examples=4):
        task = task_of(path)
        assert task.best_metric == "mcc"
        task.training_rows()
        assert task.labels == ("unacceptable", "acceptable")
        ((ending, split),) = task.test_files().items()
        data = task.read(split)
    predictions = np.eye(2, dtype=np.float32)[[1, 0, 0, 1]]
    task.write_predictions(model_of(task), predictions, data, tmp_path, f"test{ending}")
    assert (tmp_path / "CoLA.tsv").read_text().split()[2:] == "0 1 1 0 2 0 3 1".split()


def test_a_run_of_mnli_from_tfds_is_asked_the_diagnostic_set_of_tfds(tmp_path):
    tfds = pytest.importorskip("tensorflow_datasets")
    path = write_config(tmp_path, "classification", "path: glue/mnli, format: tfds")
    with tfds.testing.mock_data(num_examples=3):
        task = task_of(path)
        task.training_rows()
        data = task.read(Path("glue/ax/test"))
    predictions = np.eye(3, dtype=np.float32)
    task.write_predictions(model_of(task), predictions, data, tmp_path / "written", "other_test")
    words = "0 entailment 1 neutral 2 contradiction"
    assert (tmp_path / "written" / "AX.tsv").read_text().split()[2:] == words.split()


@pytest.mark.slow
def test_class_weights_make_a_rare_class_count_as_much_as_a_frequent_one(tmp_path):
    write_lines(tmp_path / "train.tsv", ["text\tlabel", *["a cat\tmany"] * 6, *["dog\tfew"] * 2])
    data = "path: ., format: tsv, class_weights: {few: 3}"
    path = write_config(tmp_path, "classification", data)
    for setting in ("data.class_weights={few: 3}", "data.class_weights=balanced"):
        task = task_of(path, [setting])
        rows = task.training_rows()
        model = model_of(task)
        examples = model.examples(rows, task.class_weight)
        task.compile(model, optimizer="sgd")
        cross_entropy = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        # 6 rows have weight w and 2 rows have 3 w; all weights add up to 8.
        for label, weight in ((0, 24 / 12), (1, 8 / 12)):
            inputs, *known = examples.take(np.flatnonzero(examples.targets == label))
            logits = model(inputs)
            labels, weights = known
            expected = weight * cross_entropy(labels, logits)
            found = model.loss(labels, logits, sample_weight=weights)
            np.testing.assert_allclose(found, expected, rtol=1e-5)
    with pytest.raises(
        UserError, match="class_weights has 'fwe', which is not a label; .* few, many"
    ):
        task_of(path, ["data.class_weights={fwe: 3}"]).training_rows()


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (
            "path: ., format: tvs",
            "unknown data.format 'tvs'; choose one of tsv, csv, jsonl, parquet, datasets, cola",
        ),
        ("path: ., format: tvs", "rte, wnli, tfds$"),
        ("path: ., format: stsb", "stsb predicts numbers, not labels; set task: regression"),
        ("path: ., format: ax", "the diagnostic set is not for training"),
        ("path: nowhere, format: cola", "data not found: nowhere/train.tsv"),
        ("path: ., format: cola", "train.tsv, line 2: label 'x' is unknown; the labels are 0, 1"),
        ("path: ., format: sst2", "train.tsv: no column 'sentence'; the columns are s, 1, , a"),
    ],
)
def test_mistakes_are_told_in_one_line(tmp_path, data, message):
    write_lines(tmp_path / "train.tsv", ["s\t1\t\ta", "s\tx\t\tb"])
    path = write_config(tmp_path, "classification", data)
    with pytest.raises(UserError, match=message) as error:
        examples_of(task_of(path))
    assert "\n" not in str(error.value)
