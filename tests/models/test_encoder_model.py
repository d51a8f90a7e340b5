"""What Keras users do with a model: metrics, losses of their own, more layers, `export`."""

import gc
import weakref

import keras
import numpy as np
import pytest
import tensorflow as tf

from bert_tf import TextClassifier, TextRegressor, TokenClassifier
from bert_tf.encoder.ablations import encoder_for
from bert_tf.encoder.config import EncoderConfig
from bert_tf.encoder.encoder import Encoder
from bert_tf.errors import UserError
from bert_tf.models.pretrainer import PreTrainer
from bert_tf.optimization import AdamW
from tests import tiny

CONFIG = tiny.encoder_config(
    vocab_size=1000, initializer_range=0.3, max_position_embeddings=12, **tiny.NO_DROPOUT
)
TARGETS = np.array([0.5, 2.0, -1.0, 0.0, 3.0], np.float32)


def inputs(rows: int = 5) -> dict[str, np.ndarray]:
    random = np.random.RandomState(0)
    return {
        "input_word_ids": random.randint(900, 1000, (rows, 7)).astype(np.int32),
        "input_mask": (np.arange(7) < random.randint(2, 8, (rows, 1))).astype(np.int32),
        "input_type_ids": np.zeros((rows, 7), np.int32),
    }


def test_loss_and_metrics_of_a_regression_are_those_of_its_rows():
    model = TextRegressor(Encoder(CONFIG), None)
    errors = np.abs(model(inputs()).numpy() - TARGETS)
    model.compile(AdamW(1e-3), "mse", metrics=["mae"], weighted_metrics=["mse"], run_eagerly=True)
    weights = np.array([1.0, 2.0, 0.0, 1.0, 4.0])
    # The last batch has a row alone.
    found = model.evaluate(
        inputs(), TARGETS, sample_weight=weights, batch_size=2, verbose=0, return_dict=True
    )
    assert found["loss"] == pytest.approx((errors**2 * weights).mean(), rel=1e-5)
    assert found["mae"] == pytest.approx(errors.mean(), rel=1e-5)
    assert found["mse"] == pytest.approx((errors**2 * weights).sum() / weights.sum(), rel=1e-5)


class TenTimes(TextRegressor):
    """A model whose loss the user computes, as Keras documents it."""

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        return 10 * super().compute_loss(x, y, y_pred, sample_weight, training)


def test_a_loss_that_a_subclass_computes_is_taken():
    encoder = Encoder(CONFIG)
    models = [TextRegressor(encoder, None), TenTimes(encoder, None)]
    models[1].set_weights(models[0].get_weights())
    losses = []
    for model in models:
        model.compile(keras.optimizers.SGD(0.0), "mse", run_eagerly=True)
        losses.append(model.evaluate(inputs(), TARGETS, verbose=0))
        history = model.fit(inputs(), TARGETS, verbose=0).history
        assert history["loss"][0] == pytest.approx(losses[-1], rel=1e-5)
    assert losses[1] == pytest.approx(10 * losses[0], rel=1e-5)
    models[1].compile("sgd", "mse", accumulation_steps=2, run_eagerly=True)
    with pytest.raises(
        UserError,
        match="compute_loss of TenTimes cannot be computed over parts of a batch; override part",
    ):
        models[1].fit(inputs(), TARGETS, verbose=0)


class WithMore(TokenClassifier):
    """A model with one more layer, which adds to the loss."""

    def __init__(self, encoder, tokenizer=None, labels=range(3), **kwargs):
        super().__init__(encoder, tokenizer, labels, **kwargs)
        self.more = keras.layers.Dense(3, name="more")

    def call(self, inputs, training=False):
        self.add_loss(tf.constant(100.0))
        return self.more(super().call(inputs, training=training))


@pytest.mark.parametrize("parts", [1, 2])
def test_a_subclass_may_have_layers_and_losses_of_its_own(parts):
    model = WithMore(Encoder(CONFIG))
    labels = np.where(inputs()["input_mask"], 1, -1).astype(np.uint8).astype(np.int8)
    model.compile(AdamW(1e-3), accumulation_steps=parts, run_eagerly=True)
    loss = model.fit(inputs(), labels, batch_size=5, verbose=0).history["loss"][0]
    assert 100 < loss < 110
    assert any("more" in weight.path for weight in model.trainable_weights)


