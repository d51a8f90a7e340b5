"""Keras's own callbacks do with our models and optimizers what they do with any."""

import random

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import callbacks

from bert_tf import AdamW, Encoder, Preprocessor, TextClassifier, TokenClassifier
from tests import tiny

EPOCHS, STEPS = 3, 4
RATE = 0.003


@pytest.fixture(scope="module")
def inputs():
    """What the encoder takes, for 32 texts in batches of 8."""
    source = random.Random(0)
    texts = [("cat ", "dog ")[i % 2] + tiny.sentence(source, 4) for i in range(8 * STEPS)]
    tokenizer = tiny.tokenizer()
    preprocess = Preprocessor(tokenizer, max_length=16)
    return tf.data.Dataset.from_tensor_slices(texts).batch(8).map(preprocess).cache()


@pytest.fixture(scope="module")
def texts(inputs):
    """Texts with a label."""
    return inputs.map(lambda x: (x, tf.range(8) % 2))


@pytest.fixture(scope="module")
def words(inputs):
    """Texts with a tag for each word."""
    return inputs.map(lambda x: (x, tf.where(x["input_mask"] > 0, x["input_word_ids"] % 3, -1)))


def encoder():
    keras.utils.set_random_seed(1)
    return Encoder(tiny.encoder_config(initializer_range=0.1, **tiny.NO_DROPOUT))


def classifier(**options):
    model = TextClassifier(encoder(), None, range(2))
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(AdamW(RATE), loss, metrics=["accuracy"], **options)
    return model


def tagger():
    model = TokenClassifier(encoder(), None, range(3))
    model.compile(AdamW(RATE))
    return model


def fit(model, data, *observers, epochs=EPOCHS, **options):
    options |= {"shuffle": False, "verbose": 0}
    return model.fit(data, epochs=epochs, callbacks=list(observers), **options).history


def check_equal(one, other):
    for a, b in zip(one, other, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.slow
@pytest.mark.parametrize(("make", "labels"), [(classifier, "texts"), (tagger, "words")])
def test_what_is_saved_is_the_model_with_its_optimizer(make, labels, tmp_path, request):
    data, model = request.getfixturevalue(labels), make()
    history = fit(
        model,
        data,
        callbacks.TensorBoard(tmp_path / "logs", histogram_freq=1, update_freq=1),
        callbacks.ModelCheckpoint(tmp_path / "model.keras"),
        callbacks.ModelCheckpoint(tmp_path / "{epoch}.weights.h5", save_weights_only=True),
        validation_data=data,
    )
    assert {"accuracy", "loss", "val_accuracy", "val_loss"} == set(history)
    saved = keras.saving.load_model(tmp_path / "model.keras")
    check_equal(saved.get_weights(), model.get_weights())
    check_equal(saved.optimizer.variables, model.optimizer.variables)
    assert int(saved.optimizer.iterations) == EPOCHS * STEPS
    last = make()
    last.optimizer.build(last.trainable_variables)
    last.load_weights(tmp_path / f"{EPOCHS}.weights.h5")
    check_equal(last.get_weights(), model.get_weights())
    check_equal(last.optimizer.variables, model.optimizer.variables)


@pytest.mark.end_to_end
def test_a_schedule_moves_the_rate_and_the_best_weights_come_back(texts, tmp_path):
    # After two epochs that teach, steps so large that all is lost.
    rates = [RATE, RATE, 3.0, 3.0, 3.0, 3.0]
    model = classifier()
    history = fit(
        model,
        texts,
        callbacks.LearningRateScheduler(lambda epoch, rate: rates[epoch]),
        callbacks.EarlyStopping(monitor="val_loss", patience=2, restore_best_weights=True),
        callbacks.ModelCheckpoint(tmp_path / "best.keras", save_best_only=True),
        validation_data=texts,
        epochs=6,
    )
    assert history["learning_rate"] == pytest.approx(rates[:4])
    assert int(np.argmin(history["val_loss"])) == 1
    best = model.evaluate(texts, verbose=0, return_dict=True)
    assert best["loss"] == pytest.approx(min(history["val_loss"]), rel=1e-6)
    check_equal(keras.saving.load_model(tmp_path / "best.keras").get_weights(), model.get_weights())


@pytest.mark.slow
def test_what_was_interrupted_ends_as_if_it_was_not(texts, tmp_path):
    class Interrupt(callbacks.Callback):
        def on_epoch_begin(self, epoch, logs=None):
            if epoch == 2:
                raise KeyboardInterrupt

    undisturbed = classifier()
    fit(undisturbed, texts)
    with pytest.raises(KeyboardInterrupt):
        fit(classifier(), texts, callbacks.BackupAndRestore(tmp_path), Interrupt())
    resumed = classifier()
    history = fit(resumed, texts, callbacks.BackupAndRestore(tmp_path))
    assert len(history["loss"]) == EPOCHS - 2
    check_equal(resumed.get_weights(), undisturbed.get_weights())
