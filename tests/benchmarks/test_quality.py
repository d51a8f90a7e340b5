"""The table of quality: what is predicted, scored and kept."""

import argparse
import json
import sys
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from benchmarks.allocation import KEEPS_MEMORY
from benchmarks.quality import __main__ as quality
from benchmarks.quality import same_updates
from benchmarks.quality.tasks import AS_TRANSFORMERS, HEAD, QualityTask, tasks
from bert_tf.checkpoints import reading
from bert_tf.config.reading import load_config
from bert_tf.errors import UserError
from bert_tf.tasks import from_checkpoint
from bert_tf.tasks.token_classification.model import IGNORED
from tests import tiny

RESULTS = Path(__file__).parents[2] / "experiments" / "results" / "quality"
LABELS = ["B-animal", "I-animal", "O"]


class FakeTokenizer:
    """A piece for each letter of a word, so that a word without letters has none."""

    model_input_names = ("input_ids",)

    def __call__(self, words, is_split_into_words, truncation, max_length):
        ids = [(2, None), *((4, i) for i, word in enumerate(words) for _ in word)]
        return Encoding([*ids[: max_length - 1], (3, None)])

    def pad(self, inputs, return_tensors):
        import torch

        longest = max(len(each["input_ids"]) for each in inputs)
        return {
            name: torch.tensor([each[name] + [0] * (longest - len(each[name])) for each in inputs])
            for name in inputs[0]
        }


class Encoding(dict):
    """What a tokenizer of transformers gives for a row."""

    def __init__(self, places):
        self._words = [word for _, word in places]
        super().__init__(
            input_ids=[piece for piece, _ in places],
            token_type_ids=[0] * len(places),
            attention_mask=[1] * len(places),
        )

    def word_ids(self):
        return self._words


