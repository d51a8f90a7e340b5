"""What an export takes from a run folder: how the weights that it keeps were trained.

Of a checkpoint alone it says what it assumes, and it warns of weights that were never trained.
"""

import json

import pytest

from bert_tf import (
    Encoder,
    MultipleChoice,
    PreTrainer,
    SequenceClassifier,
    SpanClassifier,
    TokenClassifier,
    Tokenizer,
)
from bert_tf import config as configuration
from bert_tf.checkpoints import conversion, native
from bert_tf.checkpoints.description import describe
from bert_tf.checkpoints.names import weight_names
from bert_tf.checkpoints.vocabularies import write_beside
from bert_tf.errors import UserError
from bert_tf.training.run_folder import BEST_FILE, RunFolder
from export import run as exporting
from export.run import export_run
from tests import tiny, tiny_questions


def start(path, model, *settings) -> RunFolder:
    """A run with a checkpoint."""
    run = RunFolder.start(path.parent / "run", configuration.load(path, settings))
    step = run.checkpoints / "step-00000001"
    step.mkdir(parents=True)
    native.write(step, model, describe(model))
    return run


def alone(folder, model, labels=()):
    """A checkpoint that is of no run."""
    tokenizer = Tokenizer(tiny.VOCABULARY)
    native.write(folder, model, describe(model, tokenizer, labels))
    write_beside(folder, tokenizer.vocabulary)
    return folder


def without_pooler(folder, model):
    """One of a model whose pooler is not there."""
    tokenizer = Tokenizer(tiny.VOCABULARY)
    weights = {
        name: variable.numpy()
        for name, variable in weight_names(model).items()
        if not name.startswith("encoder/pooler/")
    }
    native.write_weights(folder, weights, describe(model, tokenizer), tokenizer.vocabulary)
    return folder


def options(path, monkeypatch, **settings) -> dict:
    """What is served, as `export.save` is told."""
    told = {}

    def save(model, tokenizer, out, labels, **options):
        told.update(options, labels=labels)
        return out

    monkeypatch.setattr(exporting, "save", save)
    export_run(path, path / "saved", **settings)
    return told


@pytest.fixture(scope="module")
def encoder():
    return Encoder(tiny.encoder_config(16))


def test_a_search_is_served_and_described_as_its_best_trial(tmp_path, encoder):
    path = tiny.write_finetuning(tmp_path)
    run = start(path, SequenceClassifier(encoder, 2), "train.max_length=[8,16]")
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
    path = tiny_questions.write_finetuning(tmp_path, unanswerable=True)
    run = start(path, SpanClassifier(encoder), *settings)
    run.write_metrics(metrics)

    assert options(run.path, monkeypatch)["null_threshold"] == threshold


def test_a_checkpoint_of_a_run_is_served_as_the_run_says(tmp_path, encoder, monkeypatch, capsys):
    path = tiny_questions.write_finetuning(tmp_path, unanswerable=True)
    run = start(path, SpanClassifier(encoder))
    run.write_metrics({"null_threshold": -1.5})
    whole = options(run.path, monkeypatch)
    step = run.checkpoints / "step-00000001"
    told = options(step, monkeypatch)

    assert told["unanswerable"] and told["stride"] == 8 and told["null_threshold"] == -1.5
    origin, of_run = told.pop("origin"), whole.pop("origin")
    assert told == whole
    assert origin.configuration == of_run.configuration and of_run.metrics
    # The metrics are of the weights that the run ends with.
    assert (origin.source, origin.metrics) == (str(step), None)
    assert "assumed" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("make", "assumed"),
    [
        (SequenceClassifier, "assumed: one text; for pairs use export.save(…, pair=True)"),
        (SpanClassifier, "assumed: every context answers its question"),
        (lambda e: TokenClassifier(e, 3), "assumed: windows of as many tokens as the model has"),
    ],
)
def test_what_a_checkpoint_does_not_tell_of_its_inputs_is_said(
    tmp_path, encoder, monkeypatch, capsys, make, assumed
):
    # A configuration that is not of a run says nothing of it.
    (tmp_path / "config.yaml").write_text("optimizer: adam\n")
    told = options(alone(tmp_path, make(encoder)), monkeypatch)
    assert told.keys() == {"kind", "precision", "freeze", "version", "origin", "labels"}
    assert f"{tmp_path} is of no run folder" in (news := capsys.readouterr().err)
    assert assumed in news and len(news.splitlines()) == 2


