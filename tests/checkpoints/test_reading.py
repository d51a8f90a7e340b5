"""Finding a checkpoint, filling a model from it, and what is said about it."""

import shutil
import subprocess
import sys
from unittest import mock

import numpy as np
import pytest

from bert_tf import Encoder, TextClassifier, TokenClassifier, UserError, load
from bert_tf.checkpoints import conversion, download, reading
from bert_tf.checkpoints.checkpoint import LoadReport
from bert_tf.checkpoints.names import encoder_shapes, weight_names
from bert_tf.text import Tokenizer
from tests.checkpoints import tiny_models as tiny

CLASSIFIER = tiny.FIXTURES / "huggingface_heads" / "BertForSequenceClassification"


@pytest.fixture
def ours(tmp_path):
    conversion.save(tiny.make("pretrainer"), tmp_path / "ours", tokenizer=Tokenizer(tiny.PIECES))
    return tmp_path / "ours"


def test_a_file_of_a_checkpoint_stands_for_its_folder(ours):
    for path in (ours / "model.safetensors", ours / "bert_tf.json", CLASSIFIER / "config.json"):
        assert reading.find(path).folder == path.parent


def test_a_run_folder_stands_for_its_newest_checkpoint_with_the_vocabulary_of_the_run(
    tmp_path, ours
):
    for step in (10, 200):
        shutil.copytree(ours, tmp_path / "run" / "checkpoints" / f"step-{step:08d}")
        (tmp_path / "run" / "checkpoints" / f"step-{step:08d}" / "vocab.txt").unlink()
    shutil.copy(ours / "vocab.txt", tmp_path / "run")

    found = reading.find(tmp_path / "run")

    assert found.folder.name == "step-00000200"
    assert found.read_vocabulary() == tiny.PIECES


def test_only_a_run_takes_a_vocabulary_from_a_folder_further_up(tmp_path, ours):
    shutil.copytree(ours, tmp_path / "project" / "models" / "mine")
    (tmp_path / "project" / "models" / "mine" / "vocab.txt").unlink()
    shutil.copy(ours / "vocab.txt", tmp_path / "project")

    assert reading.find(tmp_path / "project" / "models" / "mine").read_vocabulary() is None


@pytest.mark.parametrize("of_run", [False, True])
def test_a_vocabulary_that_replaced_the_original_is_refused(tmp_path, ours, of_run):
    if of_run:
        ours = shutil.move(ours, tmp_path / "run" / "checkpoints" / "step-00000001")
        shutil.move(ours / "vocab.txt", tmp_path / "run")
    vocabulary = (tmp_path / "run" if of_run else ours) / "vocab.txt"
    vocabulary.write_text("\n".join((*tiny.PIECES[:5], *reversed(tiny.PIECES[5:]))))

    told = "vocabulary in .* is not the one that the model was trained with"
    tiny.refused(told, Tokenizer.from_checkpoint, tmp_path / "run" if of_run else ours)
    tiny.load(ours)


def test_a_folder_of_something_else_tells_what_was_expected(tmp_path):
    tiny.refused(r"no checkpoint in .*: expected a run folder, bert_tf\.", reading.find, tmp_path)


@pytest.mark.parametrize("place", [("x" * 5000,), ("x" * 300, "step"), ("x" * 300,)])
def test_an_impossible_path_is_reported_in_one_line(tmp_path, place):
    with pytest.raises(UserError, match="checkpoint cannot be read: .* .File name too long.$"):
        reading.find(tmp_path.joinpath(*place))


def test_a_run_that_has_saved_nothing_yet_is_told(tmp_path):
    (tmp_path / "config.yaml").touch()
    tiny.refused("has no checkpoint yet; wait until training has saved one", reading.find, tmp_path)

    (tmp_path / "trials").mkdir()
    told = "has no checkpoint yet; finish its search, or name one of the trials under .*trials$"
    tiny.refused(told, reading.find, tmp_path)


def test_the_public_encoder_and_tokenizer_read_any_checkpoint(capsys):
    encoder = Encoder.from_checkpoint(CLASSIFIER, layout="padded")

    assert encoder.layout == "padded"
    assert capsys.readouterr().err == (
        f"{CLASSIFIER}: 31 weights loaded; ignored: classifier.bias, classifier.weight\n"
    )
    tiny.assert_equal(encoder, tiny.load(CLASSIFIER)[0].encoder)


