"""The models of the task families: shapes, padding, losses, accumulation, configuration."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from bert_tf import MultipleChoice, QuestionAnswerer, TextClassifier, TextRegressor, TokenClassifier
from bert_tf.encoder.ablations import encoder_for
from bert_tf.encoder.config import EncoderConfig
from bert_tf.encoder.encoder import Encoder
from bert_tf.errors import UserError
from bert_tf.models.pretrainer import PreTrainer
from bert_tf.optimization import AdamW, WarmupLinearDecay
from bert_tf.tasks.token_classification.model import FEATURES
from tests import tiny

CONFIG = tiny.encoder_config(
    vocab_size=30,
    num_hidden_layers=4,
    initializer_range=0.3,
    max_position_embeddings=12,
    **tiny.NO_DROPOUT,
)
SHALLOW = EncoderConfig(**CONFIG.to_dict() | {"num_hidden_layers": 1})
LENGTHS = np.array([7, 3, 5, 2])


def inputs(lengths=LENGTHS) -> dict[str, tf.Tensor]:
    random = np.random.RandomState(0)
    shape = (*lengths.shape, 7)
    return {
        "input_word_ids": tf.constant(random.randint(0, 30, shape)),
        "input_mask": tf.constant((np.arange(7) < lengths[..., None]).astype(int)),
        "input_type_ids": tf.constant(random.randint(0, 2, shape)),
    }


def answerer(encoder: Encoder) -> QuestionAnswerer:
    return QuestionAnswerer(encoder, None)


def tagger(features: str) -> TokenClassifier:
    return TokenClassifier(Encoder(CONFIG), None, range(3), features=features, lstm_units=4)


def tags() -> np.ndarray:
    """A different number of tags in every row."""
    random = np.random.RandomState(1)
    labels = random.randint(0, 3, (4, 7))
    return np.where(np.arange(7) < LENGTHS[:, None], labels, -1)


def test_a_span_classifier_gives_padding_no_probability_and_halves_the_loss():
    model = answerer(Encoder(SHALLOW))
    outputs = model(inputs())
    padding = np.arange(7) >= LENGTHS[:, None]
    for name in ("start", "end"):
        assert outputs[name].shape == (4, 7)
        assert np.all(tf.nn.softmax(outputs[name]).numpy()[padding] == 0)
    y = {"start": np.array([0, 1, 2, 0]), "end": np.array([3, 2, 4, 1])}
    model.compile(AdamW(1e-3), run_eagerly=True)
    loss = model.evaluate(inputs(), y, verbose=0, return_dict=True)["loss"]
    parts = [tf.nn.sparse_softmax_cross_entropy_with_logits(y[n], outputs[n]) for n in y]
    assert loss == pytest.approx(float(tf.reduce_mean(parts)), rel=1e-5)


def test_the_tagging_loss_is_the_mean_over_counted_tokens():
    model = TokenClassifier(Encoder(SHALLOW), None, range(3))
    model.compile(AdamW(1e-3), run_eagerly=True)
    result = model.evaluate(inputs(), tags(), verbose=0, return_dict=True)
    logits, counted = model(inputs()).numpy(), tags() >= 0
    assert np.all(logits[~counted] == 0)
    nll = tf.nn.sparse_softmax_cross_entropy_with_logits(tags()[counted], logits[counted])
    assert result["loss"] == pytest.approx(float(tf.reduce_mean(nll)), rel=1e-4)
    right = logits[counted].argmax(-1) == tags()[counted]
    assert result["accuracy"] == pytest.approx(right.mean())


def test_multiple_choice_scores_each_choice_and_none_that_is_missing():
    model = MultipleChoice(Encoder(SHALLOW), None)
    lengths = np.array([[7, 3, 5], [2, 4, 0]])
    logits = model(inputs(lengths))
    assert logits.shape == (2, 3)
    probabilities = tf.nn.softmax(logits).numpy()
    assert probabilities[1, 2] == 0
    assert np.all(probabilities[0] > 0)
    alone = {name: value[1:, :2] for name, value in inputs(lengths).items()}
    np.testing.assert_allclose(tf.nn.softmax(model(alone)), probabilities[1:, :2], atol=1e-6)


@pytest.mark.parametrize("features", FEATURES)
def test_a_feature_tagger_reads_the_layers_that_its_features_name(features):
    model = tagger(features)
    assert model(inputs()).shape == (4, 7, 3)
    seen = []
    model.lstms[0].call = lambda rows, **_: seen.append(rows) or tf.zeros([4, 7, 8])
    model(inputs())
    encoded = model.encoder.encode(inputs())
    layers = [encoded.layout.restore(layer) for layer in (encoded.embeddings, *encoded.layers)]
    expected = {
        "embeddings": layers[0],
        "second_to_last": layers[3],
        "last": layers[4],
        "sum_last_four": tf.add_n(layers[1:]),
        "concat_last_four": tf.concat(layers[1:], -1),
        "sum_all": tf.add_n(layers[1:]),
    }[features]
    np.testing.assert_allclose(seen[0], expected, atol=1e-5)


def test_the_tagger_reads_padding_as_if_it_were_not_there():
    model = tagger("concat_last_four")
    short = {name: value[1:2, :3] for name, value in inputs().items()}
    np.testing.assert_allclose(model(inputs())[1:2, :3], model(short), atol=1e-5)


def test_features_that_need_more_layers_are_refused():
    shallow = EncoderConfig(**CONFIG.to_dict() | {"num_hidden_layers": 2})
    with pytest.raises(UserError, match="require 4 layers, but the encoder has 2"):
        TokenClassifier(Encoder(shallow), None, range(3), features="sum_last_four")


def pretraining_targets() -> tuple[dict, dict]:
    random = np.random.RandomState(2)
    x = inputs() | {"masked_lm_positions": tf.constant(random.randint(0, 2, (4, 3)))}
    y = {
        "masked_lm_ids": tf.constant(random.randint(0, 30, (4, 3)), tf.int32),
        "masked_lm_weights": tf.constant([[1, 1, 1], [1, 0, 0], [0, 0, 0], [1, 1, 0.0]]),
        "next_sentence_labels": tf.constant([0, 1, 1, 0]),
    }
    return x, y


def cases() -> dict[str, tuple]:
    encoder, (x, y) = Encoder(SHALLOW), pretraining_targets()
    span = {"start": tf.constant([0, 1, 2, 0]), "end": tf.constant([3, 2, 4, 1])}
    cross_entropy = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    return {
        "pretrainer": (PreTrainer(encoder), {}, x, y),
        "tokens": (TokenClassifier(encoder, None, range(3)), {}, inputs(), tf.constant(tags())),
        "spans": (answerer(encoder), {}, inputs(), span),
        "score": (
            TextRegressor(encoder, None),
            {"loss": keras.losses.MeanSquaredError()},
            inputs(),
            tf.constant([0.5, 2.0, -1.0, 0.0]),
        ),
        "sequence": (
            TextClassifier(encoder, None, range(2)),
            {"loss": cross_entropy},
            inputs(),
            tf.constant([0, 1, 1, 0]),
        ),
    }


@pytest.mark.end_to_end
@pytest.mark.parametrize(
    ("case", "ways"),
    [
        ("pretrainer", [(4, True)]),
        ("tokens", [(3, False)]),
        *(
            pytest.param(case, [(parts, False), (1, True), (parts, True)], marks=pytest.mark.slow)
            for case, parts in (("spans", 4), ("sequence", 3), ("score", 3))
        ),
    ],
)
def test_less_memory_makes_the_same_update(case, ways):
    model, loss, x, y = cases()[case]
    start, results = model.get_weights(), []
    for accumulation_steps, rematerialize in ((1, False), *ways):
        model.set_weights(start)
        saving = {"accumulation_steps": accumulation_steps, "rematerialize": rematerialize}
        model.compile(AdamW(1e-3, epsilon=1e-3), **saving, **loss)
        dataset = tf.data.Dataset.from_tensors((x, y)).repeat()
        history = model.fit(dataset, steps_per_epoch=2, shuffle=False, verbose=0).history
        assert int(model.optimizer.iterations) == 2
        results.append((history, model.get_weights()))
    (history, weights), *others = results
    for other_history, other_weights in others:
        assert other_history.keys() == history.keys()
        for name, values in history.items():
            assert other_history[name] == pytest.approx(values, rel=1e-4), name
        for one, other in zip(weights, other_weights, strict=True):
            np.testing.assert_allclose(one, other, rtol=0, atol=2e-6)


@pytest.mark.slow
@pytest.mark.parametrize("has_static_shapes", [True, False])
def test_parts_of_a_batch_compile_with_xla(has_static_shapes):
    encoder = Encoder(SHALLOW, layout="padded")
    if has_static_shapes:
        model, loss = PreTrainer(encoder), {}
        batches = tf.data.Dataset.from_tensors(pretraining_targets()).repeat(2)
    else:
        model, loss = TextRegressor(encoder, None), {"loss": "mse"}
        # The last batch has a row alone.
        batches = tf.data.Dataset.from_tensor_slices((inputs(), [0.5, 2.0, -1.0, 0.0])).batch(3)
    start, results = model.get_weights(), []
    for jit_compile in (False, True):
        model.set_weights(start)
        saving = {"accumulation_steps": 2, "jit_compile": jit_compile}
        model.compile(AdamW(1e-3, epsilon=1e-3), **saving, **loss)
        losses = model.fit(batches, shuffle=False, verbose=0).history["loss"]
        results.append([losses, *model.get_weights()])
    assert results[1][0] == pytest.approx(results[0][0], rel=1e-5)
    for one, other in zip(results[0][1:], results[1][1:], strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=2e-6)


@pytest.mark.parametrize("reduction", ["sum", "mean_with_sample_weight"])
def test_a_loss_that_is_no_mean_over_rows_is_refused_with_parts(reduction):
    model = TextRegressor(Encoder(SHALLOW), None)
    loss = keras.losses.MeanSquaredError(reduction=reduction)
    model.compile(AdamW(1e-3), loss)
    told = f"a loss with reduction '{reduction}' cannot be computed over parts"
    for args, options in (((), {"loss": loss}), ((), {"loss": [loss]}), ((loss,), {})):
        with pytest.raises(UserError, match=told):
            model.compile(AdamW(1e-3), *args, **options, accumulation_steps=2)


def test_less_than_one_part_is_refused():
    with pytest.raises(UserError, match="accumulation_steps must be at least 1, got 0"):
        answerer(Encoder(SHALLOW)).compile(AdamW(1e-3), accumulation_steps=0)


def test_a_compiled_model_comes_back_compiled_and_trains_on_as_it_would_have(tmp_path):
    model = PreTrainer(Encoder(SHALLOW))
    optimizer = AdamW(WarmupLinearDecay(1e-2, 20, 2), clip_norm=0.5)
    model.compile(optimizer, accumulation_steps=2, run_eagerly=True)
    x, y = pretraining_targets()
    model.fit(x, y, batch_size=4, verbose=0)
    model.save(tmp_path / "model.keras")
    again = keras.models.load_model(tmp_path / "model.keras")
    assert again.accumulation_steps == 2
    assert again.optimizer.get_config() == model.optimizer.get_config()
    for each in (model, again):
        each.fit(x, y, batch_size=4, epochs=1, shuffle=False, verbose=0)
    assert_same_state(model, again)
    np.testing.assert_equal(again.get_weights(), model.get_weights())


def assert_same_state(one: keras.Model, other: keras.Model) -> None:
    """The optimizers of two models have equal variables."""
    np.testing.assert_equal(*([v.numpy() for v in m.optimizer.variables] for m in (one, other)))


def test_models_that_do_not_pool_need_no_pooler():
    for make in (answerer, lambda encoder: TokenClassifier(encoder, None, range(3))):
        model = make(Encoder(SHALLOW, with_pooler=False))
        assert len(model.trainable_weights) == len(model.weights)
    with pytest.raises(UserError, match="MultipleChoice requires the pooled output"):
        MultipleChoice(Encoder(SHALLOW, with_pooler=False), None)


def test_losses_that_are_built_in_are_not_given_again():
    model = TokenClassifier(Encoder(SHALLOW), None, range(3))
    for given in ({"loss": "mse"}, {"metrics": ["accuracy"]}):
        with pytest.raises(UserError, match="has its loss and metrics built in"):
            model.compile("sgd", **given)


@pytest.mark.slow
def test_training_is_refused_where_weights_are_assumed_frozen(monkeypatch):
    x, y = pretraining_targets()
    models = [PreTrainer(Encoder(SHALLOW)) for _ in range(3)]
    for model in models:
        model.compile(AdamW(1e-2))
    # TensorFlow reads the environment variable once, in this `fit`, so later tests can train.
    models[0].fit(x, y, batch_size=4, verbose=0)
    monkeypatch.setenv("TF_ONEDNN_ASSUME_FROZEN_WEIGHTS", "1")
    with pytest.raises(UserError, match="ASSUME_FROZEN_WEIGHTS is set, .*; unset it"):
        models[1].fit(x, y, batch_size=4, verbose=0)
    models[2].evaluate(x, y, batch_size=4, verbose=0)
    monkeypatch.setenv("TF_ONEDNN_ASSUME_FROZEN_WEIGHTS", "0")
    models[2].fit(x, y, batch_size=4, verbose=0)


BUILDERS = {
    "encoder": lambda encoder: encoder,
    "pretrainer": PreTrainer,
    "masked_lm": lambda encoder: PreTrainer(encoder, next_sentence=False),
    "sequence": lambda encoder: TextClassifier(encoder, None, range(3), dropout=0.3),
    "spans": answerer,
    "tokens": lambda encoder: TokenClassifier(encoder, None, range(3), dropout=0.2),
    "choices": lambda encoder: MultipleChoice(encoder, None),
    "tagger": lambda encoder: TokenClassifier(
        encoder, None, range(3), features="sum_all", lstm_units=4
    ),
}


@pytest.mark.slow
def test_frozen_layers_are_still_frozen_in_a_keras_file_and_the_optimizer_keeps_its_state(tmp_path):
    config = EncoderConfig(**CONFIG.to_dict() | {"attention": "side_by_side"})
    model = TextClassifier(encoder_for(config), None, range(3))
    for encoder in model.encoder.towers().values():
        encoder.embeddings.trainable = encoder.blocks[0].trainable = False
    model.encoder.left_to_right.blocks[1].attention.trainable = model.classifier.trainable = False
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(AdamW(1e-3), loss)
    model.fit(inputs(), np.array([0, 2, 1, 0]), batch_size=2, verbose=0)
    model.save(tmp_path / "model.keras")
    again = keras.models.load_model(tmp_path / "model.keras")
    names = [weight.path for weight in model.trainable_weights]
    assert [weight.path for weight in again.trainable_weights] == names
    assert_same_state(model, again)


@pytest.mark.parametrize(
    "dtype", ["float32", pytest.param("mixed_bfloat16", marks=pytest.mark.bfloat16)]
)
@pytest.mark.parametrize("kind", BUILDERS)
def test_every_model_comes_back_from_a_keras_file(kind, dtype, tmp_path):
    config = EncoderConfig(**SHALLOW.to_dict() | {"attention": "right_to_left"})
    model = BUILDERS[kind](encoder_for(config, layout="padded", dtype=dtype))
    model.save(tmp_path / "model.keras")
    again = keras.models.load_model(tmp_path / "model.keras")
    assert type(again) is type(model)
    assert again.get_config() == model.get_config()
    assert again.dtype_policy == model.dtype_policy
    encoder = getattr(again, "encoder", again)
    assert (encoder.config, encoder.layout) == (config, "padded")
    assert [w.path for w in again.weights] == [w.path for w in model.weights]
    assert len(again.trainable_weights) == len(model.trainable_weights)
    x = inputs(np.array([[7, 3], [5, 2]])) if kind == "choices" else pretraining_targets()[0]
    np.testing.assert_equal(*(tf.nest.map_structure(np.array, each(x)) for each in (again, model)))
