"""What an export takes from a run folder: how the weights that it keeps were trained.

Of a checkpoint alone it says what it assumes, and it warns of weights that were never trained.
"""

import dataclasses
import json
import subprocess
import sys
from pathlib import Path

import pytest

import bert_tf
from bert_tf import (
    Encoder,
    MultipleChoice,
    PreTrainer,
    QuestionAnswerer,
    TextClassifier,
    TextRegressor,
    TokenClassifier,
)
from bert_tf.checkpoints import conversion, native
from bert_tf.checkpoints.description import Content, describe
from bert_tf.checkpoints.names import weight_names
from bert_tf.cli.parser import main
from bert_tf.config.reading import load_config
from bert_tf.errors import UserError
from bert_tf.export import __main__ as command
from bert_tf.export import run as exporting
from bert_tf.export.run import export_run
from bert_tf.io.vocabulary import write_beside
from bert_tf.runs.run_folder import BEST_FILE, RunFolder
from bert_tf.tasks import registry
from tests import tiny, tiny_questions
from tests.checkpoints import tiny_embedders
from tests.tasks import tiny_texts


def start(path, model, *settings) -> RunFolder:
    """A run with a checkpoint."""
    run = RunFolder.start(path.parent / "run", load_config(path, settings))
    step = run.checkpoints / "step-00000001"
    step.mkdir(parents=True)
    native.write(step, model, describe(model))
    return run


def classifier(encoder, labels=("bad", "good")):
    return TextClassifier(encoder, None, labels)


def tagger(encoder):
    return TokenClassifier(encoder, None, ["O", "B-X", "I-X"])


def answerer(encoder):
    return QuestionAnswerer(encoder, None, max_question_length=8)


def long_answerer():
    """A model with room for a question of the default length."""
    return QuestionAnswerer(Encoder(tiny.encoder_config(16, max_position_embeddings=99)), None)


def alone(folder, model, settings=None):
    """A checkpoint outside of a run; with settings {} it is as other programs write it."""
    tokenizer = tiny.tokenizer()
    description = describe(model, tokenizer)
    if settings is not None:
        description = dataclasses.replace(description, settings=settings)
    native.write(folder, model, description)
    write_beside(folder, tokenizer.vocabulary)
    return folder


def without_pooler(folder, model):
    """A checkpoint of a model without a pooler."""
    tokenizer = tiny.tokenizer()
    weights = {
        name: variable.numpy()
        for name, variable in weight_names(model).items()
        if not name.startswith("encoder/pooler/")
    }
    content = Content(weights, describe(model, tokenizer), tokenizer.vocabulary)
    native.write_content(folder, content)
    return folder


def options(path, monkeypatch, **settings) -> dict:
    """What is served: the settings of a task's model, or the options of another kind."""
    found = {}

    def save_model(model, out, *_):
        found.update(model.settings, labels=model.labels, origin=model.origin, model=model)
        if isinstance(model, QuestionAnswerer):
            found["rules"] = model.rules()
        return out

    def save_hub(model, tokenizer, out, form, version, origin, max_length):
        found.update(origin=origin, max_length=max_length)
        return out

    monkeypatch.setattr(exporting, "save_model", save_model)
    monkeypatch.setattr(exporting, "save_hub", save_hub)
    export_run(path, path / "saved", **settings)
    return found


@pytest.fixture(scope="module")
def encoder():
    return Encoder(tiny.encoder_config(16, num_hidden_layers=1))


@pytest.mark.slow
def test_a_search_is_served_and_described_as_its_best_trial(tmp_path, encoder):
    path = tiny.write_finetuning(tmp_path)
    run = start(path, classifier(encoder), "train.max_length=[8,16]")
    (run.path / BEST_FILE).write_text(run.config.trials()[1].to_yaml())
    saved = export_run(run.path, tmp_path / "saved", kind="hub")

    card = json.loads((saved / "preprocessor/assets.extra/model_card.json").read_text())
    assert card["model"]["max_length"] == 16
    assert card["configuration"]["train"]["max_length"] == 16