def test_of_vectors_and_choices_nothing_is_assumed(tmp_path, encoder, monkeypatch, capsys):
    folder = alone(tmp_path, MultipleChoice(encoder))
    for kind in ("task", "embedding"):
        options(folder, monkeypatch, kind=kind)
    assert "assumed" not in capsys.readouterr().err


def test_only_classes_have_labels(tmp_path, encoder, monkeypatch):
    """Checkpoints of others name the only output of a regression too."""
    regression = alone(tmp_path, SequenceClassifier(encoder, 1), ["score"])
    assert options(regression, monkeypatch)["labels"] == ()
    classifier = alone(tmp_path, SequenceClassifier(encoder, 2), ["bad", "good"])
    assert options(classifier, monkeypatch)["labels"] == ("bad", "good")
    assert options(classifier, monkeypatch, kind="embedding")["labels"] == ()


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
        SpanClassifier(encoder),
        TokenClassifier(encoder, 3),
    )
    for model in untrained:
        options(alone(tmp_path, model), monkeypatch, **settings)
        told = capsys.readouterr().err
        warning = f"this {type(model).__name__} was trained without the pooler"
        assert (warning in told and instead in told) if instead else ("warning" not in told)
    for model in (encoder, PreTrainer(encoder), SequenceClassifier(encoder, 2)):
        options(alone(tmp_path, model), monkeypatch, **settings)
        assert "warning" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("make", "kind"),
    [
        (lambda e: SequenceClassifier(e, 2), "task"),
        (MultipleChoice, "task"),
        (PreTrainer, "nsp"),
    ],
)
def test_a_head_is_not_served_on_a_pooler_that_is_not_there(
    tmp_path, encoder, monkeypatch, make, kind
):
    model = make(encoder)
    folder = without_pooler(tmp_path, model)
    told = f"has no pooler, whose output the head of a {type(model).__name__} reads; give a whole"
    with pytest.raises(UserError, match=told):
        options(folder, monkeypatch, kind=kind)


@pytest.mark.parametrize(
    ("make", "kind"),
    [(lambda e: TokenClassifier(e, 3), "task"), (SpanClassifier, "task"), (PreTrainer, "mlm")],
)
def test_a_head_that_reads_no_pooler_is_served_without_one(
    tmp_path, encoder, monkeypatch, make, kind
):
    assert options(without_pooler(tmp_path, make(encoder)), monkeypatch, kind=kind)["kind"] == kind


def test_of_a_classifier_of_several_labels_at_once_the_encoder_is_served(
    tmp_path, encoder, monkeypatch, capsys
):
    tokenizer = Tokenizer(tiny.VOCABULARY)
    folder = tmp_path / "theirs"
    conversion.save(
        SequenceClassifier(encoder, 2), folder, "huggingface", tokenizer, ["bad", "good"]
    )
    config = folder / "config.json"
    fields = json.loads(config.read_text()) | {"problem_type": "multi_label_classification"}
    config.write_text(json.dumps(fields))
    capsys.readouterr()

    for kind in ("embedding", "hub"):
        options(folder, monkeypatch, kind=kind)
        assert "warning: it gives any number of labels to a text" in capsys.readouterr().err
    with pytest.raises(UserError, match="this Encoder was not fine-tuned for a task; choose --k"):
        options(folder, monkeypatch)
    assert "only its encoder is read" in capsys.readouterr().err


@pytest.mark.parametrize("kind", ["task", "hub"])
def test_a_vocabulary_that_was_put_in_the_place_of_its_own_is_not_served(
    tmp_path, encoder, monkeypatch, kind
):
    run = RunFolder.start(tmp_path / "run", configuration.load(tiny.write_finetuning(tmp_path)))
    step = run.checkpoints / "step-00000001"
    step.mkdir(parents=True)
    alone(step, SequenceClassifier(encoder, 2))
    (step / "vocab.txt").unlink()
    run.vocabulary.write_text("\n".join(reversed(tiny.VOCABULARY)))
    with pytest.raises(UserError, match="vocabulary of .* is not the one that it was trained with"):
        options(run.path, monkeypatch, kind=kind)
