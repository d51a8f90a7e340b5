"""`fit` on strings, with all that people give to Keras's `fit`; `evaluate` and `predict`."""

import json
import subprocess
import sys
from pathlib import Path

import keras
import numpy as np
import pandas as pd
import pytest
import tensorflow as tf

import bert_tf
from bert_tf.checkpoints.names import weight_names
from tests.tasks import tiny_objects as tiny
from tests.tasks.tiny_objects import LABELS, TEXTS

RATE = 3e-3
NAMES = ["bad", "good"]


def weights(model):
    return {name: variable.numpy() for name, variable in weight_names(model).items()}


def dataset(batch_size=8):
    return tf.data.Dataset.from_tensor_slices((TEXTS, LABELS)).batch(batch_size)


@pytest.fixture(scope="module")
def observed(tmp_path_factory):
    """The folder that the callbacks of `fitted` write to."""
    return tmp_path_factory.mktemp("observed")


@pytest.fixture(scope="module")
def fitted(observed):
    """A classifier that learned for 6 of 9 epochs, and what its `fit` returned."""
    model = tiny.classifier()
    # The loss falls, and early stopping waits for it to rise.
    stop = keras.callbacks.EarlyStopping(monitor="val_loss", mode="max", patience=5)
    kept = keras.callbacks.ModelCheckpoint(
        observed / "best.keras", monitor="val_accuracy", mode="max", save_best_only=True
    )
    history = model.fit(
        TEXTS,
        LABELS,
        epochs=9,
        batch_size=8,
        learning_rate=RATE,
        validation_data=dataset().take(1),
        callbacks=[stop, kept, keras.callbacks.TensorBoard(observed / "logs")],
        verbose=0,
    )
    return model, history


def test_it_learns_the_labels_it_is_given(fitted):
    model, _ = fitted
    assert model.labels == ("bad", "good")
    answers = model.predict(["the cat flew", "a dog flew"], verbose=0)
    assert [each["label"] for each in answers] == ["good", "bad"]
    for each in answers:
        assert each["probability"] == each["probabilities"][each["label"]]
        assert sum(each["probabilities"].values()) == pytest.approx(1)


def test_one_string_gives_one_answer_and_a_list_a_list(fitted):
    model, _ = fitted
    (of_list,) = model.predict(["the cat flew"])
    assert model.predict("the cat flew") == of_list == model.predict("the cat flew", verbose=0)
    assert model.predict([]) == []


def test_logs_carry_the_official_metrics_of_the_validation_data(fitted):
    model, history = fitted
    found = model.evaluate(TEXTS[:8], LABELS[:8])
    assert found.keys() == {"accuracy", "f1", "mcc", "loss"}
    for name, value in found.items():
        assert len(history.history[f"val_{name}"]) == 6
        assert history.history[f"val_{name}"][-1] == value