@pytest.mark.parametrize("kind", ["mlm", "embedding", "hub"])
@pytest.mark.parametrize(("settings", "length"), [((), 24), (("train.long_length=32",), 32)])
def test_a_pre_training_is_served_with_its_longest_texts(
    tmp_path, encoder, monkeypatch, kind, settings, length
):
    run = start(tiny.write_pretraining(tmp_path), PreTrainer(encoder), *settings)

    assert options(run.path, monkeypatch, kind=kind)["max_length"] == length


def answering(folder, encoder, *settings):
    """A run that answers questions, not all of which have an answer, and its model."""
    path = tiny_questions.write_finetuning(folder, unanswerable=True)
    task = registry.family("question_answering").task_class()(load_config(path, settings))
    model = task.model(encoder, None)
    return start(path, model, *settings), model


@pytest.mark.parametrize(
    ("settings", "metrics", "threshold"),
    [
        ((), {}, 0.0),
        ((), {"null_threshold": -1.5}, -1.5),
        (("data.null_threshold=2.5",), {}, 2.5),
        (("data.null_threshold=2.5",), {"null_threshold": 2.5}, 2.5),
    ],
)
def test_answers_are_served_with_the_configured_threshold_or_the_one_that_was_found(
    tmp_path, encoder, monkeypatch, settings, metrics, threshold
):
    run, _ = answering(tmp_path, encoder, *settings)
    run.write_metrics(metrics)
    assert options(run.path, monkeypatch)["rules"].null_threshold == threshold


def test_a_checkpoint_of_a_run_is_served_as_the_run_says(tmp_path, encoder, monkeypatch, capsys):
    run, _ = answering(tmp_path, encoder)
    run.write_metrics({"null_threshold": -1.5})
    whole = options(run.path, monkeypatch)
    step = run.checkpoints / "step-00000001"
    told = options(step, monkeypatch)

    assert told["unanswerable"] and told["stride"] == 8 and told["null_threshold"] == -1.5
    origin, of_run = told.pop("origin"), whole.pop("origin")
    assert type(told.pop("model")) is type(whole.pop("model"))
    assert told == whole
    assert origin.configuration == of_run.configuration and of_run.metrics
    # It is the last checkpoint of the run, and the metrics are about that one.
    assert (origin.source, origin.metrics) == (str(step), of_run.metrics)
    news = capsys.readouterr().err
    assert "assumed" not in news and "warning" not in news


def test_an_earlier_checkpoint_of_a_run_has_no_metrics(tmp_path, encoder, monkeypatch, capsys):
    run, model = answering(tmp_path, encoder)
    first = run.checkpoints / "step-00000001"
    assert options(first, monkeypatch)["rules"].null_threshold == 0
    said = f"{first} is not finished, so its best null_threshold is unknown and 0.0 is used"
    assert said in capsys.readouterr().err

    last = run.checkpoints / "step-00000002"
    last.mkdir()
    native.write(last, model, describe(model))
    run.write_metrics({"null_threshold": -1.5})
    of_last, of_first = (options(each, monkeypatch) for each in (last, first))
    assert of_last["rules"].null_threshold == -1.5
    assert of_first["rules"].null_threshold == 0
    assert (of_first["origin"].source, of_first["origin"].metrics) == (str(first), None)
    assert of_first["origin"].configuration == of_last["origin"].configuration
    news = capsys.readouterr().err
    assert f"{first} is not the last checkpoint of its run, so its best null_thr" in news
    assert "finish" not in news