@pytest.mark.end_to_end
def test_a_subclass_is_served_as_its_parent_class(tmp_path):
    tokenizer = tiny.tokenizer()
    TenTimes(Encoder(CONFIG), tokenizer).export(tmp_path / "out")
    answer = tf.saved_model.load(tmp_path / "out").signatures["serving_default"]
    assert answer(text=tf.constant(["the cat"]))["score"].shape == (1,)


@pytest.mark.bfloat16
def test_ids_that_come_as_floats_are_not_rounded():
    encoder = Encoder(CONFIG, dtype="mixed_bfloat16")
    expected = encoder(inputs())["pooled_output"]
    floats = {name: tf.cast(value, tf.float32) for name, value in inputs().items()}
    np.testing.assert_array_equal(encoder(floats)["pooled_output"], expected)
    # `keras.Input` without a dtype is of floats.
    symbols = {name: keras.Input((None,), name=name) for name in inputs()}
    model = keras.Model(symbols, encoder(symbols)["pooled_output"])
    np.testing.assert_array_equal(model(inputs()), expected)
    mask = inputs()["input_mask"].astype(bool)
    found = encoder(inputs() | {"input_mask": mask})["pooled_output"]
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (list(inputs().values()), "takes a dict of input_word_ids, .* its type is list"),
        (
            {"input_word_ids": inputs()["input_word_ids"]},
            "the input input_mask is missing; a model takes",
        ),
        ({k: v[None] for k, v in inputs().items()}, r"must have shape \[batch, seq_len\], not"),
        ({k: v[0] for k, v in inputs().items()}, r"must have shape \[batch, seq_len\], not \(7,"),
    ],
)
def test_inputs_of_another_form_are_refused(given, message):
    for model in (Encoder(CONFIG), TextClassifier(Encoder(CONFIG), None, range(2))):
        with pytest.raises(UserError, match=message):
            model(given)


@pytest.mark.slow
def test_a_model_that_was_fitted_is_let_go():
    model = TextRegressor(Encoder(CONFIG), None)
    model.compile(AdamW(1e-3), "mse")
    model.fit(inputs(), TARGETS, verbose=0)
    model.fit({name: value[:, :5] for name, value in inputs().items()}, TARGETS, verbose=0)
    # Keras's own references are by way of the graph, not of the model.
    table = weakref.ref(model.encoder.embeddings.word_embeddings.value)
    del model
    keras.backend.clear_session()
    gc.collect()
    assert table() is None


@pytest.mark.parametrize("layout", ["padded", "unpadded"])
def test_float16_answers_where_attention_goes_one_way(layout):
    config = EncoderConfig(**CONFIG.to_dict() | {"attention": "side_by_side"})
    exact = encoder_for(config, layout)
    encoder = encoder_for(config, layout, dtype="mixed_float16")
    encoder.set_weights(exact.get_weights())
    found = encoder(inputs())["sequence_output"].numpy()
    real = inputs()["input_mask"].astype(bool)
    expected = exact(inputs())["sequence_output"].numpy()
    np.testing.assert_allclose(found[real], expected[real], atol=0.02)


@pytest.mark.slow
def test_keras_own_export_says_what_to_use(tmp_path):
    with pytest.raises(UserError, match="exported from a checkpoint; run bert-tf export"):
        Encoder(CONFIG).export(tmp_path / "out")
    with pytest.raises(UserError, match="a model that takes ids requires an input_signature"):
        PreTrainer(Encoder(CONFIG)).export(tmp_path / "out")
    model = TextClassifier(Encoder(CONFIG), None, range(2))
    with pytest.raises(UserError, match="which holds no vocabulary"):
        model.export(tmp_path / "out")
    spec = {name: keras.InputSpec(shape=(None, None), dtype="int32") for name in inputs()}
    model.export(tmp_path / "out", input_signature=[spec], verbose=False)
    again = tf.saved_model.load(str(tmp_path / "out"))
    np.testing.assert_allclose(again.serve(inputs()), model(inputs()), atol=1e-5)