def test_a_head_is_known_where_no_family_was_imported():
    code = (
        "import sys; from bert_tf.checkpoints import reading\n"
        f"assert reading.find({str(CLASSIFIER)!r}).description.model == 'TextClassifier'\n"
        "assert 'bert_tf.tasks.classification.model' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=tiny.FIXTURES.parents[1])


def test_a_checkpoint_without_vocabulary_has_no_tokenizer():
    told = "has no vocabulary; copy its vocab.txt there"
    tiny.refused(told, Tokenizer.from_checkpoint, tiny.FIXTURES / "model_garden_tiny_encoder")


def test_a_model_of_another_task_takes_the_encoder_alone(ours):
    for kind in ("classifier", "tokens", "feature_tagger"):
        model = tiny.make(kind)
        heads = {name for name in tiny.weights(model) if not name.startswith("encoder/")}
        report = reading.find(ours).fill(model)

        assert set(report.new) == heads
        assert set(report.ignored) == {
            name for name in tiny.weights(tiny.make("pretrainer")) if "encoder/" not in name
        }


def test_a_head_of_another_task_is_not_taken_even_if_it_fits():
    model = tiny.make("tokens")
    before = model.classifier.kernel.numpy()
    report = reading.find(CLASSIFIER).fill(model)

    assert report.new == ("classifier/kernel", "classifier/bias")
    np.testing.assert_array_equal(model.classifier.kernel.numpy(), before)


def test_fewer_layers_may_be_taken_than_there_are(ours):
    model = tiny.make("encoder", num_hidden_layers=1)
    report = reading.find(ours).fill(model)

    assert report.new == ()
    assert any(name.startswith("encoder/layer_1/") for name in report.ignored)


@pytest.mark.parametrize(
    ("sizes", "told"),
    [
        (
            {"vocab_size": 20},
            r"weight embeddings.word_embeddings.weight of the checkpoint has shape \[14, 8\], but "
            r"encoder/embeddings/word_embeddings of the model has shape \[20, 8\]; the "
            "vocabulary has 20 pieces, but that of the checkpoint has 14; use",
        ),
        (
            {"max_position_embeddings": 9},
            r"has shape \[7, 8\], .* \[9, 8\]; set max_position_embeddings to 7",
        ),
        (
            {"intermediate_size": 20},
            r"/kernel of the model has shape \[8, 20\]; the sizes under `model` differ",
        ),
    ],
)
def test_a_shape_that_does_not_fit_names_the_weight_both_shapes_and_the_cause(sizes, told):
    model = tiny.make("classifier", **sizes)
    before = tiny.weights(model)
    tiny.refused(told, reading.find(CLASSIFIER).fill, model)

    for name, value in tiny.weights(model).items():
        np.testing.assert_array_equal(value, before[name])


@pytest.mark.parametrize("kind", ["classifier", "tokens"])
@pytest.mark.parametrize("labels", [1, 2, 5])
def test_a_head_of_another_number_of_labels_starts_anew(tmp_path, kind, labels):
    source = tiny.make(kind)
    conversion.save(source, tmp_path / "three")
    model = type(source)(Encoder(source.encoder.config), None, range(labels))
    before = tiny.weights(model)
    report = reading.find(tmp_path / "three").fill(model)

    assert report.new == report.resized == ("classifier/kernel", "classifier/bias")
    assert str(report) == (
        "31 weights loaded; newly initialised: classifier/kernel, classifier/bias, because the "
        f"checkpoint has 3 labels, the model {labels}; ignored: classifier/bias, classifier/kernel"
    )
    expected = tiny.weights(source)
    for name, value in tiny.weights(model).items():
        start = expected if name.startswith("encoder/") else before
        np.testing.assert_array_equal(value, start[name])


@pytest.mark.parametrize("folder", [CLASSIFIER, tiny.FIXTURES / "google_tiny_classifier"])
def test_a_head_of_another_number_of_labels_in_other_formats_starts_anew(folder):
    theirs = reading.find(folder)
    labels = theirs.description.head["num_classes"]
    report = theirs.fill(TextClassifier(Encoder(theirs.encoder), None, range(labels + 1)))

    assert report.resized == ("classifier/kernel", "classifier/bias")
    assert report.why == f"the checkpoint has {labels} labels, the model {labels + 1}"


def test_only_the_layers_of_a_head_that_have_another_size_start_anew(tmp_path):
    source = tiny.make("feature_tagger")
    conversion.save(source, tmp_path / "tagger")
    found = reading.find(tmp_path / "tagger")

    def filled(labels, units):
        encoder = Encoder(source.encoder.config)
        tagger = TokenClassifier(encoder, None, range(labels), features="last", lstm_units=units)
        return found.fill(tagger)

    assert filled(5, 4).resized == ("feature_classifier/kernel", "feature_classifier/bias")
    report = filled(3, 6)
    assert len(report.resized) == 2 * 6 + 2
    assert report.why == "the checkpoint has 4 LSTM units, the model 6"


def test_a_model_made_as_the_checkpoint_says_is_not_filled_with_a_head_of_another_size(tmp_path):
    conversion.save(tiny.make("classifier"), tmp_path / "ours")
    fields = {"head": {"num_classes": 2, "dropout": 0.3}, "labels": ["no", "yes"]}
    tiny.change(tmp_path / "ours" / "bert_tf.json", **fields)
    told = r"\[8, 3\], .* \[8, 2\]; .* files of the checkpoint belong to different models"
    tiny.refused(told, tiny.load, tmp_path / "ours")


def test_a_report_names_a_few_weights_and_counts_the_rest():
    names = tuple(f"w{n}" for n in range(9))
    report = LoadReport(names[:2], names[:1], names, ("note",))

    assert str(report) == (
        "2 weights loaded; newly initialised: w0; ignored: w0, w1, w2, w3, w4, w5 and 3 more; note"
    )


def test_the_shapes_of_an_encoder_are_known_before_it_is_built():
    encoder = tiny.make("encoder", type_vocab_size=3, num_hidden_layers=3)
    shapes = {name: tuple(weight.shape) for name, weight in weight_names(encoder).items()}

    assert encoder_shapes(encoder.config, 3) == shapes


def test_a_classifier_is_taken_by_its_labels(tmp_path):
    theirs = tiny.make("classifier")
    conversion.save(theirs, tmp_path / "head")
    found, before = reading.find(tmp_path / "head"), tiny.weights(theirs)

    def filled(labels):
        model = tiny.make("classifier")
        for weight in model.classifier.weights:
            weight.assign(np.zeros(weight.shape))
        report = found.fill(model, labels)
        return report, tiny.weights(model)["classifier/kernel"]

    for same in ((), tiny.LABELS, ("0", "1", "2")):
        report, kernel = filled(same)
        np.testing.assert_array_equal(kernel, before["classifier/kernel"])
        assert report.resized == ()
    report, kernel = filled(("perhaps", "nay", "yea"))
    np.testing.assert_array_equal(kernel, before["classifier/kernel"][:, [2, 0, 1]])
    assert report.resized == ()
    report, kernel = filled(("nay", "yea", "never"))
    np.testing.assert_array_equal(kernel, 0.0)
    assert str(report).endswith(
        "newly initialised: classifier/kernel, classifier/bias, because the checkpoint's labels "
        "are nay, yea, perhaps; ignored: classifier/bias, classifier/kernel"
    )


@pytest.mark.parametrize("path", ["./nowhere", "no/such/folder", "../nowhere"])
def test_a_path_is_not_taken_for_a_name_on_the_hub(path, monkeypatch):
    monkeypatch.setattr(download, "fetch", mock.Mock(side_effect=AssertionError("fetched")))
    tiny.refused("checkpoint not found: .*nowhere|no/such/folder", reading.find, path)


def test_a_head_of_another_version_is_not_left_out_silently(tmp_path):
    model = tiny.make("classifier")
    conversion.save(model, tmp_path / "old", tokenizer=Tokenizer(tiny.PIECES))
    path = tmp_path / "old" / "bert_tf.json"
    tiny.change(path, "settings", format=1, model="SequenceClassifier")
    for read in (TextClassifier.from_checkpoint, load):
        tiny.refused("unknown model 'SequenceClassifier', perhaps of anoth", read, tmp_path / "old")
    tiny.assert_equal(Encoder.from_checkpoint(tmp_path / "old"), model.encoder)