@pytest.mark.parametrize(
    ("make", "given", "assumed"),
    [
        (classifier, {}, "max_length 32 (--max-length), pair false (--pair)"),
        (classifier, {"max_length": 16}, "pair false (--pair)"),
        (classifier, {"pair": True}, "max_length 32 (--max-length)"),
        (tagger, {}, "max_length 32 (--max-length)"),
        (lambda e: TextRegressor(e, None), {}, "max_length 32 (--max-length), pair false (--pair)"),
        (lambda e: MultipleChoice(e, None), {}, "max_length 32 (--max-length)"),
        (
            lambda _: long_answerer(),
            {},
            "max_length 99 (--max-length), unanswerable false (--unanswerable)",
        ),
    ],
)
def test_what_a_checkpoint_does_not_say_of_its_inputs_is_reported(
    tmp_path, encoder, monkeypatch, capsys, make, given, assumed
):
    # The configuration of another program says nothing about the checkpoint.
    (tmp_path / "config.yaml").write_text("optimizer: adam\n")
    found = options(alone(tmp_path, make(encoder), settings={}), monkeypatch, **given)
    assert found.items() >= given.items()
    news = capsys.readouterr().err
    assert f"{tmp_path} does not describe its inputs; assumed: {assumed}\n" in news
    assert len(news.splitlines()) == 2


def test_what_is_given_of_a_bare_checkpoint_is_served(tmp_path, encoder, monkeypatch, capsys):
    folder = alone(tmp_path, long_answerer(), settings={})
    found = options(folder, monkeypatch, unanswerable=True, max_length=80)
    assert (found["unanswerable"], found["max_length"]) == (True, 80)
    news = capsys.readouterr().err
    assert "assumed" not in news
    assert "its best null_threshold is unknown and 0.0 is used; to set one, export" in news


def test_labels_are_given_to_a_checkpoint_that_has_none(tmp_path, encoder, monkeypatch):
    folder = alone(tmp_path, classifier(encoder, [0, 1]))
    assert options(folder, monkeypatch)["labels"] == ("0", "1")
    found = options(folder, monkeypatch, labels=["bad", "good"])
    assert found["labels"] == ("bad", "good")
    (tmp_path / "tags").mkdir()
    tags = alone(tmp_path / "tags", tagger(encoder))
    for path, classes, labels in ((folder, 2, "abc"), (tags, 3, "ab")):
        said = f"has {classes} classes, but {len(labels)} labels were given; give one for each"
        with pytest.raises(UserError, match=said):
            options(path, monkeypatch, labels=[*labels])


@pytest.mark.parametrize("kind", ["mlm", "nsp", "embedding", "hub"])
@pytest.mark.parametrize(
    "given", [{"labels": ["bad", "good"]}, {"pair": True}, {"unanswerable": True}]
)
def test_labels_and_settings_of_tasks_are_for_tasks(tmp_path, encoder, monkeypatch, kind, given):
    folder = alone(tmp_path, PreTrainer(encoder))
    said = f"--labels, --pair, --unanswerable and --abstain are for tasks, not for --kind {kind}"
    with pytest.raises(UserError, match=said):
        options(folder, monkeypatch, kind=kind, **given)


@pytest.mark.parametrize(
    "make", [lambda e: TextRegressor(e, None), lambda e: MultipleChoice(e, None), answerer]
)
def test_labels_are_for_classes(tmp_path, encoder, monkeypatch, make):
    model = make(encoder)
    said = f"labels are for classes, but a {type(model).__name__} has none; remove them"
    with pytest.raises(UserError, match=said):
        options(alone(tmp_path, model), monkeypatch, labels=["a"])


@pytest.mark.parametrize(
    ("settings", "kinds"), [(None, ["task", "embedding"]), ({}, ["embedding"])]
)
def test_what_is_said_or_not_needed_is_not_assumed(
    tmp_path, encoder, monkeypatch, capsys, settings, kinds
):
    folder = alone(tmp_path, MultipleChoice(encoder, None, max_length=16), settings)
    for kind in kinds:
        options(folder, monkeypatch, kind=kind)
    model = TextClassifier(encoder, tiny.tokenizer(), ["a", "b"], pair=True)
    model.save(tmp_path / "model.keras")
    found = options(tmp_path / "model.keras", monkeypatch)
    assert (found["pair"], found["labels"]) == (True, ("a", "b"))
    assert "assumed" not in capsys.readouterr().err


