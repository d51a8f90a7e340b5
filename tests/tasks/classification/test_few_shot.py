"""Few labels: pairs as setfit makes them, the head on an embedder's vectors, and every export."""

import keras
import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import bert_tf
from bert_tf import runs
from bert_tf.config.reading import load_config
from bert_tf.errors import UserError
from bert_tf.tasks.classification.few_shot import contrastive_pairs
from tests import tiny
from tests.tasks import tiny_objects as objects

TEXTS, LABELS, LISTS = objects.TEXTS[:6], objects.LABELS[:6], objects.LABEL_LISTS[:6]
FAST = {"few_shot": True, "epochs": 4, "learning_rate": 0.005, "verbose": 0, "seed": 0}


def test_there_are_as_many_pairs_of_equal_labels_as_of_different_ones():
    # As the ContrastiveDataset of setfit 1.2.0 counts them: 3 + 6 pairs of equal labels and 6 of
    # different ones, which are repeated up to 9.
    first, second, alike = contrastive_pairs(np.array([0, 1, 0, 1, 1]), seed=0)
    assert len(alike) == 18 and alike.sum() == 9 and (first <= second).all()
    pairs = np.stack([first, second], axis=1)
    assert len(np.unique(pairs[alike == 1], axis=0)) == 9
    assert [0, 0] in pairs[alike == 1].tolist()
    assert len(np.unique(pairs[alike == 0], axis=0)) == 6
    # Texts that share one of several labels are alike; one without a label is like none.
    _, _, alike = contrastive_pairs(np.array([[1, 1], [0, 1], [0, 0]], np.float32), seed=0)
    assert len(alike) == 6 and alike.sum() == 3


@pytest.mark.end_to_end
@pytest.mark.parametrize("several", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_a_classifier_learns_from_few_texts_and_is_exported(several, tmp_path):
    keras.utils.set_random_seed(0)
    pooling = ["cls", "mean"] if several else "cls"
    embedder = objects.embedder(pooling=pooling, normalize=True)
    embedder.save_checkpoint(tmp_path / "folder", "sentence_transformers")
    clf = bert_tf.TextClassifier.from_checkpoint(tmp_path / "folder", multi_label=several)
    assert clf.pooling is None and not clf.normalize  # `fit` reads the pooler, as in transformers
    y = LISTS if several else LABELS
    history = clf.fit(TEXTS, y, validation_data=(TEXTS, y), **FAST).history
    assert clf.settings["pooling"] == pooling and clf.normalize
    assert history["loss"][-1] < history["loss"][0]
    assert history["val_micro_f1" if several else "val_accuracy"][0] > 0.8
    # The head is scikit-learn's, on the vectors of an embedder with the same encoder.
    same = bert_tf.TextEmbedder(
        clf.encoder, clf.tokenizer, pooling, True, max_length=clf.max_length
    ).predict(TEXTS)
    targets = [("cat" in each) for each in LISTS] if several else LABELS
    found = LogisticRegression().fit(same, targets).predict_proba(same)
    answers = clf.predict(TEXTS)
    ours = [each["probabilities"]["cat" if several else "good"] for each in answers]
    np.testing.assert_allclose(ours, found[:, 1], atol=2e-3)
    clf.save(tmp_path / "few.keras")
    clf.export(tmp_path / "exported")
    clf.save_checkpoint(tmp_path / "checkpoint", "huggingface")
    clf.export(tmp_path / "few.tflite", format="litert", inputs="strings")
    for name in ("few.keras", "exported", "checkpoint", "few.tflite"):
        again = bert_tf.load(tmp_path / name).predict(TEXTS)
        for one, other in zip(answers, again, strict=True):
            for label, probability in one["probabilities"].items():
                assert other["probabilities"][label] == pytest.approx(probability, abs=1e-4), name


@pytest.mark.end_to_end
def test_without_an_embedder_the_mean_is_pooled_and_an_adapter_may_be_trained(tmp_path, capsys):
    clf = objects.classifier()
    before = clf.encoder.embeddings.weights[0].numpy()
    clf.fit(["cat", "dog"], ["a", "b"], lora=2, **FAST)  # one example of each
    said = capsys.readouterr().err
    assert "reads pooling='mean'" in said and "4 pairs of 2 texts" in said
    assert np.array_equal(before, clf.encoder.embeddings.weights[0].numpy())
    clf.save_adapter(tmp_path / "adapter")
    assert [each["label"] for each in clf.predict(["cat", "dog"])] == ["a", "b"]


@pytest.mark.end_to_end
def test_a_run_from_yaml(tmp_path):
    path = tiny.write_finetuning(tmp_path)
    settings = ["train.few_shot=true", "train.epochs=1", "data.train_rows=8"]
    config = load_config(path, [*settings, "train.checkpoint_steps=1000"])
    metrics = runs.finetune(config, tmp_path / "run")
    assert metrics["accuracy"] > 0.5
    assert runs.finetune(config, tmp_path / "run") == metrics  # nothing is trained again
    assert bert_tf.load(tmp_path / "run").settings["pooling"] == "mean"
    for more, message in (
        ("train.keep=best", "train.keep has no effect with train.few_shot"),
        ("train.epochs=1.5", "train.epochs must be a whole number"),
        ("data.class_weights=balanced", "data.class_weights has no effect with train.few_shot"),
    ):
        with pytest.raises(UserError, match=message):
            load_config(path, [*settings, "train.checkpoint_steps=1000", more])


@pytest.mark.parametrize(
    ("x", "y", "options", "message"),
    [
        ((TEXTS, TEXTS), LABELS, {}, "compares single texts; give a list of them"),
        (TEXTS, LABELS, {"class_weight": {"good": 2}}, "class_weight has no effect with few_shot"),
        (TEXTS, LABELS, {"validation_data": TEXTS}, "validation_data must be a pair"),
        (TEXTS[:1], ["good"], {}, "only one label, 'good'"),
        (TEXTS[:2], ["yes", "no"], {"labels": ["yes", "no", "maybe"]}, "no text has the label"),
        (["cat"] * 2001, ["a", "b"] * 1000 + ["a"], {}, "at most 2000, but there are 2001 texts"),
    ],
)
def test_what_cannot_be_learned_from_is_one_sentence(x, y, options, message):
    clf = objects.classifier(labels=options.pop("labels", None))
    with pytest.raises(UserError, match=message):
        clf.fit(x, y, **FAST | options)
    clf = objects.multi_labeller(labels=["a", "b"])
    with pytest.raises(UserError, match="all texts have the label 'a'; few_shot requires"):
        clf.fit(["cat", "dog"], [["a"], ["a", "b"]], **FAST)
    with pytest.raises(UserError, match="is for a TextClassifier, not for a TextRegressor; remove"):
        objects.regressor().fit(TEXTS, [1.0] * len(TEXTS), **FAST)