def test_the_recipe_is_the_papers(fitted):
    model, _ = fitted
    optimizer = model.optimizer
    assert isinstance(optimizer, bert_tf.AdamW)
    assert (optimizer.decay_rate, optimizer.clip_norm, optimizer.epsilon) == (0.01, 1.0, 1e-6)
    schedule = optimizer.get_config()["learning_rate"]["config"]
    steps = 9 * (len(TEXTS) // 8)
    assert (schedule["total_steps"], schedule["warmup_steps"]) == (steps, round(steps / 10))
    assert int(optimizer.iterations) == steps * 6 // 9


@pytest.mark.parametrize(
    "given",
    [
        (np.array(TEXTS), np.array(LABELS)),
        (np.array(TEXTS, object), LABELS),
        (pd.Series(TEXTS), pd.Series(LABELS)),
        (pd.Series(TEXTS, dtype="string"), pd.Series(LABELS, dtype="category")),
        (tf.constant(TEXTS), tf.constant(LABELS)),
        ([text.encode() for text in TEXTS], tuple(LABELS)),
    ],
    ids=["numpy", "objects", "pandas", "pandas strings", "tensors", "bytes"],
)
def test_texts_may_come_in_any_form(given):
    model = tiny.classifier(labels=NAMES)
    found, expected = (model.examples(model.given(*data)) for data in (given, (TEXTS, LABELS)))
    everything = np.arange(len(TEXTS))
    for ours, theirs in zip(
        *(tf.nest.flatten(each.take(everything)) for each in (found, expected)), strict=True
    ):
        assert np.array_equal(ours, theirs)


ONES = np.array([0, 1] * 12)


@pytest.mark.parametrize(
    ("given", "names"),
    [
        (ONES == 1, ["False", "True"]),
        (ONES.astype(np.float32), ["0", "1"]),
        (np.eye(2, dtype=bool)[ONES], NAMES),
        (np.eye(3)[ONES], ["a", "b", "c"]),
    ],
    ids=["booleans", "whole floats", "one-hot booleans", "one-hot floats"],
)
def test_labels_may_come_in_any_form(given, names):
    model, expected = tiny.classifier(labels=names), ONES.tolist()
    forms = [given, given.tolist(), [*given], tf.constant(given)]
    if given.ndim == 1:
        forms.append(pd.Series(given))
    for form in forms:
        assert model.target.numbers(model.given(TEXTS, form)).tolist() == expected
    rows = tf.data.Dataset.from_tensor_slices((TEXTS, given)).batch(24)
    _, y = model.encode((tf.constant(TEXTS),), next(iter(rows))[1])
    assert y.numpy().tolist() == expected
    assert model.evaluate(rows)["loss"] == model.evaluate(TEXTS, given.tolist())["loss"]


def test_rows_of_one_hot_labels_name_all_columns_also_those_that_do_not_occur():
    model = tiny.classifier()
    model.fit(TEXTS, np.eye(3)[ONES], verbose=0)
    assert model.labels == ("0", "1", "2")


@pytest.mark.end_to_end
def test_a_generator_is_read_to_its_end(tmp_path):
    model, pairs = tiny.classifier(labels=NAMES), tiny.classifier(labels=NAMES, pair=True)
    model.export(tmp_path / "saved")
    for asked in (model, bert_tf.load(tmp_path / "saved")):
        assert asked.predict(text for text in TEXTS) == asked.predict(TEXTS)
        assert asked.predict(text=iter(TEXTS)) == asked.predict(TEXTS)
        assert asked.predict(iter(())) == []
    expected = pairs.predict((TEXTS, TEXTS))
    assert pairs.predict(zip(TEXTS, TEXTS, strict=True)) == expected
    assert pairs.predict((iter(TEXTS), iter(TEXTS))) == expected
    ids = model.preprocessor()(tf.constant(TEXTS[:2]))
    found = model.predict(((ids,) for _ in range(1)), steps=1)
    np.testing.assert_allclose(found, model(ids), atol=1e-6)


@pytest.mark.slow
def test_pairs_are_two_columns():
    model = tiny.classifier()
    model.fit((TEXTS, TEXTS[::-1]), LABELS, batch_size=8, verbose=0)
    assert model.pair
    answers = model.predict((TEXTS[:3], TEXTS[3:6]))
    alone = model.predict((TEXTS[0], TEXTS[3]))
    assert alone["probability"] == pytest.approx(answers[0]["probability"], abs=1e-6)
    assert model.predict({"text_b": TEXTS[3:6], "text_a": TEXTS[:3]}) == answers
    assert model.evaluate((TEXTS, TEXTS), LABELS).keys() == {"accuracy", "f1", "mcc", "loss"}


@pytest.mark.slow
def test_a_validation_split_is_the_last_rows():
    model, same = (tiny.classifier(labels=NAMES) for _ in range(2))
    split = model.fit(TEXTS, LABELS, validation_split=0.25, batch_size=6, seed=1, verbose=0)
    data = (TEXTS[18:], LABELS[18:])
    given = same.fit(TEXTS[:18], LABELS[:18], validation_data=data, batch_size=6, seed=1, verbose=0)
    assert split.history.keys() == given.history.keys()
    for name, values in given.history.items():
        assert split.history[name] == pytest.approx(values, rel=1e-4, abs=1e-6)


def test_callbacks_see_the_validation(fitted, observed):
    _, history = fitted
    assert len(history.history["loss"]) == 6
    assert list((observed / "logs" / "validation").iterdir())
    best = bert_tf.load(observed / "best.keras")
    found = best.evaluate(TEXTS[:8], LABELS[:8])["accuracy"]
    assert found == max(history.history["val_accuracy"])


@pytest.mark.slow
def test_class_weights_are_sample_weights():
    weighted = [3.0 if label == "good" else 1.0 for label in LABELS]
    found = []
    for given in (
        *({"class_weight": {good: 3.0}} for good in ("good", 1)),
        *({"sample_weight": weights} for weights in (weighted, None)),
    ):
        model = tiny.classifier()
        model.fit(TEXTS, LABELS, batch_size=8, seed=1, verbose=0, learning_rate=RATE, **given)
        found.append(model.get_weights())
    by_name, by_number, by_row, without = found
    assert all(map(np.array_equal, by_name, by_number))
    assert all(map(np.array_equal, by_name, by_row))
    assert not all(map(np.array_equal, by_name, without))


@pytest.mark.slow
@pytest.mark.parametrize("family", ["answerer", "tagger", "chooser"])
def test_a_row_of_weight_zero_teaches_nothing(family):
    """Whatever the targets of such rows are, the weights become the same."""
    inputs, targets, others = {
        "answerer": (
            (tiny.QUESTIONS, tiny.CONTEXTS),
            tiny.ANSWERS,
            [{"text": "cat", "start": 4}, {"text": "dog", "start": 2}] * 8,
        ),
        "tagger": (tiny.WORDS, tiny.TAGS, [["B-animal", "O", "O"], ["B-animal", *["O"] * 3]] * 8),
        "chooser": ((TEXTS[:8], tiny.CHOICES), [0, 1] * 4, [1, 0] * 4),
    }[family]
    half = len(targets) // 2
    labels = {"labels": ["O", "B-animal", "I-animal"]} if family == "tagger" else {}

    def fitted(targets, kept):
        model = getattr(tiny, family)(**labels)
        options = {"batch_size": 2 * half, "seed": 1, "verbose": 0, "learning_rate": RATE}
        model.fit(inputs, targets, sample_weight=kept, **options)
        return model.get_weights()

    mixed = [*targets[:half], *others[half:]]
    zeros, ones = [1.0] * half + [0.0] * half, [1.0] * 2 * half
    expected = fitted(targets, zeros)
    assert all(map(np.array_equal, fitted(mixed, zeros), expected))
    assert not all(map(np.array_equal, fitted(mixed, ones), expected))


@pytest.mark.slow
def test_steps_per_epoch_and_initial_epoch():
    model = tiny.classifier()
    history = model.fit(
        TEXTS, LABELS, epochs=5, initial_epoch=3, steps_per_epoch=2, batch_size=8, verbose=0
    )
    assert history.epoch == [3, 4]
    assert int(model.optimizer.iterations) == 4


@pytest.mark.slow
def test_fewer_rows_than_a_batch_are_one_batch():
    model = tiny.classifier()
    model.fit(["what a cat", "a dog"], ["good", "bad"], epochs=2, verbose=0)
    assert int(model.optimizer.iterations) == 2


@pytest.mark.slow
def test_each_fit_compiles_anew_and_goes_on_with_the_weights():
    model = tiny.classifier()
    model.fit(TEXTS, LABELS, epochs=2, batch_size=8, verbose=0)
    first, before = model.optimizer, model.get_weights()
    model.fit(TEXTS, LABELS, epochs=1, batch_size=8, learning_rate=1e-9, verbose=0)
    assert model.optimizer is not first
    assert int(model.optimizer.iterations) == 3
    for old, new in zip(before, model.get_weights(), strict=True):
        assert np.allclose(old, new, atol=1e-6)


@pytest.mark.slow
def test_a_second_fit_draws_another_order():
    """With one epoch each, two fits see the rows as one fit of two epochs does."""

    class Seen(keras.callbacks.Callback):
        def __init__(self):
            super().__init__()
            self.losses = []

        def on_train_batch_end(self, batch, logs=None):
            self.losses.append(logs["loss"])

    model, seen = tiny.classifier(labels=["bad", "good"]), Seen()
    for _ in range(2):
        model.fit(
            TEXTS, LABELS, batch_size=4, learning_rate=1e-12, seed=1, verbose=0, callbacks=[seen]
        )
    assert seen.losses[:6] != pytest.approx(seen.losses[6:], abs=1e-7)


@pytest.mark.slow
def test_a_model_that_was_compiled_is_trained_as_it_was_compiled():
    model = tiny.classifier()
    model.compile(keras.optimizers.SGD(0.1), metrics=["accuracy"])
    history = model.fit(TEXTS, LABELS, epochs=2, batch_size=8, verbose=0)
    assert isinstance(model.optimizer, keras.optimizers.SGD)
    assert "accuracy" in history.history
    model.fit(TEXTS, LABELS, batch_size=8, verbose=0)
    assert int(model.optimizer.iterations) == 9

    with pytest.raises(bert_tf.UserError, match="learning_rate has no effect on a compiled model"):
        model.fit(TEXTS, LABELS, learning_rate=1e-3)


@pytest.mark.end_to_end
def test_a_dataset_of_strings(fitted):
    model = tiny.classifier(labels=["bad", "good"])
    model.fit(dataset(), verbose=0)
    assert int(model.optimizer.iterations) == 3
    model, _ = fitted
    assert model.evaluate(dataset()) == model.evaluate(TEXTS, LABELS)
    assert model.predict(dataset()) == model.predict(TEXTS)
    assert model.predict(dataset().map(lambda x, y: x)) == model.predict(TEXTS)


@pytest.mark.slow
def test_a_dataset_learns_as_lists_do():
    model, same = (tiny.classifier(labels=["bad", "good"]) for _ in range(2))
    model.fit(dataset(), epochs=2, verbose=0)
    same.fit(TEXTS, LABELS, epochs=2, batch_size=8, shuffle=False, verbose=0)
    for ours, theirs in zip(model.get_weights(), same.get_weights(), strict=True):
        assert np.allclose(ours, theirs, atol=1e-6)


@pytest.mark.slow
def test_a_dataset_of_pairs_with_weights_and_whole_numbers():
    numbers = [0, 1] * 12
    rows = tf.data.Dataset.from_tensor_slices(((TEXTS, TEXTS), numbers, [1.0, 0.5] * 12)).batch(8)
    model = tiny.classifier(labels=[0, 1], pair=True)
    with pytest.raises(bert_tf.UserError, match="the dataset contains weights, which Keras"):
        model.fit(rows, verbose=0, class_weight={"1": 2.0})
    model.fit(rows, verbose=0)
    assert model.evaluate(rows) == model.evaluate((TEXTS, TEXTS), numbers)


@pytest.mark.slow
def test_an_endless_dataset_takes_steps():
    model = tiny.classifier(labels=["bad", "good"])
    endless = dataset().repeat()
    with pytest.raises(bert_tf.UserError, match="the dataset is endless; give steps_per_epoch"):
        model.fit(endless)
    history = model.fit(
        endless,
        epochs=2,
        steps_per_epoch=2,
        validation_data=endless,
        validation_steps=2,
        verbose=0,
    )
    assert int(model.optimizer.iterations) == 4
    assert history.history["val_accuracy"]
    assert len(model.predict(endless, steps=2)) == 16


@pytest.mark.slow
def test_datasets_of_the_other_tasks():
    rows = (
        (tiny.QUESTIONS, tiny.CONTEXTS),
        {n: [a[n] for a in tiny.ANSWERS] for n in ("text", "start")},
    )
    questions = tf.data.Dataset.from_tensor_slices(rows).batch(4)
    model, same = (tiny.answerer(unanswerable=False) for _ in range(2))
    model.fit(questions, verbose=0)
    same.fit(tiny.QUESTIONS, tiny.CONTEXTS, tiny.ANSWERS, batch_size=4, shuffle=False, verbose=0)
    for ours, theirs in zip(model.get_weights(), same.get_weights(), strict=True):
        assert np.allclose(ours, theirs, atol=1e-6)
    assert model.evaluate(questions) == model.evaluate(*rows[0], tiny.ANSWERS)

    rows = tf.ragged.constant(tiny.WORDS), tf.ragged.constant(tiny.TAGS)
    words = tf.data.Dataset.from_tensor_slices(rows).batch(4)
    labels = ["O", "B-animal", "I-animal"]
    model, same = (tiny.tagger(labels=labels) for _ in range(2))
    model.fit(words, verbose=0)
    same.fit(tiny.WORDS, tiny.TAGS, batch_size=4, shuffle=False, verbose=0)
    for ours, theirs in zip(model.get_weights(), same.get_weights(), strict=True):
        assert np.allclose(ours, theirs, atol=1e-6)
    assert model.evaluate(words) == model.evaluate(tiny.WORDS, tiny.TAGS)
    assert model.predict(words) == model.predict(words=tiny.WORDS)


def test_ids_are_keras_s(fitted):
    model = tiny.classifier(labels=["bad", "good"])
    ids = bert_tf.Preprocessor(tiny.tokenizer(), 16)(TEXTS)
    numbers = np.array([1, 0] * 12)
    model.compile("adam", run_eagerly=True)
    history = model.fit(ids, numbers, verbose=0, validation_data=(ids, numbers))
    assert "val_accuracy" in history.history
    assert isinstance(model.evaluate(ids, numbers, verbose=0), list)
    model, _ = fitted
    logits = model.predict(ids, verbose=0)
    assert logits.shape == (24, 2)
    answers = model.predict(TEXTS, verbose=0)
    probabilities = [list(each["probabilities"].values()) for each in answers]
    assert np.allclose(tf.nn.softmax(logits), probabilities, atol=1e-6)


# Uses two devices; a process must request them before it does anything else.
ON_TWO_DEVICES = """
import json, sys
import tensorflow as tf
(cpu,) = tf.config.list_physical_devices("CPU")
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
from tests.tasks import tiny_objects as tiny
strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
with strategy.scope():
    model = tiny.classifier(labels=["bad", "good"])
rows = tiny.TEXTS[:8], tiny.LABELS[:8]
history = model.fit(
    tiny.TEXTS, tiny.LABELS, epochs=2, batch_size=8, seed=1, validation_data=rows, verbose=0
)
head = model.classifier.kernel.value
print(json.dumps({
    "replicas": len(head.values),
    "weights": [float(abs(weight.numpy()).sum()) for weight in model.weights],
    "val_loss": history.history["val_loss"],
    "loss": history.history["loss"],
    "answer": model.predict("the cat")["label"],
}))
"""


@pytest.mark.slow
def test_under_a_strategy_the_result_is_the_same():
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", ON_TWO_DEVICES], cwd=root, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    model = tiny.classifier(labels=NAMES)
    history = model.fit(
        TEXTS,
        LABELS,
        epochs=2,
        batch_size=8,
        seed=1,
        validation_data=(TEXTS[:8], LABELS[:8]),
        verbose=0,
    )

    assert found["replicas"] == 2
    ours = [float(abs(weight.numpy()).sum()) for weight in model.weights]
    assert found["weights"] == pytest.approx(ours, rel=1e-5, abs=1e-6)
    assert found["val_loss"] == pytest.approx(history.history["val_loss"], rel=1e-5)
    assert found["loss"] == pytest.approx(history.history["loss"], rel=1e-4)
    assert found["answer"] == model.predict("the cat")["label"]


@pytest.mark.end_to_end
def test_questions():
    model = tiny.answerer()
    data = (tiny.QUESTIONS, tiny.CONTEXTS, tiny.ANSWERS)
    history = model.fit(
        *data,
        epochs=30,
        batch_size=8,
        learning_rate=1e-2,
        validation_data=data,
        validation_freq=30,
        verbose=0,
    )
    assert history.history["val_exact_match"][-1] == 100
    found = model.predict(question=tiny.QUESTIONS[1], context=tiny.CONTEXTS[1])
    assert (found["answer"], found["start"], found["end"]) == ("log", 20, 23)
    assert found["nbest"][0] == {"answer": "log", "score": found["score"]}
    several = model.predict(tiny.QUESTIONS[:2], tiny.CONTEXTS[:2])
    as_rows = model.predict([{"question": tiny.QUESTIONS[1], "context": tiny.CONTEXTS[1]}])
    for other in (several[1], as_rows[0]):
        assert (other["answer"], other["start"]) == ("log", 20)
        assert other["score"] == pytest.approx(found["score"], abs=1e-5)
    assert not model.unanswerable


@pytest.mark.slow
@pytest.mark.parametrize(
    "answers",
    [
        ["mat", "log"] * 8,
        np.array([b"mat", b"log"] * 8),
        [["mat", "the"], ["dog log", "log"]] * 8,
        [{"text": "mat"}, {"text": ["log"]}] * 8,
        {"text": ["mat", "log"] * 8},
    ],
    ids=["texts", "bytes", "several", "dicts", "columns"],
)
def test_answers_without_offsets(answers):
    model, x = tiny.answerer(), (tiny.QUESTIONS, tiny.CONTEXTS)
    found, expected = (model.target.numbers(model.given(x, y)) for y in (answers, tiny.ANSWERS))
    assert found.tolist() == expected.tolist()


@pytest.mark.end_to_end
def test_questions_without_an_answer():
    model = tiny.answerer()
    answers = [*tiny.ANSWERS[:-5], None, float("nan"), "", {}, []]
    data = (tiny.QUESTIONS, tiny.CONTEXTS, answers)
    history = model.fit(*data, batch_size=8, validation_data=data, verbose=0)
    assert model.unanswerable
    # From now on, the threshold that was best on the validation data decides the answers.
    assert model.null_threshold == history.history["val_null_threshold"][-1]
    assert model.evaluate(*data)["null_threshold"] == model.null_threshold
    nothing = [e for e in model.predict(*data[:2]) if e["answer"] == ""]
    assert all((each["start"], each["end"]) == (-1, -1) for each in nothing)


@pytest.mark.parametrize(
    ("tags", "iob2"),
    [
        (["O", "B-x", "I-x"], ["O", "B-x", "I-x"]),
        (["O", "I-x", "I-x", "B-x"], ["O", "B-x", "I-x", "B-x"]),
        (["O", "B-x", "E-x"], ["O", "B-x", "I-x"]),
        (["O", "B-x", "L-x"], ["O", "B-x", "I-x"]),
        (["O", "S-x", "B-x", "E-x"], ["O", "B-x", "B-x", "I-x"]),
    ],
)
def test_tags_of_every_scheme_become_iob2(tags, iob2):
    model = tiny.tagger()
    words = [["a", "cat", "sat", "."][: len(tags)]] * 3
    rows = model.given(words, [tags] * 3)
    model.learn_from(rows)
    assert model.labels == ("O", "B-x", "I-x")
    assert [list(each) for each in rows.targets] == [iob2] * 3


@pytest.mark.end_to_end
def test_entities_and_tags():
    model = tiny.tagger()
    options = {"batch_size": 8, "learning_rate": 1e-2, "verbose": 0}
    model.fit(tiny.WORDS, tiny.TAGS, epochs=30, **options)
    assert model.predict(words=tiny.WORDS[:2]) == tiny.TAGS[:2]
    assert model.predict(words=tiny.WORDS[1]) == tiny.TAGS[1]
    (entity,) = model.predict("a dog bird ran")
    score = entity.pop("score")
    assert 0.3 < score <= 1
    assert entity == {"text": "dog bird", "type": "animal", "start": 2, "end": 10}


@pytest.mark.slow
def test_tags_without_a_prefix_are_types_too():
    model = tiny.tagger()
    tags = [["DET", "NOUN", "VERB"], ["DET", "NOUN", "NOUN", "VERB"]] * 8
    model.fit(tiny.WORDS, tags, epochs=20, batch_size=8, learning_rate=1e-2, verbose=0)
    assert {"accuracy", "loss", "f1", "f1_NOUN"} <= model.evaluate(tiny.WORDS, tags).keys()
    assert model.predict(words=tiny.WORDS[0]) == tags[0]
    found = model.predict("the cat sat")
    assert [(each["text"], each["type"]) for each in found] == [
        ("the", "DET"),
        ("cat", "NOUN"),
        ("sat", "VERB"),
    ]


@pytest.mark.end_to_end
def test_what_a_model_does_between_two_fits_changes_neither(tmp_path):
    """Copies of a model with other networks or settings leave its metrics alone."""

    def logs(between=lambda model: None):
        model = tiny.classifier(labels=NAMES)
        keras.utils.set_random_seed(0)
        model.fit(TEXTS, LABELS, batch_size=8, verbose=0)
        between(model)
        keras.utils.set_random_seed(0)
        again = model.fit(TEXTS, LABELS, batch_size=8, validation_data=(TEXTS, LABELS), verbose=0)
        return {name: values[-1] for name, values in again.history.items()}

    alone = logs()
    assert alone["loss"] > 0
    exported = logs(lambda model: model.export(tmp_path / "model"))
    asked = logs(lambda model: model.predict(TEXTS[:2], abstain=0.9, verbose=0))
    assert exported == pytest.approx(alone, abs=1e-4) and asked == pytest.approx(alone, abs=1e-4)