def test_only_classes_have_labels(tmp_path, encoder, monkeypatch):
    """Checkpoints of others name the only output of a regression too."""
    model = TextRegressor(encoder, tiny.tokenizer())
    model.save_checkpoint(tmp_path / "theirs", "huggingface")
    config = tmp_path / "theirs" / "config.json"
    fields = json.loads(config.read_text()) | {"id2label": {"0": "score"}}
    config.write_text(json.dumps(fields))
    assert options(tmp_path / "theirs", monkeypatch)["labels"] == ()
    folder = tmp_path / "ours"
    folder.mkdir()
    assert options(alone(folder, classifier(encoder)), monkeypatch)["labels"] == ("bad", "good")
    assert options(folder, monkeypatch, kind="embedding")["labels"] == ()


def as_run(folder: Path, model: TextClassifier) -> Path:
    run = start(tiny.write_finetuning(folder), model)
    write_beside(run.checkpoints / "step-00000001", model.tokenizer.vocabulary)
    return run.path


def as_theirs(folder: Path, model: TextClassifier) -> Path:
    """As transformers writes it, without what bert_tf adds to the configuration."""
    model.save_checkpoint(folder / "theirs", "huggingface")
    config = folder / "theirs" / "config.json"
    fields = json.loads(config.read_text())
    fields.pop("bert_tf", None)
    config.write_text(json.dumps(fields))
    return folder / "theirs"


def as_keras_file(folder: Path, model: TextClassifier) -> Path:
    model.save(folder / "model.keras")
    return folder / "model.keras"


@pytest.mark.end_to_end
@pytest.mark.parametrize(
    "write",
    [as_run] + [pytest.param(each, marks=pytest.mark.slow) for each in (as_theirs, as_keras_file)],
)
def test_what_is_at_a_path_answers_the_same_from_its_export(tmp_path, encoder, capsys, write):
    model = TextClassifier(encoder, tiny.tokenizer(), ["bad", "good"], pair=False)
    path, texts = write(tmp_path, model), ["the cat sat on the mat .", "", "a fish " * 40]
    assert command.main([str(path), "--out", str(tmp_path / "saved")]) == 0
    said = capsys.readouterr().err
    assert f"{tmp_path / 'saved'}: use it with bert-tf predict" in said
    assert ("assumed: max_length 32" in said) == (write is as_theirs)

    served = bert_tf.load(tmp_path / "saved").predict(texts, verbose=0)
    for found, expected in zip(served, model.predict(texts, verbose=0), strict=True):
        assert found["label"] == expected["label"]
        assert found["probabilities"] == pytest.approx(expected["probabilities"], abs=1e-5)
    assert command.main([str(path), "--out", str(tmp_path / "saved")]) == 2
    assert "exists already; remove it or choose another" in capsys.readouterr().err
    assert command.main([str(tmp_path / "saved"), "--out", str(tmp_path / "again")]) == 2
    said = f"{tmp_path / 'saved'} is a SavedModel of answers"
    assert said in capsys.readouterr().err
    assert not (tmp_path / "again").exists()
    assert main(["inspect", str(tmp_path / "saved"), "--out", str(tmp_path / "a.html")]) == 2
    assert said in capsys.readouterr().err


def test_a_program_of_its_own_finds_bert_tf_and_the_export():
    arguments = [sys.executable, "-m", "export", "--help"]
    done = subprocess.run(arguments, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("usage: bert-tf export")


@pytest.mark.parametrize(
    ("settings", "instead"),
    [
        ({"kind": "embedding", "pooling": "pooled"}, "choose --pooling mean or cls"),
        ({"kind": "hub"}, "use sequence_output"),
        ({"kind": "embedding"}, None),
    ],
)
def test_a_pooler_that_was_not_trained_is_warned_of_where_it_is_served(
    tmp_path, encoder, monkeypatch, capsys, settings, instead
):
    untrained = (
        PreTrainer(encoder, next_sentence=False),
        answerer(encoder),
        tagger(encoder),
    )
    for model in untrained:
        options(alone(tmp_path, model), monkeypatch, **settings)
        told = capsys.readouterr().err
        warning = f"this {type(model).__name__} was trained without the pooler"
        assert (warning in told and instead in told) if instead else ("warning" not in told)
    for model in (encoder, PreTrainer(encoder), classifier(encoder)):
        options(alone(tmp_path, model), monkeypatch, **settings)
        assert "warning" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("make", "kind", "reader"),
    [
        (classifier, "task", "TextClassifier"),
        (lambda e: MultipleChoice(e, None), "task", "MultipleChoice"),
        (PreTrainer, "nsp", "NextSentence"),
        (tagger, "task", None),
        (answerer, "task", None),
        (PreTrainer, "mlm", None),
    ],
)
def test_a_head_is_not_served_without_the_pooler_that_it_reads(
    tmp_path, encoder, monkeypatch, make, kind, reader
):
    folder = without_pooler(tmp_path, make(encoder))
    if reader is None:
        assert not options(folder, monkeypatch, kind=kind)["model"].uses_pooler
        return
    told = f"has no pooler, but the head of a {reader} reads its output; give a complete"
    with pytest.raises(UserError, match=told):
        options(folder, monkeypatch, kind=kind)