def test_words_that_the_peer_does_not_see_are_outside_of_entities(tmp_path):
    pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    from benchmarks.quality import huggingface

    sizes = {"vocab_size": 8, "hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1}
    model = transformers.BertForTokenClassification(
        transformers.BertConfig(**sizes, intermediate_size=8, num_labels=len(LABELS))
    )
    # The model tags every word that it sees as the beginning of an entity.
    model.classifier.bias.data[0] = 100.0
    model.save_pretrained(tmp_path)
    job = {"max_length": 6, "checkpoint": str(tmp_path)}
    tagging = huggingface.Tagging(FakeTokenizer(), job, {"labels": LABELS})
    found = tagging.predict([{"words": ["cat", "", "d", "dog", "sat"]}, {"words": ["a"]}])
    begins, outside = LABELS.index("B-animal"), LABELS.index("O")
    assert found == [[begins, outside, begins, outside, outside], [begins]]


def test_choices_of_unequal_length_are_predicted(tmp_path):
    pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    from benchmarks.quality import huggingface

    vocabulary = tmp_path / "vocab.txt"
    vocabulary.write_text("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "a", "b", "c"]) + "\n")
    transformers.BertTokenizerFast(vocab=str(vocabulary)).save_pretrained(tmp_path)
    sizes = {"vocab_size": 7, "hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1}
    transformers.BertForMultipleChoice(
        transformers.BertConfig(**sizes, intermediate_size=8)
    ).save_pretrained(tmp_path)
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path)
    job = {"max_length": 8, "checkpoint": str(tmp_path)}
    choosing = huggingface._MultipleChoice(tokenizer, job, {"labels": None})
    rows = [{"context": "a", "choices": ["b", "b c"]}, {"context": "a b c", "choices": ["a", "b"]}]
    found = choosing.predict(rows)
    assert len(found) == 2 and set(found) <= {0, 1}
    # Rows get the same answers alone: neither their order nor their padding matters.
    assert found == [choosing.predict([row])[0] for row in rows]


@pytest.fixture
def lines():
    return tasks(Path("data"), Path("glue"), Path("squad"))


def test_hyper_parameters_are_those_of_the_configurations(lines):
    """These are the paper's; of several learning rates, the first one is used."""
    for name, task in lines.items():
        train = load_config(task.config).train
        rates = train.learning_rate
        rate = rates[0] if isinstance(rates, (list, tuple)) else rates
        expected = {"epochs": train.epochs, "learning_rate": rate, "max_length": train.max_length}
        assert task.settings == expected | {"batch_size": task.settings["batch_size"]}, name
    assert {name: task.settings["batch_size"] for name, task in lines.items()} == {
        "SST-2": 32,
        "CoLA": 32,
        "WNUT-17": 16,
        "CODAH": 16,
        "SQuAD by article": 16,
    }


def test_ours_trains_with_the_optimizer_of_pytorch_and_with_random_batches(lines, tmp_path):
    given = lines["CoLA"].overrides("checkpoint", 1, tmp_path)
    train = load_config("experiments/glue/cola.yaml", given).train
    assert (train.bias_correction, train.adam_epsilon) == (True, 1e-8)
    assert (train.decay_after_warmup, train.group_by_length) == (True, False)


def test_the_same_updates_require_an_existing_checkpoint(tmp_path, monkeypatch, capsys):
    given = ["same_updates", "--checkpoint", str(tmp_path / "missing"), "--data", str(tmp_path)]
    monkeypatch.setattr(sys, "argv", given)
    assert same_updates.main() == 2
    error = capsys.readouterr().err
    assert f"there is no {tmp_path}/missing" in error and error.count("\n") == 1


def test_the_peer_is_given_our_labels_by_its_names():
    tags = same_updates._peers_labels(np.array([[3, IGNORED]]), ignored=-100)
    np.testing.assert_array_equal(tags["labels"], [[3, -100]])
    spans = same_updates._peers_labels({"start": np.array([1]), "end": np.array([2])}, ignored=-100)
    assert spans == {"start_positions": 1, "end_positions": 2}


def test_both_start_with_the_head_that_the_seed_draws_for_the_peer(tmp_path):
    pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    transformers.set_seed(0)
    sizes = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1}
    config = transformers.BertConfig(
        vocab_size=len(tiny.VOCABULARY), intermediate_size=8, initializer_range=1.0, **sizes
    )
    checkpoint = tmp_path / "checkpoint"
    transformers.BertModel(config).save_pretrained(checkpoint)
    (checkpoint / "vocab.txt").write_text("\n".join(tiny.VOCABULARY) + "\n")
    (tmp_path / "rows.json").write_text('{"family": "question_answering", "labels": null}')
    job = {"checkpoint": str(checkpoint), "rows": str(tmp_path / "rows.json"), "threads": 1}
    job_file = tmp_path / "job.json"
    heads = []
    for run, seed in enumerate((1, 1, 2)):
        job_file.write_text(json.dumps(job | {"seed": seed, "max_length": 8}))
        start = tmp_path / f"start-{run}"
        quality._begin(job_file, checkpoint, start)
        found = reading.find(start)
        model = from_checkpoint.build(found, start)
        report = found.fill(model)
        assert {"span/kernel", "span/bias"} <= set(report.loaded)
        assert found.read_vocabulary() == tuple(tiny.VOCABULARY)
        heads.append(model.span.kernel.numpy())
    np.testing.assert_array_equal(heads[0], heads[1])
    assert not np.isclose(heads[0], heads[2]).any()


def test_predicted_labels_are_scored():
    rows = {"family": "classification", "dev": [{"label": each} for each in (0, 1, 1, 1)]}
    scores = {
        metric: QualityTask("", Path(), metric, {}).score(rows, [0, 1, 1, 0])
        for metric in ("accuracy", "f1", "mcc")
    }
    assert scores == pytest.approx({"accuracy": 0.75, "f1": 0.8, "mcc": 1 / 3**0.5})


def test_results_of_other_settings_are_not_taken_up(tmp_path, monkeypatch, lines):
    """Nothing is trained here: a run has the score of its number."""
    runs = []

    def run(task, seed, folder, arguments):
        runs.append(seed)
        return {"score": len(runs) / 10, "seconds": 1.0, "processor": 1.0}

    monkeypatch.setattr(quality, "_bert_tf", run)
    given = argparse.Namespace(out=tmp_path / "out", runs=tmp_path / "runs")
    read = {"checkpoint": "0011", "data": "2233"}
    first = quality._result("CoLA", lines["CoLA"], "bert_tf", 0, read, given)
    path = tmp_path / "out" / "CoLA" / "bert_tf-0.json"
    # Another commit alone does not spoil hours of training.
    path.write_text(json.dumps(first | {"commit": "0123456"}))
    again = quality._result("CoLA", lines["CoLA"], "bert_tf", 0, read, given)
    assert (again["score"], again["commit"], runs) == (0.1, "0123456", [0])
    other = read | {"data": "4455"}
    with pytest.raises(UserError, match="data 2233, not 4455; remove it or choose another --out"):
        quality._result("CoLA", lines["CoLA"], "bert_tf", 0, other, given)
    assert runs == [0]


def write_result(out, side, seed, processor="EPYC", **versions):
    """A finished result, as it is kept."""
    known = {name: "1.0" for name in quality.LIBRARIES[side]} | versions
    result = {"machine": {"processor": processor, "cores": 2}, "versions": known}
    path = out / f"{side}-{seed}.json"
    path.write_text(json.dumps(result))
    return side, path


def test_a_new_result_tells_its_machine_and_its_libraries(tmp_path, monkeypatch, lines):
    monkeypatch.setattr(quality, "_bert_tf", lambda *given: {"score": 0.5})
    given = argparse.Namespace(out=tmp_path / "out", runs=tmp_path / "runs")
    found = quality._result("CoLA", lines["CoLA"], "bert_tf", 0, {}, given)
    assert list(found["machine"]) == ["processor", "cores"]
    assert list(found["versions"]) == ["tensorflow", "keras"]
    assert found["versions"]["tensorflow"] == tf.__version__
    told = lines["CoLA"].settings.keys() | {"train_rows", "threads", *AS_TRANSFORMERS}
    told |= KEEPS_MEMORY.keys() | HEAD.keys()
    assert found["settings"].keys() == told


def test_a_line_is_of_one_machine_and_one_version_of_each_library(tmp_path):
    files = [write_result(tmp_path, side, seed) for side in quality.SIDES for seed in (0, 1)]
    quality._check_machines(files)
    other = write_result(tmp_path, "transformers", 2, processor="Xeon")
    with pytest.raises(UserError, match="transformers-2.json has processor Xeon, not EPYC; remove"):
        quality._check_machines([*files, other])
    other = write_result(tmp_path, "transformers", 2, torch="2.0")
    with pytest.raises(UserError, match="transformers-2.json has torch 2.0, not 1.0; remove"):
        quality._check_machines([*files, other])
    other[1].write_text("{}")
    with pytest.raises(UserError, match="transformers-2.json names no machine"):
        quality._check_machines([*files, other])


def test_no_run_is_added_to_those_of_another_machine(tmp_path):
    """The mistake is reported before the run."""
    there = write_result(tmp_path, "bert_tf", 0, processor="another")
    quality._check_machines([there])
    with pytest.raises(UserError, match="bert_tf-0.json has .*processor another, not "):
        quality._check_machines([there, ("bert_tf", tmp_path / "bert_tf-1.json")])


@pytest.mark.parametrize("line", sorted(path.name for path in RESULTS.iterdir()))
def test_a_line_that_is_kept_here_is_of_one_machine(line):
    files = [(path.name.rpartition("-")[0], path) for path in (RESULTS / line).glob("*.json")]
    assert len(files) >= 6
    quality._check_machines(files)


def test_the_table_tells_every_machine_of_its_lines(lines, capsys):
    done = {"score": 0.5, "seconds": 2.0, "processor": 3.0, "commit": "0123456"}
    processors = {"CoLA": "EPYC", "WNUT-17": "Xeon"}
    results = {
        (name, side, 0): done | {"machine": {"processor": processor, "cores": 2}}
        for name, processor in processors.items()
        for side in quality.SIDES
    }
    quality._print(list(processors), lines, [0], results)
    assert "bert_tf 0123456; EPYC, 2 cores; Xeon, 2 cores" in capsys.readouterr().out


def test_scores_have_errors_over_the_seeds_and_differences_have_their_own(lines, capsys):
    """The errors are worked by hand: 1 / sqrt(3), and 10 / sqrt(3) of the differences 10, 0, 20."""
    scores = {"bert_tf": (0.5, 0.51, 0.52), "transformers": (0.4, 0.51, 0.32)}
    results = {
        ("CODAH", side, seed): {
            "score": scores[side][seed],
            "seconds": {"bert_tf": 2.0, "transformers": 3.0}[side] + seed,
            "processor": 1.0,
            "commit": "0123456",
            "machine": {"processor": "EPYC", "cores": 2},
        }
        for side in quality.SIDES
        for seed in (0, 1, 2)
    }
    quality._print(["CODAH"], lines, [0, 1, 2], results)
    row = next(line for line in capsys.readouterr().out.splitlines() if "CODAH" in line)
    cells = [cell.strip() for cell in row.split("│")[1:-1]]
    expected = ["51.0 ± 0.6", "41.0 ± 5.5", "+10.0 ± 5.8", "1.33", "1.00"]
    assert cells == ["CODAH", "accuracy", *expected]


def test_runs_read_the_files_that_the_checksum_covers(tmp_path):
    """These are the training and dev files, wherever the links of an earlier call led."""
    for name in ("old", "new"):
        (tmp_path / name).mkdir()
        for file in ("train.tsv", "dev.tsv", "test.tsv"):
            (tmp_path / name / file).write_text(name)
        # As GLUE is distributed.
        (tmp_path / name / "original").mkdir()
    for name in ("old", "new"):
        task = QualityTask("", tmp_path / name, "mcc", {})
        linked = task.without_test(tmp_path / "linked")
        assert [file.name for file in task.files()] == ["dev.tsv", "train.tsv"]
        assert {file.name: file.read_text() for file in linked.iterdir()} == {
            "dev.tsv": name,
            "train.tsv": name,
        }


def test_the_peer_trains_on_as_many_rows_and_is_scored_on_all(tmp_path):
    questions = [
        {"id": str(n), "question": "who?", "answers": [{"text": "Ann", "answer_start": 0}]}
        for n in range(5)
    ]
    article = {"title": "t", "paragraphs": [{"context": "Ann sat.", "qas": questions}]}
    for split in ("train", "dev"):
        (tmp_path / f"{split}-v1.1.json").write_text(json.dumps({"data": [article]}))
    task = QualityTask("experiments/squad/by_article.yaml", tmp_path, "f1", {}, train_rows=2)
    rows = task.rows()
    assert [row["id"] for row in rows["train"]] == ["0", "1"]
    assert len(rows["dev"]) == 5
    assert task.score(rows, {str(n): "Ann" for n in range(5)}) == 100.0
    assert "data.train_rows=2" in task.overrides("checkpoint", 0, tmp_path)