@pytest.mark.parametrize("kind", ["task", "embedding"])
def test_an_embedder_is_served_as_its_folder_says_unless_the_options_say_otherwise(
    tmp_path, monkeypatch, kind
):
    tiny_embedders.write(tmp_path, "normalized")
    served = options(tmp_path, monkeypatch, kind=kind)
    assert (served["pooling"], served["normalize"], served["max_length"]) == ("mean", True, 12)
    assert served["prompts"]["query"] == "the good cat : "
    served = options(tmp_path, monkeypatch, kind="embedding", pooling=["cls", "max"], max_length=8)
    assert (served["pooling"], served["normalize"], served["max_length"]) == (
        ["cls", "max"],
        True,
        8,
    )


def test_the_command_takes_several_poolings(tmp_path, encoder, monkeypatch):
    served = []
    monkeypatch.setattr(
        exporting, "save_model", lambda model, out, *_: served.append(model) or Path(out)
    )
    arguments = [str(alone(tmp_path, encoder)), "--out", str(tmp_path / "saved")]
    options = ["--kind", "embedding", "--pooling", "cls", "weighted_mean"]
    assert main(["export", *arguments, *options]) == 0
    assert served[0].settings["pooling"] == ["cls", "weighted_mean"]


def test_a_classifier_of_several_labels_at_once_is_served_as_one(tmp_path, encoder, monkeypatch):
    model = TextClassifier(encoder, tiny.tokenizer(), ["bad", "good"], multi_label=True)
    conversion.save(model, tmp_path / "theirs", "huggingface")
    fields = json.loads((tmp_path / "theirs" / "config.json").read_text())
    assert fields["problem_type"] == "multi_label_classification"
    served = options(tmp_path / "theirs", monkeypatch)
    assert served["labels"] == ("bad", "good") and type(served["model"]) is type(model)


@pytest.mark.parametrize("kind", ["task", "hub"])
def test_a_vocabulary_that_replaced_the_original_is_not_served(
    tmp_path, encoder, monkeypatch, kind
):
    run = RunFolder.start(tmp_path / "run", load_config(tiny.write_finetuning(tmp_path)))
    step = run.checkpoints / "step-00000001"
    step.mkdir(parents=True)
    alone(step, classifier(encoder))
    (step / "vocab.txt").unlink()
    run.vocabulary.write_text("\n".join(reversed(tiny.VOCABULARY)))
    with pytest.raises(
        UserError, match="vocabulary in .* is not the one that the model was trained with"
    ):
        options(run.path, monkeypatch, kind=kind)


@pytest.mark.parametrize(
    ("data", "pair"),
    [
        ("format: tsv", False),
        ("format: tsv, text_columns: [a, b]", True),
        ("format: cola", False),
        ("format: rte", True),
    ],
)
def test_the_format_decides_whether_an_input_is_a_pair(tmp_path, data, pair):
    path = tiny_texts.write_config(tmp_path, "classification", f"path: ., {data}")
    task = registry.family("classification").task_class()(load_config(path), ["a", "b"])
    model = task.model(Encoder(tiny.encoder_config()), tiny.tokenizer())
    assert model.settings == {"max_length": 24, "pair": pair}
